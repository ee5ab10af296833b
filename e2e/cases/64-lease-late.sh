#!/usr/bin/env bash
# The API server stands still: at the renew deadline the leader leaves the broker and is silent; it
# goes on when the lease is still its own, and ends after four lease durations.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "the API server stands still"
case_needs_process "its log is read while the API server, which has it of pods, stands still"
broker_prepare device-1
printf 'log_type all\n' >>"$BROKER/mosquitto.conf"
broker_start
controller_prepare
replica_start a --leader-elect-lease-duration 120s --leader-elect-renew-deadline 4s
wait_for 60 "it to lead" one_serves a
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running
add_task slow "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task slow running
uid=$(task slow .metadata.uid)
process=$(pid_of replica-a)

told() { grep "$1" "$LOGS/replica-a.log"; }
# Both connections end, whether the broker calls it closed or disconnected.
has_left() {
    (($(grep -cE "Client $CONTROLLER_USER(-results)? (\[[^ ]*\] )?(closed|disconnected|has)" "$LOGS/broker.log") >= 2)) ||
        ! tail -n 2 "$LOGS/broker.log"
}
spoken() { tail -n "+$((mark + 1))" "$LOGS/broker.log" | grep -E "(from|as) $CONTROLLER_USER(-results)? " || true; }

kill -STOP "$(in_cluster pid_of apiserver)"
wait_for 60 "the deadline to pass" told '"lease not renewed in time'
wait_for 60 "it to leave the broker" has_left
mark=$(wc -l <"$LOGS/broker.log")
publish control/proplet/results \
    "$(jq -nc --arg id "$uid" '{task_id: $id, proplet_id: "device-1", results: "late", error: null}')"
wait_for 30 "readyz to say so" bash -c "! curl -sSf -o /dev/null --max-time 5 http://127.0.0.1:${REPLICA_HEALTH[a]}/readyz"
expect_eq "what it told the broker without a lease" "" "$(spoken)"
kill -CONT "$(in_cluster pid_of apiserver)"
wait_for 60 "the lease to be renewed" told '"lease renewed, going on"'
wait_task slow completed 60
expect_eq "the result that came meanwhile" late "$(task slow .status.results)"
expect_eq "process" "$process" "$(pid_of replica-a)"
wait_for 60 "it to be ready" replica_ready a
replica_signal a TERM
wait_for 30 "it to end" replica_ended a 0

# Four lease durations of four seconds.
replica_start b --leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s
wait_for 60 "another one to lead" one_serves b
kill -STOP "$(in_cluster pid_of apiserver)"
wait_for 60 "it to give up" replica_ended b 1
kill -CONT "$(in_cluster pid_of apiserver)"
grep -q 'leadership ended: the lease could not be renewed' "$LOGS/replica-b.log" ||
    fail "it ended for another reason: $(tail -n 2 "$LOGS/replica-b.log")"
apiserver_back
