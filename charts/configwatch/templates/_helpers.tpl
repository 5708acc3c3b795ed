{{/* What all names begin with: short enough for the longest of them, that of a Service. */}}
{{- define "configwatch.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{- if not (or .Values.fullnameOverride (contains .Chart.Name $name)) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- $name | trunc 28 | trimSuffix "-" -}}
{{- end -}}

{{- define "configwatch.manager" -}}
{{ include "configwatch.fullname" . }}-controller-manager
{{- end -}}

{{- define "configwatch.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "configwatch.manager" .) -}}
{{- else -}}
{{- required "serviceAccount.name is required if serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "configwatch.labels" -}}
app.kubernetes.io/name: configwatch
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "configwatch.selector" -}}
control-plane: controller-manager
app.kubernetes.io/name: configwatch
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "configwatch.image" -}}
{{ .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{/* Metrics are served to whom the API server allows it. To ask takes permissions for the cluster, which an operator
for chosen namespaces doesn't have. */}}
{{- define "configwatch.servesMetrics" -}}
{{- if and .Values.metrics.enabled (or (not .Values.watchNamespaces) (not .Values.metrics.secure)) }}true{{ end -}}
{{- end -}}

{{- define "configwatch.asksForAccess" -}}
{{- if and (include "configwatch.servesMetrics" .) .Values.metrics.secure }}true{{ end -}}
{{- end -}}

{{- define "configwatch.streamCertificate" -}}
{{- if .Values.stream.enabled -}}
{{- if .Values.stream.certManager.enabled -}}
{{- .Values.stream.certificateSecret | default (printf "%s-stream-certificate" (include "configwatch.fullname" .)) -}}
{{- else -}}
{{- .Values.stream.certificateSecret -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The objects of a file as this release has them: names, namespace, labels. Arguments: root, file. */}}
{{- define "configwatch.objects" -}}
{{- $root := .root -}}
{{- $prefix := printf "%s-" (include "configwatch.fullname" $root) -}}
{{- range $text := regexSplit "(?m)^---$" ($root.Files.Get .file) -1 }}
{{- $object := fromYaml $text }}
{{- if $object }}
{{- $meta := $object.metadata }}
{{- $_ := set $meta "name" (print $prefix $meta.name) }}
{{- if $meta.namespace }}{{ $_ := set $meta "namespace" $root.Release.Namespace }}{{ end }}
{{- $_ := set $meta "labels" (merge (include "configwatch.labels" $root | fromYaml) ($meta.labels | default dict)) }}
{{- with $object.roleRef }}{{ $_ := set . "name" (print $prefix .name) }}{{ end }}
{{- range $object.subjects }}
{{- $_ := set . "name" (include "configwatch.serviceAccount" $root) }}
{{- $_ := set . "namespace" $root.Release.Namespace }}
{{- end }}
{{- if and (eq $object.kind "ClusterRole") (eq $meta.name (print $prefix "manager-role")) }}
{{- $_ := set $object "rules" (concat $object.rules $root.Values.rbac.extraRules) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end -}}
