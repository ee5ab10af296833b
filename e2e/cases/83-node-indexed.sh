#!/usr/bin/env bash
# On a real node: the pods of a Proplet with indexedClientIds connect with a client id each and share
# the Tasks; one that is deleted comes back as the same device; scaled down and to zero and back.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_node
secret_of() { printf 'secret-of-%s\n' "${1%-[0-9]}"; } # the pods of one Proplet have one key
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
wait_for 30 "the account of the pods" kn get serviceaccount default
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
