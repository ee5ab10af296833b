#!/usr/bin/env bash
# PropellerJobs: modes, failures, taskRefs that come later, suspension, deletion, names that are taken.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start device-1 device-2
proplet_json worker-NUMBER device-NUMBER | add_numbered 2
device_start devices --count 2
wait_for 30 "all Proplets to run" phase_count_is proplets Running 2

# sum NAME [JSON]: a task of a job
sum() { task_json "$1" "$ADDITION" '["1", "2"]' | jq -c --argjson more "${2:-{\}}" '.spec * $more'; }
nap() { task_json "$1" "$(wasm sleep)" '["100"]' | jq -c --argjson more "${2:-{\}}" '.spec * $more'; }
broken() { task_json "$1" "$(wasm trap)" '[]' | jq -c .spec; }
# add_job NAME SPEC-JSON TASK...
add_job() {
    local name=$1 fields=$2
    shift 2
    printf '%s\n' "$@" | jq -s --arg api "$API" --arg name "$name" --argjson fields "$fields" '
        { apiVersion: $api, kind: "PropellerJob", metadata: { name: $name },
          spec: ({ name: $name, tasks: . } * $fields) }' | create
}
job() { object propellerjobs "$1" | jq -r "${2:-.}"; }
# wait_job NAME CONDITION [SECONDS]: as users wait for it
wait_job() {
    kn wait --for "condition=$2" --timeout "${3:-60}s" "propellerjob/$1" >/dev/null || { job "$1" .status; return 1; }
}
counts() { job "$1" '.status | "\(.taskCount) \(.completedCount) \(.failedCount) \(.skippedCount)"'; }

# The sample: a diamond.
kn apply -f "$ROOT/config/samples/propellerjob.yaml" >/dev/null
wait_job diamond Complete
expect_eq "counts of the diamond" "4 4 0 0" "$(counts diamond)"
expect_match "which task decided it" "Task 'diamond-last' was the last to complete" \
    "$(condition propellerjobs diamond Complete)"
expect_eq "owner of a child" "PropellerJob diamond true $(job diamond .metadata.uid)" \
    "$(task diamond-first '.metadata.ownerReferences[0] | "\(.kind) \(.name) \(.controller) \(.uid)"')"
expect_eq "jobId of a child" "$(job diamond .metadata.uid)" "$(task diamond-first .spec.jobId)"
expect_eq "dependsOn of a child" '["diamond-left","diamond-right"]' "$(task diamond-last '.spec.dependsOn | tostring')"

# One after the other, up to the first failure.
add_job chain '{"executionMode": "sequential", "failurePolicy": "Continue"}' "$(sum one)" "$(broken two)" "$(sum three)"
wait_job chain Failed
expect_eq "counts of the chain" "3 1 1 1" "$(counts chain)"
expect_match "which task decided it" "True TaskFailed Task 'chain-two' failed: DeviceError" \
    "$(condition propellerjobs chain Failed)"

# The first failure stops what waits and what runs, but for the branch that is for failures.
add_job fast '{}' "$(broken bad)" "$(nap long '{"inputs": ["-1"]}')" "$(sum behind '{"dependsOn": ["long"]}')" \
    "$(sum cure '{"dependsOn": ["bad"], "runIf": "failure"}')"
wait_job fast Failed
expect_eq "counts of a job that fails fast" "4 1 2 1" "$(counts fast)"
expect_eq "what became of the long one" StoppedByJob "$(task fast-long .status.reason)"
expect_eq "the branch for failures" completed "$(task fast-cure .status.phase)"
add_job slow '{"failurePolicy": "Continue", "parallelism": 1}' "$(broken bad)" "$(sum one)" "$(sum two)"
wait_job slow Failed
expect_eq "counts of a job that goes on" "3 2 1 0" "$(counts slow)"

# One at a time: what comes after the failure is never made.
add_job brief '{"parallelism": 1}' "$(broken bad)" "$(sum one)"
wait_job brief Failed
expect_eq "counts of a job whose second Task was never made" "2 0 1 1" "$(counts brief)"
object_gone tasks brief-one

# References to Tasks that do not exist yet.
add_job later '{"taskRefs": ["late-1", "late-2"]}' "$(sum own)"
wait_condition propellerjobs later Progressing "^True WaitingForTaskRefs there is no Task 'late-1'"
add_task late-1 "$ADDITION" '["1", "2"]'
wait_condition propellerjobs later Progressing "^True WaitingForTaskRefs there is no Task 'late-2'"
add_task late-2 "$ADDITION" '["1", "2"]'
wait_job later Complete
expect_eq "counts with references" "3 3 0 0" "$(counts later)"
expect_eq "owner of a Task that is only referred to" null "$(task late-1 '.metadata.ownerReferences')"

# Suspended: what runs is interrupted, what waits stays; resumed it starts over.
device_say devices hold '*' # until then it runs
add_job pause '{}' "$(nap one '{"inputs": ["1"]}')" "$(sum two '{"dependsOn": ["one"]}')"
wait_task pause-one running
kn patch propellerjob pause --type merge -p '{"spec": {"suspend": true}}' >/dev/null
wait_job pause Suspended
wait_task pause-one interrupted
expect_eq "startTime of a suspended job" null "$(job pause .status.startTime)"
device_say devices release '*'
kn patch propellerjob pause --type merge -p '{"spec": {"suspend": false}}' >/dev/null
wait_job pause Complete
expect_eq "attempts of the interrupted Task" 2 "$(task pause-one .status.attempt)"

# A name that is taken is neither adopted nor overwritten, and healed when it is free.
add_task taken-one "$(wasm sleep)" '["100"]'
add_job taken '{}' "$(sum one)" "$(sum two)"
wait_condition propellerjobs taken Progressing "^False TaskNameTaken Task 'taken-one' exists"
object_gone tasks taken-two >/dev/null
# Not waited for by kubectl: to it the next one of this name, which comes at once, may be this one.
kn delete task taken-one --wait=false >/dev/null
wait_job taken Complete

# Deleted in the middle: devices stop, and nothing is left.
add_job gone '{}' "$(nap one '{"inputs": ["-1"]}')" "$(sum two '{"dependsOn": ["one"]}')"
wait_task gone-one running
kn delete propellerjob gone >/dev/null
wait_task_gone gone-one 60
wait_task_gone gone-two 60
running=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$running"

# A deadline stops all of it; somebody else's job is left alone.
add_job late '{"activeDeadlineSeconds": 1}' "$(nap one '{"inputs": ["-1"]}')"
wait_job late Failed
expect_match "why it failed" "True DeadlineExceeded not finished after 1 s" "$(condition propellerjobs late Failed)"
add_job foreign '{"managedBy": "example.com/other"}' "$(sum one)"
add_job short '{"ttlSecondsAfterFinished": 1}' "$(sum one)"
wait_for 60 "the job to be deleted by its time to live" object_gone propellerjobs short
wait_task_gone short-one 60
expect_eq "status of somebody else's job" null "$(job foreign .status)"
object_gone tasks foreign-one >/dev/null
