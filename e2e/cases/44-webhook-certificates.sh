#!/usr/bin/env bash
# The controller looks after the certificates of two replicas: renewed before they expire, put back when
# somebody takes them away, and a new authority, while both are asked all the time.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"
ROTATIONS=3
REPLICAS="webhook-a webhook-b"
LIFE=36 # a third of it is the time to renew it in
WEBHOOK_NS=$SYSTEM_NS
ks() { k --namespace "$WEBHOOK_NS" "$@"; }

caBundles() {
    k get mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" -o json |
        jq -r '.items[].webhooks[].clientConfig.caBundle // ""'
}
all_have_a_bundle() {
    (($(caBundles | sort -u | wc -l) == 1)) && [[ -n $(caBundles | sed -n 1p) ]]
}
authorities() { caBundles | sed -n 1p | base64 -d | grep -c 'BEGIN CERTIFICATE'; }
authorities_are() { (($(authorities | tee /dev/stderr) == $1)); }
secret_serial() {
    ks get secret "$WEBHOOK-cert" -o json | jq -r '.data["tls.crt"] // ""' | base64 -d |
        openssl x509 -noout -serial | cut -d= -f2
}
secret_is_another() {
    local serial
    serial=$(secret_serial) || return 1
    printf '%s\n' "$serial"
    [[ $serial != "$1" ]]
}
# Every look is a handshake; what it finds must not be expired.
all_serve() {
    local replica
    for replica in $REPLICAS; do
        webhook_prepare "$replica"
        openssl s_client -connect "127.0.0.1:$WEBHOOK_PORT" </dev/null 2>/dev/null |
            openssl x509 -noout -checkend 0 >/dev/null || : >"$PART/expired"
        webhook_serves "$1" || return 1
    done
}
renewed_after() { secret_is_another "$1" && all_serve "$(secret_serial)"; }

webhook_prepare webhook-b
webhook_prepare webhook-a
broker_prepare
broker_start
controller_prepare
controller_start --webhook-certificate-lifetime ${LIFE}s --webhook-ca-overlap 12s

webhook_register
wait_for 30 "every entry to have a caBundle" all_have_a_bundle
for replica in $REPLICAS; do
    webhook_prepare "$replica"
    webhook_mount "$([[ $replica == webhook-a ]] || printf 1)"
    webhook_start
done
webhook_prepare webhook-a
wait_for 30 "the API server to ask the webhook" webhook_is_asked
mkdir -p "${WEBHOOK_CA%/*}"
caBundles | sed -n 1p | base64 -d >"$WEBHOOK_CA"
for replica in $REPLICAS; do
    webhook_prepare "$replica"
    webhook_load "load-$replica"
done

# ---- before it expires ----
serial=$(secret_serial)
wait_for 90 "both to serve another certificate" renewed_after "$serial"
[[ ! -e $PART/expired ]] || fail "an expired certificate was served"

# ---- taken away by hand ----
for ((i = 0; i < ROTATIONS; i++)); do
    serial=$(secret_serial)
    ks delete secret "$WEBHOOK-cert" >/dev/null
    wait_for 30 "the Secret to be put back, and served" renewed_after "$serial"
done
for replica in $REPLICAS; do
    printf '%s reviews of %s\n' "$(webhook_load_end "load-$replica")" "$replica"
done
k patch validatingwebhookconfiguration "$WEBHOOK" --type=json -p '[
    {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"},
    {"op": "replace", "path": "/webhooks/1/clientConfig/caBundle", "value": "'"$(base64 -w0 "$CLUSTER/ca.crt")"'"}
    ]' >/dev/null
wait_for 30 "the caBundle to be put back" all_have_a_bundle

# ---- a new authority ----
# The API server is the one that is told whom to trust: it must never be without an answer.
webhook_prepare webhook-a
ks delete secret "$WEBHOOK-ca" >/dev/null
handed_over() {
    webhook_is_asked >>"$PART/asked" || true
    authorities_are "$1"
}
wait_for 60 "old and new authority to be trusted" handed_over 2
wait_for 90 "the new authority alone" handed_over 1
said=$(grep -E 'x509|tls: ' "$PART/asked") && fail "the API server did not trust the webhook: $said"
webhook_is_asked >/dev/null || fail "the webhook is not asked any more"
expect_eq "certificates that are managed" 1 "$(metrics | awk '$1 == "propeller_webhook_certificates_managed" { print $2 }')"
