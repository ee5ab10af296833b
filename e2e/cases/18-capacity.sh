#!/usr/bin/env bash
# Three times a hundred Tasks over two places: never more at once than there are places, urgent ones
# first, and no turns of the controller for those who only wait.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=100
broker_prepare d
broker_start
controller_prepare
controller_start
add_proplet worker d '{"spec":{"external":{"maxTasks":2},"unschedulable":true}}'
device_start device --identity d
wait_proplet worker Running

turns() { metrics | awk '/^controller_runtime_reconcile_total\{controller="task"/ { sum += $2 } END { print sum + 0 }'; }
all_wait() { # all_wait COUNT: they say why
    local waiting
    waiting=$(objects tasks | jq '[.items[] | select(.status.reason == "NoCandidates")] | length')
    [[ $waiting == "$1" ]] || ! say "$waiting of $1 wait"
}

for priority in 10 90 50; do
    task_json "p$priority-NUMBER" "$ADDITION" '["NUMBER", 1]' \
        "$(jq -nc --argjson priority "$priority" '{spec: {$priority}}')" | add_numbered "$COUNT"
done
wait_for 120 "all Tasks to wait" all_wait $((3 * COUNT))

before=$(turns)
kn patch proplet worker --type merge --patch '{"spec":{"unschedulable":false}}' >/dev/null
wait_for 300 "all Tasks to be completed" phase_count_is tasks completed $((3 * COUNT))
used=$(($(turns) - before))
say "measured: $used turns of the controller for $((3 * COUNT)) Tasks"
# About six a Task, and one more for those who are told that the Proplet has changed.
expect_le "turns a Task" $((used / (3 * COUNT))) 12

# In the order in which the device got them: how many run after each start.
most=$(journal device '.event == "start" or .event == "result"' |
    jq -sr 'reduce .[] as $e ({now: 0, most: 0};
        .now += (if $e.event == "start" then 1 else -1 end) | .most = ([.most, .now] | max)) | .most')
expect_le "Tasks on the device at once" "$most" 2

# Where a priority gives way to the next: as many as may be on their way at once overlap.
objects tasks | jq -r '.items[] | "\(.metadata.uid) \(.spec.priority)"' | sort >"$LOGS/priorities"
journal device '.event == "start"' | jq -r .task | awk 'NR == FNR { priority[$1] = $2; next }
    { rank = priority[$1] == 90 ? 0 : priority[$1] == 50 ? 1 : 2
      due = int((FNR - 1) / '"$COUNT"')
      wrong += rank != due } END { print wrong + 0 }' "$LOGS/priorities" - >"$LOGS/wrong"
expect_le "starts before their turn" "$(<"$LOGS/wrong")" 8
