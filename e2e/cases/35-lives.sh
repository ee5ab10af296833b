#!/usr/bin/env bash
# Every way that the phase of a Task goes, on the API server's rules: times of a schedule, retries,
# restarts by users, suspension, a broadcast, a deadline, a time to live. Which way when: unit tests and
# `make simulate`.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start device-1 device-2
proplet_json worker-NUMBER device-NUMBER | add_numbered 2
device_start devices --count 2
wait_for 30 "all Proplets to run" phase_count_is proplets Running 2

# spec JSON: for add_task
spec() { jq -nc --argjson spec "$1" '{spec: $spec}'; }
change() { kn patch "$1" "$2" --type merge -p "$3" >/dev/null; }

# All of them at once: each waits for times of its own.
add_task beat "$ADDITION" '[10, 32]' "$(spec '{"isRecurring": true, "schedule": "@every 2s", "historyLimit": 2}')"
add_task mended "$(wasm trap)" '[]' "$(spec '{"backoffLimit": 10}')"
add_task broken "$(wasm trap)" '[]'
add_task useless "$ADDITION" '[1, 2]' "$(spec '{"dependsOn": ["broken"]}')"
add_task everywhere "$ADDITION" '[10, 32]' "$(spec '{"broadcast": true}')"
add_task short "$ADDITION" '[1, 2]' "$(spec '{"ttlSecondsAfterFinished": 1}')"
add_task late "$(wasm sleep)" '["-1"]' "$(spec '{"activeDeadlineSeconds": 1, "backoffLimit": 3}')"
add_task nap "$(wasm sleep)" '["-1"]'

wait_condition tasks mended Failed '^False BackingOff attempt [0-9]+ failed: DeviceError: '
wait_for 60 "the spec to be mended" change task mended "{\"spec\": {\"file\": \"$ADDITION\", \"inputs\": [10, 32]}}"

wait_task nap running
change task nap '{"spec": {"suspend": true}}'
wait_task nap interrupted
change task nap '{"spec": {"suspend": false, "inputs": ["10"]}}'
wait_task nap completed
expect_eq "attempts of a Task that was suspended" "2 0" "$(task nap '.status | "\(.attempt) \(.failures)"')"

kn wait --for condition=Failed --timeout 60s task/broken task/late >/dev/null
expect_eq "a deadline" "failed 1 DeadlineExceeded" "$(task late '.status | "\(.phase) \(.attempt) \(.reason)"')"
wait_task useless skipped
change task broken "{\"spec\": {\"file\": \"$ADDITION\", \"inputs\": [10, 32]}}"
kn annotate task broken "$GROUP/restart=once" >/dev/null
wait_task broken completed
expect_eq "the new run" "42 1 2 0" "$(task broken '.status | "\(.results) \(.run) \(.attempt) \(.failures)"')"
expect_eq "the old one" "0 1 failed DeviceError" \
    "$(task broken '.status.history[0] | "\(.run) \(.attempt) \(.phase) \(.reason)"')"

wait_task everywhere completed
expect_eq "targets of a broadcast" "2 2 0" "$(task everywhere '.status.targets | "\(.total) \(.completed) \(.failed)"')"
wait_task_gone short 60
wait_task mended completed 300
expect_eq "result of a retry" 42 "$(task mended .status.results)"
expect_eq "failures of all attempts but the last" "$(task mended '.status.attempt - 1')" "$(task mended .status.failures)"

run_is() { field_is tasks beat '.status | .run >= 4 and (.history | length) == 2' true; }
wait_for 60 "four runs" run_is
expect_match "columns" 'LAST RUN +NEXT RUN' "$(kn get task beat -o wide | sed -n 1p)"
expect_match "events in describe" 'Started +.*the start went out to the Proplet' "$(kn describe task beat)"
change task beat '{"spec": {"suspend": true}}'
wait_for 30 "no next run" field_is tasks beat '.status.nextRun // "none"' none
expect_eq "ids started more than once" "" \
    "$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)"
