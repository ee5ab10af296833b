#!/usr/bin/env bash
# The API server takes config/webhook as it is; its Pods are admitted where Pod Security is restricted,
# and nothing gives them credentials.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_kubernetes "makes Deployments"

# The manifests with this case's namespace, as a stream of objects.
manifests() {
    k create --dry-run=client -o json "${@/#/--filename=$ROOT/config/webhook/}" |
        jq --arg ns "$NS" 'if .metadata.namespace then .metadata.namespace = $ns else . end'
}
# The Pod that the Deployment makes, changed by a filter.
pod() {
    manifests deployment.yaml | jq --arg ns "$NS" 'select(.kind == "Deployment")
        | { apiVersion: "v1", kind: "Pod", metadata: (.spec.template.metadata + {name: "webhook", namespace: $ns}),
            spec: .spec.template.spec } | '"$1"
}
dry_run() { k apply --dry-run=server --warnings-as-errors --validate=strict -o json -f -; }

k label namespace "$NS" pod-security.kubernetes.io/{enforce,warn}=restricted >/dev/null
manifests deployment.yaml | jq 'select(.kind == "ServiceAccount")' | k create -f - >/dev/null
said=$(manifests deployment.yaml service.yaml poddisruptionbudget.yaml networkpolicy.yaml mutating.yaml \
    validating.yaml | dry_run 2>&1 >/dev/null) || fail "a manifest is refused: $said"

pod . | dry_run >"$PART/pod.json" || fail "a Pod of the Deployment is refused"
expect_eq "volumes" certificate "$(jq -r '[.spec.volumes[].name] | join(" ")' "$PART/pod.json")"
expect_eq "mounts" "/etc/propeller/webhook read only" \
    "$(jq -r '[.spec.containers[].volumeMounts[] | .mountPath + if .readOnly then " read only" else "" end]
        | join(", ")' "$PART/pod.json")"
expect_eq "read-only, not root, system calls of the default" "true true RuntimeDefault" \
    "$(jq -r '"\(.spec.containers | all(.securityContext.readOnlyRootFilesystem)) \(.spec.securityContext
        | "\(.runAsNonRoot) \(.seccompProfile.type)")"' "$PART/pod.json")"
expect_eq "probes" "/healthz /readyz" \
    "$(jq -r '.spec.containers[0] | "\(.livenessProbe.httpGet.path) \(.readinessProbe.httpGet.path)"' "$PART/pod.json")"

# The checks above bite: without one of the settings the Pod is refused, or has a token.
expect_failure "a Pod that may be root" 'violates PodSecurity "restricted' \
    dry_run < <(pod 'del(.spec.securityContext.runAsNonRoot)')
pod 'del(.spec.automountServiceAccountToken, .spec.serviceAccountName)' | dry_run >"$PART/pod.json"
expect_match "volumes of a Pod that does not say so" 'kube-api-access' "$(jq -r '.spec.volumes[].name' "$PART/pod.json")"
