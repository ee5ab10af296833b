#!/usr/bin/env bash
# `make e2e`: the cases on what there is. With E2E_CLUSTER or E2E_KUBECONFIG on that. Otherwise on a control plane,
# and then those that need nodes with the operator in pods: on the nodes of kind if they are up (e2e/tools/kind up),
# else on one of this machine, if it allows that. Which, and why not another one, is said first.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ -z ${E2E_CLUSTER:-}${E2E_KUBECONFIG:-} ]] || exec "$HERE/run.sh" "$@"

# choose_nodes: NODES, empty where there are none, and WHY
choose_nodes() {
    NODES='' WHY=
    if kind_is_up; then
        NODES=kind WHY="e2e/tools/kind has them up"
    elif WHY=$(node_obstacle); then
        WHY="not on this machine: $WHY"
    else
        NODES=local WHY="no nodes of kind are up"
    fi
}

main() {
    local file status=0
    local -a cases on_nodes=()
    mapfile -t cases < <(chosen_cases "$@")
    ((${#cases[@]})) || exit 1
    for file in "${cases[@]}"; do
        ! grep -qE '^case_needs_(node|pods)$' "$file" || on_nodes+=("$(basename "$file" .sh)")
    done
    choose_nodes
    printf 'e2e: %s cases on a control plane, %s on nodes: %s (%s)\n' \
        $((${#cases[@]} - ${#on_nodes[@]})) "${#on_nodes[@]}" "${NODES:-none}" "$WHY"
    if [[ -z $NODES ]] || ((${#on_nodes[@]} < ${#cases[@]})); then
        E2E_CLUSTER=control-plane "$HERE/run.sh" "$@" || status=1
    fi
    if [[ -n $NODES ]] && ((${#on_nodes[@]})); then
        E2E_CLUSTER=$NODES "$HERE/run.sh" "${on_nodes[@]}" || status=1
    fi
    exit "$status"
}

main "$@"
