#!/usr/bin/env bash
# On a real node: a computation in a pod hands over checkpoints; its pod is deleted, and the Job of the next attempt
# goes on there. The result is that of a run without faults.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
world_start_with_coordinator device-1
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
broker_for_pods="{\"spec\":{\"connectionConfig\":{\"mqttAddress\":\"tcp://$NODE_MACHINE:$BROKER_PORT\"}}}"
add_proplet alpha device-1 "$(k8s_json localhost/proplet:1 | jq -c --argjson broker "$broker_for_pods" '. * $broker')"
wait_proplet alpha Running 120

add_image_task whole alpha "$(jq -nc --arg file "$(wasm regression)" '{spec: {imageUrl: "localhost/proplet:1",
    file: $file, functionName: "main", inputs: [], cliArgs: ["job"]}}')"
add_image_task long alpha "$(jq -nc --arg file "$(wasm regression)" '{spec: {imageUrl: "localhost/proplet:1",
    file: $file, functionName: "slice", inputs: [], cliArgs: ["job", "--slices"], backoffLimit: 2,
    checkpoint: {interval: "10s"}}}')"
wait_task whole completed 120
wait_task long running 120
has_checkpoint() { field_is tasks long '.status.lastCheckpoint.step > 0' true; }
wait_for 60 "a checkpoint" has_checkpoint
kn delete pod "$(pod_of_task long 1)" --wait=false >/dev/null
second_runs() { field_is tasks long '"\(.status.attempt) \(.status.phase)"' "2 running"; }
wait_for 120 "the second attempt" second_runs
step=$(task long .status.lastCheckpoint.step)
pod=$(pod_of_task long 2)
resumed() { kn logs "$pod" | jq -Rc 'fromjson? | select(.event == "resumed")' | grep .; }
wait_for 60 "the second attempt to go on" resumed
expect_eq "where it went on" true "$(resumed | jq --argjson step "$step" '.status == 200 and .steps == .step and .step <= $step')"
wait_task long completed 240
expect_eq "the result, bit for bit" "$(task whole .status.results)" "$(task long .status.results)"
expect_match "the condition" '^True Ready ' "$(condition tasks long Checkpointing)"
