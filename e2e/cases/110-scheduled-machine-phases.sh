#!/usr/bin/env bash
# A ScheduledMachine goes through its phases on the CRDs of two versions of Cluster API: created, active, shut down with
# a drain, made again; a window that opens before the drain keeps it. The case speaks for the manager of Cluster API.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

# samples: as they are, but for a schedule that is open
samples() {
    local name
    kn create --dry-run=client -o json -f "$ROOT/config/samples/scheduled-machines" |
        jq -c --argjson schedule "$MACHINE_ANYTIME" '(if .items then .items[] else . end) | .spec.schedule = $schedule' | kn create -f - >/dev/null
    for name in business-hours batch-tainted; do
        wait_phase "$name" Active
        manager_runs "$name"
        wait_machine "$name" '.status.conditions[] | select(.type == "Ready").status' True
    done
    wait_machine batch-tainted '.status.conditions[] | select(.type == "NodeTainted").reason' Applied
    tainted() { k get node "$NS-batch-tainted" -o json | jq -c '[.spec.taints[] | select(.key | startswith("node.kubernetes.io/") | not) | "\(.key)=\(.value):\(.effect)"] | sort'; }
    expect_eq "taints of its Node" '["dedicated=ml:NoExecute","workload=batch:NoSchedule"]' "$(tainted)"
    reserved() { kn get events.events.k8s.io -o json | jq -e '.items[] | select(.reason == "ReservedKeys" and .regarding.name == "business-hours").note'; }
    wait_for 30 "the Event about a reserved key" reserved
    expect_eq "the annotation of machineTemplate" batch \
        "$(kn get machines.cluster.x-k8s.io business-hours -o jsonpath='{.metadata.annotations.example\.com/team}')"
    kn delete sm --all --wait=false >/dev/null
    manager_lets_go business-hours
    manager_lets_go batch-tainted
    kn wait --for=delete --timeout=60s sm --all >/dev/null
}

phases() { # phases VERSION SERVED
    machines_install "$1"
    machine_put one "$MACHINE_ANYTIME" '{"nodeTaints": [{"key": "ours", "effect": "NoSchedule"}]}'
    wait_phase one Active
    expect_eq "objects" "k0sworkerconfig machine remoteproxy" "$(machine_left one)"
    expect_eq "version that was written" "cluster.x-k8s.io/$2" "$(machine_says one .status.machineRef.apiVersion)"
    manager_runs one
    wait_machine one '.status.conditions[] | select(.type == "Ready").status' True
    wait_machine one '.status.conditions[] | select(.type == "NodeTainted").reason' Applied

    # ---- a window that opens again, and one that does not ----
    machine_put one "$MACHINE_NEVER" '{"gracefulShutdownTimeout": "1h"}'
    wait_phase one ShuttingDown
    cordoned() { [[ $(k get node "$NS-one" -o jsonpath='{.spec.unschedulable}') == "$1" ]]; }
    wait_for 30 "the Node to be cordoned" cordoned true
    machine_put one "$MACHINE_ANYTIME"
    wait_phase one Active
    wait_for 30 "the Node to be uncordoned" cordoned ''
    machine_pod worker one
    machine_put one "$MACHINE_NEVER"
    manager_lets_go one
    wait_phase one Inactive
    expect_eq "objects" "" "$(machine_left one)"
    expect_failure "the pod that was evicted" 'NotFound' kn get pod worker

    # ---- again, and the kill switch ----
    machine_put one "$MACHINE_ANYTIME"
    wait_phase one Active
    manager_runs one
    machine_put one "$MACHINE_ANYTIME" '{"killSwitch": true}'
    manager_lets_go one
    wait_for 30 "all objects to go" nothing_left one
    wait_phase one Terminated
    machine_put one "$MACHINE_NEVER"
    wait_phase one Inactive
    kn delete sm one --timeout=60s >/dev/null
    samples
    machines_uninstall
}

machines_install "${MACHINE_VERSIONS[0]}"
broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
for version in "${MACHINE_VERSIONS[@]}"; do
    if [[ $version == v1.10.* ]]; then
        phases "$version" v1beta1
    else
        phases "$version" v1beta2
    fi
done
