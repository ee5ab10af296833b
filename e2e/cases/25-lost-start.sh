#!/usr/bin/env bash
# A start that is lost on its way is repeated, up to a limit; a connection that is cut loses nothing.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare d
broker_start
broker_record
controller_prepare
proxy_start
CONTROLLER_OPTIONS+=(--start-confirm-timeout 3s)
controller_start
add_proplet worker d '{"spec":{"external":{"maxTasks":5}}}'
device_start device --identity d
wait_proplet worker Running

starts_of() { wire_messages control/manager/start "select(.id == \"$(task "$1" .metadata.uid)\")" | wc -l; }

proxy_say drop 2 control/manager/start
add_task lost "$ADDITION" '[10, 32]'
wait_for 30 "the proxy to drop it twice" proxy_has '.event == "dropped"' 2
wait_task lost completed 60
expect_eq "its result" 42 "$(task lost .status.results)"
expect_eq "its attempts" 1 "$(task lost .status.attempt)"
expect_le "starts that arrived, at least one" 1 "$(starts_of lost)"
expect_le "repeats that the controller counted, at least two" 2 \
    "$(metrics | awk '$1 == "propeller_starts_repeated_total" { print $2 }')"

# Never heard: one start, three repeats, and an end that says so.
proxy_say drop 1000 control/manager/start
add_task deaf "$ADDITION" '[10, 32]'
wait_task deaf failed 90
expect_eq "why" StartNotConfirmed "$(task deaf .status.reason)"
expect_eq "starts of it that were dropped" 4 $(($(proxy_count '.event == "dropped"') - 2))
controller_stop
stop proxy
proxy_start
controller_start

# Cut in the middle of a load; what was under way is published or delivered again.
crash_load 60 10
for part in 1 2 3; do
    after_ended $((part * 15)) proxy_say cut
done
wait_for 120 "the whole load" phase_count_is tasks completed 61
oracle_judge --may-fail StartNotConfirmed --max-crossings 6
