##@ Control plane

.PHONY: controlplane
controlplane: ## Build a full Kubernetes control plane from Go modules (about 20 minutes the first time).
	go run ./hack/controlplane/cmd build --for full

.PHONY: controlplane-envtest
controlplane-envtest: ## Build etcd, kube-apiserver and kubectl only (about 12 minutes the first time).
	go run ./hack/controlplane/cmd build --for envtest

.PHONY: controlplane-up
controlplane-up: ## Run a full control plane in the foreground until Ctrl-C; prints its KUBECONFIG.
	go run ./hack/controlplane/cmd up
