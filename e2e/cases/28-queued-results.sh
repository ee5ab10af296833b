#!/usr/bin/env bash
# A controller stands still behind its starts and is killed; their results wait in the broker: the next
# one takes them and starts nothing again.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_apart "the API server answers while it stands still"
case_needs_process "it is stopped by a signal"
broker_prepare device-1
broker_start
broker_record
controller_prepare
# No heartbeat will arrive, and that must not make anybody Offline here, nor a start be repeated.
CONTROLLER_OPTIONS+=(--last-seen-threshold 1h --start-confirm-timeout 5m)
controller_start
add_proplet worker device-1
device_start devices --identity device-1
wait_proplet worker Running

device_say devices hold device-1
crash_load 12 5
wait_for 60 "the first starts" journal_has devices '.event == "start"' 3
kill -STOP "$(pid_of controller)"
device_say devices release device-1
wait_for 60 "results in the broker" journal_has devices '.event == "acknowledged"' 3
expect_eq "Tasks that have ended" 0 "$(phase_count tasks completed)"
killing controller crash controller
controller_start
crash_verdict
