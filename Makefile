# Everything a developer runs. `make help` lists it. Nothing but Go, git and make is needed.

# .ci/modules lists the Go modules of this repository; every target that says "every module" reads it.
MODULES := $(shell sed -n 's/^\([^\#[:space:]][^[:space:]]*\)[[:space:]].*/\1/p' .ci/modules)
USERS_MODULES := $(shell awk '$$2 == "users" { print $$1 }' .ci/modules)

GOLANGCI_LINT := v2.15.0
LINT := .bin/golangci-lint-$(GOLANGCI_LINT)
GOTESTSUM := .bin/gotestsum-v1.13.0
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
NULL := $(if $(filter Windows_NT,$(OS)),NUL,/dev/null)
# No file is of one processor: one platform of each system says enough, and tests and lint compile Linux's. make artifacts has all.
CROSS_PLATFORMS := darwin/arm64,windows/amd64
SANDBOX := go run -C sandbox .
CORPUS := go run -C dev/corpus .

# File names do not enter the build cache, so one cache serves every checkout and worktree. Debug information costs a sixth of the
# compiler's time, and no test reads it. dev/release and dev/suites have the same flags.
COMPILER_FLAGS := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(COMPILER_FLAGS),$(shell go env GOFLAGS)) $(COMPILER_FLAGS))

# The race detector needs a C compiler, which a newcomer may not have. CI insists on it.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
# A program with the race detector sleeps for a second before it exits, so that other goroutines can report races. Every
# TestMain waits for its goroutines anyway.
export GORACE ?= atexit_sleep_ms=0
# Another server, for instance: make test SANDBOX_FLAGS='--kubernetes-version v1.34.4'
SANDBOX_FLAGS ?=
FUZZTIME ?= 1m

.PHONY: help
help: ## list these commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: tour
tour: ## see the client at work on an API server inside one process; SERVER=real builds and starts a real one
ifeq ($(SERVER),real)
	$(SANDBOX) exec --components etcd,kube-apiserver --dir $(CURDIR) -- go run ./examples/tour
else
	@mkdir -p .bin
	go build -C apitest -o $(CURDIR)/.bin/apitest ./cmd/apitest
	.bin/apitest exec -- go run ./examples/tour
endif

OPERATIONS ?= 100000
PROBES ?= 800

.PHONY: apitest-diff
apitest-diff: ## play OPERATIONS (100,000), drawn from SEED (1), on apitest and on a real server, compare the responses, and write the table of docs/APITEST.md
	ANYKIND_REQUIRE_SANDBOX=1 ANYKIND_CORPUS="$$($(CORPUS))" ANYKIND_APITEST_OPERATIONS=$(OPERATIONS) ANYKIND_APITEST_PROBES=$(PROBES) ANYKIND_APITEST_SEED=$(SEED) \
		ANYKIND_APITEST_DOCUMENT=$(CURDIR)/docs/APITEST.md \
		$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR)/apitest -- \
		go test -count=1 -timeout 6h -v -run 'ApitestAgainstSandbox|NoRejectionUnnoticed' ./internal/testing/difftest ./internal/testing/probe

SEEDS ?= 10000
DAYS ?= 20
.PHONY: simulate
simulate: ## run the corrected controllers of apitest/simulate and two examples with 10,000 seeds each, find the defects of the broken ones, and play DAYS (20) days
	cd apitest && go test -count=1 -timeout 6h ./simulate -seeds $(SEEDS) -days $(DAYS)

.PHONY: published
published: ## find the published defects of operators, and write their table in docs/SIMULATION.md
	cd apitest && go test -count=1 ./simulate -run TestFind_PublishedDefects -write

# Some of them, for instance: make compat SUITES=controller-runtime/cache
SUITES ?=

.PHONY: compat
compat: ## run the test suites of client-go, controller-runtime and others over anykind, and write docs/COMPATIBILITY.md
	go run -C dev/suites . $(if $(SUITES),,-docs ../../docs) $(SUITES)

# Every module is tested, also after one that failed. RESULTS has the output of each as JSON, and the rows of the table.
RESULTS := .bin/test

.PHONY: test
test: $(GOTESTSUM) ## run every test of every module against a real cluster; make test MODULES=dev/bench for one module
	@$(if $(RACE),,echo 'make: without a C compiler there is no race detector; the tests run without it')
	@rm -rf $(RESULTS); mkdir -p $(RESULTS)
	@for module in $(MODULES); do \
		began=$$(date +%s); json=$(RESULTS)/$$(echo $$module | tr / -).json; \
		if $(MAKE) --no-print-directory test-module MODULE=$$module JSON=$(CURDIR)/$$json; then result=ok; else result=FAILED; fi; \
		touch $$json; awk -v module=$$module -v result=$$result -v seconds=$$(($$(date +%s) - began)) -f .ci/count.awk $$json >>$(RESULTS)/table; \
	done
	@awk 'BEGIN { format = "%-26s %-7s %7s %7s %8s %8s\n"; printf format, "module", "result", "passed", "failed", "skipped", "seconds" } \
		{ printf format, $$1, $$2, $$3, $$4, $$5, $$6; bad += $$2 != "ok" } END { exit bad > 0 }' $(RESULTS)/table

flaky: N ?= 5
.PHONY: flaky
flaky: ## run make test N times (5) while every processor is busy, and stop at the first failure
	@load=; trap 'kill $$load' EXIT; trap 'exit 130' INT TERM; \
	for processor in $$(seq $$(getconf _NPROCESSORS_ONLN)); do (while :; do :; done) & load="$$load $$!"; done; \
	for run in $$(seq $(N)); do echo "run $$run of $(N), under load"; $(MAKE) --no-print-directory test || exit 1; done

.PHONY: sandbox-build
sandbox-build: ## build etcd, Kubernetes and the other programs of a sandbox
	$(SANDBOX) build $(SANDBOX_FLAGS)

# One package at a time: some tests restart the API server that all of them use.
MODULE ?= .
COMPONENTS = $(shell awk '$$1 == "$(MODULE)" { print $$3 }' .ci/modules)
# Developers' modules run without the race detector: it would need a second compilation of all peers.
RACE_HERE = $(if $(filter $(MODULE),$(USERS_MODULES)),$(RACE))
TESTFLAGS = $(RACE_HERE) -p 1 -timeout 60m
JSON ?= $(CURDIR)/.bin/test.json
# Of the sandbox of the main module: servers without a gate are tests' own.
GATES = $(if $(filter . apitest,$(MODULE)),--feature-gates ShardedListAndWatch=true)$(if $(filter dev/history,$(MODULE)),$(HISTORY_SERVERS))
HISTORY_SERVERS = --api-servers 2
# RERUN=report.txt, as in CI: at most three tests that failed run once more, alone, and the report names them. Data races
# and leaks are never run again: a leak fails a package and none of its tests, which gotestsum would take for a pass. Lint runs
# vet, which would check all dependencies of all modules a second time here.
ifdef RERUN
GOTEST = $(CURDIR)/$(GOTESTSUM) --format standard-quiet --rerun-fails=1 --rerun-fails-max-failures=3 \
	--rerun-fails-abort-on-data-race --rerun-fails-report $(RERUN) --jsonfile $(RERUN).json --packages ./... -- -vet=off $(TESTFLAGS)
CHECK_PACKAGES = awk -F'"' '/"Action":"fail"/ { \
			for (i = 1; i < NF; i++) if ($$i == "Package") { package = $$(i + 2); break } \
			if (/"Test":/) tested[package] = 1; else failed[package] = 1 \
		} END { for (package in failed) if (!(package in tested)) { print "make: " package " failed, but none of its tests"; bad = 1 }; exit bad }' $(RERUN).json
else
GOTEST = $(CURDIR)/$(GOTESTSUM) --format standard-quiet --jsonfile $(JSON) --packages ./... -- $(TESTFLAGS)
endif
# The servers' garbage collections cost a sixth of their processor time. The tests have the default.
SERVER_GC = GOGC=300
test-module: $(GOTESTSUM)
.PHONY: test-module
test-module:
	@test -n '$(COMPONENTS)' || { echo 'make: .ci/modules has no module $(MODULE)' >&2; exit 1; }
	@go list -C $(MODULE) -test -deps -export $(RACE_HERE) ./... >$(NULL) # compiles on all processors, which -p 1 does not
	export ANYKIND_REQUIRE_SANDBOX=1 ANYKIND_CORPUS="$$($(CORPUS))" && \
	$(if $(filter none,$(COMPONENTS)),cd $(MODULE) && $(GOTEST),\
	$(SERVER_GC) $(SANDBOX) exec $(if $(filter all,$(COMPONENTS)),,--components $(COMPONENTS)) $(GATES) $(SANDBOX_FLAGS) --dir $(CURDIR)/$(MODULE) -- env -u GOGC $(GOTEST))
ifdef RERUN
	@$(CHECK_PACKAGES)
endif

# Fewer garbage collections of the compiler, as for lint.
compile-users compile-developers sandbox-build: export GOGC ?= 300

# In CI one go command compiles for several modules: concurrent ones would compile the same packages.
.PHONY: compile-users compile-developers
compile-users:
	@go list -test -deps -export $(RACE) $(USERS_MODULES:%=./%/...) >$(NULL)
compile-developers:
	@go list -test -deps -export $(patsubst %,./%/...,$(filter-out $(USERS_MODULES),$(MODULES))) >$(NULL)

# Warm, on two cores, at most a minute: BUDGET is the time after which tests of importers are left out, and named. 0 means no limit.
BASE ?= main
BUDGET ?= 35s
.PHONY: check
check: ## the inner loop: format, types and unit tests of what differs from BASE (main) and of what imports it
	@go run ./dev/check -base $(BASE) -budget $(BUDGET)

.PHONY: unit
unit: ## run the tests that need no cluster
	go test $(RACE) ./...

# Only Linux on amd64 runs programs of linux/386 without an emulator, and not in every virtual machine.
.PHONY: unit-32bit
unit-32bit: ## vet the main module for a 32-bit platform, and run its tests there without a cluster
	GOOS=linux GOARCH=386 CGO_ENABLED=0 go vet ./...
	@if GOOS=linux GOARCH=386 CGO_ENABLED=0 go test -vet=off -run '^$$' ./internal/parallel >$(NULL) 2>&1; then \
		GOOS=linux GOARCH=386 CGO_ENABLED=0 go test -vet=off ./...; \
	else \
		echo 'make: this machine runs no 32-bit programs: vetted only'; fi

# One version alone, for instance: make matrix VERSIONS=v1.34.4
VERSIONS ?= $(shell $(SANDBOX) versions)

.PHONY: matrix
matrix: ## run the cluster tests against four minor versions of Kubernetes (VERSIONS), each built on first use
	@set -e; for version in $(VERSIONS); do \
		echo "Kubernetes $$version"; \
		$(MAKE) --no-print-directory test-module MODULE=. GATES= SANDBOX_FLAGS="--kubernetes-version $$version"; \
	done

SEED ?= 1

chaos: ROUNDS ?= 1000
.PHONY: chaos
chaos: ## compare caches with the server after 1,000 storms of faults (ROUNDS), and check the histories of 200 others; SEED=n ROUNDS=1 plays one again
	ANYKIND_REQUIRE_SANDBOX=1 ANYKIND_CHAOS_ROUNDS=$(ROUNDS) ANYKIND_CHAOS_SEED=$(SEED) \
		$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR) -- \
		go test $(RACE) -timeout 12h -run Storm ./cache
	[ $(ROUNDS) -lt 5 ] || $(MAKE) --no-print-directory history SEED=$(SEED) ROUNDS=$$(($(ROUNDS) / 5))

history: ROUNDS ?= 200
.PHONY: history
history: ## check the histories of 200 storms (ROUNDS) of faults against etcd's; SEED=n ROUNDS=1 plays one again
	ANYKIND_REQUIRE_SANDBOX=1 ANYKIND_HISTORY_ROUNDS=$(ROUNDS) ANYKIND_HISTORY_SEED=$(SEED) \
		$(SANDBOX) exec --components etcd,kube-apiserver $(HISTORY_SERVERS) $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/history -- \
		go test -count=1 -timeout 12h -v -run Storms .

ISSUE ?=

.PHONY: known-bugs
known-bugs: ## play known bugs of Kubernetes' caches with versions of client-go, controller-runtime and anykind, and write docs/KNOWN_BUGS.md; ISSUE=59848 plays one
	go run -C dev/peers . $(if $(ISSUE),-issue $(ISSUE),-docs ../../docs/KNOWN_BUGS.md)

MINUTES ?= 25

# The packages of the module $(1) whose tests ask for the race detector.
LONG = $$(go list -C $(1) -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/[[ ]github[^ ]*internal\/testing\/race[] ]/ { print $$1 }')

.PHONY: long
long: ## run what `make test` leaves out for its time: streams broken at every byte, and large inputs, without the race detector
	ANYKIND_EVERY_BYTE=1 go test -count=1 -run EveryByte ./stream ./dynamic ./unstructured
	go test -count=1 $(call LONG,.)
	export ANYKIND_REQUIRE_SANDBOX=1 ANYKIND_CORPUS="$$($(CORPUS))" && \
	$(SERVER_GC) $(SANDBOX) exec --components etcd,kube-apiserver,kubectl --feature-gates ShardedListAndWatch=true $(SANDBOX_FLAGS) --dir $(CURDIR)/apitest -- \
		env -u GOGC go test -count=1 -p 1 -timeout 30m $(call LONG,apitest)

SKIP ?=

# A mutant may allocate without end: 8 GiB of addresses are enough for tests without the race detector.
mutants: N ?= 40
.PHONY: mutants
mutants: ## change PACKAGE in N (40) places drawn from SEED (1), one at a time, and list the changes that no unit test notices; SKIP=regexp leaves tests out
	@test -n '$(PACKAGE)' || { echo 'make: which package? For instance: make mutants PACKAGE=./dynamic' >&2; exit 1; }
	@ulimit -v 8388608 2>$(NULL); go run ./dev/mutants -n $(N) -seed $(SEED) -skip '$(SKIP)' $(PACKAGE)

.PHONY: defects
defects: ## put defects of caches, controllers and leases into the library, one at a time, and fail if no test notices one; DEFECTS=names
	@go run ./dev/mutants -defects -skip '$(SKIP)' $(DEFECTS)

.PHONY: readiness
readiness: ## compare the status of objects with kstatus's and Argo CD's, and write docs/READINESS.md and docs/readiness.tsv
	cd dev/parity && go test -count=1 ./readiness -run MatchesDocument -write

KUBECONFORM := .bin/kubeconform-v0.8.0
KUBECTL_VALIDATE := .bin/kubectl-validate-v0.0.4
VALIDATED := $(CURDIR)/.bin/validators

.PHONY: validators
validators: CASES ?= 12000
validators: anyctl $(KUBECONFORM) $(KUBECTL_VALIDATE) ## compare the verdicts of anyctl, kubeconform and kubectl-validate on CASES (12,000) drawn objects with a real server's, and write the table of docs/SCHEMA.md
	rm -rf $(VALIDATED)
	$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR) -- env ANYKIND_CORPUS="$$($(CORPUS))" ANYKIND_SCHEMA_CASES=$(CASES) \
		ANYKIND_SCHEMA_EXPORT=$(VALIDATED) go test -count=1 -timeout 2h -v -run ValidateAsRealServer ./schema
	cd dev/parity && go run ./validators -cases $(VALIDATED) -bin $(CURDIR)/.bin -page ../../docs/SCHEMA.md

$(KUBECONFORM):
	GOBIN=$(CURDIR)/.bin CGO_ENABLED=0 go install github.com/yannh/kubeconform/cmd/kubeconform@$(patsubst .bin/kubeconform-%,%,$@)
	mv .bin/kubeconform $@

$(KUBECTL_VALIDATE):
	GOBIN=$(CURDIR)/.bin CGO_ENABLED=0 go install sigs.k8s.io/kubectl-validate@$(patsubst .bin/kubectl-validate-%,%,$@)
	mv .bin/kubectl-validate $@

.PHONY: soak-inventory
soak-inventory: ## run a cache of all kinds for MINUTES (25) of churn and faults, compare it with kubectl, and write docs/INVENTORY.md
	$(SANDBOX) exec --components etcd,kube-apiserver,kubectl $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- \
		env ANYKIND_CORPUS="$$($(CORPUS))" go run ./soak -inventory -objects 20000 -minutes $(MINUTES) -seed $(SEED) -docs ../../docs

.PHONY: bench-allkinds
bench-allkinds: ## measure a cache of all kinds beside gitops-engine's and client-go's informers, with OBJECTS (10,000)
	$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- \
		env ANYKIND_CORPUS="$$($(CORPUS))" go run ./allkinds $(if $(OBJECTS),-objects $(OBJECTS))

.PHONY: bench-idle
bench-idle: ## measure the memory of a kind without objects in a cache of all kinds, beside a watch of net/http, for five minutes
	$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- go run ./allkinds/idle

.PHONY: soak
soak: ## run caches beside client-go's informers for MINUTES (25) of churn and faults, and write docs/RELIABILITY.md
	$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- \
		go run ./soak -minutes $(MINUTES) -seed $(SEED) -docs ../../docs

.PHONY: corpus
corpus: ## collect CustomResourceDefinitions and objects of public projects, and print the folder that has them
	$(CORPUS)

.PHONY: apitest-record
apitest-record: ## record the built-in kinds that apitest serves, from a sandbox with Kubernetes VERSION (the sandbox's default)
	$(SANDBOX) exec --components etcd,kube-apiserver $(if $(VERSION),--kubernetes-version $(VERSION)) --dir $(CURDIR)/apitest -- go run ./internal/recorded/record

.PHONY: protobuf-record
protobuf-record: ## write the table of internal/protobuf from the Go types of the Kubernetes version that dev/parity requires
	cd dev/parity && go run ./protobuf/record

# Packages are compiled as their tests compile them, and once for both. Garbage collections cost a quarter of the linter's time.
.PHONY: lint
lint: export GOGC ?= 300
lint: $(LINT) ## check the style and the usual mistakes of every module
	@set -e; $(foreach module,$(MODULES),echo "linting $(module)"; \
		(cd $(module) && GOFLAGS="$$GOFLAGS $(if $(filter $(module),$(USERS_MODULES)),$(RACE))" $(CURDIR)/$(LINT) run --config $(CURDIR)/.golangci.yml ./...);)

$(LINT):
	GOBIN=$(CURDIR)/.bin CGO_ENABLED=0 go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)
	mv .bin/golangci-lint $@

.PHONY: gotestsum
gotestsum: $(GOTESTSUM)
$(GOTESTSUM):
	GOBIN=$(CURDIR)/.bin CGO_ENABLED=0 go install gotest.tools/gotestsum@$(patsubst .bin/gotestsum-%,%,$@)
	mv .bin/gotestsum $@

.PHONY: format
format: ## fail on files that are not gofmt-ed, and on go.mod files of any module that are not tidy
	@test -z "$$(gofmt -l .)" || { echo 'not formatted:' >&2; gofmt -l . >&2; exit 1; }
	@go run ./dev/release tidy -diff

.PHONY: tidy
tidy: ## tidy the go.mod files of all modules
	@go run ./dev/release tidy

.PHONY: api
api: ## write the public API of every module to docs/api
	@go run ./dev/release api

.PHONY: versions versions-oldest
versions: ## build and test the library, compat and apitest/cel with four versions of their Kubernetes libraries, and write docs/VERSIONS.md
	go run ./dev/versions -docs docs/VERSIONS.md

# The newest version is go.work's: make test runs with it.
versions-oldest: ## build and test the library and compat with the oldest version of client-go and apimachinery
	go run ./dev/versions -versions v0.34.13

VERSION ?=

.PHONY: release
release: format ## commit and tag a release of all published modules: make release VERSION=v0.1.0; pushes nothing
	@go run ./dev/release prepare '$(VERSION)'

.PHONY: release-check
release-check: ## release a copy of the checkout, and install every module from it as a user does
	@go run ./dev/release check

.PHONY: trial
trial: ## take the steps of a new user from a released copy, with empty caches, and write their times to docs/START.md
	@go run ./dev/release check -trial

.PHONY: candidate
candidate: VERSION = v0.1.0-rc.1
candidate: ## the same as VERSION (v0.1.0-rc.1), with the programs of all platforms and the file proxy in .bin/candidate
	@rm -rf .bin/candidate; go run ./dev/release check -version $(VERSION) -artifacts $(CURDIR)/.bin/candidate

.PHONY: licences
licences: ## write the licences of all dependencies to docs/LICENCES.md
	go run ./dev/release licences

SBOM := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
DIST := .bin/dist

# Without the workspace the programs have the modules that go install gives them. These must be published. Their build information has
# no flags of the tests.
.PHONY: artifacts
artifacts: ## build the programs for all platforms, with checksums and software bills of materials
	@rm -rf $(DIST); mkdir -p $(DIST)
	@set -e; for program in cli/cmd/anyctl apitest/cmd/apitest apitest/cel/cmd/anyctl-copy; do for platform in $(PLATFORMS); do \
		name=$$(basename $$program)-$${platform%/*}-$${platform#*/}; \
		echo "building $$name"; \
		GOWORK=off GOFLAGS='$(filter-out $(COMPILER_FLAGS),$(GOFLAGS))' GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go build -C $${program%%/cmd/*} -trimpath -buildvcs=true -ldflags='-s -w' \
			-o $(CURDIR)/$(DIST)/$$name$$(GOOS=$${platform%/*} go env GOEXE) ./cmd/$$(basename $$program); \
		go run $(SBOM) bin -json -output $(DIST)/$$name.cdx.json $(DIST)/$$name$$(GOOS=$${platform%/*} go env GOEXE); \
	done; done
	@GOWORK=$(CURDIR)/go.work go run ./dev/release licences -diff -texts $(DIST)/LICENCES.txt
	@cd $(DIST) && sha256sum * >SHA256SUMS

# From source, in one process: a compilation of all dependencies for two platforms takes over twenty times the processor time.
.PHONY: cross
cross: ## check the types of every module for users, and of all dependencies, for macOS and Windows
	@go run ./dev/cross -platforms $(CROSS_PLATFORMS) $(USERS_MODULES)

.PHONY: vulnerabilities
vulnerabilities: ## check every module for known vulnerabilities; needs govulncheck and the network
	@set -e; for module in $(MODULES); do echo "checking $$module"; (cd $$module && govulncheck ./...); done

.PHONY: fuzz
fuzz: ## fuzz every decoder of every module, each for FUZZTIME (1m)
	@set -e; for module in $(MODULES); do (cd $$module; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done); done

# One comparison at a time, for instance: make bench BENCH=list-objects PODS=5000; with UPDATE=1 it replaces its group's figures
# on the page. RESUME=1 continues a whole run that was interrupted: groups measured with another state of the library are measured again.
BENCH ?=
PODS ?=
UPDATE ?=
RESUME ?=

# Needs node and npm. The documents are copied, because a site generator writes beside its pages.
.PHONY: site
site: ## build the documents as a site with a search, in .bin/site
	@rm -rf dev/site/pages; mkdir -p dev/site/pages
	@for file in *.md $$(cd $(CURDIR) && find docs -type f -name '*.md' -o -path 'docs/*' -name '*.svg' -o -path 'docs/*' -name '*.png'); do \
		mkdir -p dev/site/pages/$$(dirname $$file); cp $$file dev/site/pages/$$file; done
	npm ci --prefix dev/site --no-fund --no-audit
	npm run --prefix dev/site build

.PHONY: anyctl
anyctl: ## build the command line program to .bin/anyctl, stripped, and print its size
	CGO_ENABLED=0 go build -C cli -trimpath -ldflags='-s -w' -o $(CURDIR)/.bin/anyctl ./cmd/anyctl
	@wc -c < .bin/anyctl | awk '{ printf ".bin/anyctl: %.1f MB\n", $$1 / 1e6 }'

.PHONY: oracle
oracle: ## compare anyctl with kubectl; SANDBOX_FLAGS='--kubernetes-version v1.37.1' for another version of both, ANYKIND_ORACLE_KUBECTL=PATH for another kubectl
	ANYKIND_REQUIRE_SANDBOX=1 $(SANDBOX) exec $(SANDBOX_FLAGS) --dir $(CURDIR)/cli -- go test -count=1 -timeout 30m ./internal/oracle

.PHONY: record
record: anyctl ## run the README's session of anyctl on a real cluster, and write it to docs/CLI.md and docs/anyctl.svg
	$(SANDBOX) exec --dir $(CURDIR)/cli -- go run ./internal/record -anyctl ../.bin/anyctl -text ../../docs/CLI.md -svg ../../docs/anyctl.svg

.PHONY: bench
bench: ## measure beside apimachinery and client-go; without BENCH and PODS everything, and write docs/BENCHMARKS.md and the figures of other documents
ifeq ($(BENCH)$(PODS)$(RESUME),)
	go test -run '^$$' -bench . -benchmem ./unstructured
	$(SANDBOX) exec --components etcd,kube-apiserver $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- env ANYKIND_CORPUS="$$($(CORPUS))" go test -run '^$$' -bench . -benchmem .
endif
	$(SANDBOX) exec --components etcd,kube-apiserver,kubectl $(SANDBOX_FLAGS) --dir $(CURDIR)/dev/bench -- \
		env ANYKIND_CORPUS="$$($(CORPUS))" go run ./compare -bench '$(BENCH)' -pods '$(PODS)' \
		$(if $(BENCH)$(PODS),$(if $(UPDATE),-docs ../../docs),-docs ../../docs $(if $(RESUME),-resume))
