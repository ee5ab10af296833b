#!/usr/bin/env bash
# A ServiceAccount that is deleted while Tasks run, and comes back: its reconciler goes on with a new
# token, nothing is lost or done twice; people get their rights through the cluster's own roles.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "has ServiceAccounts and roles"
COUNT=40
world_start device-1 device-2 device-3
proplet_json worker-NUMBER device-NUMBER | add_numbered 3
device_start devices --count 3
wait_for 30 "all Proplets to run" phase_count_is proplets Running 3

# Of the revoked token the API server knows after some seconds; the old accounts' uids are gone.
batch() { task_json "$1-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' | add_numbered $COUNT; }
token_refused() {
    controller_log | grep '"token refused, asking for another".*"identity":"task-controller"'
}
batch first
k delete serviceaccount task-controller --namespace "$SYSTEM_NS" >/dev/null
k apply --server-side -f "$ROOT/rbac/base/service-accounts.yaml" >/dev/null
# Until the last token is noticed there is always something to write.
noticed() {
    add_task "probe-$(now_ms)" "$ADDITION" '[1, 2]'
    token_refused
}
wait_for 90 "the revoked token to be refused" noticed
batch second
all=$(objects tasks | jq '.items | length')
wait_for 120 "all Tasks" phase_count_is tasks completed "$all"
twice=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
wrong=$(objects tasks | jq -c '.items[] | select(.status.results != .spec.inputs[1])
    | select(.metadata.name | startswith("probe") | not) | [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"

# A finished Task is deleted by the identity that may.
add_task brief "$ADDITION" '[1, 2]' '{"spec": {"ttlSecondsAfterFinished": 1}}'
wait_task_gone brief 30

# ---- people ----

may() { # may ROLE YES|NO VERB RESOURCE
    local role=$1 expected=$2 answer
    shift 2
    answer=$(kn auth can-i "$@" --as "somebody-$role" 2>/dev/null) || true
    expect_eq "may '$role' $*" "$expected" "$answer"
}
for role in view edit admin; do
    kn create rolebinding "$role" --clusterrole "$role" --user "somebody-$role" >/dev/null
    wait_for 30 "the role '$role' to be aggregated" may "$role" yes list federatedjobs.$GROUP
    may $role yes get trainingrounds.$GROUP --subresource=status
    may $role no update tasks.$GROUP --subresource=status
done
may view no create tasks.$GROUP
may edit yes create propellerjobs.$GROUP
may admin yes delete proplets.$GROUP
