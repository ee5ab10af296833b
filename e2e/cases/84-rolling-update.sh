#!/usr/bin/env bash
# The operator as a Deployment of three is rolled out anew under load, again and again, and scaled: no Task
# is lost, none is started twice or disturbed.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
COUNT=${CRASH_TASKS:-48} ROUNDS=${ROLLING_ROUNDS:-3}
crash_controllers() {
    CONTROLLER_OPTIONS+=("${CONTROLLER_LEASE[@]}")
    controller_start
}
crash_world 4 4
first=$(operator_pods | jq -r .metadata.name | sort)
expect_eq "replicas" 3 "$(wc -l <<<"$first")"

TOTAL=0
# under_load NAME COMMAND...: some of a batch has ended, some runs, most waits
under_load() {
    local name=$1
    shift
    task_json "$name-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' "$CRASH_PROFILE" | add_numbered "$COUNT"
    wait_for "$CRASH_SECONDS" "some of a batch to end" ended_at_least $((TOTAL + COUNT / 10))
    "$@"
    wait_for 180 "the controller to be ready" controller_ready
    TOTAL=$((TOTAL + COUNT))
    wait_for "$CRASH_SECONDS" "the batch to end" ended_at_least "$TOTAL"
}
restart() { ko rollout restart "deployment/$OPERATOR" >/dev/null; }
scale() { ko scale "deployment/$OPERATOR" --replicas="$1" >/dev/null; }

for ((round = 1; round <= ROUNDS; round++)); do
    under_load "restart-$round" restart
done
under_load option controller_spawn --log-level debug
under_load one scale 1
under_load three scale 3
last=$(operator_pods | jq -r .metadata.name | sort)
expect_eq "pods of before that are still there" "" "$(comm -12 <(printf '%s\n' "$first") <(printf '%s\n' "$last"))"

# Each gave its Lease back. One that could not, on a machine that let it stand still for ten seconds, is another
# story (62): its successor does not know what it said last, and may say a start again.
lost=$(controller_log | grep -c '"leadership ended' || true)
crash_verdict --max-crossings $((lost * COUNT / 10))
starts=$(grep -E '^[^ ]+ [^ ]*/control/manager/start ' "$LOGS/wire.log" | cut -d' ' -f3- | jq -r .id | sort)
expect_eq "Tasks whose start went out" "$TOTAL" "$(sort -u <<<"$starts" | wc -l)"
((lost > 0)) || expect_eq "ids whose start went out twice" "" "$(uniq -d <<<"$starts")"
disturbed=$(objects tasks | jq -c '.items[] | select(.status.phase != "completed" or .status.attempt != 1
    or (.status.failures // 0) != 0) | [.metadata.name, .status.phase, .status.attempt, .status.reason]')
expect_eq "disturbed Tasks" "" "$disturbed"
printf 'measured: %s Tasks through %s updates of the Deployment, Lease of 15 s; leaders that lost it: %s\n' "$TOTAL" $((ROUNDS + 3)) "$lost"
