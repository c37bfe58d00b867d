# Everything a developer does has a target here; `make check` is all that CI runs.

CARGO ?= cargo
PREFIX ?= /usr/local
BINARY = $(or $(CARGO_TARGET_DIR),target)/release/cotter

# What Rust calls this machine, such as x86_64-unknown-linux-gnu or aarch64-unknown-linux-musl.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
STATIC_BINARY = $(or $(CARGO_TARGET_DIR),target)/$(HOST)/release/cotter
IMAGE ?= cotter

.PHONY: demo test check guard sizes static image image-check sdk-test bench bench-search many record install soak fuzz fuzz-coverage

# Builds cotter and runs the main job on a recording: offline, without a key, on a real file.
demo:
	$(CARGO) build --release --locked
	cd fixtures/demo && "$(abspath $(BINARY))" --replay recording --no-session-persistence --tools Read -p \
	  "What is the content of apple.py? Print exact file contents without backticks." </dev/null

test:
	$(CARGO) test --locked --quiet

# TESTED=1 leaves out the tests, for who has just run them by `make test`.
check:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --quiet
	$(if $(TESTED),,$(CARGO) test --locked --quiet)
	$(MAKE) --no-print-directory demo
	$(MAKE) --no-print-directory image-check
	$(MAKE) --no-print-directory guard

# Fails when the binary, its dependencies or the first request have grown; ACCEPT=--accept lets them.
guard:
	$(CARGO) build --release --locked
	python3 bench/guard.py "$(abspath $(BINARY))" $(ACCEPT)

# Writes to bench/sizes.md what each package adds to the binary, of a build of its own that keeps the names.
sizes:
	python3 bench/sizes.py

# Builds a binary that needs nothing of the system it runs on but the kernel, for this kind of machine. It lies at a
# fixed address: what has to be moved costs 69 of 125 page faults at the start, and as many pages of each process.
static:
	@image/static-library.sh "$(HOST)"
	RUSTFLAGS="$(RUSTFLAGS) -C target-feature=+crt-static -C relocation-model=static" $(CARGO) build --release --locked --target "$(HOST)"
	@ls -l "$(STATIC_BINARY)"

# Builds the image of the Dockerfile: make image IMAGE=example.org/me/cotter
image:
	@image/build.sh "$(IMAGE)"

# Tries what that image holds, without an engine, where a static binary can be built.
image-check:
	@if missing=$$(image/static-library.sh "$(HOST)" 2>&1); then \
	  $(MAKE) --no-print-directory static && python3 image/check.py "$(STATIC_BINARY)"; \
	else echo "SKIPPED image_check: $${missing#make static: }"; fi

# Runs Anthropic's SDK for Python on cotter, with replayed replies: make sdk-test CASES="resume images" for some.
sdk-test:
	$(CARGO) build --release --locked
	python3 sdk/run.py "$(abspath $(BINARY))" $(CASES)

# Measures cotter beside curl and a bare C client, and a static build of it where there can be one.
HAS_LIBRARY = $(shell image/static-library.sh "$(HOST)" 2>/dev/null && echo yes)
MEASURED = "$(abspath $(BINARY))" $(if $(HAS_LIBRARY),"$(abspath $(STATIC_BINARY))")
bench:
	$(CARGO) build --release --locked
	$(if $(HAS_LIBRARY),$(MAKE) --no-print-directory static)
	python3 bench/bench.py $(MEASURED)
	python3 bench/start.py $(MEASURED)
	python3 bench/containment.py "$(abspath $(BINARY))"

# Runs a task of 2,000 turns and 500 tasks at once, and fails where memory grows or anything is left behind.
soak:
	$(CARGO) build --release --locked
	python3 bench/soak.py "$(abspath $(BINARY))"

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

# Throws bytes at one of the targets in fuzz/, which needs cargo-fuzz: make fuzz TARGET=edit SECONDS=600
SECONDS ?= 60
fuzz:
	python3 fuzz/seeds.py fuzz/corpus
	$(CARGO) fuzz run -s none "$(TARGET)" -- -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=1024 -max_len=16384 \
	  -print_final_stats=1 -dict=fuzz/dictionaries/$(TARGET).dict

# Which lines the corpus of a target reaches: make fuzz-coverage TARGET=edit LLVM=/usr/lib/llvm-19/bin
fuzz-coverage:
	$(CARGO) fuzz coverage -s none --llvm-path "$(LLVM)" "$(TARGET)"
	"$(LLVM)/llvm-cov" report target/*/coverage/*/release/$(TARGET) \
	  -instr-profile=fuzz/coverage/$(TARGET)/coverage.profdata --ignore-filename-regex='registry|rustc|fuzz/targets'
