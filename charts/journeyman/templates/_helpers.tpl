{{/* The values of one workload by its name; an empty map for what has none. */}}
{{- define "journeyman.workload" -}}
{{- if has .name (list "ingest" "planner" "executor" "reporter" "egress" "nats" "redis") -}}
{{- index .root.Values .name | toJson -}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{/* An image of ours with registry and tag of the values. */}}
{{- define "journeyman.image" -}}
{{- $parts := splitList ":" .image -}}
{{- $name := first $parts -}}
{{- if .root.Values.image.registry -}}{{- $name = printf "%s/%s" .root.Values.image.registry $name -}}{{- end -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .root.Values.image.tag) -}}
{{- end -}}

{{/* Whether an object of the base is wanted. */}}
{{- define "journeyman.wanted" -}}
{{- $kind := .object.kind -}}
{{- $name := .object.metadata.name -}}
{{- $values := .root.Values -}}
{{- if eq $kind "Namespace" -}}{{- if $values.namespace.create -}}yes{{- end -}}
{{- else if and (eq $kind "NetworkPolicy") (not $values.networkPolicies.enabled) -}}
{{- else if and (hasPrefix "nats" $name) (not $values.nats.enabled) -}}
{{- else if and (eq $name "redis") (not $values.redis.enabled) -}}
{{- else -}}yes{{- end -}}
{{- end -}}
