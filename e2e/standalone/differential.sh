#!/usr/bin/env bash
# differential.sh [SEQUENCES [SEED [INDEX]]]: random calls to a kube-apiserver with crds/ and propeller-webhook, and
# to propeller-standalone: answers and watches must be the same. With INDEX only this sequence of the seed.
# KEEP=1 leaves both running until Enter is pressed. COMPARE_SECONDS=60: no further sequence begins after that.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
SEQUENCES=${1:-300} SEED=${2:-1} ONLY=${3:-}
E2E_CLUSTER=control-plane
MANAGER_CONTROLLERS=garbage-collector-controller,namespace-controller
NS=differential

start_ours() {
    local CLUSTER=$PART/ours
    mkdir -p "$CLUSTER"
    standalone_prepare
    standalone_start --controller=false
}

# Namespaces come and go: the webhook is asked about all of them.
start_webhook() {
    k create namespace "$NS" >/dev/null
    webhook_prepare
    webhook_certificate
    webhook_start
    : >"$PART/webhook-registered"
    webhook_service
    webhook_configurations "$WEBHOOK_CA" | jq 'del(.webhooks[].namespaceSelector) | .webhooks[].timeoutSeconds = 30' |
        k apply --server-side --force-conflicts -f - >/dev/null
    wait_for 30 "the API server to ask the webhook" webhook_is_asked
}

main() {
    local log=$ROOT/build/e2e/differential.start
    mkdir -p "${log%/*}"
    work_begin
    { cluster_start differential && start_ours && start_webhook; } >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        die "the two servers did not start; logs: $ROOT/build/e2e/differential"
    }
    [[ -z ${KEEP:-} ]] || {
        say "real: $CLUSTER/admin.kubeconfig, ours: $PART/ours/admin.kubeconfig"
        read -r _
        return
    }
    python3 -B "$HERE/standalone/differential/run.py" --real "$CLUSTER/admin.kubeconfig" \
        --ours "$PART/ours/admin.kubeconfig" --known "$HERE/standalone/differential/known.txt" \
        --sequences "$SEQUENCES" --seed "$SEED" ${ONLY:+--only "$ONLY"} \
        ${COMPARE_SECONDS:+--seconds "$COMPARE_SECONDS"}
}

main
