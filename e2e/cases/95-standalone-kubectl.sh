#!/usr/bin/env bash
# kubectl, Debian's and the one of these tests, says the same on propeller-standalone as on a kube-apiserver with the
# same kinds and the webhook: e2e/standalone/kubectl has what is done, and what may differ and why. By itself it does
# each verb at least once; KUBECTL_STEPS=. is everything, four minutes of a processor.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_no_node "has a server of its own"
case_needs_kubernetes "compares with it"

"$HERE/setup.sh" kubectl >"$LOGS/kubectl.log" 2>&1 || true # it says below what there is
other=$DEBIAN_KUBECTL
[[ -x $other ]] || other=$(command -v kubectl) || {
    say "needs a second kubectl: Debian's cannot be had, and there is none in the PATH" >"$PART/not-applicable"
    exit 0
}

start_ours() {
    local CLUSTER=$PART/ours E2E_CLUSTER=standalone APISERVER_PORT AUDIT_PORT
    mkdir -p "$CLUSTER"
    standalone_prepare >"$LOGS/init.log" 2>&1
    standalone_start --controller=false
}
start_ours
webhook_prepare
webhook_certificate >/dev/null 2>&1
webhook_start
: >"$PART/webhook-registered"
webhook_service
webhook_configurations "$WEBHOOK_CA" | jq --arg ns "$NS" '.webhooks[].namespaceSelector =
    {matchExpressions: [{key: "kubernetes.io/metadata.name", operator: "In", values: [$ns, $ns + "-1", $ns + "-2"]}]}' |
    k apply --server-side --force-conflicts -f - >/dev/null
wait_for 30 "the API server to ask the webhook" webhook_is_asked

steps=${KUBECTL_STEPS:-^(kinds|applied$|shown|one of each|by the server|watched$|waited|deleted)}
number=0 different=0
for kubectl in "$KUBECTL" "$other"; do
    number=$((number + 1))
    for server in "$CLUSTER" "$PART/ours"; do
        "$KUBECTL" --kubeconfig "$server/admin.kubeconfig" create namespace "$NS-$number" >/dev/null
    done
    "$PYTHON_HOME/bin/python" -B "$HERE/standalone/kubectl/run.py" --kubectl "$kubectl" --newest "$KUBECTL" \
        --real "$CLUSTER/admin.kubeconfig" --ours "$PART/ours/admin.kubeconfig" --work "$PART/kubectl-$number" \
        --namespace "$NS-$number" --samples "$ROOT/config/samples" --only "${steps#.}" || different=1
done
((different == 0)) || fail "kubectl prints something else (above)"
stop standalone TERM
