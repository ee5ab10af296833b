#!/usr/bin/env bash
# A PropellerJob that failed runs again as a whole: up to its limit, with a spec that was repaired meanwhile, with a
# controller that is killed in the middle; suspension and deadline come first.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start device-1 device-2
proplet_json worker-NUMBER device-NUMBER | add_numbered 2
device_start devices --count 2
wait_for 30 "all Proplets to run" phase_count_is proplets Running 2

sum() { task_json "$1" "$ADDITION" '["1", "2"]' | jq -c --argjson more "${2:-{\}}" '.spec * $more'; }
broken() { task_json "$1" "$(wasm trap)" '[]' | jq -c --argjson more "${2:-{\}}" '.spec * $more'; }
# add_job NAME LIMIT PAUSE FIELDS-JSON TASK...
add_job() {
    local name=$1 limit=$2 pause=$3 fields=$4
    shift 4
    printf '%s\n' "$@" | jq -s --arg api "$API" --arg name "$name" --argjson limit "$limit" --arg pause "$pause" \
        --argjson fields "$fields" '
        { apiVersion: $api, kind: "PropellerJob", metadata: { name: $name },
          spec: ({ name: $name, tasks: ., faultTolerance: { retryLimit: $limit, retryPausePeriod: $pause } } * $fields) }' |
        create
}
job() { object propellerjobs "$1" | jq -r "${2:-.}"; }
wait_job() { kn wait --for "condition=$2" --timeout 90s "propellerjob/$1" >/dev/null || { job "$1" .status; return 1; }; }
counts() { job "$1" '.status | "\(.taskCount) \(.completedCount) \(.failedCount) \(.resettingCount)"'; }
change() { kn patch propellerjob "$1" --type merge -p "$2" >/dev/null; }
starts_of() { journal devices '.event == "start"' | jq -r .task | sort | uniq -c | awk -v id="$1" '$2 == id { print $1 }'; }
resetting() { wait_condition propellerjobs "$1" Progressing "^True Resetting Task '$1-.*' failed: DeviceError" 60; }
# mend NAME: its first task, which failed, computes from now on
mend() { kn patch propellerjob "$1" --type json -p "[{\"op\": \"replace\", \"path\": \"/spec/tasks/0/file\", \"value\": \"$ADDITION\"}, {\"op\": \"replace\", \"path\": \"/spec/tasks/0/inputs\", \"value\": [10, 32]}]" >/dev/null; }

# Three runs, each with Tasks of its own under the same names.
add_job limited 2 1s '{}' "$(sum one)" "$(broken two '{"dependsOn": ["one"]}')"
resetting limited
wait_job limited Failed
expect_eq "counts of the last run" "2 1 1 2" "$(counts limited)"
expect_match "why it failed" "^True TaskFailed Task 'limited-two' failed: DeviceError" "$(condition propellerjobs limited Failed)"
expect_eq "starts in three runs of two Tasks" 6 "$(journal_count devices '.event == "start"')"
wait_for 30 "the Event of a reset" has_event limited "Warning Resetting Task 'limited-two' failed: DeviceError"
resets_told() { (($(event_count limited Resetting) == 2)); }
wait_for 30 "both resets to be told" resets_told

# Repaired while it is resetting, and the controller is killed: it goes on to the end, and no Task runs twice.
add_job mended 1 3s '{}' "$(broken one)" "$(sum two)"
resetting mended
controller_crash_restart
mend mended
wait_job mended Complete
expect_eq "counts of a repaired job" "2 2 0 1" "$(counts mended)"
expect_eq "its result" 42 "$(task mended-one .status.results)"
expect_eq "starts of the last Tasks" "1 1" \
    "$(starts_of "$(task mended-one .metadata.uid)") $(starts_of "$(task mended-two .metadata.uid)")"

# The user's suspension comes first: nothing is made until it is resumed, although the pause is over.
add_job halted 1 1h '{}' "$(broken one)"
resetting halted
wait_task_gone halted-one
change halted '{"spec": {"suspend": true, "faultTolerance": {"retryPausePeriod": "0s"}}}'
wait_job halted Suspended
expect_match "a suspended job" '^True Resetting ' "$(condition propellerjobs halted Progressing)"
mend halted
expect_eq "Tasks of a suspended job" 0 "$(objects tasks | jq '[.items[] | select(.metadata.name | startswith("halted-"))] | length')"
change halted '{"spec": {"suspend": false}}'
wait_job halted Complete

# A deadline counts on, and ends it; what would fail again is not tried again.
add_job late 1 1h '{"activeDeadlineSeconds": 3}' "$(broken one)"
wait_job late Failed
expect_match "why it failed" "^True DeadlineExceeded not finished after 3 s; before: Task 'late-one' failed: DeviceError" \
    "$(condition propellerjobs late Failed)"
expect_eq "runs" 1 "$(job late .status.resettingCount)"
expect_failure "a pause that is none" 'must be a duration from 0s to 24h' \
    kn patch propellerjob late --type merge -p '{"spec": {"faultTolerance": {"retryPausePeriod": "222badTime"}}}'
expect_failure "a limit that is too high" 'less than or equal to 100' \
    kn patch propellerjob late --type merge -p '{"spec": {"faultTolerance": {"retryLimit": 101}}}'
