#!/usr/bin/env bash
# Deleting a running Task stops it on the device; the object goes.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d
add_proplet worker d
device_start device --identity d
wait_proplet worker Running

add_task endless "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task endless running
uid=$(task endless .metadata.uid)
wait_for 30 "the device to have started it" journal_has device ".event == \"start\" and .task == \"$uid\""

kn delete task endless --wait=false >/dev/null
wait_for 30 "the device to have stopped it" journal_has device ".event == \"stopped\" and .task == \"$uid\""
wait_task_gone endless
expect_eq "warnings" "" "$(events endless | grep ^Warning || true)"

# Deleted before anything was sent: nothing is.
add_task waiting "$(wasm sleep)" '[-1]' "$(task_on nobody)"
wait_condition tasks waiting Scheduled '^False '
kn delete task waiting --wait=false >/dev/null
wait_task_gone waiting

# Deleted when finished: goes, and the device hears nothing of it.
add_task finished "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task finished completed
kn delete task finished --wait=false >/dev/null
wait_task_gone finished
expect_eq "stops that the device knew nothing about" 0 "$(journal_count device '.event == "unknown-stop"')"

# A deleted Proplet: its object goes, and the device keeps quiet about it.
kn delete proplet worker --wait=false >/dev/null
wait_for 30 "the Proplet to be gone" object_gone proplets worker
# real time: nothing may follow, and only time shows that
observe_for 2
object_gone proplets worker || fail "the Proplet came back"
