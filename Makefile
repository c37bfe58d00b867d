# Everything a developer does has a target here; `make check` is all that CI runs.

CARGO ?= cargo
PREFIX ?= /usr/local
BINARY = $(or $(CARGO_TARGET_DIR),target)/release/cotter

.PHONY: demo test check sdk-test bench bench-search many record install

# Builds cotter and runs the main job on a recording: offline, without a key, on a real file.
demo:
	$(CARGO) build --release --locked
	cd fixtures/demo && "$(abspath $(BINARY))" --replay recording --no-session-persistence --tools Read -p \
	  "What is the content of apple.py? Print exact file contents without backticks." </dev/null

test:
	$(CARGO) test --locked --quiet

check:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --quiet
	$(CARGO) test --locked --quiet
	$(MAKE) --no-print-directory demo

# Runs Anthropic's SDK for Python on cotter, with replayed replies: make sdk-test CASES="resume images" for some.
sdk-test:
	$(CARGO) build --release --locked
	python3 sdk/run.py "$(abspath $(BINARY))" $(CASES)

bench:
	$(CARGO) build --release --locked
	python3 bench/bench.py "$(abspath $(BINARY))"
	python3 bench/containment.py "$(abspath $(BINARY))"

# Compares Glob and Grep with ripgrep, in what they find and how long they take: make bench-search RG=/usr/bin/rg
bench-search:
	$(CARGO) build --release --locked
	python3 bench/search.py "$(abspath $(BINARY))" "$(RG)"

# Runs a queue of 1,000 prompts by xargs, GNU parallel and ssh, killed in the middle; then 1,000 runs alive at once.
many:
	$(CARGO) build --release --locked
	python3 bench/many.py "$(abspath $(BINARY))"
	python3 bench/alive.py "$(abspath $(BINARY))"
	python3 bench/alive.py "$(abspath $(BINARY))" --tools

# Records the fixtures anew from a server that speaks both APIs: make record SERVER=http://127.0.0.1:8080
record:
	$(CARGO) build --release --locked
	python3 fixtures/record.py "$(abspath $(BINARY))" "$(SERVER)" $(if $(TEXT_SERVER),--text-server "$(TEXT_SERVER)")

install:
	$(CARGO) build --release --locked
	install -Dm755 "$(BINARY)" "$(DESTDIR)$(PREFIX)/bin/cotter"
	"$(BINARY)" --man >"$(BINARY).1"
	install -Dm644 "$(BINARY).1" "$(DESTDIR)$(PREFIX)/share/man/man1/cotter.1"
	"$(BINARY)" --completions bash >"$(BINARY).bash"
	install -Dm644 "$(BINARY).bash" "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/cotter"
	"$(BINARY)" --completions zsh >"$(BINARY).zsh"
	install -Dm644 "$(BINARY).zsh" "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_cotter"
	"$(BINARY)" --completions fish >"$(BINARY).fish"
	install -Dm644 "$(BINARY).fish" "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/cotter.fish"
