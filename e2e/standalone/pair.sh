# shellcheck shell=bash
# propeller-standalone beside the kube-apiserver of $CLUSTER, which asks propeller-webhook: for what compares the two.

# shellcheck disable=SC2034 # used by what it calls
pair_ours() {
    local CLUSTER=$PART/ours E2E_CLUSTER=standalone APISERVER_PORT AUDIT_PORT
    mkdir -p "$CLUSTER"
    standalone_prepare
    standalone_start --controller=false
}

pair_start() { # pair_start JQ: with what jq makes of the webhook's configurations, where $ns is NS
    pair_ours
    webhook_prepare
    webhook_certificate
    webhook_start
    : >"$PART/webhook-registered"
    webhook_service
    webhook_configurations "$WEBHOOK_CA" | jq --arg ns "$NS" "$1" | k apply --server-side --force-conflicts -f - >/dev/null
    wait_for 30 "the API server to ask the webhook" webhook_is_asked
}
