# Thin names over cargo and kubectl. `make` alone prints help.
SHELL := /bin/bash
CARGO ?= cargo
MODEL ?= scripted
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
# Incremental builds keep gigabytes beside each clean one, and make it slower.
export CARGO_INCREMENTAL ?= 0
export PATH := $(CURDIR)/.tools/venv/bin:$(PATH)
export JOURNEYMAN_NATS_SERVER ?= $(firstword $(wildcard $(CURDIR)/.tools/venv/bin/nats-server))

.PHONY: help setup demo test lint advisories fmt bench bench-docs bench-setup peers profile-build faults up images images-check cluster-test k8s-check sandbox-check crash-matrix replay fuzz contract console-check skew-check scale-sim wheel release release-check install whole-stories

help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 12

setup: ## Install what demo and tests need and the machine lacks
	@scripts/setup.sh

# The selection of the whole workspace keeps one set of features, so that `make test` builds nothing twice.
SERVICES = --workspace --bin ingest --bin planner --bin executor --bin launcher --bin parser --bin reporter --bin inspector --bin egress
BUILD_SCENARIOS = $(CARGO) build --quiet --locked $(SERVICES) --bin scenarios

# The AWS libraries serve Bedrock alone, which the demo cannot play: its first build is shorter without them.
demo: setup ## Play one ticket to a merged pull request (MODEL=anthropic|openai for a real model)
	@$(BUILD_SCENARIOS) --no-default-features
	@$(TARGET_DIR)/debug/scenarios demo --model $(MODEL) $(if $(MODEL_BASE_URL),--model-base-url $(MODEL_BASE_URL)) $(if $(MODEL_NAME),--model-name $(MODEL_NAME)) $(DEMO_ARGS)

# Most tests wait for processes and servers, so twice as many run at once as there are cores. Documentation has no code, so `--tests`
# leaves out rustdoc, which would start once for each library.
test: export RUST_TEST_THREADS ?= $(shell echo $$(( $$(nproc) * 2 )))
test: setup ## Run every test: unit, contract, end to end
	$(CARGO) build --locked --workspace --bins --tests
	$(CARGO) test --locked --workspace --tests --no-fail-fast

whole-stories: setup ## Play at their whole size the stories that `make test` plays small: a first clone of 400 s
	$(CARGO) build --locked --workspace --bins --tests
	JOURNEYMAN_WHOLE_STORIES=1 $(CARGO) test --locked --workspace --test stories slow_clone -- --nocapture

# The names of these properties begin with fuzz_; `make test` tries each of them 4,000 times.
fuzz: ## Try parsers of foreign text with broken input: [CASES=200000]
	PROPTEST_CASES=$(or $(CASES),200000) $(CARGO) test --locked --workspace --lib fuzz_

contract: setup ## Compare the stand-ins and our clients of GitHub and Jira with what the vendors publish
	@scripts/contract.sh

# The command and the planner without their default features. Executor and console are selected with them because their dependencies
# then keep most features that they have in the whole workspace: 35 instead of 123 libraries are checked a second time.
WITHOUT_DEFAULTS = --package journeyman --package planner --package executor --package journeyman-console

lint: ## Formatting, clippy and documentation, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked $(WITHOUT_DEFAULTS) --no-default-features --lib -- -D warnings
	$(CARGO) clippy --locked --package failpoint --lib --release -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items --quiet

advisories: ## Ask the database of advisories about every crate; says so where it cannot be reached
	@scripts/advisories.py --self-test
	@scripts/advisories.py

fmt: ## Format the code
	$(CARGO) fmt --all

bench-setup: # As `setup`, with what the floors of the bench need.
	@scripts/setup.sh bench

# Without link-time optimization: it costs minutes a binary and changes no ratio.
BENCH_BUILD = CARGO_PROFILE_RELEASE_LTO=off $(BUILD_SCENARIOS) --release --bin journeyman

bench: bench-setup ## Print one line for each figure: bench <name> <value> <unit> [PARTS="services tickets proof large polls durable retrieval tokens folder setup whole operation crowd"] [BENCH_ARGS=--long]
	@$(BENCH_BUILD)
	@$(TARGET_DIR)/release/scenarios bench $(PARTS) $(BENCH_ARGS)

bench-docs: bench-setup ## Measure as `make bench` does and write the figures into docs/: commit first, on a quiet machine [BENCH_ARGS=--long]
	@$(BENCH_BUILD)
	@$(TARGET_DIR)/release/scenarios bench $(PARTS) $(BENCH_ARGS) --write-docs docs

peers: setup ## Play the bench's tickets with Journeyman and with mini-swe-agent from PyPI; prints peer <name> <value> <unit>
	@$(BENCH_BUILD)
	@scripts/peers/mini_swe_agent.py $(TARGET_DIR)/release/scenarios

# Its programs are in $(TARGET_DIR)/profiling, for `perf record` and heap profilers.
profile-build: ## Build services and scenarios with optimizations and the names of their functions
	@$(BUILD_SCENARIOS) --bin journeyman --profile profiling

faults: setup ## Kill, freeze and restart everything while tickets are under way: [TICKETS=200] [SEED=…]
	@$(BUILD_SCENARIOS)
	@$(TARGET_DIR)/debug/scenarios faults --tickets $(or $(TICKETS),200) $(if $(SEED),--seed $(SEED))

replay: setup ## Play real bug fixes of published packages from ticket to patch: [FIXES="id id"]; downloads releases
	@$(CARGO) build --quiet --locked --workspace --bins
	@$(TARGET_DIR)/debug/scenarios replay $(FIXES)

crash-matrix: setup ## Crash at every failpoint of a story, start again, compare the end; prints point, outcome, ms
	@$(BUILD_SCENARIOS)
	@$(TARGET_DIR)/debug/scenarios crash-matrix $(CRASH_MATRIX_ARGS)

wheel: ## Build the wheel with maturin, install it into an empty environment, look: prints wheel ok, [PROFILE=dev]
	@scripts/wheel.sh

release: ## Build the archive of the command with manual pages and completions, and checksums: prints release ok, [PROFILE=dev]
	@scripts/release.sh

release-check: ## Lint workflows, action and compose file, and play a dry run of the release: [TAG=v0.1.0]
	@scripts/release-check.sh $(TAG)

install: ## Build the command and install it: [PREFIX=~/.local] [PROFILE=dev]
	@scripts/tree.sh $(or $(PREFIX),$(HOME)/.local) $(PROFILE)

up: setup ## Start everything on this machine; settings from journeyman.toml
	@$(CARGO) build --quiet --locked --workspace --bins
	@$(TARGET_DIR)/debug/journeyman up

skew-check: setup ## Play tickets with services of two releases: [PREVIOUS=commit, else the last tag] [CASES="upgrade …"]
	@PREVIOUS=$(PREVIOUS) scripts/skew-check.sh $(CASES)

scale-sim: ## Simulate 500 repositories, 2,000 open pull requests and 50 executors; prints calls and messages per minute
	@$(CARGO) build --quiet --locked --workspace --bin scenarios
	@$(TARGET_DIR)/debug/scenarios scale-sim $(SCALE_ARGS)

sandbox-check: setup ## Try to get out of the sandbox, at every level that this machine reaches; prints check, level, outcome
	@scripts/sandbox-check.sh

console-check: setup ## Check every page of the console in a real Chromium; prints page, state, look, outcome
	@scripts/console-check.sh

images: ## Build the seven images
	@for service in ingest planner executor reporter egress console cli; do docker build --target $$service --build-arg COMMIT=$$(git rev-parse HEAD) -t journeyman/$$service:0.1.0 . || exit 1; done

images-check: ## Build every image without a registry and start it; prints image, size
	@scripts/images-check.sh

cluster-test: ## Play rounds of tickets on the cluster of the kubeconfig: [TICKETS=20] [KUSTOMIZATION=k8s/base] [CLUSTER_TEST_ARGS="--rounds drain"]
	@$(CARGO) build --quiet --locked --workspace --bin scenarios
	@$(TARGET_DIR)/debug/scenarios cluster-test --tickets $(or $(TICKETS),20) --kustomization $(or $(KUSTOMIZATION),k8s/base) $(CLUSTER_TEST_ARGS)

k8s-check: ## Render and validate the manifests offline
	@scripts/k8s-check.sh
