#!/usr/bin/env bash
# The controller killed while many Tasks fail and are tried again: each attempt runs once, no failure is counted twice or forgotten.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=${RETRY_TASKS:-60}
crash_world 5 4
task_json retry-NUMBER "$(wasm trap)" '[]' \
    "$(jq -nc --argjson more "$CRASH_PROFILE" '{spec: {backoffLimit: 1}} * $more')" | add_numbered "$COUNT"

# failed_at_least COUNT: attempts, of all Tasks
failed_at_least() {
    local count
    count=$(objects tasks | jq '[.items[].status.failures // 0] | add') || return 1
    printf '%s of %s attempts failed\n' "$count" "$1"
    ((count >= $1))
}
for part in 1 2 3; do
    wait_for "$CRASH_SECONDS" "attempts to fail" failed_at_least $((COUNT * part / 2))
    kill_controller
done
wait_for "$CRASH_SECONDS" "the last attempts" failed_at_least $((COUNT * 2))

wrong=$(objects tasks | jq -c '.items[] | select(
    [.status | .phase, .attempt, .failures, .reason] != ["failed", 2, 2, "DeviceError"]) | [.metadata.name, .status]')
expect_eq "Tasks that ended otherwise" "" "$wrong"
journal devices '.event == "start"' | jq -r .task | sort >"$PART/started"
objects tasks | jq -r '.items[].metadata.uid | ., "\(.).2"' | sort >"$PART/expected"
expect_eq "attempts that ran, each of them once" "$(<"$PART/expected")" "$(<"$PART/started")"
