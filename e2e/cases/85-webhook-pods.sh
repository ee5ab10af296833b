#!/usr/bin/env bash
# The webhook as pods of config/webhook: the API server reaches it through its Service with the caBundle that
# the controller puts in; its Secrets and its pods are deleted, and it heals. Evictions that would leave nobody
# who could be asked are refused.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
WEBHOOK_NS=$SYSTEM_NS WEBHOOK_PORT=443
webhook_pods() {
    api "/api/v1/namespaces/$SYSTEM_NS/pods?labelSelector=app.kubernetes.io/name=$WEBHOOK" |
        jq -c '.items[] | select(.metadata.deletionTimestamp == null)'
}
webhook_pods_ready() { # two new ones
    local ready
    ready=$(webhook_pods | jq -r 'select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | .metadata.name' |
        grep -vxFc "${1:-none}" || true)
    printf '%s of 2 pods are ready\n' "$ready"
    ((ready == 2))
}
caBundles() {
    k get mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" -o json |
        jq -r '.items[].webhooks[].clientConfig.caBundle // ""'
}
all_have_a_bundle() { (($(caBundles | sort -u | wc -l) == 1)) && [[ -n $(caBundles | sed -n 1p) ]]; }
secret_serial() {
    ko get secret "$WEBHOOK-cert" -o json | jq -r '.data["tls.crt"] // ""' | base64 -d |
        openssl x509 -noout -serial | cut -d= -f2
}
secret_is_another() { local serial && serial=$(secret_serial) && printf '%s\n' "$serial" && [[ $serial != "$1" ]]; }
# A kubelet looks after the volumes of a pod about once a minute, and whenever the pod changes.
all_pods_serve() {
    local pod address serial
    while read -r pod address; do
        ko annotate --overwrite pod "$pod" looked-at="$RANDOM" >/dev/null
        serial=$(openssl s_client -connect "$address:9443" </dev/null 2>/dev/null |
            openssl x509 -noout -serial | cut -d= -f2)
        printf '%s serves %s instead of %s\n' "$pod" "$serial" "$1"
        [[ $serial == "$1" ]] || return 1
    done < <(webhook_pods | jq -r '"\(.metadata.name) \(.status.podIP)"')
}
served_after() { # served_after SERIAL: another certificate is there, and in every pod
    wait_for 60 "another certificate" secret_is_another "$1"
    wait_for 180 "every pod to serve it" all_pods_serve "$(secret_serial)"
    wait_for 60 "the API server to ask the webhook" webhook_is_asked
}

ko delete secret "$WEBHOOK-ca" "$WEBHOOK-cert" --ignore-not-found >/dev/null
broker_prepare
broker_start
controller_prepare
: >"$PART/webhook-in-pods"
: >"$PART/webhook-registered"
for file in deployment service networkpolicy poddisruptionbudget; do
    k create --dry-run=client -o json -f "$ROOT/config/webhook/$file.yaml"
done | jq --arg image "$OPERATOR_IMAGE" 'if .kind == "Deployment" then .spec.template.spec.containers[0] |=
    (.image = $image | .imagePullPolicy = "Never") else . end' | k apply --server-side --force-conflicts -f - >/dev/null
webhook_configurations | k apply --server-side --force-conflicts -f - >/dev/null
controller_start
wait_for 60 "every entry to have a caBundle" all_have_a_bundle
wait_for 180 "the pods of the webhook" webhook_pods_ready
wait_for 60 "the API server to ask the webhook" webhook_is_asked

# ---- its Secrets ----
serial=$(secret_serial)
ko delete secret "$WEBHOOK-cert" >/dev/null
served_after "$serial"
serial=$(secret_serial)
ko delete secret "$WEBHOOK-ca" "$WEBHOOK-cert" >/dev/null
served_after "$serial"

# ---- its budget: one at a time, and the second one when another is ready ----
mapfile -t pair < <(webhook_pods | jq -r .metadata.name)
expect_eq "pods of the webhook" 2 "${#pair[@]}"
for node in $(nodes); do k cordon "$node" >/dev/null; done # so that nobody takes its place yet
expect_eq "the first eviction" 201 "$(evict "$SYSTEM_NS" "${pair[0]}")"
one_is_left() { [[ $(webhook_pods | jq -r 'select(.spec.nodeName != null) | .metadata.name') == "${pair[1]}" ]]; }
wait_for 60 "one to be left" one_is_left
for _ in 1 2 3; do
    expect_match "the eviction of the last one" "^429 .*disruption budget" "$(evict "$SYSTEM_NS" "${pair[1]}")"
done
wait_for 60 "the API server to ask the webhook" webhook_is_asked
for node in $(nodes); do k uncordon "$node" >/dev/null; done
is_evicted() { [[ $(evict "$SYSTEM_NS" "$1" | tee /dev/stderr) == 201 ]]; }
wait_for 120 "the eviction of the other one" is_evicted "${pair[1]}"
wait_for 180 "two pods of the webhook" webhook_pods_ready
wait_for 60 "the API server to ask the webhook" webhook_is_asked

# ---- its pods, and the caBundle ----
before=$(webhook_pods | jq -r .metadata.name)
ko delete pods --selector "app.kubernetes.io/name=$WEBHOOK" --grace-period=0 --force >/dev/null 2>&1
wait_for 180 "other pods of the webhook" webhook_pods_ready "$before"
wait_for 60 "the API server to ask the webhook" webhook_is_asked
k patch validatingwebhookconfiguration "$WEBHOOK" --type=json \
    -p '[{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]' >/dev/null
wait_for 60 "the caBundle to be put back" all_have_a_bundle
wait_for 60 "the API server to ask the webhook" webhook_is_asked
