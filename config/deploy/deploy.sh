#!/usr/bin/env bash
# Installs an overlay, or brings an installation up to date, and waits until it works: `make deploy`.
set -euo pipefail
# shellcheck source=config/deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly WEBHOOK_PODS='^Deployment propeller-webhook$'
readonly CERTIFICATE=propeller-webhook-cert
# Who is asked first, then those who answer.
readonly PRUNED=(mutatingwebhookconfigurations validatingwebhookconfigurations clusterrolebindings clusterroles
    deployments services networkpolicies poddisruptionbudgets serviceaccounts)
# Rights that an overlay has in all namespaces or in single ones; rbac/job-result-secrets and rbac/module-pull-secrets
# are applied beside it.
readonly RIGHTS='^propeller-(caches|[a-z]*-controller|(vmafx|scheduledmachine|module)-[a-z]*)$'

deployments() { documents '^Deployment ' | sed -n 's/^  name: //p'; }

# What keeps the pods of a Deployment from being ready, as far as the cluster says so.
explain() {
    kube --namespace "$SYSTEM" get pods --selector "app.kubernetes.io/name=$1" --output wide
    kube --namespace "$SYSTEM" get events --field-selector type=Warning --sort-by=.metadata.creationTimestamp | tail -n 5
    kube --namespace "$SYSTEM" logs --selector "app.kubernetes.io/name=$1" --tail 3 --prefix || true
} >&2

# The webhook's pods mount their certificate when they start; had they to wait for it, it would be minutes.
webhook() {
    has "$WEBHOOK_PODS" || return 0
    if ! there --namespace "$SYSTEM" secret "$CERTIFICATE"; then
        say "waiting for the webhook's certificate"
        wait_until "$DEPLOY_SECONDS" there --namespace "$SYSTEM" secret "$CERTIFICATE" || {
            explain propeller-controller
            die "nobody made the Secret '$CERTIFICATE' within $DEPLOY_SECONDS s (docs/explanation/certificates.md)"
        }
    fi
    documents "$WEBHOOK_PODS" | apply
}

rolled_out() {
    kube --namespace "$SYSTEM" rollout status "deployment/$1" --timeout="${DEPLOY_SECONDS}s" || {
        explain "$1"
        die "the Deployment '$1' is not ready"
    }
}

# Each line of stdin is something that is gone.
removed() { sed 's/^/not of this overlay: /'; }

# Of another overlay than this one: rights that this one is not to have, a webhook that nobody looks after.
prune() {
    local found kind name
    found=$(kube --namespace "$SYSTEM" get --selector "$OURS" --output go-template='{{range .items}}{{.kind}} {{.metadata.name}}{{"\n"}}{{end}}' \
        "$(IFS=,; echo "${PRUNED[*]}")")
    while read -r kind name; do
        [[ -z $kind ]] || has "^$kind $name\$" ||
            kube --namespace "$SYSTEM" delete "$kind" "$name" --ignore-not-found | removed
    done <<<"$found"
}

# is_watched NAMESPACE: with Roles alone, which somebody may have applied there by hand (rbac/namespaced); where the
# settings do not say it, or something else may say otherwise, it is not known which these are
is_watched() {
    local watched pods
    ! has '^ClusterRoleBinding propeller-caches$' || return 1
    watched=$(setting PROPELLER_NAMESPACE)
    pods=$(documents '^Deployment ')
    [[ -z $watched || $pods == *--namespace* || $pods == *_NAMESPACE* || ,${watched//[\" ]/}, == *,$1,* ]]
}

# The same of rights in single namespaces: those that this overlay does not have, or does not watch any more.
prune_rights() {
    local namespace name own found
    own=$(documents '^RoleBinding ' | awk '/^[a-z]/ { inside = /^metadata:/ }
        inside && /^  name: / { name = $2 }
        inside && /^  namespace: / { print $2, name }')
    found=$(our_bindings)
    while read -r namespace name; do
        [[ $name =~ $RIGHTS ]] || continue
        is_watched "$namespace" || grep -qxF "$namespace $name" <<<"$own" || remove_rights "$namespace" "$name" | removed
    done <<<"$found"
}

# Without a webhook nobody needs the keys that the controller made for it.
prune_keys() {
    local name
    ! has "$WEBHOOK_PODS" || return 0
    for name in propeller-webhook-ca "$CERTIFICATE"; do
        remove_ours "$SYSTEM" secrets "$name" | removed
    done
}

# In an upgrade who is asked must know the questions of the new configurations. What is broken is not mended by
# waiting for it here.
webhook_first() {
    has "$WEBHOOK_PODS" && there --namespace "$SYSTEM" deployment/propeller-webhook "secret/$CERTIFICATE" || return 0
    webhook
    kube --namespace "$SYSTEM" rollout status deployment/propeller-webhook --timeout="${DEPLOY_SECONDS}s" >/dev/null 2>&1 ||
        say "the webhook is not ready yet, going on"
}

report() {
    local image broker
    image=$(sed -n 's/^ *\(- \)\{0,1\}image: //p' "$MANIFESTS" | sort -u | tr '\n' ' ')
    broker=$(setting PROPELLER_MQTT_ADDRESS)
    say "overlay    $OVERLAY"
    say "image      ${image% }"
    say "broker     ${broker:-none: Tasks on external Proplets wait (PROPELLER_MQTT_ADDRESS, docs/how-to/install.md)}"
    say "namespaces $(setting PROPELLER_NAMESPACE | grep . || echo all)"
    kube --namespace "$SYSTEM" get deployments
}

main() {
    local name
    render
    documents '^CustomResourceDefinition ' | apply
    documents '^CustomResourceDefinition ' | kube wait --for=condition=Established --timeout="${DEPLOY_SECONDS}s" -f - >/dev/null
    webhook_first
    documents -v "$WEBHOOK_PODS|^CustomResourceDefinition " | apply
    webhook
    for name in $(deployments); do
        rolled_out "$name"
    done
    prune
    prune_rights
    prune_keys
    report
}

main
