#!/usr/bin/env bash
# The owner of a Node wants it back at once: no budget is asked, and the machine stays away until a person says
# otherwise, also when the controller is killed in the middle. The case speaks for the manager of Cluster API.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

emergency() { # emergency VERSION
    machines_install "$1"
    machine_put one "$MACHINE_ANYTIME" '{"killIfCommands": ["steam"]}'
    wait_phase one Active
    manager_runs one
    wait_machine one '.status.conditions[] | select(.type == "NodeReachable").status' True
    agent() { k --namespace "$SYSTEM_NS" get --ignore-not-found configmap "reclaim-agent-$NS-one" -o jsonpath='{.data.reclaim\.toml}'; }
    labelled() { [[ $(k get node "$NS-one" -o jsonpath='{.metadata.labels.5spot\.finos\.org/reclaim-agent}') == enabled ]]; }
    wait_for 30 "the reclaim agent to be called" labelled
    expect_match "its configuration" 'match_commands = \["steam"\]' "$(agent)"
    machine_pod guarded one
    jq -n '{apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {name: "all"},
        spec: {maxUnavailable: 0, selector: {matchLabels: {app: "guarded"}}}}' | kn apply -f - >/dev/null
    k annotate node "$NS-one" 5spot.finos.org/reclaim-requested=True >/dev/null # not the literal
    k annotate --overwrite node "$NS-one" 5spot.finos.org/reclaim-requested=true >/dev/null
    wait_machine one .spec.schedule.enabled false
    crash controller
    controller_start
    kubelet_ends guarded 1
    manager_lets_go one
    wait_phase one Disabled 60
    expect_eq "objects" "" "$(machine_left one)"
    expect_eq "configuration of the reclaim agent" "" "$(agent)"
    expect_eq "schedule.enabled" false "$(machine_says one .spec.schedule.enabled)"
    machine_put one '{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "enabled": true}'
    wait_phase one Active
    kn delete pdb all >/dev/null
    kn delete sm one --timeout=60s >/dev/null
    machines_uninstall
}

broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
for version in "${MACHINE_VERSIONS[@]}"; do
    emergency "$version"
done
