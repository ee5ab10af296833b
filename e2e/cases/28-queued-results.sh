#!/usr/bin/env bash
# A controller dies after its starts and before it knows of it; their results wait in the broker:
# the next one takes them and starts nothing again.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare device-1
broker_start
broker_record
controller_prepare
proxy_start
# No heartbeat will arrive, and that must not make anybody Offline here, nor a start be repeated.
CONTROLLER_OPTIONS+=(--last-seen-threshold 1h --start-confirm-timeout 5m)
controller_start
add_proplet worker device-1
device_start devices --identity device-1
wait_proplet worker Running

# Both connections go deaf: no acknowledgement of a start arrives, and no result.
proxy_say hold control/proplet/alive
wait_for 30 "the control connection to be deaf" proxy_has '.event == "held"'
proxy_say hold control/proplet/results
crash_load 12 5
wait_for 60 "results in the broker" journal_has devices '.event == "acknowledged"' 3
expect_eq "Tasks that have ended" 0 "$(phase_count tasks completed)"
killing controller crash controller
proxy_say release

# The next one hears nothing of them before it has had its chance: what it chose itself has begun.
proxy_say delay control/proplet/results
controller_start
add_task late "$(wasm nap)" '["5", "99"]' "$CRASH_PROFILE"
late=$(task late .metadata.uid)
wait_for 60 "the start of a Task of the next leader" journal_has devices ".event == \"start\" and .task == \"$late\""
proxy_say release
crash_verdict
