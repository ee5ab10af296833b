#!/usr/bin/env bash
# propeller-certgen without the controller: Secrets and caBundles of a cluster, or files and the
# caBundles; run again it writes nothing, and it says what it is not allowed to do.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"
certgen() {
    "$ROOT/build/bin/propeller-certgen" --kubeconfig "${CONFIG:-$CLUSTER/admin.kubeconfig}" \
        --webhook-namespace "$NS" "$@" 2>&1
}
# Everything that it looks after, with versions.
stored() {
    kn get secrets --ignore-not-found "$WEBHOOK-ca" "$WEBHOOK-cert" -o json | jq -c '.items // []'
    k get mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" -o json | jq -c .items
}
bundles() {
    k get mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" -o json |
        jq -r '.items[].webhooks[].clientConfig.caBundle // ""' | sort -u | base64 -d
}
serial_of() { openssl x509 -noout -serial; }
secret() { kn get secret "$1" -o json | jq -r --arg key "$2" '.data[$key] // ""' | base64 -d; }

webhook_prepare
expect_failure "certgen without a place" 'say where the pairs are' certgen
expect_failure "certgen that is to look, with nothing there" 'to be done: new authority' \
    certgen --secrets --check

# ---- Secrets, before there is a configuration ----
certgen --secrets >/dev/null
[[ $(kn get secret "$WEBHOOK-cert" -o jsonpath='{.type}') == kubernetes.io/tls ]] || fail "type of the Secret"
webhook_register
expect_failure "certgen that is to look, with empty caBundles" 'to be done: caBundle written' \
    certgen --secrets --check
certgen --secrets >/dev/null
expect_eq "every caBundle" "$(secret "$WEBHOOK-ca" tls.crt)" "$(bundles)"
secret "$WEBHOOK-ca" tls.crt >"$PART/ca.crt"
secret "$WEBHOOK-cert" tls.crt >"$PART/tls.crt"
openssl verify -x509_strict -purpose sslserver -verify_hostname "$WEBHOOK.$NS.svc" \
    -CAfile "$PART/ca.crt" "$PART/tls.crt" >/dev/null
before=$(stored)
certgen --secrets >/dev/null
certgen --secrets --check >/dev/null
expect_eq "what is stored after a second run" "$before" "$(stored)"

kn delete secret "$WEBHOOK-cert" >/dev/null
expect_match "what is said of a lost certificate" 'new certificate: the certificate is missing' \
    "$(certgen --secrets)"

# ---- who may not is told, and nothing of a Secret is said ----
CONFIG=$PART/useless.kubeconfig
kubeconfig "$CONFIG" "$CLUSTER/ca.crt" "token: $USELESS_TOKEN"
expect_failure "certgen without rights" 'propeller-certgen: GET .*cannot get resource' certgen --secrets
unset CONFIG

# ---- files, whose authority goes into the configurations; the API server asks the webhook ----
mkdir -p "${WEBHOOK_CA%/*}"
certgen --cert-dir "$WEBHOOK_CERTS" --ca-dir "${WEBHOOK_CA%/*}" --configurations >/dev/null
expect_eq "trusted authorities: that of the files, and that of the Secrets for now" 2 \
    "$(bundles | grep -c BEGIN)"
webhook_start
wait_for 30 "the API server to ask the webhook" webhook_is_asked
expect_eq "mode of the key" 600 "$(stat -L -c %a "$WEBHOOK_CERTS/tls.key")"

# ---- cert-manager's business ----
k annotate mutatingwebhookconfiguration "$WEBHOOK" cert-manager.io/inject-ca-from="$NS/x" >/dev/null
kn delete secret "$WEBHOOK-cert" >/dev/null
expect_match "what is said where cert-manager is" 'nothing to do: cert-manager looks after' \
    "$(certgen --secrets)"
! kn get secret "$WEBHOOK-cert" >/dev/null 2>&1 || fail "a Secret was made where cert-manager is"

# The overlay says so of both configurations.
"$KUBECTL" kustomize "$ROOT/config/webhook-cert-manager" >"$PART/overlay.yaml"
expect_eq "annotated configurations" 2 \
    "$(grep -c 'cert-manager.io/inject-ca-from: propeller-system/propeller-webhook$' "$PART/overlay.yaml")"
