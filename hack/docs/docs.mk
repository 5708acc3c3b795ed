##@ Documentation

GENERATORS += docs
GENERATED += docs/reference

.PHONY: docs
docs: ## Generate docs/reference from the CRD and the code.
	go run ./hack/docs
