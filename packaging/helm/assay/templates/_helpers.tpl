{{- define "assay.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-assay" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "assay.select" -}}
app.kubernetes.io/name: assay-{{ .part }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.select" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "assay.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The URL of the store with the files that this chart mounts. */}}
{{- define "assay.store" -}}
{{- $url := required "clickhouse.url is required with mode clickhouse" .Values.clickhouse.url -}}
{{- $settings := list -}}
{{- if .Values.clickhouse.passwordSecret.name }}{{ $settings = append $settings "password_file=/etc/assay-clickhouse/password" }}{{ end -}}
{{- if .Values.clickhouse.caSecret.name }}{{ $settings = append $settings "ca=/etc/assay-clickhouse-ca/ca.crt" }}{{ end -}}
{{- if $settings }}{{ $url }}{{ if contains "?" $url }}&{{ else }}?{{ end }}{{ join "&" $settings }}{{ else }}{{ $url }}{{ end -}}
{{- end }}

{{- define "assay.clickhouseMounts" -}}
{{- if .Values.clickhouse.passwordSecret.name }}
- {name: clickhouse, mountPath: /etc/assay-clickhouse, readOnly: true}
{{- end }}
{{- if .Values.clickhouse.caSecret.name }}
- {name: clickhouse-ca, mountPath: /etc/assay-clickhouse-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "assay.clickhouseVolumes" -}}
{{- with .Values.clickhouse.passwordSecret }}{{ if .name }}
- name: clickhouse
  secret: {secretName: {{ .name | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: password}]}
{{- end }}{{ end }}
{{- with .Values.clickhouse.caSecret }}{{ if .name }}
- name: clickhouse-ca
  secret: {secretName: {{ .name | quote }}, defaultMode: 0444, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- end }}

{{- define "assay.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "assay.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
