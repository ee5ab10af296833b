#!/usr/bin/env bash
# Objects of other owners under the name of ours, a Node of another cluster under the name of ours, and a Node that
# Cluster API gave to another Machine, are never changed. Without the flag nothing is asked for. The case speaks for the
# manager of Cluster API.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

foreign_node() { # foreign_node NAME PROVIDER-ID ANNOTATION
    local before
    machine_put "$1" "$MACHINE_ANYTIME" '{"nodeTaints": [{"key": "ours", "effect": "NoSchedule"}]}'
    wait_phase "$1" Active
    jq -n --arg name "$NS-$1" '{apiVersion: "v1", kind: "Node", metadata: {name: $name}}' | k apply -f - >/dev/null
    k annotate node "$NS-$1" "$3" >/dev/null
    manager_runs "$1" "$2"
    wait_machine "$1" '.status.conditions[] | select(.type == "NodeReachable").reason' NodeElsewhere
    k annotate node "$NS-$1" 5spot.finos.org/reclaim-requested=true >/dev/null
    before=$(k get node "$NS-$1" -o json | jq -cS '[.spec, .metadata.annotations, .metadata.labels]')
    machine_put "$1" "$MACHINE_NEVER"
    wait_for 60 "Machine $1 to be deleted" is_going "$1"
    expect_eq "the Node" "$before" "$(k get node "$NS-$1" -o json | jq -cS '[.spec, .metadata.annotations, .metadata.labels]')"
    manager_lets_go "$1"
    wait_phase "$1" Inactive
    kn delete sm "$1" --timeout=60s >/dev/null
}

others() { # others VERSION
    machines_install "$1"
    jq -n '{apiVersion: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "K0sWorkerConfig", metadata: {name: "taken",
        labels: {"5spot.finos.org/scheduled-machine": "taken"}}}' | kn create -f - >/dev/null
    before=$(kn get k0sworkerconfig taken -o jsonpath='{.metadata.resourceVersion}')
    machine_put taken "$MACHINE_ANYTIME"
    wait_phase taken Error
    expect_match "message" 'NameTaken' "$(machine_says taken .status.message)"
    expect_eq "objects" k0sworkerconfig "$(machine_left taken)"
    kn delete sm taken --timeout=60s >/dev/null
    expect_eq "version of the other owner's" "$before" "$(kn get k0sworkerconfig taken -o jsonpath='{.metadata.resourceVersion}')"
    kn delete k0sworkerconfig taken >/dev/null

    foreign_node far test://another "cluster.x-k8s.io/machine=far"
    foreign_node near test://near "cluster.x-k8s.io/machine=theirs"
}

broker_prepare device-1
broker_start
controller_prepare
PLAIN_OPTIONS=("${CONTROLLER_OPTIONS[@]}")
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
wait_served() { metrics | grep -qx "propeller_scheduled_machines_served $1"; }
for version in "${MACHINE_VERSIONS[@]}"; do
    others "$version"
    wait_for 60 "ScheduledMachines to be served" wait_served 1
    machines_uninstall
    wait_for 60 "ScheduledMachines not to be served" wait_served 0
done
machines_install "$version"

# ---- no flag ----

crash controller
CONTROLLER_OPTIONS=("${PLAIN_OPTIONS[@]}")
since=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
controller_start
machine_put one "$MACHINE_ANYTIME"
device_start device-1 --identity device-1
add_proplet worker device-1
add_task sum "$ADDITION" '[10, 32]'
wait_task sum completed 60
expect_eq "lines of readyz about machines" 0 "$(readyz | grep -c scheduled-machines || true)"
expect_eq "requests of part B without the flag" 0 \
    "$(jq -r --arg since "$since" 'select(.requestReceivedTimestamp > $since)
        | select(.objectRef.apiGroup == "5spot.finos.org" or .objectRef.apiGroup == "cluster.x-k8s.io" or .objectRef.resource == "nodes")
        | select(.user.username | test("propeller|scheduledmachine-controller")) | .requestURI' "$CLUSTER/audit.log" | wc -l)"
expect_eq "metrics of part B without the flag" 0 "$(metrics | grep -cE 'fivespot|scheduled_machine' || true)"
expect_eq "phase without the flag" null "$(machine_says one .status.phase)"
kn delete sm one >/dev/null
machines_uninstall
