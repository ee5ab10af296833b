#!/usr/bin/env bash
# Ten messages that nobody should heed for every start: counted by reason, and every good one is handled.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# Generous: a batch of messages of 2 MiB, each with its parsed form, beside what it needs anyway.
MEMORY_LIMIT_KIB=262144

# What is sent is counted, so no connection may end: the controller ends them when the API server does not renew its
# Lease in time, and the broker then delivers again what is not acknowledged. So this one has the shipped times.
crash_controllers() { controller_start "${CONTROLLER_LEASE[@]}"; }
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
# A result that is not written in time, as on a busy machine, is copied to the broker. Where it is written before its
# copy is back, the copy is counted, too, and it comes by both connections.
rejected_are() { # LABEL-PATTERN EXPECTED MORE
    local copies
    copies=$(metrics | awk '$1 == "propeller_mail_quarantined_total" { print $2 }')
    count_is propeller_results_rejected_total "$1" "$2" $(($3 + 2 * ${copies:-0}))
}
wait_count() { # LABEL-PATTERN CONDITION [MORE]
    wait_for 60 "results rejected as $1" rejected_are "$1" "$(sent "($RESULT) and ($2)")" "${3:-0}"
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

# ---- what one message or one manifest may cost is its bytes, not its values ----

HUGE_LIMIT_KIB=65536
running_on() { # NAME PROPLET: a Task that does not end by itself
    add_task "$1" "$(wasm sleep)" '[-1]' "$(task_on "$2")"
    wait_task "$1" running
}
say_of() { # NAME RESULTS: as the device that computes it
    publish control/proplet/results "{\"task_id\":\"$(task "$1" .metadata.uid)\",\"results\":$2}"
}

running_on surrogate worker-1
running_on levels worker-2
running_on large worker-3
echo 5 >"/proc/$pid/clear_refs" # the most it ever needed counts from here
before=$(counted propeller_mqtt_messages_total)
publish_huge_everywhere device-1
publish_huge "m/$DOMAIN/c/$CHANNEL/control/proplet/results" "\"task_id\":\"$(task large .metadata.uid)\",\"results\""
say_of surrogate '"\ud800"'
say_of levels "$(printf '[%.0s' {1..500})$(printf ']%.0s' {1..500})"
handled() { (($(counted propeller_mqtt_messages_total) >= before + 10)); }
wait_for 60 "all of them to be handled" handled

# Most of it is one text: for 100,000 values the API server computes 0.3 s at each write, for 700,000 it is 2 s.
zeros 100000 >"$PART/zeros"
head -c 900000 /dev/zero | base64 -w0 >"$PART/text"
task_json huge "$ADDITION" '[10, 32]' | jq -c --slurpfile zeros "$PART/zeros" --rawfile text "$PART/text" \
    '.spec.metadata = $zeros[0] + [$text]' >"$PART/huge"
if [[ $E2E_CLUSTER == standalone ]]; then
    expect_failure "a Task of 1.4 MB" 'RequestEntityTooLarge' kn create -f "$PART/huge"
else
    create <"$PART/huge"
    wait_task huge failed
    expect_eq "why the Task of 1.4 MB failed" PayloadTooLarge "$(task huge .status.reason)"
fi
wait_task large failed
expect_eq "why a result of 9.8 MB failed" ResultTooLarge "$(task large .status.reason)"
for name in surrogate levels; do
    wait_task "$name" failed
    expect_eq "why the result of '$name' failed" ResultRefused "$(task "$name" .status.reason)"
done
for number in 1 2 3; do
    add_task "after-$number" "$ADDITION" '[10, 32]' "$(task_on worker-4)"
    wait_task "after-$number" completed
done
expect_eq "process of the controller" "$pid" "$(pid_of controller)"
expect_le "most memory that huge messages and a huge Task took it to, KiB" "$(memory VmHWM)" $HUGE_LIMIT_KIB
printf 'measured: VmHWM %s KiB with messages of 9.8 MB on every topic and a Task of 1.4 MB\n' "$(memory VmHWM)"

# ---- and no start is killed in the memory that is shipped ----

GROUP_OF_MEMORY=/sys/fs/cgroup/memory/propeller-$$
SHIPPED_LIMIT=$((384 << 20)) # of config/controller/deployment.yaml
if ! mkdir "$GROUP_OF_MEMORY" 2>/dev/null; then
    printf 'no memory cgroup can be made here: starts in the shipped limit were not looked at\n'
    exit 0
fi
printf '%s\n' "$SHIPPED_LIMIT" >"$GROUP_OF_MEMORY/memory.limit_in_bytes"
printf '#!/bin/sh\necho $$ >%s/cgroup.procs\nexec %s "$@"\n' "$GROUP_OF_MEMORY" "$CONTROLLER_BIN" >"$PART/limited"
chmod +x "$PART/limited"
CONTROLLER_BIN=$PART/limited
has_heard() { (($(counted propeller_mqtt_messages_total results) >= 1)); }
for ((start = 1; start <= ${HOSTILE_STARTS:-20}; start++)); do
    crash controller
    publish_huge "m/$DOMAIN/c/$CHANNEL/control/proplet/results" '"task_id":"nobody","results"'
    controller_start
    wait_for 60 "start $start to take what the broker kept" has_heard
done
expect_eq "kills for want of memory" 0 "$(awk '$1 == "oom_kill" { print $2 }' "$GROUP_OF_MEMORY/memory.oom_control")"
printf 'measured: %s of %s bytes at most in %s starts\n' "$(cat "$GROUP_OF_MEMORY/memory.max_usage_in_bytes")" "$SHIPPED_LIMIT" "$((start - 1))"
controller_stop
rmdir "$GROUP_OF_MEMORY"
