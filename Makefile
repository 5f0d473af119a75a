# The commands of this project. `make test` is what decides whether a change is good.

CARGO ?= cargo

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' Makefile

.PHONY: run
run: ## Serve with the default settings, built for speed
	$(CARGO) run --release

.PHONY: test
test: needs lint test-none test-client test-default doc ## Every test and check; installs what is missing

.PHONY: needs
needs: ## Install what the tests need and this machine lacks
	@scripts/needs.sh

.PHONY: lint
lint: ## Format and lints, with every set of features
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --no-default-features -- -D warnings
	$(CARGO) clippy --locked --all-targets --no-default-features --features client-central -- -D warnings
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --all-targets --all-features -- -D warnings

.PHONY: test-none
test-none: ## Tests of the crate without features
	$(CARGO) test --locked --no-default-features

.PHONY: test-client
test-client: ## Tests of the client library, as callers build it and against a server
	$(CARGO) test --locked --no-default-features --features client-central
	$(CARGO) test --locked --features client-central client

.PHONY: test-default
test-default: ## Tests of the program as it is built by default
	$(CARGO) test --locked

.PHONY: crash
crash: ## Kill a loaded server a hundred times and count what it forgets; takes some minutes
	CRASHES=100 $(CARGO) test --locked --test it crash_forgets

.PHONY: fuzz
fuzz: ## Random requests against the scanner for a minute; needs cargo-fuzz
	@$(CARGO) fuzz --version >/dev/null 2>&1 || { echo "cargo-fuzz is missing: cargo install cargo-fuzz --locked" >&2; exit 1; }
	RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run scan --sanitizer none -- -max_total_time=60 -dict=fuzz/resp.dict

.PHONY: doc
doc: ## The documentation, private things included, without a warning
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items --features client-central
