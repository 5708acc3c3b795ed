##@ Image

# IMAGE_LAYOUT is the folder that image-layout writes, and PLATFORMS what it builds for.
IMAGE_LAYOUT ?= dist/image
PLATFORMS ?= linux/amd64,linux/arm64
# SOURCE_DATE_EPOCH is the time of all that the image holds, by default that of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: image-layout
image-layout: ## Build the image as an OCI layout, IMAGE_LAYOUT, without a container engine; prints its digest.
	go run ./hack/image --output=$(IMAGE_LAYOUT) --platforms=$(PLATFORMS) \
		--version=v$(VERSION) --commit=$(COMMIT) --created=$(SOURCE_DATE_EPOCH)

.PHONY: image-push
image-push: ## Build the same and push it as IMG, without a container engine; prints its digest.
	@go run ./hack/image --output=$(IMAGE_LAYOUT) --platforms=$(PLATFORMS) \
		--version=v$(VERSION) --commit=$(COMMIT) --created=$(SOURCE_DATE_EPOCH) --push=$(IMG)
