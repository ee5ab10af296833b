#!/usr/bin/env bash
# Results that die inside a killed broker, after it had acknowledged them: their Tasks are started
# again and end. Whether mosquitto saves what is in flight depends on the moment; here nothing is.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=5
broker_prepare device-1
broker_start
broker_record
controller_prepare
proxy_start
CONTROLLER_OPTIONS+=(--start-confirm-timeout 20s)
controller_start
add_proplet worker device-1
device_start devices --identity device-1
wait_proplet worker Running

proxy_say lose $COUNT control/proplet/results
crash_load $COUNT 5
wait_for 60 "all results to be lost on their way" proxy_has '.event == "dropped"' $COUNT
wait_for 60 "the broker to have acknowledged them" journal_has devices '.event == "acknowledged"' $COUNT
expect_eq "Tasks that have ended" 0 "$(phase_count tasks completed)"
kill_broker
crash_verdict
expect_eq "results that died in the broker" $COUNT "$(oracle_count died_in_broker)"
expect_eq "executions" $((2 * COUNT)) "$(oracle_count executions)"
