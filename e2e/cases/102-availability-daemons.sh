#!/usr/bin/env bash
# Daemons stop at the close. Pods of a Proplet stay while a Task runs in the cluster, go when it is closed, and come
# back; a Job that has ended is read, and one that has not is deleted. The case writes the pods' status as a kubelet
# would.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "has pods"
case_needs_no_node

available() { kn patch proplet "$1" --type=merge -p "{\"spec\":{\"availability\":$2}}" >/dev/null; }
closed() { printf '{"gracefulShutdownTimeout":"%s","override":{"state":"Closed","until":"%s"}}' "$1" "$(date -u -d '+600 seconds' +%Y-%m-%dT%H:%M:%SZ)"; }
state_is() { field_is proplets "$1" '.status.availability.state' "$2"; }
wait_state() { wait_for 30 "Proplet $1 to be $2" state_is "$1" "$2"; }

broker_prepare pods
broker_start
controller_prepare
controller_start
add_cluster_proplet pods

# One Job ends within the grace, one does not.
add_image_task ends pods
add_image_task runs pods
ends=$(pod_of_task ends)
kubelet_runs "$ends"
kubelet_runs "$(pod_of_task runs)"
wait_task ends running
wait_task runs running
available pods "$(closed 15s)"
wait_state pods Draining
kubelet_ended "$ends" 0 7
wait_task ends completed
expect_eq "result" 7 "$(task ends .status.results)"
expect_eq "replicas while it drains" 1 "$(made deployments pods-proplet .spec.replicas)"
expect_eq "phase within the grace" running "$(task runs .status.phase)"
wait_made_gone jobs runs-job
wait_condition tasks runs Scheduled "^False PropletUnavailable Proplet 'pods' is closed$"
wait_state pods Closed
wait_for 30 "the pods to go" made_is deployments pods-proplet .spec.replicas 0
wait_condition proplets pods Ready '^False Closed '
expect_eq "phase" Offline "$(proplet pods .status.phase)"
available pods null
wait_for 30 "the pods to come" made_is deployments pods-proplet .spec.replicas 1
pods_run pods 1
wait_proplet pods Running
pod=$(pod_of_task runs 2)
kubelet_runs "$pod"
kubelet_ended "$pod" 0 8
wait_task runs completed

# A daemon of its own: at the close, whatever the grace is.
add_image_task serves pods '{"spec": {"daemon": true}}'
wait_for 30 "the Deployment of the daemon" made_is deployments serves-daemon .spec.replicas 1
available pods "$(closed 1h)"
wait_made_gone deployments serves-daemon
wait_state pods Closed
