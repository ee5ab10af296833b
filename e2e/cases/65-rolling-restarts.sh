#!/usr/bin/env bash
# Two replicas, restarted one after the other under load, then one, three and one of them: as quiet
# as nothing. No start is repeated, no Task is disturbed, each ends with 0 and gives its lease back.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "has replicas"
COUNT=${CRASH_TASKS:-24} ROUNDS=${ROLLING_ROUNDS:-2}
# Every lease is given back here, and no device is away: a slow machine must look like neither.
replica_begin() {
    replica_start "$1" --leader-elect-lease-duration 30s --leader-elect-renew-deadline 20s \
        --last-seen-threshold 60s
}
crash_controllers() {
    replica_begin a
    replica_begin b
    wait_for 60 "one of them to lead" one_serves a b
}
mark=$(audit_mark)
crash_world 4 4

TOTAL=0
# under_load NAME COMMAND...: some of a batch has ended, some runs, most waits
under_load() {
    local name=$1
    shift
    task_json "$name-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' "$CRASH_PROFILE" | add_numbered "$COUNT"
    wait_for "$CRASH_SECONDS" "some of a batch to end" ended_at_least $((TOTAL + COUNT / 10))
    "$@"
    TOTAL=$((TOTAL + COUNT))
    wait_for "$CRASH_SECONDS" "the batch to end" ended_at_least "$TOTAL"
}
# gave_back LETTER: it ended by itself, and the Lease is not its own any more, if it was
gave_back() {
    wait_for 60 "'$1' to end" replica_ended "$1" 0
    [[ -z ${HOLDER[$1]:-} || $(lease_holder) != "${HOLDER[$1]}" ]] || fail "'$1' ended with its lease"
}
declare -A HOLDER=()
# restart LETTER OTHER: the other one goes on; then there are two again
restart() {
    local letter=$1 other=$2
    if [[ $(leader_of a b) == "$letter" ]]; then HOLDER[$letter]=$(lease_holder); fi
    replica_signal "$letter" TERM
    gave_back "$letter"
    wait_for 60 "the other one to serve" one_serves "$other"
    replica_begin "$letter"
    wait_for 60 "'$letter' to be ready" replica_ready "$letter"
}

for ((round = 1; round <= ROUNDS; round++)); do
    under_load "round-$round-a" restart a b
    under_load "round-$round-b" restart b a
done

# ---- 2 -> 1 -> 3 -> 1 ----

ends() { # ends LETTER...: all at once
    local letter
    for letter in "$@"; do
        if replica_leads "$letter" >/dev/null; then HOLDER[$letter]=$(lease_holder); fi
    done
    for letter in "$@"; do replica_signal "$letter" TERM; done
    for letter in "$@"; do gave_back "$letter"; done
}
begins() {
    local letter
    for letter in "$@"; do replica_begin "$letter"; done
    for letter in "$@"; do wait_for 60 "'$letter' to be ready" replica_ready "$letter"; done
}
leader=$(leader_of a b)
[[ $leader == a ]] && standby=b || standby=a
under_load to-one ends "$standby"
under_load to-three begins "$standby" c
leader=$(leader_of a b c)
mapfile -t leaving < <(printf '%s\n' a b c | grep -v "^$standby\$")
under_load to-one-again ends "${leaving[@]}"
wait_for 60 "the last one to serve" one_serves "$standby"
HOLDER[$standby]=$(lease_holder)
replica_signal "$standby" TERM
gave_back "$standby"
expect_eq "holder of the lease" "" "$(lease_holder)"

# ---- as quiet as nothing ----

crash_verdict --max-crossings 0
starts=$(grep -E '^[^ ]+ [^ ]*/control/manager/start ' "$LOGS/wire.log" | cut -d' ' -f3- | jq -r .id | sort)
expect_eq "starts that went out" "$TOTAL" "$(wc -l <<<"$starts")"
expect_eq "ids whose start went out twice" "" "$(uniq -d <<<"$starts")"
expect_eq "stops that went out" "" "$(grep -E '^[^ ]+ [^ ]*/control/manager/stop ' "$LOGS/wire.log" || true)"
disturbed=$(objects tasks | jq -c '.items[] | select(.status.phase != "completed" or .status.attempt != 1
    or (.status.failures // 0) != 0) | [.metadata.name, .status.phase, .status.attempt, .status.reason]')
expect_eq "disturbed Tasks" "" "$disturbed"
loud=$(grep -hE '"level":"(warn|error)"' "$LOGS"/replica-*.log || true)
expect_eq "warnings and errors" "" "$loud"
writes=$(audit_writes "$mark" '.objectRef.resource == "tasks"')
refused=$(jq -c 'select(.[4] >= 300)' <<<"$writes")
expect_le "refused writes to Tasks: $(head -n 3 <<<"$refused")" "$(grep -c . <<<"$refused" || true)" $((TOTAL / 50))
# Scheduled, running, completed, and perhaps once that it waits for room.
status=$(jq -r 'select(.[4] < 300 and .[2] == "status") | .[3]' <<<"$writes" | sort | uniq -c | sort -rn)
expect_eq "Tasks that were written" "$TOTAL" "$(wc -l <<<"$status")"
expect_le "status writes of one Task" "$(awk 'NR == 1 { print $1 }' <<<"$status")" 4
printf 'measured: %s Tasks, %s replicas stopped, %s status writes, %s refused\n' "$TOTAL" \
    $((2 * ROUNDS + 4)) "$(awk '{ sum += $1 } END { print sum }' <<<"$status")" "$(grep -c . <<<"$refused" || true)"
