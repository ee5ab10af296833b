#!/usr/bin/env bash
# SIGTERM under load, with a broker and with an API server that do not answer, and twice: each time it
# ends in time, gives its lease back where it can, and no Task is lost or done twice.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "has replicas"
case_needs_process "its end is looked at while the API server, which tells it of pods, stands still"
COUNT=${CRASH_TASKS:-150}
crash_controllers() {
    replica_start a --last-seen-threshold 60s # a broker that is stopped makes nobody Offline here
    wait_for 60 "it to lead" one_serves a
}
crash_world 4 4

again() { crash_controllers; }
# freeze_broker CAPACITY: and a worker waits for it: what a start sends has been read from the API.
# The Task is new, since a slow machine may find the load done.
freeze_broker() {
    # A new leader's first starts wait for the broker's word on its subscriptions.
    add_task "before-$1" "$(wasm nap)" "[\"5\", \"$1\"]" "$CRASH_PROFILE"
    wait_task "before-$1" completed "$CRASH_SECONDS"
    mark=$(audit_mark)
    kill -STOP "$(pid_of broker)"
    add_task "frozen-$1" "$(wasm nap)" "[\"5\", \"$1\"]" "$CRASH_PROFILE"
    kn patch proplet worker-1 --type=merge -p "{\"spec\":{\"external\":{\"maxTasks\":$1}}}" >/dev/null
    wait_for 60 "a start to be under way" start_was_read "$mark"
}
logged() { tail -n "+$((from + 1))" "$LOGS/replica-a.log" | grep "$1"; }
# ended_orderly STATUS: and not because its time was over
ended_orderly() {
    wait_for 60 "it to end" replica_ended a "$1"
    ! grep '"not stopped in time' "$LOGS/replica-a.log" || fail "it did not end by itself"
}

crash_load "$COUNT"
wait_for "$CRASH_SECONDS" "the first Tasks to end" ended_at_least $((COUNT / 10))
replica_signal a TERM
ended_orderly 0
expect_eq "holder of the lease after SIGTERM under load" "" "$(lease_holder)"
again

# Publishes wait for the broker for 30 s, half of the time to stop is 12.5 s.
wait_for "$CRASH_SECONDS" "more Tasks to end" ended_at_least $((COUNT * 3 / 10))
freeze_broker 8
from=$(wc -l <"$LOGS/replica-a.log")
replica_signal a TERM
ended_orderly 0
logged '"not stopped in half of the time' >/dev/null || fail "nothing waited for the broker"
expect_eq "holder of the lease after SIGTERM without a broker" "" "$(lease_holder)"
kill -CONT "$(pid_of broker)"
again

wait_for "$CRASH_SECONDS" "more Tasks to end" ended_at_least $((COUNT * 5 / 10))
kill -STOP "$(in_cluster pid_of apiserver)"
replica_signal a TERM
ended_orderly 0
kill -CONT "$(in_cluster pid_of apiserver)"
apiserver_back
again

# The second one while the first is being obeyed: it ends at once, without giving the lease back.
wait_for "$CRASH_SECONDS" "more Tasks to end" ended_at_least $((COUNT * 7 / 10))
freeze_broker 12
from=$(wc -l <"$LOGS/replica-a.log")
replica_signal a TERM
wait_for 30 "the first signal to be obeyed" logged '"stopping","signal":"SIGTERM"'
replica_signal a TERM
wait_for 30 "it to end" replica_ended a 130
[[ -n $(lease_holder) ]] || fail "the lease was given back, although work may be under way"
kill -CONT "$(pid_of broker)"
again
crash_verdict --max-crossings $((COUNT / 10))
