#!/usr/bin/env bash
# kubectl, Debian's and the one of these tests, does the same on propeller-standalone as on a kube-apiserver with the
# same kinds and the webhook: 60 commands, with the same exit status and the same objects after each.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=e2e/standalone/pair.sh
source "$HERE/standalone/pair.sh"
case_begin
case_needs_no_node "has a server of its own"
case_needs_kubernetes "compares with it"

"$HERE/setup.sh" kubectl >"$LOGS/kubectl.log" 2>&1 || true # it says below what there is
other=$DEBIAN_KUBECTL
[[ -x $other ]] || other=$(command -v kubectl) || {
    say "needs a second kubectl: Debian's cannot be had, and there is none in the PATH" >"$PART/not-applicable"
    exit 0
}

# shellcheck disable=SC2016 # jq's
pair_start '.webhooks[].namespaceSelector = {matchExpressions: [{key: "kubernetes.io/metadata.name", operator: "In",
    values: [$ns, $ns + "-1", $ns + "-2"]}]}' >"$LOGS/pair.log" 2>&1

number=0 different=0
for kubectl in "$KUBECTL" "$other"; do
    number=$((number + 1))
    both=()
    for server in "$CLUSTER" "$PART/ours"; do
        "$KUBECTL" --kubeconfig "$server/admin.kubeconfig" create namespace "$NS-$number" >/dev/null
        record=$PART/kubectl-$number-${#both[@]}
        bash "$HERE/standalone/kubectl.sh" "$kubectl" "$server/admin.kubeconfig" "$NS-$number" "$record" >"$record.txt" &
        both+=($!)
    done
    for pid in "${both[@]}"; do wait "$pid"; done
    expect_eq "commands" 60 "$(grep -c '^exit ' "$PART/kubectl-$number-0.txt")"
    diff -u --show-function-line='^==== ' --label kube-apiserver --label standalone "$PART/kubectl-$number-0.txt" \
        "$PART/kubectl-$number-1.txt" || different=1
done
((different == 0)) || fail "kubectl does something else (above)"
stop standalone TERM
