# These targets download everything that they need into .tools/, except the Rust toolchain, python3, and Node with npm.
# clamd, promtool, nginx, caddy, chromium and faketime, which the tests need, are installed as Debian packages.

TOOLS := .tools
TARGET := $(or $(CARGO_TARGET_DIR),target)

# Each version has its own folder, so an upgrade only changes the number here.
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(TOOLS)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
CARGO_LLVM_COV_VERSION := 0.9.1
CARGO_LLVM_COV := $(TOOLS)/cargo-llvm-cov-$(CARGO_LLVM_COV_VERSION)/bin/cargo-llvm-cov

CARGO_CYCLONEDX_VERSION := 0.5.9
CARGO_CYCLONEDX := $(TOOLS)/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION)/bin/cargo-cyclonedx

# nextest runs the tests of all binaries in parallel, but it does not run doc tests.
ifneq ($(shell command -v cargo-nextest 2>/dev/null),)
# Some tests mostly wait, so one more test runs at a time than there are processors.
RUN_TESTS := cargo nextest run --locked --workspace --test-threads $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
RUN_DOC_TESTS := cargo test --locked --workspace --doc
else
RUN_TESTS := cargo test --locked --workspace
RUN_DOC_TESTS :=
endif

CLAMD := /usr/sbin/clamd
PROMTOOL := /usr/bin/promtool
NGINX := /usr/sbin/nginx
CADDY := /usr/bin/caddy
CHROMIUM := /usr/bin/chromium
# PostgreSQL with TLS, which the one of scripts/with-postgres was built without. Its folder has the version in its name.
POSTGRES_TLS = $(shell ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
# Debian packages belong to the machine, not to the project: they are installed once, as root or with sudo, in one call. Each is known
# by one of its files. Helm is not in Debian, but its template engine and functions are; faketime gives processes clocks that jump.
PACKAGES := clamav-daemon=$(CLAMD) prometheus=$(PROMTOOL) nginx-light=$(NGINX) caddy=$(CADDY) chromium=$(CHROMIUM) \
	postgresql=/usr/lib/postgresql/*/bin/postgres faketime=/usr/bin/faketime \
	golang-go=/usr/bin/go golang-github-masterminds-sprig-dev=/usr/share/gocode/src/github.com/Masterminds/sprig/functions.go \
	golang-k8s-sigs-yaml-dev=/usr/share/gocode/src/sigs.k8s.io/yaml/yaml.go systemd=/usr/bin/systemd-analyze \
	docker-compose=/usr/bin/docker-compose
MISSING := $(strip $(foreach entry,$(PACKAGES),$(if $(wildcard $(lastword $(subst =, ,$(entry)))),,$(firstword $(subst =, ,$(entry))))))
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
TEST_PROGRAMS = LANDFALL_TEST_CLAMD=$(CLAMD) LANDFALL_TEST_PROMTOOL=$(PROMTOOL) LANDFALL_TEST_NGINX=$(NGINX) \
	LANDFALL_TEST_CADDY=$(CADDY) LANDFALL_TEST_CHROMIUM=$(CHROMIUM) LANDFALL_TEST_POSTGRES_TLS=$(POSTGRES_TLS)

# Third-party clients and Azurite for the tests. npm writes this file when it is done.
NODE := $(TOOLS)/node
NODE_CLIENTS := $(NODE)/node_modules/.package-lock.json
# What the console and the TypeScript client are built and tested with.
NODE_WORKSPACE := node_modules/.package-lock.json

.DEFAULT_GOAL := help
.PHONY: help run release model test test-quick simulate fuzz miri coverage bench bench-peers chaos load console fmt lint deny deploy-check image-test sbom advisories clean packages check-simulation check-api check-console check-client check-chaos check-docs

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build Landfall quickly and start it on SQLite and a folder
	@echo "Building with the profile 'quick', which builds fast and runs slower; 'make release' builds the program for production"
	cargo build --profile quick --locked -p landfall-cli
	@exec $(TARGET)/quick/landfall serve

release: ## Build the program for production: target/release/landfall
	cargo build --release --locked -p landfall-cli
	@echo "$(TARGET)/release/landfall"

model: ## Download a better model than the built-in one, and print how to use it
	@scripts/fetch-model

# What mostly downloads runs beside what compiles, and what mostly waits beside what computes.
test: ## Check everything: lint, deny, the tests on SQLite and PostgreSQL, 3,000 histories, the API, the client, the console, the docs
	$(MAKE) --jobs=2 lint packages deny deploy-check $(NODE_CLIENTS) $(NODE_WORKSPACE)
	$(TEST_PROGRAMS) LANDFALL_TEST_NODE=$(NODE) LANDFALL_TEST_SIMULATED=1000 \
		scripts/with-postgres --no-sync scripts/with-object-stores $(RUN_TESTS)
	$(MAKE) --jobs=3 --output-sync=target check-simulation check-api check-console check-client check-chaos check-docs

# The histories that follow those of the tests. It computes for as long as the others wait, and lets them go first.
check-simulation:
	nice -n 10 $(TARGET)/debug/landfall-sim --first 1001 --seeds 2000

check-api:
	scripts/schemathesis $(TARGET)/debug/landfall
	scripts/check-description $(TARGET)/debug/landfall

check-console: $(NODE_WORKSPACE)
	web/check $(TARGET)/debug/landfall

check-client: $(NODE_WORKSPACE)
	clients/typescript/check $(TARGET)/debug/landfall

check-chaos: packages
	tests/chaos/selftest
	tests/chaos/chaos $(TARGET)/debug/landfall --seconds 36 --seed 693200

check-docs:
	$(RUN_DOC_TESTS)
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --workspace

test-quick: ## Run the tests on SQLite only
	cargo test --workspace

# FIRST=N begins with another seed.
SEEDS ?= 10000
FIRST ?= 1
simulate: ## Run SEEDS histories of several processes with faults; tell the first that fails, made as small as possible
	cargo run --profile simulate --locked -p landfall-sim -- --first $(FIRST) --seeds $(SEEDS) --coverage

# TARGETS="pdf docx" searches only these. JOBS=1 searches in one at a time.
fuzz: ## Search for inputs that break readers, protocol, settings, tokens or requests: SECONDS=60 for each target
	crates/fuzz/run $(or $(SECONDS),60) $(TARGETS)

# Miri is a part of the nightly compiler. It reports only the features of a processor that the program was compiled for.
MIRI_FEATURES := +popcnt,+avx2,+fma,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx512vpopcntdq
MIRI_TEST = RUSTFLAGS="-Ctarget-feature=$(MIRI_FEATURES)" cargo +nightly miri test --locked
miri: ## Run the unsafe code that Miri can run: the products of bytes, the scores of codes, the allocator
	cargo +nightly miri --version >/dev/null 2>&1 || \
		rustup toolchain install nightly --profile minimal --component miri --component rust-src
	$(MIRI_TEST) -p landfall-models --lib -- encoder::tests::every_kernel_multiplies
	$(MIRI_TEST) -p landfall-documents --lib -- sandbox::memory
	$(MIRI_TEST) -p landfall-models --lib -- bits::tests::all_sets

# TESTS="search:: events::" runs only these.
coverage: $(CARGO_LLVM_COV) packages $(NODE_CLIENTS) ## Run the tests on both databases, and print how many lines of each crate they ran
	PATH="$(abspath $(dir $(CARGO_LLVM_COV))):$$PATH" \
		$(TEST_PROGRAMS) LANDFALL_TEST_NODE=$(NODE) \
		scripts/with-postgres --no-sync scripts/with-object-stores scripts/coverage $(TESTS)

bench: release $(NODE_CLIENTS) ## Measure the queue on both databases, the reading of documents, the quality of search, and uploads
	scripts/with-postgres cargo bench --locked -p landfall-cli --bench flows
	cargo bench --locked -p landfall-cli --bench sandbox
	cargo bench --locked -p landfall-cli --bench documents
	bench/collections $(TARGET)/release/landfall
	bench/readers/run $(or $(LANDFALL_CORPUS),../shared/corpus)
	scripts/with-postgres scripts/with-object-stores bench/storage $(TARGET)/release/landfall

# LANDFALL_FLOWS=PATH adds Landfall's own lines: see docs/performance.md.
bench-peers: ## Install and measure BullMQ, pg-boss, graphile-worker and apalis with the work that the queue is measured with
	bench/peers/run install full takeover

# MINUTES=10 is shared by all three worlds. SEED=… draws the same faults again. PROGRAM=… is a program that was built before.
chaos: packages $(if $(PROGRAM),,debug-program) ## Kill, freeze, cut off and fill up real processes, and check every promise (MINUTES=10)
	tests/chaos/selftest
	tests/chaos/chaos $(or $(PROGRAM),$(TARGET)/debug/landfall) --seconds $(shell expr 60 \* $(or $(MINUTES),10)) \
		$(if $(SEED),--seed $(SEED)) --keep $(TARGET)/chaos

load: $(if $(PROGRAM),,release) ## Use a real server for an hour, and draw what that costs: target/load/load.svg (MINUTES=60)
	tests/load/load $(or $(PROGRAM),$(TARGET)/release/landfall) --minutes $(or $(MINUTES),60) --output $(TARGET)/load

.PHONY: debug-program
debug-program:
	cargo build --locked -p landfall-cli

# The built files are in the repository, so that the program can be built without Node.
console: $(NODE_WORKSPACE) ## Build the web console from web/ into the sources of the server
	npm run build -w web

fmt: ## Format the code
	cargo fmt

lint: ## Check formatting and lints
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo check --locked -p landfall-documents --no-default-features

deny: $(CARGO_DENY) ## Check the dependencies: licences, bans and sources
	$(CARGO_DENY) --locked check bans licenses sources

deploy-check: packages ## Check the chart, the systemd unit and the compose files
	deploy/check

# PROGRAM=target/release/landfall tests a program that was built before; otherwise it is compiled in the image.
image-test: ## Build the image without a registry, and run it and the systemd unit (root, Debian)
	apt-get install -q -y --no-install-recommends buildah podman crun debootstrap
	deploy/test-image $(or $(PROGRAM),--toolchain)

sbom: $(CARGO_CYCLONEDX) ## List all dependencies of the program in CycloneDX: target/landfall.cdx.json
	$(CARGO_CYCLONEDX) cyclonedx --manifest-path crates/cli/Cargo.toml --format json --spec-version 1.5 \
		--override-filename landfall.cdx
	@mkdir -p $(TARGET)
	@# The folder of this machine does not belong into it.
	sed 's#file://$(CURDIR)/#file:///#g' crates/cli/landfall.cdx.json > $(TARGET)/landfall.cdx.json
	@rm -f crates/*/landfall.cdx.json
	@echo "$(TARGET)/landfall.cdx.json"

# Not part of `make test`: the database of advisories is on GitHub, which a closed build machine cannot reach.
advisories: $(CARGO_DENY) ## Check the dependencies for known vulnerabilities (needs GitHub)
	$(CARGO_DENY) --locked check advisories

clean: ## Remove everything that was built or downloaded here; your data stays
	cargo clean
	rm -rf $(TOOLS) node_modules clients/typescript/dist

# They run only for seconds, so they are built in the fastest way: without optimisation and without debug information.
$(CARGO_DENY):
	CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_INCREMENTAL=false \
		cargo install --locked --debug cargo-deny --version =$(CARGO_DENY_VERSION) --no-track \
		--root $(TOOLS)/cargo-deny-$(CARGO_DENY_VERSION)

$(CARGO_CYCLONEDX):
	CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_INCREMENTAL=false \
		cargo install --locked --debug cargo-cyclonedx --version =$(CARGO_CYCLONEDX_VERSION) --no-track \
		--root $(TOOLS)/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION)

$(CARGO_LLVM_COV):
	CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_INCREMENTAL=false \
		cargo install --locked --debug cargo-llvm-cov --version =$(CARGO_LLVM_COV_VERSION) --no-track \
		--root $(TOOLS)/cargo-llvm-cov-$(CARGO_LLVM_COV_VERSION)

packages:
ifneq ($(MISSING),)
	@echo "The tests need these Debian packages: $(MISSING)"
	$(AS_ROOT) apt-get update -q
	$(AS_ROOT) apt-get install -q -y --no-install-recommends $(MISSING)
endif

$(NODE_WORKSPACE): package.json package-lock.json clients/typescript/package.json web/package.json
	npm ci
	@touch $@

$(NODE_CLIENTS): tests/clients/package.json tests/clients/package-lock.json
	mkdir -p $(NODE)
	cp tests/clients/package.json tests/clients/package-lock.json tests/clients/.npmrc $(NODE)
	cd $(NODE) && npm ci
	@touch $@
