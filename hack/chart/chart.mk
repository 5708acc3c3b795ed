##@ Helm

GENERATORS += chart
GENERATED += charts

# CHART_REGISTRY is where charts are pushed to, and CHART the packaged one.
CHART_REGISTRY ?= oci://ghcr.io/ktechhub/charts
CHART := dist/configwatch-$(VERSION).tgz

.PHONY: chart
chart: ## Generate what the Helm chart has from elsewhere: CRD, roles, version, the table of values.
	go run ./hack/chart --version=$(VERSION)

.PHONY: chart-package
chart-package: bin/helm chart ## Package the Helm chart, in dist/.
	bin/helm package charts/configwatch --destination dist

.PHONY: chart-push
chart-push: chart-package ## Push the Helm chart to CHART_REGISTRY.
	bin/helm push $(CHART) $(CHART_REGISTRY)
