#!/usr/bin/env bash
# A computation of a million steps in real wasm, whose device is killed three times and whose controller twice: it
# goes on where its last checkpoint was, its result is that of a run without faults bit for bit, and nothing is left
# in the store. Then: what a device may send and may not, a chunk that somebody edited, and a deletion.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

MODULE=$(wasm regression)
INTERVAL=10
world_start_with_coordinator device-1 device-2
proplet_json worker-NUMBER device-NUMBER | add_numbered 2
for device in device-1 device-2; do
    device_start "$device" --identity "$device" --slice-pause 1
done
wait_for 30 "all Proplets to run" phase_count_is proplets Running 2

add_task whole "$MODULE" '[]'
wait_task whole completed 120

add_task long "$MODULE" '[]' '{"spec": {"functionName": "slice", "propletLostSeconds": 1,
    "checkpoint": {"interval": "10s", "keep": 2}}}'
wait_task long running
step_of() { task long '.status.lastCheckpoint.step // 0'; }
step_above() { local step; step=$(step_of); printf 'step %s\n' "$step"; ((step > $1)); }
attempt_above() { local attempt; attempt=$(task long .status.attempt); printf 'attempt %s\n' "$attempt"; ((attempt > $1)); }
device_of() { task long '.status.assignedProplet | sub("worker"; "device")'; }

before=0
for round in 1 2 3; do
    wait_for 60 "a checkpoint of attempt $round" step_above "$before"
    before=$(step_of)
    device=$(device_of)
    attempt=$(task long .status.attempt)
    device_crash "$device"
    ((round == 3)) || controller_crash_restart
    wait_for 60 "attempt $((attempt + 1))" attempt_above "$attempt"
    device_start "$device" --identity "$device" --slice-pause 1
done
wait_task long completed 180
expect_eq "the result, bit for bit" "$(task whole .status.results)" "$(task long .status.results)"

all_events() { cat "$LOGS"/device-1.journal "$LOGS"/device-2.journal | jq -Rc 'fromjson?' | jq -c "select($1)"; }
computed=$(all_events '.event == "slice"' | jq -s 'map(.steps) | add')
per_slice=20000
budget=$((1000000 + 3 * (INTERVAL + 2) * per_slice + 3 * per_slice))
expect_eq "steps that were computed again (at most three intervals): $computed of $budget" true "$( ((computed <= budget)) && echo true)"
expect_eq "attempts that went on" "3" "$(all_events '.event == "resumed" and .status == 200' | wc -l)"
expect_eq "attempts that went on elsewhere than told" "0" "$(all_events '.event == "resumed" and .step != .told' | wc -l)"
expect_eq "attempts" 4 "$(task long .status.attempt)"

answered=$(all_events '.event == "checkpoint" and .status == 200' | jq -r .step | sort -un | wc -l)
written() { kn get events.events.k8s.io -o json | jq '[.items[] | select(.reason == "CheckpointWritten" and .regarding.name == "long")] | length'; }
events=$(written)
expect_eq "Events ($events) of $answered steps: none too many, one lost for each death of the controller at most" true \
    "$( ((events <= answered && events >= answered - 2)) && echo true)"

blobs() { kn get configmaps -l "$GROUP/model-owner=$1" -o name | wc -l; }
blobs_are() { local seen; seen=$(blobs "$1"); printf '%s ConfigMaps\n' "$seen"; ((seen == $2)); }
wait_for 30 "keep ConfigMaps to stay" blobs_are "$(task long .metadata.uid)" 2
expect_match "the condition" '^True Ready ' "$(condition tasks long Checkpointing)"

# What may be sent. The Task is held at its start by a device that does nothing.
add_task other "$(wasm sleep)" '["-1"]' '{"spec": {"checkpoint": {"interval": "24h", "keep": 1}}}'
wait_task other running
uid=$(task other .metadata.uid)
url=$COORDINATOR_URL/t/$uid/checkpoint
put() { curl -sS -o "$PART/said" -w '%{http_code}' -X PUT --data-binary "$2" "$url?$1"; }
expect_eq "no step" "400 step: is needed" "$(put samples=1 x) $(cat "$PART/said")"
expect_eq "a step with an exponent" 400 "$(put step=1e3 x)"
expect_eq "another digest" 422 "$(put "step=1&sha256=$(printf y | sha256sum | cut -c1-64)" x)"
expect_eq "too large" 413 "$(head -c 1048577 /dev/zero | put step=1 @-)"
expect_eq "another attempt" 404 "$(url=$COORDINATOR_URL/t/$uid.2/checkpoint put step=1 x)"
expect_eq "the largest" 200 "$(head -c 1048576 /dev/zero | put step=1 @-)"
expect_eq "the same again" '200 {"step":1}' "$(head -c 1048576 /dev/zero | put step=1 @-) $(cat "$PART/said")"
expect_eq "other bytes of that step" 409 "$(put step=1 x)"
expect_eq "too soon" 429 "$(put step=2 x)"
expect_eq "what was stored" "$(head -c 1048576 /dev/zero | sha256sum)" "$(curl -sS "$url" | sha256sum)"
expect_eq "chunks" 2 "$(blobs "$uid")"

# A chunk that somebody deleted: there is no older one.
kn delete configmap "$(kn get configmaps -l "$GROUP/model-owner=$uid" -o name | tail -n 1 | cut -d/ -f2)" >/dev/null
expect_eq "a damaged one" 404 "$(curl -sS -o /dev/null -w '%{http_code}' "$url")"
unreadable() { [[ $(kn get events.events.k8s.io -o json | jq -r '.items[] | select(.reason == "CheckpointUnreadable").regarding.name') == other ]]; }
wait_for 30 "the Event of the damaged one" unreadable
expect_eq "its step stays" 1 "$(task other .status.lastCheckpoint.step)"

uids=("$uid" "$(task long .metadata.uid)")
kn delete task other long --wait=false >/dev/null
wait_task_gone other 60
for uid in "${uids[@]}"; do
    wait_for 60 "no ConfigMaps of a deleted Task" blobs_are "$uid" 0
done
