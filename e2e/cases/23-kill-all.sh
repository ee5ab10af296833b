#!/usr/bin/env bash
# Controller, broker and API server killed under 200 Tasks, one by one and all at once.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
COUNT=${CRASH_TASKS:-200}
all_at_once() {
    killing broker crash broker
    killing apiserver apiserver_crash
    killing controller crash controller
    broker_start
    apiserver_begin
    apiserver_back
    controller_start
}
crash_world 5 4
crash_load "$COUNT"
after_ended $((COUNT / 8)) kill_controller
after_ended $((COUNT * 2 / 8)) kill_broker
after_ended $((COUNT * 3 / 8)) kill_apiserver
after_ended $((COUNT * 4 / 8)) all_at_once
after_ended $((COUNT * 6 / 8)) kill_controller
# The window is one round trip per repeat: crossings were never seen, and two are chance.
crash_verdict --max-crossings 2
