#!/usr/bin/env bash
# Three nodes under load: the replicas are spread; one node is drained and another one killed. The operator
# goes on, Proplets and Jobs move, and every Task ends with its result.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
(($(nodes | wc -l) >= 3)) || {
    say "needs three nodes: E2E_CLUSTER=kind" >"$PART/not-applicable"
    exit 0
}
broker_prepare device-1 device-2 device-3 device-4
broker_start
broker_record
controller_prepare
CONTROLLER_OPTIONS+=(--start-confirm-timeout 5s)
controller_start
expect_eq "nodes with a replica" 3 "$(operator_pods | jq -r .spec.nodeName | sort -u | wc -l)"

# Four Proplets with Tasks over MQTT, and Jobs.
for number in 1 2 3 4; do
    kn create secret generic "keys-$number" --from-literal=clientKey="$(secret_of "device-$number")" >/dev/null
    add_proplet "worker-$number" "device-$number" "$(k8s_json localhost/proplet:1 | jq -c \
        --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" --arg keys "keys-$number" '
        .spec.connectionConfig |= (.mqttAddress = $broker | .clientKeySecretRef.name = $keys)')"
done
for number in 1 2 3 4; do
    wait_condition proplets "worker-$number" Connected '^True Heartbeat' 180
done
COUNT=${CRASH_TASKS:-60}
add_load() { # add_load NAME COUNT
    task_json "$1-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' "$CRASH_PROFILE" |
        jq '.spec.backoffLimit = 3' | add_numbered "$2"
}
add_load first "$COUNT"
for number in 1 2 3 4; do
    add_image_task "job-$number" "worker-$number" "$(jq -nc --arg file "$ADDITION" '{spec: {imageUrl: "localhost/proplet:1",
        file: $file, functionName: "main", inputs: [10, 32], cliArgs: ["job"]}}')"
done

# The drain meets the budget of an installation.
ko apply -f "$ROOT/config/controller/poddisruptionbudget.yaml" >/dev/null
# The control plane stays; of the other two one is drained, and the other one dies while that goes on.
mapfile -t others < <(nodes | grep -v control-plane)
drained=${others[0]} killed=${others[1]}
wait_for "$CRASH_SECONDS" "some Tasks to end" ended_at_least $((COUNT / 10))
k drain "$drained" --ignore-daemonsets --delete-emptydir-data --force --timeout=180s >"$LOGS/drain.log" 2>&1 ||
    fail "the node cannot be drained: $(tail -n 5 "$LOGS/drain.log")"
ko delete poddisruptionbudget propeller-controller >/dev/null
add_load second "$COUNT"
in_docker docker kill "$killed" >/dev/null
left() { operator_pods | jq -r 'select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | .spec.nodeName' | sort | uniq -c; }
wait_for 180 "the leader to serve" readyz_says 'passed'
all_run() { phase_count_is proplets Running 4; }
moved() { # no pod of a Proplet that runs is where it cannot run
    local pods
    pods=$(api "/api/v1/namespaces/$NS/pods" | jq -r '.items[] | select(.metadata.deletionTimestamp == null)
        | select(.status.phase == "Running") | .spec.nodeName' | grep -cE "^($drained|$killed)$" || true)
    printf '%s pods on nodes that are away\n' "$pods"
    ((pods == 0))
}
wait_for 180 "the pods to move" moved
wait_for 180 "all Proplets to run" all_run
for number in 1 2 3 4; do
    wait_condition proplets "worker-$number" Connected '^True Heartbeat' 180
done
# Whether a Job's pod on a dead node still runs nobody can know: its Task waits for the node.
devices_ended() {
    local left
    left=$(objects tasks | jq '[.items[] | select(.spec.imageUrl == null) |
        select(.status.phase | IN("completed", "failed") | not)] | length') || return 1
    printf '%s Tasks of devices have not ended\n' "$left"
    ((left == 0))
}
wait_for "$CRASH_SECONDS" "all Tasks of devices to end" devices_ended
printf 'measured: replicas after that: %s\n' "$(left | tr -s ' \n' ' ')"

# ---- the nodes come back ----
in_docker docker start "$killed" >/dev/null
kind_routes
k uncordon "$drained" >/dev/null
wait_for 180 "all nodes to be ready" kind_nodes_ready
wait_for 180 "the controller to be ready" controller_ready
wait_for "$CRASH_SECONDS" "all Tasks to end" all_ended

wrong=$(objects tasks | jq -c '.items[] | select(.status.phase != "completed") | [.metadata.name, .status.phase, .status.reason, .status.error]')
expect_eq "Tasks that are not completed" "" "$wrong"
wrong=$(objects tasks | jq -c '.items[] | select(.spec.imageUrl == null and .status.results != "\(.spec.inputs[1])")
    | [.metadata.name, .status.results]')
expect_eq "Tasks without their own answer" "" "$wrong"
add_task after "$ADDITION" '[10, 32]' "$(task_on worker-1)"
wait_task after completed 60
printf 'measured: %s Tasks, %s of them with a second attempt\n' "$(objects tasks | jq '.items | length')" \
    "$(objects tasks | jq '[.items[] | select((.status.attempt // 1) > 1)] | length')"
