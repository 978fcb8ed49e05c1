{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "fumehood.labels" -}}
app.kubernetes.io/name: fumehood
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* What reads and writes root's files on a node must be root, but needs no capability. */ -}}
{{- define "fumehood.root" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "fumehood.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "fumehood.claims.toml" -}}
{{- range $namespace, $tenant := .Values.serve.tenants }}
[tenants.{{ $namespace | quote }}]
pool = {{ $tenant.pool | quote }}
claims = {{ $tenant.claims | int64 }}
{{ end }}
{{- end }}

{{- /* The service account's token, for the one container that mounts it. */ -}}
{{- define "fumehood.token" -}}
- name: token
  projected:
    defaultMode: 0440
    sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- end }}
