#!/usr/bin/env bash
# Three nodes under load: the replicas are spread; one node is drained, which waits for the budget of the replicas,
# and another one killed. The operator goes on, Proplets and Jobs move, a pool loses pods and gets them back, and
# every Task ends with its result.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
(($(nodes | wc -l) >= 3)) || {
    say "needs three nodes: E2E_CLUSTER=kind" >"$PART/not-applicable"
    exit 0
}
secret_of() { printf 'secret-of-%s\n' "${1%-[0-9]}"; } # the pods of one Proplet have one key
broker_prepare device-1 device-2 device-3 device-4 pool-0 pool-1 pool-2
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
# A pool, whose pods cannot all move: the one on a node that is dead is nobody else's until the node is back.
kn create secret generic keys-pool --from-literal=clientKey="$(secret_of pool-0)" >/dev/null
add_proplet pool pool "$(k8s_json localhost/proplet:1 '{"indexedClientIds":true,"replicas":3}' | jq -c \
    --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" '
    .spec.connectionConfig |= (.mqttAddress = $broker | .clientKeySecretRef.name = "keys-pool")')"
pool_heard() { wait_condition proplets pool Connected "^True Heartbeat $1 pods are heard\$" 180; }
pool_heard "3 of 3"
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

task_json "pool-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' '{"spec": {"backoffLimit": 3, "propletLostSeconds": 20,
    "propletLostPolicy": "Reschedule", "propletSelector": {"propletId": "pool"},
    "monitoringProfile": {"enabled": true, "interval": "1s"}}}' | add_numbered 12

# The drain meets the budget of an installation.
ko apply -f "$ROOT/config/controller/poddisruptionbudget.yaml" >/dev/null
budget() { ko get poddisruptionbudget propeller-controller -o json | jq -r '.status.disruptionsAllowed // "unknown"' | grep -x "$1"; }
wait_for 60 "the budget to be known" budget 1
# The control plane stays; of the other two one is drained, and the other one dies while that goes on.
mapfile -t others < <(nodes | grep -v control-plane)
drained=${others[0]} killed=${others[1]}
wait_for "$CRASH_SECONDS" "some Tasks to end" ended_at_least $((COUNT / 10))
# One replica is away already, and there is no place for its successor: the drain has to wait for that.
for node in $(nodes); do k cordon "$node" >/dev/null; done
away=$(operator_pods | jq -r --arg node "$drained" 'select(.spec.nodeName != $node) | .metadata.name' | sed -n 1p)
stays=$(operator_pods | jq -r --arg node "$drained" 'select(.spec.nodeName == $node) | .metadata.name')
expect_eq "the first eviction" 201 "$(evict "$SYSTEM_NS" "$away")"
# Who just begins to lead may not be ready for a moment, and who is not may always go.
wait_for 60 "the leader to serve" readyz_says 'passed'
stays_is_ready() { ko get pod "$stays" -o json | jq -e 'any(.status.conditions[]; .type == "Ready" and .status == "True")'; }
wait_for 60 "$stays to be ready" stays_is_ready
k drain "$drained" --ignore-daemonsets --delete-emptydir-data --force --timeout=300s >"$LOGS/drain.log" 2>&1 &
drain=$!
drain_waits() { grep "evicting pods/\"$stays\".*disruption budget" "$LOGS/drain.log" || { tail -n 3 "$LOGS/drain.log" && return 1; }; }
wait_for 60 "the drain to meet the budget" drain_waits
expect_match "another eviction" "^429 .*disruption budget" "$(evict "$SYSTEM_NS" "$stays")"
for node in $(nodes); do [[ $node == "$drained" ]] || k uncordon "$node" >/dev/null; done
wait "$drain" || fail "the node cannot be drained: $(tail -n 5 "$LOGS/drain.log")"
expect_eq "replicas on the drained node" "" "$(operator_pods | jq -r --arg node "$drained" 'select(.spec.nodeName == $node) | .metadata.name')"
ko delete poddisruptionbudget propeller-controller >/dev/null
add_load second "$COUNT"
in_docker docker kill "$killed" >/dev/null
left() { operator_pods | jq -r 'select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | .spec.nodeName' | sort | uniq -c; }
wait_for 180 "the leader to serve" readyz_says 'passed'
all_run() { # all but the pool, a pod of which waits for its node
    local number
    for number in 1 2 3 4; do field_is proplets "worker-$number" .status.phase Running || return 1; done
}
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
pool_heard "3 of 3"
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
