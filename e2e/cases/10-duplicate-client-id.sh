#!/usr/bin/env bash
# Two Proplets with one clientId: the older one works, the other says why it does not.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d other
add_proplet elder d
wait_for 30 "the elder to be seen" field_is proplets elder '.status.phase // "none"' Initializing
# Ages are whole seconds.
second_passed() { [[ $(date +%s) -gt $(date -d "$(proplet elder .metadata.creationTimestamp)" +%s) ]]; }
wait_for 30 "the next second" second_passed
add_proplet younger d
device_start device --identity d
wait_proplet elder Running
wait_condition proplets younger Ready '^False DuplicateClientId '

task_json pick-NUMBER "$ADDITION" '[10, 32]' | add_numbered 4
wait_for 30 "the Tasks" phase_count_is tasks completed 4
expect_eq "Proplets that worked" elder "$(objects tasks | jq -r '[.items[].status.assignedProplet] | unique | join(" ")')"
add_task for-younger "$ADDITION" '[10, 32]' "$(task_on younger)"
wait_condition tasks for-younger Scheduled '^False '

# The elder goes: the younger takes over, and what waited for it runs.
kn delete proplet elder --wait=false >/dev/null
wait_for 30 "the elder to be gone" object_gone proplets elder
wait_proplet younger Running
wait_task for-younger completed

# The same identity on another channel is somebody else.
add_proplet elsewhere d '{"spec":{"connectionConfig":{"channelId":"chan-2"}}}'
wait_for 30 "it to be seen" field_is proplets elsewhere '.status.phase // "none"' Initializing
condition_matches proplets elsewhere Ready DuplicateClientId && fail "another channel, another device"
exit 0
