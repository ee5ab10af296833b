#!/usr/bin/env bash
# Controller, broker and API server killed in the middle: every Task gets its result, none runs twice.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
COUNT=60
world_start device-1 device-2 device-3 device-4 device-5
proplet_json worker-NUMBER device-NUMBER | add_numbered 5
device_start devices --count 5
wait_for 30 "all Proplets to run" phase_count_is proplets Running 5

finished_at_least() {
    local count
    count=$(phase_count tasks completed) || return 1
    printf '%s of %s completed\n' "$count" "$1"
    ((count >= $1))
}

# Naps of 20 ms: each Task takes a second or two, so that every crash meets some in each phase.
batch() {
    task_json "$1-NUMBER" "$(wasm sleep)" '["NUMBER"]' | add_numbered $COUNT
}
batch first
wait_for 60 "the first results" finished_at_least 5
crash controller
wait_for 30 "the devices to go on alone" journal_has devices '.event == "result"' 20
controller_start
wait_for 90 "all of the first batch" finished_at_least $COUNT

batch second
wait_for 60 "some of the second batch" finished_at_least $((COUNT + 5))
crash broker
broker_start
wait_for 90 "all of the second batch" finished_at_least $((2 * COUNT))

batch third
wait_for 60 "some of the third batch" finished_at_least $((2 * COUNT + 5))
cluster_restart apiserver
wait_for 90 "all of the third batch" finished_at_least $((3 * COUNT))

wrong=$(objects tasks | jq -c '.items[] | select(.status.results != .spec.inputs[0]) | [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"
twice=$(journal devices '.event == "start"' | jq -r '.task' | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
