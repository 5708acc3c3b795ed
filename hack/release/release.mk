##@ Release

.PHONY: licenses
licenses: ## Fail if a module in a release has a licence that isn't allowed; prints the licences of all.
	go run ./hack/licenses

# Nothing that was not looked at is called sound: without the database it fails, and says why.
.PHONY: vulnerabilities
vulnerabilities: bin/govulncheck ## Fail if the code calls something with a known vulnerability; needs https://vuln.go.dev.
	@if out=$$(bin/govulncheck ./... 2>&1); then \
		echo "$$out"; \
	elif grep -q 'fetching vulnerabilities' <<< "$$out"; then \
		echo "$$out"; \
		echo "The database of vulnerabilities can't be reached from here: nothing was checked."; \
		exit 1; \
	else \
		echo "$$out"; \
		exit 1; \
	fi

.PHONY: sbom
sbom: bin/cyclonedx-gomod build ## Write dist/sbom.cdx.json: the modules that the manager is made of, in CycloneDX.
	@mkdir -p dist
	bin/cyclonedx-gomod bin -json -std -noserial -notimestamp -version v$(VERSION) -output dist/sbom.cdx.json bin/manager

.PHONY: release-check
release-check: ## Fail unless TAG is v and the content of the file VERSION.
	@[[ "$(TAG)" == "v$(VERSION)" ]] || { echo "The tag $(TAG) is not v$(VERSION), which is in the file VERSION."; exit 1; }

.PHONY: release-files
release-files: build-installer chart-package sbom ## Write what is attached to a release, in dist/.
	cd dist && sha256sum install.yaml configwatch-$(VERSION).tgz sbom.cdx.json > SHA256SUMS
