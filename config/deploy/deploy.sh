#!/usr/bin/env bash
# Installs an overlay, or brings an installation up to date, and waits until it works: `make deploy`.
set -euo pipefail
# shellcheck source=config/deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly WEBHOOK_PODS='^Deployment propeller-webhook$'
readonly CERTIFICATE=propeller-webhook-cert

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
            die "nobody made the Secret '$CERTIFICATE' within $DEPLOY_SECONDS s (docs/webhook-certificates.md)"
        }
    fi
    documents "$WEBHOOK_PODS" | apply
}

# A value of the controller's settings as it was deployed.
setting() { sed -n "s/^  $1: //p" "$MANIFESTS" | head -n 1; }

report() {
    local image broker
    image=$(sed -n 's/^ *\(- \)\{0,1\}image: //p' "$MANIFESTS" | sort -u | tr '\n' ' ')
    broker=$(setting PROPELLER_MQTT_ADDRESS)
    say "overlay    $OVERLAY"
    say "image      ${image% }"
    say "broker     ${broker:-none: Tasks on external Proplets wait (PROPELLER_MQTT_ADDRESS, docs/install.md)}"
    say "namespaces $(setting PROPELLER_NAMESPACE | grep . || echo all)"
    kube --namespace "$SYSTEM" get deployments
}

main() {
    local name
    render
    documents '^CustomResourceDefinition ' | apply
    documents '^CustomResourceDefinition ' | kube wait --for=condition=Established --timeout="${DEPLOY_SECONDS}s" -f - >/dev/null
    documents -v "$WEBHOOK_PODS|^CustomResourceDefinition " | apply
    webhook
    for name in $(deployments); do
        kube --namespace "$SYSTEM" rollout status "deployment/$name" --timeout="${DEPLOY_SECONDS}s" || {
            explain "$name"
            die "the Deployment '$name' is not ready"
        }
    done
    report
}

main
