#!/usr/bin/env bash
# One namespace with Roles only: the identities have no right outside of it, and need none.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
# Accounts of its own, which no ClusterRole knows, in a namespace beside the one that is watched.
HOME_NS=$NS-home
at_home() { sed "s/propeller-system/$HOME_NS/" "$1"; }
for file in "$ROOT"/rbac/base/*.yaml; do at_home "$file" | k apply -f - >/dev/null; done
at_home "$ROOT/rbac/namespaced/identities.yaml" | kn apply -f - >/dev/null

same_rules() { # same_rules ROLE
    expect_eq "rules of Role and ClusterRole '$1'" "$(k get clusterrole "$1" -o json | jq -cS .rules)" \
        "$(kn get role "$1" -o json | jq -cS .rules)"
}
# The webhook's configurations are of the whole cluster: not in this mode.
mapfile -t roles < <(sed -n '/^kind: ClusterRole$/,/name:/s/^  name: //p' "$ROOT/rbac/cluster/identities.yaml" |
    grep -v certificate)
for role in "${roles[@]}"; do same_rules "$role"; done
expect_eq "number of Roles" "${#roles[@]}" "$(kn get roles -o name | wc -l)"

broker_prepare device-1
broker_start
controller_prepare
identity_kubeconfig "$PART/kubeconfig" "$HOME_NS" propeller-controller
CONTROLLER_OPTIONS+=(--kubeconfig "$PART/kubeconfig" --namespace "$NS" --manage-webhook-certificates=false)
mark=$(audit_mark)
controller_start
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed
expect_eq "result" 42 "$(task sum .status.results)"
wait_for 30 "its events" has_event sum 'Completed'
kn delete task sum --wait=false >/dev/null
wait_task_gone sum

who() {
    tail -n "+$((mark + 1))" "$CLUSTER/audit.log" | jq -r --arg ns "$HOME_NS" '
        select(.user.username | startswith("system:serviceaccount:\($ns):"))
        | select('"$1"') | "\(.user.username) \(.verb) \(.requestURI)"'
}
expect_eq "refused requests" "" "$(who '.responseStatus.code == 403')"
expect_eq "requests outside of the two namespaces" "" \
    "$(who '.objectRef.namespace != "'"$NS"'" and .objectRef.namespace != "'"$HOME_NS"'"')"
controller_stop
k delete namespace "$HOME_NS" --wait=false >/dev/null
