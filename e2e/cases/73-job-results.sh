#!/usr/bin/env bash
# A Task with an image on a Proplet of type k8s becomes a ConfigMap and a Job; the five places where
# the Job may leave its result, the first of them first. The case writes the pods' status as a
# kubelet would.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "has pods"
case_needs_no_node

ANNOTATION=$GROUP/result
kn apply -f "$ROOT/rbac/job-result-secrets/role.yaml" >/dev/null
broker_prepare pods
broker_start
controller_prepare
controller_start --job-result-secrets
add_cluster_proplet pods

leave_config_map() { kn create configmap "$1-result" --from-literal "result=$2" >/dev/null; }
is_after() { (($(date +%s) > $(date -d "$1" +%s))); } # times of objects are whole seconds
no_children() {
    local left
    left=$(kn get jobs,configmaps,pods -o name | grep -E -- "-job|-config" | grep -v -- -result) || return 0
    printf '%s\n' "$left"
    return 1
}
leave_secret() { kn create secret generic "$1-result" --from-literal "result=$2" >/dev/null; }

# What it becomes.
add_image_task sum pods "$(jq -nc --arg file "$ADDITION" '{spec: {functionName: "add", inputs: [10, 32],
    file: $file, cliArgs: ["--once"], env: {MODE: "fast"},
    resourceRequirements: {cpu: "50m", memory: "32Mi"}}}')"
pod=$(pod_of_task sum)
expect_eq "the ConfigMap" \
    '{"MODE":"fast","function_name":"add","inputs":"[10,32]","wasm_file_provided":"true"}' \
    "$(kn get configmap sum-config -o json | jq -cS .data)"
expect_eq "the module" "$ADDITION" "$(kn get configmap sum-config -o json | jq -r '.binaryData["module.wasm"]')"
expect_eq "the mount" /propeller \
    "$(kn get pod "$pod" -o json | jq -r '.spec.containers[0].volumeMounts[] | select(.name == "module").mountPath')"
expect_eq "attempts of the Job" 0 "$(made jobs sum-job .spec.backoffLimit)"
expect_eq "the owner" "$(task sum .metadata.uid)" "$(made jobs sum-job '.metadata.ownerReferences[0].uid')"
expect_eq "TASK_ID" "$(task sum .metadata.uid)" \
    "$(made jobs sum-job '.spec.template.spec.containers[0].env[] | select(.name == "TASK_ID").value')"
expect_eq "phase before the container started" scheduled "$(task sum .status.phase)"
kubelet_runs "$pod"
wait_task sum running

# 2: termination message; it counts before what is in the ConfigMap, the Secret and on the pod.
leave_config_map sum-job 1
leave_secret sum-job 2
kn annotate pod "$pod" "$ANNOTATION=3" >/dev/null
kubelet_ended "$pod" 0 '{"sum": 42}'
wait_task sum completed
expect_eq "from the termination message" '{"sum":42}' "$(task sum '.status.results | tojson')"
wait_for 30 "events" has_event sum '^Normal Completed '

# 1: the annotation of the Job counts before all others.
add_image_task first pods
pod=$(pod_of_task first)
kn annotate job first-job "$ANNOTATION=from the Job" >/dev/null
kubelet_ended "$pod" 0 'from the container'
wait_task first completed
expect_eq "from the Job" "from the Job" "$(task first .status.results)"

# 3: the ConfigMap; one that an earlier Task of the name left is none.
leave_config_map third-job stale
wait_for 30 "the next second" is_after "$(kn get configmap third-job-result -o jsonpath='{.metadata.creationTimestamp}')"
add_image_task third pods
pod=$(pod_of_task third)
leave_secret third-job 42
kubelet_ended "$pod" 0
wait_task third completed
expect_eq "not from the stale ConfigMap, but from the Secret" 42 "$(task third .status.results)"
add_image_task third-b pods
pod=$(pod_of_task third-b)
leave_config_map third-b-job '[1, 2]'
leave_secret third-b-job 42
kubelet_ended "$pod" 0
wait_task third-b completed
expect_eq "from the ConfigMap" '[1,2]' "$(task third-b '.status.results | tojson')"

# 5: the annotation of the pod; and nothing at all.
add_image_task fifth pods
pod=$(pod_of_task fifth)
kn annotate pod "$pod" "$ANNOTATION=last" >/dev/null
kubelet_ended "$pod" 0
wait_task fifth completed
expect_eq "from the pod" last "$(task fifth .status.results)"
add_image_task silent pods
kubelet_ended "$(pod_of_task silent)" 0
wait_task silent completed
expect_eq "no result" null "$(task silent .status.results)"

# Who leaves nothing behind: Jobs and ConfigMaps go with their Tasks.
kn delete tasks --all >/dev/null
wait_for 30 "all Jobs and ConfigMaps to be gone" no_children
