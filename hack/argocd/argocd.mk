##@ Argo CD

GENERATORS += argocd
GENERATED += config/argocd/argocd-cm.yaml

.PHONY: argocd
argocd: ## Generate the customization of argocd-cm from the scripts in config/argocd.
	go run ./hack/argocd
