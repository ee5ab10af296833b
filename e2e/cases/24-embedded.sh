#!/usr/bin/env bash
# A microcontroller runs Tasks within its limits, and is never sent what would deafen it.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare mcu gate other
broker_start
broker_record
controller_prepare
controller_start --stop-timeout 5s
add_proplet chip mcu '{"spec":{"external":{"dialect":"embedded","maxTasks":1}}}'
embedded_start mcu
wait_proplet chip Running

# ---- what it computes ----

ON_CHIP=$(task_on chip)
add_task sum "$ADDITION" '[10, "32"]' "$ON_CHIP"
add_task pair "$(wasm pair)" '[7]' "$ON_CHIP"
add_task trap "$(wasm trap)" '[]' "$ON_CHIP"
add_task garbage "$(wasm types)" '[]' "$ON_CHIP"
add_task words "$ADDITION" '[10, "x"]' "$ON_CHIP"
add_task minus "$ADDITION" '[10, -3]' "$ON_CHIP"
add_task large "$ADDITION" '[10, 32]' \
    "$(jq -c --arg pad "$(printf '%01000d' 0)" '.spec.env = {PAD: $pad}' <<<"$ON_CHIP")"
# Longer than the threshold, and without a heartbeat while it computes.
add_task long "$(wasm sleep)" '[250]' "$ON_CHIP"
for name in sum pair long; do
    wait_task $name completed 60
done
expect_eq "a sum of a number and of digits" 42 "$(task sum .status.results)"
expect_eq "two results" "7,-1" "$(task pair .status.results)"
expect_eq "a long one" 250 "$(task long .status.results)"

failed_with() { # NAME REASON PATTERN
    wait_task "$1" failed
    expect_eq "why $1 failed" "$2" "$(task "$1" .status.reason)"
    expect_match "what is said of $1" "$3" "$(task "$1" .status.error)"
}
failed_with trap DeviceError 'unreachable'
failed_with garbage DeviceError '\?'
failed_with words PayloadInvalid 'inputs\[1\].*number'
failed_with minus PayloadInvalid 'inputs\[1\].*from 0'
failed_with large PayloadTooLarge '[0-9]{4} bytes.* 1023'

# More than the broker keeps in flight for somebody who never acknowledges.
task_json load-NUMBER "$ADDITION" '["NUMBER", 0]' "$ON_CHIP" | add_numbered 30
wait_for 60 "all of the load" phase_count_is tasks completed 33

# A stop as it understands it: read when the module has ended, dropped if name or state are wrong.
add_task doomed "$(wasm sleep)" '[600]' "$ON_CHIP"
wait_task doomed running
kn delete task doomed --wait=false >/dev/null
wait_for 30 "the stop" journal_has mcu '.event == "unknown-stop"'
wait_task_gone doomed 60
expect_eq "messages that it dropped" 0 "$(journal_count mcu '.event == "dropped"')"

# ---- death, as its last will tells it ----

add_task endless "$(wasm sleep)" '[4294967295]' "$ON_CHIP"
wait_condition tasks endless Started '^Unknown '
device_crash mcu
wait_proplet chip Offline
kn delete task endless --wait=false >/dev/null
wait_task_gone endless 60
embedded_start mcu
wait_proplet chip Running
add_task after "$ADDITION" '[1, 2]' "$ON_CHIP"
wait_task after completed

# ---- a channel that it shares with a Linux device ----

CHANNEL=gate
add_proplet gate gate
device_start gate --identity gate
CHANNEL=chan-1
wait_proplet gate Running
add_proplet guest other
device_start guest --identity other
wait_condition proplets guest Ready '^False SharedChannel'
condition_matches proplets chip Ready '^True ' || fail "a later Proplet took the channel of an older one"
before=$(wire_messages control/manager/start | wc -l)
add_task undisturbed "$ADDITION" '[3, 4]' "$ON_CHIP"
add_task deafens "$ADDITION" '[3, 4]' \
    "$(jq -c --arg pad "$(printf '%02000d' 0)" '.spec.env = {PAD: $pad}' <<<"$(task_on guest)")"
wait_condition tasks deafens Scheduled '^False '
wait_task undisturbed completed
# Another channel works meanwhile; what it is told comes after what nobody may have been told here.
add_task elsewhere "$ADDITION" '[5, 6]' "$(task_on gate)"
wait_task elsewhere completed
told=$(wire_messages control/manager/start | wc -l)
expect_eq "starts published meanwhile" $((before + 2)) "$told"

kn delete task deafens >/dev/null
kn delete proplet guest >/dev/null
oracle_judge --deleted --may-fail PayloadTooLarge --may-fail PayloadInvalid

# The device of this test is as easily deafened as the real one, and goes on beating all the same.
publish control/manager/start "$(printf '%01024d' 0)"
wait_for 30 "the end of its hearing" journal_has mcu '.event == "deaf" and .bytes == 1024'
beats() { wire_messages control/proplet/alive 'select(.proplet_id == "mcu" and .status == "alive")' | wc -l; }
before=$(beats)
beats_on() { (($(beats) >= before + 3)); }
wait_for 30 "three heartbeats more" beats_on
add_task unheard "$ADDITION" '[1, 1]' "$ON_CHIP"
wait_task unheard running
expect_eq "starts that it heard" 0 "$(journal_count mcu ".event == \"start\" and .task == \"$(task unheard .metadata.uid)\"")"
