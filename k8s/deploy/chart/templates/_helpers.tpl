{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "fumehood.labels" -}}
app.kubernetes.io/name: fumehood
app.kubernetes.io/instance: {{ toJson .Release.Name }}
app.kubernetes.io/version: {{ toJson .Chart.AppVersion }}
{{- end }}

{{- define "fumehood.metadata" -}}
namespace: {{ toJson .Release.Namespace }}
labels: {{- include "fumehood.labels" . | nindent 2 }}
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
[tenants.{{ toJson $namespace }}]
pool = {{ toJson $tenant.pool }}
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

{{- define "fumehood.probe" -}}
readinessProbe:
  httpGet: {path: /healthz, port: metrics}
{{- end }}

{{- /* An entry of a NetworkPolicy's ingress, if someone may read the metrics. */ -}}
{{- define "fumehood.metrics.ingress" -}}
{{- with .Values.metrics.clients -}}
- from: {{- toYaml . | nindent 4 }}
  ports:
    - {protocol: TCP, port: {{ $.Values.metrics.port }}}
{{- end }}
{{- end }}

{{- define "fumehood.egress" -}}
# Names of the cluster.
- to:
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
# The API server, which no selector matches.
- ports:
    {{- range .Values.network.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with .Values.network.apiServer }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ toJson . }}}
    {{- end }}
  {{- end }}
{{- with .Values.network.egress }}
{{ toYaml . }}
{{- end }}
{{- end }}
