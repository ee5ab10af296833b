#!/usr/bin/env bash
# A node with the operator and a Proplet: kubelet and containerd stand still for a while, which a Task does not
# notice; then everything on the node ends at once and begins anew, and so do operator, Proplet and Task.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
world_start device-1
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
add_proplet alpha device-1 "$(k8s_json localhost/proplet:1 | jq -c \
    --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" '.spec.connectionConfig.mqttAddress = $broker')"
wait_condition proplets alpha Connected '^True Heartbeat' 120
pod=$(pods_of alpha)
node=$(node_of "$pod")

# ---- the daemons of the node are away ----
add_task stays "$(wasm nap)" '["500", 7]' "$(task_on alpha)"
wait_task stays running
node_stop "$node"
wait_task stays completed 60
node_begin "$node"
wait_for 120 "the node to be ready" node_ready "$node"
wait_for 120 "the controller to be ready" controller_ready
expect_eq "result" 7 "$(task stays .status.results)"
expect_eq "attempts" 1 "$(task stays .status.attempt)"
expect_eq "the pod" "$pod" "$(pods_of alpha)"

# ---- all of it ----
restarts() { made pods "$(pods_of alpha)" '.status.containerStatuses[0].restartCount'; }
before=$(restarts)
add_task begins-anew "$(wasm nap)" '["3000", 8]' "$(task_on alpha)"
wait_task begins-anew running
node_reboot "$node"
wait_for 180 "the node to be ready" node_ready "$node"
began_anew() {
    local seen
    seen=$(restarts) && printf '%s starts\n' "$seen" && [[ $(pods_of alpha) != "$pod" || $seen -gt $before ]]
}
wait_for 180 "the pod to begin anew" began_anew
wait_for 180 "the controller to be ready" controller_ready
wait_condition proplets alpha Connected '^True Heartbeat' 120
wait_task begins-anew completed 240
expect_eq "result" 8 "$(task begins-anew .status.results)"
expect_eq "attempts" 2 "$(task begins-anew .status.attempt)"
wait_proplet alpha Running 120
add_task after "$ADDITION" '[10, 32]' "$(task_on alpha)"
wait_task after completed 60
