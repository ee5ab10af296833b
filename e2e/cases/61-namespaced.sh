#!/usr/bin/env bash
# Two namespaces with Roles only: Tasks of both run, a third is not touched, the identities have no
# right outside of the two and need none; one of them is deleted and made again, and heals.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "has Roles"
# Accounts of its own, which no ClusterRole knows, in a namespace beside the ones that are watched.
HOME_NS=$NS-home SECOND_NS=$NS-second THIRD_NS=$NS-third
at_home() { sed "s/propeller-system/$HOME_NS/" "$1"; }
rights_in() { at_home "$ROOT/rbac/namespaced/identities.yaml" | k apply --namespace "$1" -f - >/dev/null; }
for file in "$ROOT"/rbac/base/*.yaml; do at_home "$file" | k apply -f - >/dev/null; done
k create namespace "$SECOND_NS" >/dev/null
k create namespace "$THIRD_NS" >/dev/null
rights_in "$NS"
rights_in "$SECOND_NS"

# Pods have the account of the namespace that they are in.
! operator_in_pods || SYSTEM_NS=$HOME_NS

same_rules() { # same_rules ROLE
    expect_eq "rules of Role and ClusterRole '$1'" "$(k get clusterrole "$1" -o json | jq -cS .rules)" \
        "$(kn get role "$1" -o json | jq -cS .rules)"
}
# The webhook's configurations are of the whole cluster: not in this mode.
mapfile -t roles < <(sed -n '/^kind: ClusterRole$/,/name:/s/^  name: //p' "$ROOT/rbac/cluster/identities.yaml" |
    grep -v certificate)
for role in "${roles[@]}"; do same_rules "$role"; done
expect_eq "number of Roles" "${#roles[@]}" "$(kn get roles -o name | wc -l)"

broker_prepare device-1 device-2 device-3
broker_start
controller_prepare
identity_kubeconfig "$PART/kubeconfig" "$HOME_NS" propeller-controller
CONTROLLER_OPTIONS+=(--kubeconfig "$PART/kubeconfig" --namespace "$NS,$SECOND_NS"
    --manage-webhook-certificates=false)
mark=$(audit_mark)
controller_start
device_start devices --count 3

within() { # within NAMESPACE COMMAND...
    local NS=$1
    shift
    "$@"
}
# In each namespace Proplet and Task have the same names: they are not mixed up.
runs_a_task() { # runs_a_task A B
    add_task sum "$ADDITION" "[$1, $2]" "$(task_on worker)"
    wait_task sum completed
    expect_eq "result in '$NS'" $(($1 + $2)) "$(task sum .status.results)"
    wait_for 30 "its events" has_event sum 'Completed'
    kn delete task sum --wait=false >/dev/null
    wait_task_gone sum
}
within "$THIRD_NS" add_proplet worker device-3
within "$THIRD_NS" add_task sum "$ADDITION" '[1, 1]'
add_proplet worker device-1
within "$SECOND_NS" add_proplet worker device-2
wait_proplet worker Running
within "$SECOND_NS" wait_proplet worker Running
runs_a_task 10 32
within "$SECOND_NS" runs_a_task 20 30

# ---- one of them goes and comes back, while the other works ----

# Its content first: the rights to take finalizers off go with the namespace, in any order.
k delete proplets,tasks --all --namespace "$SECOND_NS" >/dev/null
k delete namespace "$SECOND_NS" --timeout=120s >/dev/null
runs_a_task 1 2
k create namespace "$SECOND_NS" >/dev/null
rights_in "$SECOND_NS"
within "$SECOND_NS" add_proplet worker device-2
within "$SECOND_NS" wait_proplet worker Running
within "$SECOND_NS" runs_a_task 3 4
wait_for 30 "readyz to be content" controller_ready

# ---- what was asked for ----

untouched() { # untouched KIND NAME
    within "$THIRD_NS" object "$1" "$2" | jq -c '[.metadata.finalizers, .status]'
}
expect_eq "Proplet of the third namespace" '[null,null]' "$(untouched proplets worker)"
expect_eq "Task of the third namespace" '[null,null]' "$(untouched tasks sum)"
expect_eq "ids started more than once" "" \
    "$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)"
who() {
    tail -n "+$((mark + 1))" "$CLUSTER/audit.log" | jq -r --arg ns "$HOME_NS" '
        select(.user.username | startswith("system:serviceaccount:\($ns):"))
        | select('"$1"') | "\(.user.username) \(.verb) \(.requestURI)"'
}
expect_eq "refused requests" "" "$(who '.responseStatus.code == 403')"
expect_eq "requests outside of the three namespaces" "" \
    "$(who '.objectRef.namespace | IN("'"$NS"'", "'"$SECOND_NS"'", "'"$HOME_NS"'") | not')"
[[ -n $(who '.objectRef.namespace == "'"$SECOND_NS"'"') ]] || fail "no request in the second namespace"

# ---- a namespace that is not there yet ----

controller_stop
LATE_NS=$NS-late
printf '%s\n' "$LATE_NS" >>"$CLUSTER/absent-namespaces" # for tools/audit.py
CONTROLLER_OPTIONS+=(--namespace "$LATE_NS")
controller_spawn
wait_for 60 "readyz to name what is missing" readyz_says "of namespace '$LATE_NS': Forbidden"
k create namespace "$LATE_NS" >/dev/null
rights_in "$LATE_NS"
wait_for 90 "the controller to be ready" controller_ready
within "$LATE_NS" add_proplet worker device-3
within "$LATE_NS" wait_proplet worker Running
within "$LATE_NS" runs_a_task 5 6
