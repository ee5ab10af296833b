#!/usr/bin/env bash
# On a real node: the pod of a Proplet of type k8s connects to the broker with what its environment
# says and runs a Task; a new image is rolled out, what cannot start is told, a lost pod comes back.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
world_start device-1 device-2
broker_for_pods="{\"spec\":{\"connectionConfig\":{\"mqttAddress\":\"tcp://$NODE_MACHINE:$BROKER_PORT\"}}}"
in_pod() { # in_pod [JSON merged into spec.k8s]: for proplet_json
    k8s_json localhost/proplet:1 "${1:-{\}}" | jq -c --argjson broker "$broker_for_pods" '. * $broker'
}
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null

add_proplet alpha device-1 "$(in_pod)"
wait_proplet alpha Running 120
wait_condition proplets alpha Connected '^True Heartbeat' 60
add_task sum "$ADDITION" '[10, 32]' "$(task_on alpha)"
wait_task sum completed 60
expect_eq "result" 42 "$(task sum .status.results)"
pod=$(pods_of alpha)
expect_match "its log" '"event": "connected"' "$(kn logs "$pod")"
expect_eq "user of the pod" 65532 "$(made pods "$pod" .spec.securityContext.runAsUser)"

# The pod dies: another one takes its place, and is heard.
kn delete pod "$pod" --wait=false >/dev/null
new_pod() {
    local pods
    pods=$(pods_of alpha)
    printf 'pods: %s\n' "$pods"
    [[ -n $pods && $pods != "$pod" ]]
}
wait_for 60 "another pod" new_pod
wait_proplet alpha Running 60
wait_condition proplets alpha Connected '^True Heartbeat' 60
add_task again "$ADDITION" '[1, 2]' "$(task_on alpha)"
wait_task again completed 60

# An image that does not exist, and the way back.
kn patch proplet alpha --type=merge -p '{"spec":{"k8s":{"image":"localhost/nothing:1"}}}' >/dev/null
wait_condition proplets alpha Ready "^False ImagePullBackOff .*'localhost/nothing:1' cannot be pulled" 60
wait_for 30 "an event" has_event alpha '^Warning Offline '
kn patch proplet alpha --type=merge -p '{"spec":{"k8s":{"image":"localhost/proplet:1"}}}' >/dev/null
wait_proplet alpha Running 60

# A key that is not there, until it is.
beta=$(in_pod | jq -c '.spec.connectionConfig.clientKeySecretRef.name = "later"')
add_proplet beta device-2 "$beta"
wait_condition proplets beta Ready "^False CreateContainerConfigError .*secret \"later\" not found" 60
kn create secret generic later --from-literal=clientKey="$(secret_of device-2)" >/dev/null
wait_proplet beta Running 60
wait_condition proplets beta Connected '^True Heartbeat' 60

# To zero: the device is gone; and back.
kn patch proplet beta --type=merge -p '{"spec":{"k8s":{"replicas":0}}}' >/dev/null
wait_condition proplets beta Ready '^False ScaledToZero' 30
wait_condition proplets beta Connected '^False' 60
kn patch proplet beta --type=merge -p '{"spec":{"k8s":{"replicas":1}}}' >/dev/null
wait_condition proplets beta Connected '^True Heartbeat' 60

kn delete tasks,proplets --all --wait=false >/dev/null
wait_made_gone deployments alpha-proplet 60
wait_for 60 "no pods" pod_count_is alpha 0
