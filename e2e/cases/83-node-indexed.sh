#!/usr/bin/env bash
# On a real node: the pods of a Proplet with indexedClientIds connect with a client id each and share
# the Tasks; one that is deleted comes back as the same device; a new image is rolled out under load, one pod after
# the other; scaled down and to zero and back.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
secret_of() { printf 'secret-of-%s\n' "${1%-[0-9]}"; } # the pods of one Proplet have one key
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
broker_prepare pool-0 pool-1
broker_start
controller_prepare
# Heartbeats of pods come as often as the controller says; both are to be heard at one time.
controller_start --liveliness-interval 1s --last-seen-threshold 15s
kn create secret generic keys --from-literal=clientKey="$(secret_of pool-0)" >/dev/null
scale() { kn patch proplet pool --type=merge -p "{\"spec\":{\"k8s\":{\"replicas\":$1}}}" >/dev/null; }
heard() { wait_condition proplets pool Connected "^True Heartbeat $1 pods are heard\$" 120; }
place() { task "$1" .status.assignedClientId; }
# add_sums PREFIX: on each of two pods at least one, and all of them right
add_sums() {
    local number
    for number in 1 2 3 4; do
        add_task "$1-$number" "$ADDITION" "[10, $number]" "$(task_on pool)"
        wait_for 30 "a choice for $1-$number" field_is tasks "$1-$number" .status.attempt 1
    done
    for number in 1 2 3 4; do
        wait_task "$1-$number" completed 60
        expect_eq "result of $1-$number" "$((10 + number))" "$(task "$1-$number" .status.results)"
    done
}

add_proplet pool pool "$(k8s_json localhost/proplet:1 '{"indexedClientIds":true,"replicas":2}' |
    jq -c --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" '.spec.connectionConfig.mqttAddress = $broker')"
wait_proplet pool Running 120
heard "2 of 2"
add_sums first
expect_eq "places" "pool-0 pool-1" "$(for number in 1 2 3 4; do place "first-$number"; done | sort -u | paste -sd " ")"

# The pod comes back under its name, as the same device; what it did not end runs again.
uid=$(made pods pool-proplet-1 .metadata.uid)
kn delete pod pool-proplet-1 --wait=false >/dev/null
new_pod() {
    local now
    now=$(made pods pool-proplet-1 .metadata.uid 2>&1)
    printf 'pod: %s\n' "$now"
    [[ $now == *-* && $now != "$uid" ]]
}
wait_for 60 "another pod" new_pod
wait_proplet pool Running 120
heard "2 of 2"
add_sums second

# Another image, under load: one pod after the other, nothing is written twice, and no Task is lost.
image proplet:2 fill_proplet "$HERE"/device/*.py
rolled_out() {
    made statefulsets pool-proplet | jq -c '[.spec.replicas, .status.updatedReplicas, .status.readyReplicas, .status.currentRevision == .status.updateRevision]' |
        tee /dev/stderr | grep -qx '\[2,2,2,true\]'
}
generation=$(made statefulsets pool-proplet .metadata.generation)
mark=$(date -u +%Y-%m-%dT%H:%M:%SZ)
task_json "roll-NUMBER" "$(wasm nap)" '["100", "NUMBER"]' "$(task_on pool)" | add_numbered 12
begun() { objects tasks | jq -e 'any(.items[]; (.metadata.name | startswith("roll-")) and .status.startedAt != null)'; }
wait_for 60 "one of them to begin" begun
kn patch proplet pool --type=merge -p '{"spec":{"k8s":{"image":"localhost/proplet:2"}}}' >/dev/null
wait_made statefulsets pool-proplet '.spec.template.spec.containers[0].image' localhost/proplet:2
wait_for 120 "the roll-out" rolled_out
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
    wait_task "roll-$number" completed 120
    expect_eq "result of roll-$number" "$number" "$(task "roll-$number" .status.results)"
done
expect_eq "images and ages of the pods" "localhost/proplet:2 true" "$(api "/api/v1/namespaces/$NS/pods" |
    jq -r --arg mark "$mark" '.items[] | "\(.spec.containers[0].image) \(.metadata.creationTimestamp >= $mark)"' | sort -u)"
expect_eq "writes of the StatefulSet's spec" 1 $(($(made statefulsets pool-proplet .metadata.generation) - generation))
heard "2 of 2"
printf 'measured: %s of 12 Tasks with a second attempt\n' "$(objects tasks | jq '[.items[] | select(.status.attempt > 1 and (.metadata.name | startswith("roll-")))] | length')"

# Down by one, to zero, and back.
scale 1
wait_for 60 "one pod" pod_count_is pool 1
wait_for 60 "one device" field_is proplets pool '[.status.k8sStatus.devices[].clientId] | join(" ")' pool-0
add_task alone "$ADDITION" '[1, 2]' "$(task_on pool)"
wait_task alone completed 60
expect_eq "its place" pool-0 "$(place alone)"
scale 0
wait_condition proplets pool Ready '^False ScaledToZero' 30
add_task waits "$ADDITION" '[3, 4]' "$(task_on pool)"
wait_condition tasks waits Scheduled '^False PropletOffline'
scale 2
wait_task waits completed 120
heard "2 of 2"

kn delete tasks,proplets --all --wait=false >/dev/null
wait_made_gone statefulsets pool-proplet 60
wait_for 60 "no pods" pod_count_is pool 0
