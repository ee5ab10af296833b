#!/usr/bin/env bash
# Ten messages that nobody should heed for every start: counted by reason, and every good one is handled.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# Generous: a batch of messages of 2 MiB, each with its parsed form, beside what it needs anyway.
MEMORY_LIMIT_KIB=262144

crash_world 5 4
# A second channel that the controller listens to.
CHANNEL=chan-2 add_proplet elsewhere nobody
subscribed() { [[ $(condition proplets elsewhere Ready) == *WaitingForHeartbeat* ]]; }
wait_for 30 "the second channel" subscribed
: >"$LOGS/hostile.journal"
spawn hostile "$PYTHON_HOME/bin/python" "$HERE/device/hostile.py" --broker "127.0.0.1:$BROKER_PORT" \
    --domain "$DOMAIN" --channel "$CHANNEL" --elsewhere chan-2 --user "$OBSERVER" \
    --passwords "$BROKER/identities" --journal "$LOGS/hostile.journal"
wait_for 30 "the hostile one" journal_has hostile '.event == "connected"'
pid=$(pid_of controller)
offline_before=$(journal_count devices '.event == "disconnected"')

COUNT=${HOSTILE_TASKS:-150}
crash_load "$COUNT"
crash_verdict --max-crossings $((COUNT / 10))
expect_le "hostile messages, ten a Task at least" $((10 * COUNT)) "$(journal_count hostile '.event == "sent"')"
all_there() {
    local sent there
    sent=$(journal_count hostile '.event == "sent"')
    there=$(journal_count hostile '.event == "acknowledged"')
    printf '%s of %s\n' "$there" "$sent"
    ((there == sent))
}
# The broker writes all that waits to its disk for each of them: on a busy machine a handful a second.
wait_for 300 "the broker to have all of it" all_there

# ---- counted by reason ----

# counted METRIC [LABEL-PATTERN]: the sum of its values
counted() {
    metrics | awk -v name="^$1[{].*\"(${2:-[^\"]*})\"" '$0 ~ name { sum += $2 } END { print sum + 0 }'
}
sent() { journal_count hostile ".event == \"acknowledged\" and ($1)"; }
RESULT='.kind == "results" or .kind == "elsewhere"'
count_is() { # METRIC LABEL-PATTERN EXPECTED [MORE]
    local seen
    seen=$(counted "$1" "$2")
    printf '%s of %s (and %s) %s{%s}\n' "$seen" "$3" "${4:-0}" "$1" "$2"
    ((seen >= $3 && seen <= $3 + ${4:-0}))
}
wait_count() { # LABEL-PATTERN CONDITION [MORE]
    wait_for 60 "results rejected as $1" count_is propeller_results_rejected_total "$1" \
        "$(sent "($RESULT) and ($2)")" "${3:-0}"
}
for reason in malformed unknown_task other_attempt; do
    wait_count "$reason" ".reason == \"$reason\""
done
# Which of these it is depends on whether the Task has ended when it is looked at. The device's own result of a start
# that crossed the first one on its way comes when the Task has ended, too.
wait_count 'other_proplet|other_channel|not_running' '.reason == "late"' "$(oracle_count crossed)"
for reason in other_proplet other_channel; do
    expect_le "results rejected as $reason, one at least" 1 "$(counted propeller_results_rejected_total "$reason")"
done
for kind in alive create metrics task_metrics; do
    wait_for 60 "malformed $kind" count_is propeller_mqtt_malformed_total "$kind" \
        "$(sent ".kind == \"$kind\" and .reason == \"malformed\"")"
done

# ---- and nothing else came of it ----

expect_eq "process of the controller" "$pid" "$(pid_of controller)"
controller_ready || fail "the controller is not ready"
expect_eq "times that its connections ended" 0 "$(controller_log | grep -c "to the broker ended" || true)"
wait_for 60 "all Proplets to run" phase_count_is proplets Running 5
# A "create" that came after the first heartbeat is written with the next refresh of its Proplet.
know_devices() { [[ $(objects proplets | jq '[.items[] | select(.status.metadata.os == "linux")] | length') == 5 ]]; }
wait_for 120 "all Proplets to know their devices" know_devices
expect_eq "connections of devices that ended" "$offline_before" \
    "$(journal_count devices '.event == "disconnected"')"
expect_le "most memory that it ever had, KiB" "$(memory VmHWM)" $MEMORY_LIMIT_KIB
printf 'measured: %s hostile messages; VmHWM %s KiB\n' "$(sent true)" "$(memory VmHWM)"
