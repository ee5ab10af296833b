#!/usr/bin/env bash
# On a real node: Tasks as Jobs whose container has a wasm runtime. Results by each way that does not
# need the container's own account, failures by their reason, a daemon, suspend and deletion.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
ANNOTATION=$GROUP/result
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
broker_prepare device-1
broker_start
controller_prepare
# The right that results in Secrets need, for the identity that the pod of the controller acts with.
kn apply -f "$ROOT/rbac/job-result-secrets/role.yaml" >/dev/null
controller_start --job-result-secrets
broker_for_pods="{\"spec\":{\"connectionConfig\":{\"mqttAddress\":\"tcp://$NODE_MACHINE:$BROKER_PORT\"}}}"
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
add_proplet alpha device-1 "$(k8s_json localhost/proplet:1 | jq -c --argjson broker "$broker_for_pods" '. * $broker')"
wait_proplet alpha Running 120

# job_task NAME ARGUMENT... [-- JSON merged into the object]
job_task() {
    local name=$1 arguments=(job) extra='{}'
    shift
    while (($#)); do
        if [[ $1 == -- ]]; then
            extra=$2
            break
        fi
        arguments+=("$1")
        shift
    done
    add_image_task "$name" alpha "$(printf '%s\n' "${arguments[@]}" |
        jq -Rnc --arg file "$ADDITION" --argjson extra "$extra" '
            {spec: {imageUrl: "localhost/proplet:1", file: $file, functionName: "main",
                    inputs: [10, 32], cliArgs: [inputs]}} * $extra')"
}
ended() { wait_task "$1" "$2" 120; }
running_job() {
    wait_task "$1" running 120
    pod_of_task "$1" "${2:-1}"
}
go_on() { kn exec "$1" -- /python/bin/python3 -c 'open("/tmp/go", "w")'; } # who waits in this pod

# The module is computed in the pod; what it wrote is the result.
job_task sum
ended sum completed
expect_eq "result" 42 "$(task sum .status.results)"
pod=$(pod_of_task sum)
expect_match "its log" "\"task\": \"$(task sum .metadata.uid)\", \"proplet\": \"alpha\"" "$(kn logs "$pod")"
expect_eq "its log by the plug-in" "$(kn logs "$pod")" "$(p logs task/sum)"
expect_eq "its log, followed to the end" "$(kn logs "$pod")" "$(p logs task/sum --follow)"

# The other ways.
WAYS=(by-job by-map by-secret by-pod)
for name in "${WAYS[@]}"; do job_task "$name" --silent --wait; done
for name in "${WAYS[@]}"; do running_job "$name" >/dev/null; done
kn annotate job by-job-job "$ANNOTATION={\"from\":\"job\"}" >/dev/null
kn create configmap by-map-job-result --from-literal=result=map >/dev/null
kn annotate pod "$(pod_of_task by-pod)" "$ANNOTATION=pod" >/dev/null
kn create secret generic by-secret-job-result --from-literal='result={"from":"secret"}' >/dev/null
for name in "${WAYS[@]}"; do go_on "$(pod_of_task "$name")"; done
ended by-job completed
expect_eq "by the Job" '{"from":"job"}' "$(task by-job '.status.results | tojson')"
ended by-map completed
expect_eq "by the ConfigMap" map "$(task by-map .status.results)"
ended by-secret completed
expect_eq "by the Secret" '{"from":"secret"}' "$(task by-secret '.status.results | tojson')"
ended by-pod completed
expect_eq "by the pod" pod "$(task by-pod .status.results)"

# Of a longer message the kubelet keeps the end, which is not taken for the result.
job_task long --long
ended long failed
expect_eq "why" "ResultTooLarge null" "$(task long '"\(.status.reason) \(.status.results)"')"

# Failures, each by its reason.
job_task exits --exit 3
job_task memory --grow -- '{"spec":{"resourceRequirements":{"memory":"100Mi"}}}'
job_task late --wait -- '{"spec":{"activeDeadlineSeconds":3}}'
job_task unpulled -- '{"spec":{"imageUrl":"localhost/nothing:1"}}'
wait_condition tasks unpulled Started "^False ImagePullBackOff .*'localhost/nothing:1' cannot be pulled" 120
ended exits failed
expect_match "why" '^ExitCode: exit code 3: .*no such key' "$(task exits '"\(.status.reason): \(.status.error)"')"
ended memory failed
expect_eq "why" OOMKilled "$(task memory .status.reason)"
ended late failed
expect_eq "why" DeadlineExceeded "$(task late .status.reason)"

# The pod is deleted by somebody: another attempt. Suspend ends the container, resume begins anew.
job_task robbed --wait
kn delete pod "$(running_job robbed)" --wait=false >/dev/null
wait_for 120 "a second attempt" field_is tasks robbed .status.attempt 2
kn patch task robbed --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
wait_made_gone jobs robbed-job-2 60
no_pod() { ! has_pod "$GROUP/task=robbed,$GROUP/attempt=2"; }
wait_for 120 "the pod to be gone" no_pod

# A daemon is up, and goes with its Task.
job_task server --wait -- '{"spec":{"daemon":true}}'
running_job server >/dev/null
kn delete tasks --all --wait=false >/dev/null
wait_made_gone deployments server-daemon 60
wait_task_gone robbed 60
