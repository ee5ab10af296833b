#!/usr/bin/env bash
# differential.sh [SEQUENCES [SEED [INDEX]]]: random calls to a kube-apiserver with crds/ and propeller-webhook, and
# to propeller-standalone: they must do the same. With INDEX only this sequence of the seed.
# COMPARE_SECONDS=60: no further sequence begins after that.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=e2e/standalone/pair.sh
source "$HERE/standalone/pair.sh"
MANAGER_CONTROLLERS=garbage-collector-controller,namespace-controller
E2E_CLUSTER=control-plane NS=differential LOG=$ROOT/build/e2e/differential.start

mkdir -p "${LOG%/*}"
work_begin
{
    cluster_start differential
    k create namespace "$NS"
    pair_start 'del(.webhooks[].namespaceSelector) | .webhooks[].timeoutSeconds = 30' # namespaces come and go
} >"$LOG" 2>&1 || die "the two servers did not start: $(tail -n 20 "$LOG"); logs: $ROOT/build/e2e/differential"
python3 -B "$HERE/standalone/differential/run.py" --real "$CLUSTER/admin.kubeconfig" \
    --ours "$PART/ours/admin.kubeconfig" --known "$HERE/standalone/differential/known.txt" \
    --sequences "${1:-300}" --seed "${2:-1}" ${3:+--only "$3"} --seconds "${COMPARE_SECONDS:-0}"
