#!/usr/bin/env bash
# On a real node: the kubelet and containerd are killed while a Task runs in the pod of a Proplet, and
# nothing is lost; the pod is killed, and the Task begins anew in the next one.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
world_start device-1
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
add_proplet alpha device-1 "$(k8s_json localhost/proplet:1 | jq -c \
    --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" '.spec.connectionConfig.mqttAddress = $broker')"
wait_condition proplets alpha Connected '^True Heartbeat' 120

# Ten seconds of work; pods go on without the daemons of their node.
pod=$(pods_of alpha)
add_task stays "$(wasm nap)" '["500", 7]' "$(task_on alpha)"
wait_task stays running
node=$(node_of "$pod")
node_kill "$node" kubelet
node_kill "$node" containerd
wait_for 60 "the node to be ready" node_ready "$node"
wait_task stays completed 60
expect_eq "result" 7 "$(task stays .status.results)"
expect_eq "attempts" 1 "$(task stays .status.attempt)"
expect_eq "the pod" "$pod" "$(pods_of alpha)"

add_task begins-anew "$(wasm nap)" '["500", 8]' "$(task_on alpha)"
wait_task begins-anew running
kn delete pod "$pod" --grace-period=0 --force >/dev/null 2>&1
wait_task begins-anew completed 120
expect_eq "result" 8 "$(task begins-anew .status.results)"
expect_eq "attempts" 2 "$(task begins-anew .status.attempt)"
