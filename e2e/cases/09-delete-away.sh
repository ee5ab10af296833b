#!/usr/bin/env bash
# Deleting a Task whose device is away: it goes after the stop timeout, with a warning.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

STOP_TIMEOUT=4
broker_prepare d
broker_start
controller_prepare
controller_start --stop-timeout ${STOP_TIMEOUT}s
add_proplet worker d
device_start device --identity d
wait_proplet worker Running

add_task endless "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task endless running
device_crash device

asked=$(now_ms)
kn delete task endless --wait=false >/dev/null
wait_task_gone endless
took=$(($(now_ms) - asked))
# deletionTimestamp is cut to whole seconds.
expect_le "stop timeout in ms, against the time it took" $(((STOP_TIMEOUT - 1) * 1000)) $took
not_confirmed() { controller_log | grep -c '"deleted although its device did not confirm the stop in time"'; }
expect_eq "warnings that the stop was not confirmed" 1 "$(not_confirmed)"

# The same for a device that is there and never answers.
device_start device --identity d
wait_proplet worker Running
add_task ignored "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task ignored running
device_pause device
kn delete task ignored --wait=false >/dev/null
wait_task_gone ignored
expect_eq "warnings" 2 "$(not_confirmed)"
device_resume device

# And while the broker itself is away.
wait_proplet worker Running
add_task cut-off "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task cut-off running
crash broker
kn delete task cut-off --wait=false >/dev/null
wait_task_gone cut-off
