#!/usr/bin/env bash
# Deleted in each phase, a ScheduledMachine leaves nothing of its own, also when the controller is killed meanwhile.
# The case speaks for the manager of Cluster API.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

is_gone() { ! kn get sm "$1" >/dev/null 2>&1; }
delete_it() { # delete_it NAME PHASE [with-machine]
    wait_phase "$1" "$2"
    kn delete sm "$1" --wait=false >/dev/null
    [[ -z ${3:-} ]] || manager_lets_go "$1"
    wait_for 60 "$1, deleted in $2, to go" is_gone "$1"
    expect_eq "objects of $1" "" "$(machine_left "$1")"
}

clean_up() { # clean_up VERSION
    machines_install "$1"
    machine_put inactive "$MACHINE_NEVER"
    delete_it inactive Inactive
    machine_put disabled '{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "enabled": false}'
    delete_it disabled Disabled
    machine_put killed "$MACHINE_ANYTIME" '{"killSwitch": true}'
    delete_it killed Terminated
    machine_put bad "$MACHINE_ANYTIME" '{"infrastructureSpec": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NoSuchKind", "spec": {}}}'
    delete_it bad Error # its bootstrap object exists
    machine_put active "$MACHINE_ANYTIME"
    wait_phase active Active
    manager_runs active
    delete_it active Active with-machine
    machine_put smotron "$MACHINE_ANYTIME" '{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "K0sWorkerConfig",
        "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}'
    wait_phase smotron Active
    expect_eq "objects of smotron" "k0sworkerconfig machine remotemachine" "$(machine_left smotron)"
    delete_it smotron Active
    machine_put closing "$MACHINE_ANYTIME"
    wait_phase closing Active
    manager_runs closing
    machine_put closing "$MACHINE_NEVER" '{"gracefulShutdownTimeout": "1h"}'
    wait_phase closing ShuttingDown
    crash controller
    kn delete sm closing --wait=false >/dev/null
    controller_start
    manager_lets_go closing
    wait_for 60 "closing to go" is_gone closing
    expect_eq "objects of closing" "" "$(machine_left closing)"
    machines_uninstall
}

broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
for version in "${MACHINE_VERSIONS[@]}"; do
    clean_up "$version"
done
