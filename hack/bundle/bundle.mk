##@ Operator Lifecycle Manager

GENERATORS += bundle
GENERATED += bundle bundle.Dockerfile catalog

# BUNDLE_IMG is the image of the bundle, and CATALOG_IMG that of the catalogue which offers it.
BUNDLE_IMG ?= ghcr.io/ktechhub/configwatch-bundle:v$(VERSION)
CATALOG_IMG ?= ghcr.io/ktechhub/configwatch-catalog:v$(VERSION)

.PHONY: bundle
bundle: ## Generate the OLM bundle and its catalogue, for the images IMG and BUNDLE_IMG.
	go run ./hack/bundle --version=$(VERSION) --image=$(IMG) --bundle-image=$(BUNDLE_IMG)

.PHONY: bundle-build
bundle-build: ## Build the image of the OLM bundle, BUNDLE_IMG.
	$(CONTAINER_TOOL) build -f bundle.Dockerfile -t $(BUNDLE_IMG) .

.PHONY: bundle-push
bundle-push: ## Push the image of the OLM bundle, BUNDLE_IMG.
	$(CONTAINER_TOOL) push $(BUNDLE_IMG)

.PHONY: catalog-build
catalog-build: ## Build the image of the catalogue, CATALOG_IMG.
	$(CONTAINER_TOOL) build -f catalog.Dockerfile -t $(CATALOG_IMG) .

.PHONY: catalog-push
catalog-push: ## Push the image of the catalogue, CATALOG_IMG.
	$(CONTAINER_TOOL) push $(CATALOG_IMG)
