# Everything a developer does has a target here; `make check` is all that CI runs.

CARGO ?= cargo

.PHONY: test check

test:
	$(CARGO) test --locked --quiet

check:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --quiet
	$(CARGO) test --locked --quiet

