#!/usr/bin/env bash
# The owner of a Node wants it back at once: no budget is asked, and the machine stays away until a person says
# otherwise, also when the controller is killed in the middle. A drain asks budgets, and ends by its timeout. The case speaks for the manager of Cluster API.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

said() { # said REASON PATTERN: an Event of a machine
    kn get events.events.k8s.io -o json | jq -er --arg reason "$1" '.items[] | select(.reason == $reason).note' | tee /dev/stderr | grep -qE "$2"
}
# no_disruption NAME: a budget that allows none for the pod of this name. The case speaks for its controller.
no_disruption() {
    jq -n --arg app "$1" '{apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {name: $app},
        spec: {minAvailable: 1, selector: {matchLabels: {app: $app}}}}' | kn apply -f - >/dev/null
    kn patch pdb "$1" --subresource=status --type=merge --patch '{"status": {"observedGeneration": 1, "expectedPods": 1,
        "desiredHealthy": 1, "currentHealthy": 1, "disruptionsAllowed": 0}}' >/dev/null
}

budget() {
    machine_put two "$MACHINE_ANYTIME"
    wait_phase two Active
    manager_runs two
    wait_machine two '.status.conditions[] | select(.type == "NodeReachable").status' True
    machine_pod free two
    machine_pod held two
    no_disruption held
    machine_put two "$MACHINE_NEVER" '{"gracefulShutdownTimeout": "0s", "nodeDrainTimeout": "7s"}'
    wait_for 30 "Machine two to be deleted" is_going two
    expect_failure "the pod without a budget" NotFound kn get pod free
    kn get pod held >/dev/null || fail "a pod went against its budget"
    wait_for 30 "the Event about the drain" said NodeDrainTimedOut "$NS/held"
    expect_eq "annotation for the drain of Cluster API" true "$(kn get machines.cluster.x-k8s.io two \
        -o jsonpath='{.metadata.annotations.machine\.cluster\.x-k8s\.io/exclude-node-draining}')"
    manager_lets_go two
    wait_phase two Inactive
    kn delete pdb held >/dev/null
    kn delete pod held --grace-period=0 --force >/dev/null 2>&1
    kn delete sm two --timeout=60s >/dev/null
}

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
    machine_put one "$MACHINE_ANYTIME" '{"killIfCommands": ["doom"]}'
    told_again() { [[ $(agent | tee /dev/stderr) == *'match_commands = ["doom"]'* ]]; }
    wait_for 30 "another configuration" told_again
    machine_pod guarded one
    no_disruption guarded
    k annotate node "$NS-one" 5spot.finos.org/reclaim-requested=True >/dev/null # not the literal
    k annotate --overwrite node "$NS-one" 5spot.finos.org/reclaim-{reason=gaming,requested=true} >/dev/null
    wait_machine one .spec.schedule.enabled false
    crash controller
    controller_start
    kubelet_ends guarded 1
    wait_for 30 "the Event with the reason" said EmergencyReclaim '^Active -> EmergencyRemove: .*reason: gaming$'
    manager_lets_go one
    wait_phase one Disabled 60
    expect_eq "objects" "" "$(machine_left one)"
    expect_eq "configuration of the reclaim agent" "" "$(agent)"
    expect_eq "schedule.enabled" false "$(machine_says one .spec.schedule.enabled)"
    machine_put one '{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "enabled": true}'
    wait_phase one Active
    kn delete pdb guarded >/dev/null
    kn delete sm one --timeout=60s >/dev/null
    machines_uninstall
}

broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
machines_install "${MACHINE_VERSIONS[0]}"
budget
for version in "${MACHINE_VERSIONS[@]}"; do
    emergency "$version"
done
