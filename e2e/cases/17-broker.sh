#!/usr/bin/env bash
# The broker's hardened example: who may speak where, and what it has saved outlives a crash.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare
broker_accounts own spy
broker_start
broker_record
controller_prepare
controller_start

# say_as USER CHANNEL SUFFIX PAYLOAD
say_as() {
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$1" -P "$(secret_of "$1")" -q 1 \
        -t "m/$DOMAIN/c/$2/$3" -m "$4"
}

expect_failure "somebody without a name" 'not auth' \
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -t "m/$DOMAIN/c/own/control/proplet/alive" -m x
expect_failure "a wrong password" 'not auth' \
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u own -P wrong -t "m/$DOMAIN/c/own/x" -m x

# A device on a channel of its own needs no line in the ACL file.
add_proplet worker own '{"spec":{"connectionConfig":{"channelId":"own"}}}'
device_start device --channel '{id}' --identity own
wait_proplet worker Running
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed
expect_eq "result over a channel of its own" 42 "$(task sum .status.results)"

# Another account hears nothing of it and cannot speak there, nor give orders on its own.
add_task slow "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task slow running
uid=$(task slow .metadata.uid)
forged=$(jq -nc --arg id "$uid" '{task_id: $id, proplet_id: "own", results: "forged", error: null}')
say_as spy own control/proplet/results "$forged"
say_as spy own control/manager/stop "$(jq -nc --arg id "$uid" '{id: $id}')"
say_as own own control/manager/start "{}"
say_as spy spy control/proplet/results "$forged"
seen() { grep -q ' m/[^ ]*/c/spy/' "$LOGS/wire.log"; }
wait_for 30 "what it may say on its own channel" seen
expect_eq "messages that the ACLs should have stopped" 0 \
    "$(grep -c -e 'c/own/control/proplet/results .*forged' -e 'c/own/control/manager/stop' \
        -e 'c/own/control/manager/start {}' "$LOGS/wire.log" || true)"
expect_eq "phase of the Task that was spoken about" running "$(task slow .status.phase)"

# The controller is away; a result is acknowledged and saved by the broker, which then is killed.
# (Mosquitto saves at the end of the turn in which it acknowledges.)
controller_stop
say_as own own control/proplet/results \
    "$(jq -nc --arg id "$uid" '{task_id: $id, proplet_id: "own", results: "late", error: null}')"
saved() { grep -aqF '"late"' "$BROKER/data/mosquitto.db"; }
wait_for 30 "the broker to have saved it" saved
crash broker
broker_start
controller_start
wait_task slow completed
expect_eq "the result that outlived both" late "$(task slow .status.results)"
