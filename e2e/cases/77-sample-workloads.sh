#!/usr/bin/env bash
# The API server takes what the samples for a cluster become: pods of Proplets, with one kind of device and with
# many, with a podTemplate, and the Job and the Deployment of Tasks.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "has pods"
case_needs_no_node

SAMPLES=$ROOT/config/samples
broker_prepare pods
broker_start
controller_prepare
controller_start --allow-pod-template
add_cluster_proplet pods

# of_type KIND FILTER: names of the samples
of_type() {
    kn create --dry-run=client -o json -f "$SAMPLES" |
        jq -r --arg kind "$1" '[if .kind == "List" then .items[] else . end | select(.kind == $kind)][] | '"$2"
}
mapfile -t deployments < <(of_type Proplet 'select(.spec.type == "k8s" and (.spec.k8s.indexedClientIds | not)) | .metadata.name')
mapfile -t pools < <(of_type Proplet 'select(.spec.type == "k8s" and .spec.k8s.indexedClientIds) | .metadata.name')
expect_eq "Proplets of type k8s among the samples" yes "$( ((${#deployments[@]} >= 3 && ${#pools[@]} >= 1)) && echo yes)"
kn apply -f <(of_type Proplet 'select(.spec.type == "k8s")') >/dev/null
for name in "${deployments[@]}"; do wait_made deployments "$name-proplet" .kind Deployment; done
for name in "${pools[@]}"; do wait_made statefulsets "$name-proplet" .kind StatefulSet; done
wait_for 30 "pods of a sample" pod_count_is "${deployments[0]}" 1

# On the Proplet whose pods are ready, whatever else they would choose.
kn apply -f <(of_type Task 'select(.spec.preferredPropletType == "k8s") | .spec.propletSelector = {propletId: "pods"}') >/dev/null
mapfile -t jobs < <(of_type Task 'select(.spec.preferredPropletType == "k8s" and (.spec.daemon | not)) | .metadata.name')
mapfile -t daemons < <(of_type Task 'select(.spec.preferredPropletType == "k8s" and .spec.daemon) | .metadata.name')
expect_eq "Tasks for a cluster among the samples" yes "$( ((${#jobs[@]} >= 1 && ${#daemons[@]} >= 1)) && echo yes)"
for name in "${jobs[@]}"; do
    wait_made jobs "$name-job" .kind Job
    kubelet_ended "$(pod_of_task "$name")" 0 42
    wait_task "$name" completed
done
for name in "${daemons[@]}"; do wait_made deployments "$name-daemon" .kind Deployment; done
expect_eq "what was refused" "" "$(objects tasks | jq -r '.items[] | select(.status.reason == "WorkloadInvalid") | .metadata.name')"
