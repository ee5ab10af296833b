#!/usr/bin/env bash
# A Proplet whose pods have a client id each: Tasks over MQTT spread over the pods, each answers for
# its own; a pod that is started anew, scaled away or silent costs its Tasks an attempt and no result.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_kubernetes "has pods"

case_needs_own_cluster # pods are spoken for
case_needs_no_node
broker_prepare pool-0 pool-1 pool-2 single
broker_start
controller_prepare
# Who keeps its result back looks as if it had not heard the start: not to be told again meanwhile.
CONTROLLER_OPTIONS+=(--start-confirm-timeout 5m)
controller_start
broker_record
pod_starts() { device_start "pool-$1" --identity "pool-$1"; } # what would run in the pod
scale() { kn patch proplet pool --type=merge -p "{\"spec\":{\"k8s\":{\"replicas\":$1}}}" >/dev/null; }
heard() { wait_condition proplets pool Connected "^True Heartbeat $1 pods are heard\$" 60; }
place() { task "$1" .status.assignedClientId; }
runs() { # runs TASK POD: its start has come there
    wait_for 30 "the start of $1 on $2" journal_has "$2" \
        ".event == \"start\" and (.task | startswith(\"$(task "$1" .metadata.uid)\"))"
    wait_task "$1" running
}
seen_devices() { proplet pool '[.status.k8sStatus.devices[]? | "\(.clientId) \(.connected // false)"] | join(", ")'; }

# Each pod is a device of its own.
add_proplet pool pool "$(k8s_json reg/proplet:1 '{"indexedClientIds":true,"replicas":3}')"
pods_run pool 3
wait_proplet pool Running
wait_condition proplets pool Connected '^False NoHeartbeat'
for pod in 0 1 2; do pod_starts "$pod"; done
heard "3 of 3"
expect_eq "the devices" "pool-0 true, pool-1 true, pool-2 true" "$(seen_devices)"

# The first three go to a pod each, and every result comes from the pod that it was given to.
for number in 1 2 3 4 5 6; do
    add_task "sum-$number" "$ADDITION" "[10, $number]" "$(task_on pool)"
    wait_for 30 "a choice for sum-$number" field_is tasks "sum-$number" .status.attempt 1
done
for number in 1 2 3 4 5 6; do
    wait_task "sum-$number" completed
    expect_eq "result of sum-$number" "$((10 + number))" "$(task "sum-$number" .status.results)"
done
expect_eq "places of the first three" "pool-0 pool-1 pool-2" "$(place sum-1) $(place sum-2) $(place sum-3)"

# A result of another pod of the same Proplet is none.
device_say pool-0 hold pool-0
device_say pool-1 hold pool-1
device_say pool-2 hold pool-2
add_task forged "$ADDITION" '[1, 2]' "$(task_on pool)"
wait_task forged running
pod=$(place forged)
publish control/proplet/results "$(jq -nc --arg id "$(task forged .metadata.uid)" --arg other "pool-$(((${pod#pool-} + 1) % 3))" \
    '{task_id: $id, proplet_id: $other, results: "666", error: null}')"
rejected() { metrics | grep '^propeller_results_rejected_total{reason="other_proplet"} 1$'; }
wait_for 30 "the rejection" rejected
for pod in 0 1 2; do device_say "pool-$pod" release "pool-$pod"; done
wait_task forged completed
expect_eq "result of forged" 3 "$(task forged .status.results)"

# A pod is evicted and comes again: its Task runs again, those of the others do not notice.
for pod in 0 1 2; do device_say "pool-$pod" hold "pool-$pod"; done
for number in 1 2 3; do
    add_task "nap-$number" "$(wasm nap)" "[\"50\", $number]" "$(task_on pool)"
    wait_task "nap-$number" running
    runs "nap-$number" "$(place "nap-$number")"
done
pod=$(place nap-2)
kill_device "$pod" --identity "$pod"
for other in 0 1 2; do [[ $pod == "pool-$other" ]] || device_say "pool-$other" release "pool-$other"; done
for number in 1 2 3; do wait_task "nap-$number" completed 60; done
expect_eq "attempts" "1 2 1" "$(task nap-1 .status.attempt) $(task nap-2 .status.attempt) $(task nap-3 .status.attempt)"
expect_eq "their results" "1 2 3" "$(task nap-1 .status.results) $(task nap-2 .status.results) $(task nap-3 .status.results)"

# The pod with the highest number is scaled away: what it had goes to one of those that stay. The
# others keep their results back until theirs is there.
heard "3 of 3"
for pod in 0 1 2; do device_say "pool-$pod" hold "pool-$pod"; done
add_on_last() { # tries until one is on pool-2: at most three have fewer
    local number
    for number in 1 2 3 4 5 6 7 8 9; do
        add_task "away-$number" "$ADDITION" "[20, $number]" "$(task_on pool)"
        wait_task "away-$number" running
        [[ $(place "away-$number") != pool-2 ]] || break
    done
    printf 'away-%s\n' "$number"
}
away=$(add_on_last)
expect_eq "its place" pool-2 "$(place "$away")"
runs "$away" pool-2
scale 2
wait_for 60 "two pods" pod_count_is pool 2
wait_for 30 "another attempt" field_is tasks "$away" .status.attempt 2
expect_match "its place" '^pool-[01]$' "$(place "$away")"
wait_for 30 "an event" has_event "$away" '^Normal Interrupted '
killing pool-2 device_crash pool-2
devices_are() { [[ $(seen_devices | tee /dev/stderr) == "$1" ]]; }
wait_for 30 "two devices" devices_are "pool-0 true, pool-1 true"
device_say pool-0 release pool-0
device_say pool-1 release pool-1
wait_task "$away" completed
expect_eq "its result" "$((20 + ${away#away-}))" "$(task "$away" .status.results)"

# To zero: Tasks wait, and say why; and back.
scale 0
wait_condition proplets pool Ready '^False ScaledToZero'
wait_for 60 "no pods" pod_count_is pool 0
killing pool-0 device_crash pool-0
killing pool-1 device_crash pool-1
add_task waits "$ADDITION" '[30, 1]' "$(task_on pool)"
wait_condition tasks waits Scheduled '^False PropletOffline'
scale 1
pods_run pool 1
pod_starts 0
wait_task waits completed 60
expect_eq "its place" pool-0 "$(place waits)"

# Pods that are refused: only events of the StatefulSet say why.
kn create quota none --hard=pods=0 >/dev/null
quota_counts() { kn get quota none -o json | jq -e '.status.hard.pods == "0"' >/dev/null; }
wait_for 30 "the quota to count" quota_counts
add_proplet crowded crowd "$(k8s_json reg/proplet:1 '{"indexedClientIds":true,"replicas":2}')"
wait_condition proplets crowded Ready '^False QuotaExceeded .*exceeded quota: none' 90
kn delete proplet crowded --wait=false >/dev/null
kn delete quota none >/dev/null

# A pod has its identity from then on: whoever came later with the same gets nothing.
add_proplet late pool-0
wait_condition proplets late Ready '^False DuplicateClientId'
kn delete proplet late --wait=false >/dev/null

# Killed in the middle of it, the next controller goes on with the same pods.
scale 3
pods_run pool 3
pod_starts 1
pod_starts 2
heard "3 of 3"
for number in 1 2 3 4 5 6 7 8 9; do
    add_task "crash-$number" "$(wasm nap)" "[\"50\", $number]" "$(task_on pool)"
done
wait_task crash-1 completed 60
kill_controller
for number in 1 2 3 4 5 6 7 8 9; do
    wait_task "crash-$number" completed 60
    expect_eq "result of crash-$number" "$number" "$(task "crash-$number" .status.results)"
done
oracle_judge
