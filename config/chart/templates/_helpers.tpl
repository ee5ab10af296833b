{{- define "propeller.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else if not $image.tag -}}
{{ fail "image.tag: is needed without image.digest" }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag }}
{{- end -}}
{{- end -}}

{{- /* Not empty: there is a webhook. Its configurations are of the whole cluster. */ -}}
{{- define "propeller.hasWebhook" -}}
{{- if and .Values.webhook.enabled (not .Values.rbac.namespaces) -}}
true
{{- else if .Values.webhook.settings -}}
{{ fail "webhook.settings: there is no webhook that they could reach (webhook.enabled, rbac.namespaces)" }}
{{- end -}}
{{- end -}}

{{- /* Not empty: helm uninstall removes the CRDs, so that all objects must go before. */ -}}
{{- define "propeller.removesObjects" -}}
{{- if and .Values.crds.enabled (not .Values.crds.keep) -}}
{{- if .Values.rbac.namespaces }}{{ fail "crds.keep: false removes the objects of all namespaces, and rbac.namespaces names some" }}{{ end -}}
true
{{- end -}}
{{- end -}}

{{- /* Only the replica that leads serves devices, and a Service cannot tell which one that is. */ -}}
{{- define "propeller.replicas" -}}
{{- if .Values.coordinator.enabled -}}1{{- else -}}{{ .Values.controller.replicas }}{{- end -}}
{{- end -}}

{{- /* Measured: 362 MiB while eight updates of a million parameters came at once; four million are the most. */ -}}
{{- define "propeller.resources" -}}
{{- $resources := deepCopy .Values.controller.resources -}}
{{- if and .Values.coordinator.enabled (eq (dig "limits" "memory" "" $resources | toString) "384Mi") -}}
{{- $_ := set $resources.limits "memory" "1Gi" -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{- /* The variable of a flag: log-level is PROPELLER_LOG_LEVEL. */ -}}
{{- define "propeller.variable" -}}
PROPELLER_{{ . | upper | replace "-" "_" }}
{{- end -}}

{{- /* Numbers of a file of values are floats for Helm, which would print 1.048576e+06. */ -}}
{{- define "propeller.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{- /* Where the pods run; of .Values.controller or .Values.webhook. */ -}}
{{- define "propeller.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "propeller.file" -}}
/etc/propeller/mqtt/{{ . }}
{{- end -}}

{{- /* The flags of the controller by name: those of other values, then those of .Values.settings. */ -}}
{{- define "propeller.settings" -}}
{{- $flags := dict "log-level" "info" "page-bind-address" .Values.page.bindAddress -}}
{{- with .Values.mqtt -}}
{{- if .address }}{{ $_ := set $flags "mqtt-address" .address }}{{ end -}}
{{- if .clientId }}{{ $_ := set $flags "client-id" .clientId }}{{ end -}}
{{- if .passwordKey }}{{ $_ := set $flags "client-key-file" (include "propeller.file" .passwordKey) }}{{ end -}}
{{- if .caKey }}{{ $_ := set $flags "mqtt-ca-file" (include "propeller.file" .caKey) }}{{ end -}}
{{- if .certificateKey }}{{ $_ := set $flags "mqtt-cert-file" (include "propeller.file" .certificateKey) }}{{ end -}}
{{- if .privateKeyKey }}{{ $_ := set $flags "mqtt-key-file" (include "propeller.file" .privateKeyKey) }}{{ end -}}
{{- end -}}
{{- if .Values.coordinator.enabled -}}
{{- $url := .Values.coordinator.url | default (printf "http://propeller-coordinator.%s.svc:8090" .Release.Namespace) -}}
{{- $_ := set $flags "coordinator-bind-address" ":8090" -}}
{{- $_ := set $flags "coordinator-url" $url -}}
{{- end -}}
{{- if .Values.modules.enabled -}}
{{- $_ := set $flags "module-cache-dir" "/var/cache/propeller/modules" -}}
{{- end -}}
{{- if .Values.vmafx.enabled -}}
{{- if .Values.rbac.namespaces }}{{ fail "vmafx.enabled: has rights in all namespaces, and rbac.namespaces names some" }}{{ end -}}
{{- $_ := set $flags "enable-vmafx" "true" -}}
{{- end -}}
{{- if .Values.scheduledMachines.enabled -}}
{{- if .Values.rbac.namespaces }}{{ fail "scheduledMachines.enabled: has rights in all namespaces, and rbac.namespaces names some" }}{{ end -}}
{{- $_ := set $flags "enable-scheduled-machines" "true" -}}
{{- end -}}
{{- if .Values.kueue.enabled -}}
{{- if .Values.rbac.namespaces }}{{ fail "kueue.enabled: has rights in all namespaces, and rbac.namespaces names some" }}{{ end -}}
{{- $_ := set $flags "enable-kueue" "true" -}}
{{- end -}}
{{- if .Values.rbac.namespaces -}}
{{- $_ := set $flags "namespace" (join "," .Values.rbac.namespaces) -}}
{{- end -}}
{{- if or .Values.rbac.namespaces (eq .Values.webhook.certificates "existing") -}}
{{- $_ := set $flags "manage-webhook-certificates" "false" -}}
{{- end -}}
{{- range $flag, $value := merge (deepCopy .Values.settings) $flags }}
{{ include "propeller.variable" $flag }}: {{ include "propeller.text" $value | quote }}
{{- end -}}
{{- end -}}
