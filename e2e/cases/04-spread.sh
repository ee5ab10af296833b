#!/usr/bin/env bash
# 200 Tasks over ten devices: every answer right, each started once, spread by turns.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=200
DEVICES=10
mapfile -t identities < <(printf 'device-%s\n' $(seq $DEVICES))
world_start "${identities[@]}"
proplet_json worker-NUMBER device-NUMBER | add_numbered $DEVICES
device_start devices --count $DEVICES
wait_for 30 "all Proplets to run" phase_count_is proplets Running $DEVICES

task_json sum-NUMBER "$ADDITION" '["NUMBER", 1000]' | add_numbered $COUNT
wait_for 180 "all Tasks to be completed" phase_count_is tasks completed $COUNT

wrong=$(objects tasks | jq -c '.items[] | select((.status.results | tonumber) != (.spec.inputs[0] | tonumber) + 1000)
    | [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"

spread=$(objects tasks | jq -c '[.items | group_by(.status.assignedProplet)[] | length]')
expect_eq "Proplets that worked ($spread)" $DEVICES "$(jq length <<<"$spread")"
expect_le "most minus least of $spread" "$(jq 'max - min' <<<"$spread")" 2

# Where the cluster says it ran it ran, and nowhere else.
ran=$(journal devices '.event == "start"' | jq -r '"\(.task) \(.device)"' | sort)
told=$(objects tasks | jq -r '.items[] | "\(.metadata.uid) \(.status.assignedProplet | sub("worker"; "device"))"' | sort)
expect_eq "starts on devices, against the cluster's word" "$told" "$ran"
