{{- define "labels" -}}
app.kubernetes.io/name: discreet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "secret" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" .Release.Name) }}
{{- end }}
{{- define "postgres" -}}
{{ if or .Values.database.url .Values.database.existingSecret }}yes{{ end }}
{{- end }}
{{- define "file" -}}
{{ ternary "server.toml" "experiment.toml" .Values.folder }}
{{- end }}
