# `make help` lists every target; variables to set are with the targets they belong to.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# VERSION is the release that the tree is on the way to, without a leading "v".
VERSION ?= $(shell cat VERSION)
# IMG is the image that is built, pushed and deployed.
IMG ?= ghcr.io/ktechhub/configwatch:v$(VERSION)

CONTAINER_TOOL ?= docker
KUBECTL ?= kubectl

# COMMIT is what the tree is at.
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

MODULE := $(shell awk '$$1 == "module" {print $$2}' go.mod)
LDFLAGS := -s -w -X $(MODULE)/internal/version.Version=v$(VERSION) -X $(MODULE)/internal/version.Commit=$(COMMIT)

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "\nUsage:\n  make \033[36m<target>\033[0m\n"} \
		/^[a-zA-Z0-9_-]+:.*?##/ {printf "  \033[36m%-22s\033[0m %s\n", $$1, $$2} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Development

# What verify generates anew, and where the results are. A makefile under hack/ adds its own.
GENERATORS := generate manifests
GENERATED := api config/crd/bases config/rbac/role.yaml

.PHONY: manifests
manifests: bin/controller-gen ## Generate the CRD and the manager's role from the markers in the code, also in the chart.
	bin/controller-gen rbac:roleName=manager-role crd \
		paths="./api/...;./internal/...;./cmd/..." output:crd:artifacts:config=config/crd/bases
	@$(MAKE) --no-print-directory chart

.PHONY: generate
generate: bin/controller-gen ## Generate the DeepCopy methods of the API types.
	bin/controller-gen object:headerFile=hack/boilerplate.go.txt,year=2026 paths="./api/..."

.PHONY: fmt
fmt: ## Format all Go files.
	gofmt -l -w .

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: tidy
tidy: ## Tidy go.mod and go.sum, the tools' too.
	go mod tidy
	for module in hack/tools/*/ test/alerts; do go -C "$$module" mod tidy; done

.PHONY: lint
lint: bin/golangci-lint ## Run the linters of .golangci.yml.
	bin/golangci-lint run

.PHONY: lint-fix
lint-fix: bin/golangci-lint ## Run the linters and mend what they can mend.
	bin/golangci-lint run --fix

.PHONY: verify
verify: bin/controller-gen ## Fail if generated files, formatting, go.mod or licence headers need attention.
	@echo "Checking that generated files are up to date"
	@sums() { find $(GENERATED) -type f -exec cksum {} + | sort -k 3; }; \
	before=$$(sums); \
	$(MAKE) --no-print-directory $(GENERATORS); \
	after=$$(sums); \
	if [[ "$$before" != "$$after" ]]; then \
		echo "These generated files were out of date:"; \
		diff <(echo "$$before") <(echo "$$after") | awk '/^[<>]/ {print "  " $$4}' | sort -u; \
		echo "They have been generated anew (make $(GENERATORS)): commit them."; \
		exit 1; \
	fi
	@echo "Checking the formatting of Go files"
	@files=$$(gofmt -l .); if [[ -n "$$files" ]]; then echo "$$files"; echo "Run: make fmt"; exit 1; fi
	@echo "Checking that go.mod and go.sum are tidy"
	@go mod tidy -diff || { echo "Run: make tidy"; exit 1; }
	@echo "Checking the licence headers of Go files"
	@files=$$(find . -name '*.go' -exec awk 'FNR == 1 {licensed = 0} /^Copyright 2026 The ConfigWatch Authors\.$$/ {licensed = 1} \
		/^\*\/$$/ || /^package / {getline after; if (!licensed || after != "") print FILENAME; nextfile}' {} +); \
	if [[ -n "$$files" ]]; then \
		echo "$$files"; \
		echo "Begin these with hack/boilerplate.go.txt, YEAR being 2026, and an empty line after it."; \
		exit 1; \
	fi
	@echo "All in order."

##@ Tests

# PKG chooses packages and ARGS adds flags: make test PKG=./test/e2e ARGS='-run TestE2E -v'.
PKG ?= ./...
ARGS ?=
# What tests wait for comes late on a busy machine. Gomega's own default is one second.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT ?= 30s
# RACE= (empty) turns the race detector off, where there is no C compiler.
RACE ?= -race

.PHONY: test
test: cc controlplane bin/helm ## Run all tests: unit, integration, e2e and fault, with the race detector.
	$(if $(filter ./...,$(PKG)),go -C test/alerts test ./...)
	go test $(RACE) -timeout 20m -p 3 $(ARGS) $(PKG)

.PHONY: test-unit
test-unit: cc ## Run the tests that need no control plane.
	go test $(RACE) -short $(ARGS) ./api/... ./cmd/... ./internal/... ./hack/docs ./hack/bundle/... \
		./hack/argocd/... ./hack/chart ./hack/image ./hack/licenses

# Much runs in managers that tests start, so these are built to count too: GOFLAGS reaches their build,
# and go test would hand them a folder of its own. A manager that is killed leaves no record.
COVERAGE := $(CURDIR)/bin/coverage

.PHONY: coverage
coverage: controlplane bin/helm ## Run all tests and show how much of each package they cover; writes cover.out.
	rm -rf $(COVERAGE) && mkdir -p $(COVERAGE)
	GOFLAGS="$${GOFLAGS:-} -cover -coverpkg=./cmd,./internal/..." go test -timeout 20m -p 2 \
		-exec "env GOCOVERDIR=$(COVERAGE)" $(ARGS) $(PKG) -args -test.gocoverdir=$(COVERAGE)
	go tool covdata textfmt -i $(COVERAGE) -o cover.out
	go tool covdata percent -i $(COVERAGE)

.PHONY: bench
bench: controlplane ## Measure speed, memory and API calls; writes bench.json.
	go run ./test/bench $(ARGS)

.PHONY: cc
cc:
	@if [[ -n "$(RACE)" ]] && ! command -v "$$(go env CC | cut -d ' ' -f 1)" >/dev/null; then \
		echo "The race detector needs cgo, and so a C compiler ($$(go env CC)), which is missing."; \
		echo "Install gcc, or run the tests without the race detector: make $(MAKECMDGOALS) RACE="; \
		exit 1; \
	fi

##@ Build

.PHONY: build
build: ## Build the manager, bin/manager.
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/manager ./cmd

.PHONY: build-plugin
build-plugin: ## Build the kubectl plugin, bin/kubectl-configwatch.
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o bin/kubectl-configwatch ./cmd/kubectl-configwatch

# NAMESPACE is where a manager that runs here keeps its hash key.
NAMESPACE ?= default

.PHONY: run
run: ## Run the manager here, against the cluster of the current kubeconfig.
	go run -ldflags "$(LDFLAGS)" ./cmd --leader-elect=false --namespace=$(NAMESPACE) $(ARGS)

.PHONY: demo
demo: controlplane ## Show ConfigWatch at work on a Kubernetes of its own; KEEP=1 leaves it running.
	go run ./hack/demo $(if $(KEEP),--keep) $(ARGS)

.PHONY: docker-build
docker-build: ## Build the image, IMG.
	$(CONTAINER_TOOL) build --build-arg VERSION=v$(VERSION) --build-arg COMMIT=$(COMMIT) -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push the image, IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: clean
clean: ## Remove what was built here.
	rm -rf bin dist cover.out bench.json

##@ Deployment

# INSTALLER is the file that build-installer writes and that deploy and undeploy use.
INSTALLER ?= dist/install.yaml

.PHONY: install
install: bin/kustomize ## Install the CRD into the cluster of the current kubeconfig.
	bin/kustomize build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: bin/kustomize ## Remove the CRD, and with it every ConfigWatch.
	bin/kustomize build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: build-installer ## Deploy the CRD and the operator, with the image IMG.
	$(KUBECTL) apply --server-side -f $(INSTALLER)

.PHONY: undeploy
undeploy: build-installer ## Remove the operator and the CRD, and with it every ConfigWatch.
	$(KUBECTL) delete --ignore-not-found -f $(INSTALLER)

# An overlay under dist/ names the image, so that no tracked file changes.
.PHONY: build-installer
build-installer: bin/kustomize ## Write INSTALLER, dist/install.yaml: all that a cluster needs, with the image IMG.
	rm -rf dist/overlay
	mkdir -p dist/overlay
	cd dist/overlay && ../../bin/kustomize create --resources ../../config/default \
		&& ../../bin/kustomize edit set image ghcr.io/ktechhub/configwatch=$(IMG)
	bin/kustomize build dist/overlay > $(INSTALLER)
	@grep -qF 'image: $(IMG)' $(INSTALLER) || { echo "config/ doesn't name the image ghcr.io/ktechhub/configwatch"; exit 1; }

##@ Tools

# Each tool is a module of its own under hack/tools, which pins it and all that it is made of;
# it is built when it is needed, and again when its module changes.
TOOLS := $(patsubst hack/tools/%/go.mod,bin/%,$(wildcard hack/tools/*/go.mod))

.PHONY: tools
tools: $(TOOLS) ## Build all tools, each of which has a module under hack/tools.

$(TOOLS): bin/%: hack/tools/%/go.mod hack/tools/%/go.sum
	@echo "Building $@, which takes some minutes the first time"
	@mkdir -p bin
	@GOWORK=off CGO_ENABLED=0 go build -C hack/tools/$* -trimpath -ldflags "-s -w" -o $(CURDIR)/bin/ tool

bin/golangci-lint: hack/tools/golangci-lint/main.go

-include $(wildcard hack/*/*.mk)
