#!/usr/bin/env bash
# Results that somebody else sends change nothing.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d spy
add_proplet worker d
add_proplet other spy
device_start device --identity d --identity spy
wait_proplet worker Running
wait_proplet other Running

add_task slow "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task slow running
uid=$(task slow .metadata.uid)

forged() { jq -nc --arg id "$1" --arg proplet "$2" '{task_id: $id, proplet_id: $proplet, results: "forged", error: null}'; }
publish control/proplet/results "$(forged "$uid" spy)"
publish control/proplet/results "$(forged "$uid" worker)"
publish control/proplet/results "$(forged "$uid.7" d)"
publish control/proplet/results "$(forged 00000000-0000-0000-0000-000000000000 d)"
publish control/proplet/results 'no JSON at all'
publish control/proplet/results '{"task_id":7}'
CHANNEL=chan-2 publish control/proplet/results "$(forged "$uid" d)"
DOMAIN=dom-2 publish control/proplet/results "$(forged "$uid" d)"

# One ordered queue: when this one is done, those before it are.
add_task next "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task next completed
expect_eq "phase after forged results" running "$(task slow .status.phase)"
expect_eq "results after forged results" null "$(task slow .status.results)"

# The real one still counts, and a later one for a finished Task does not.
publish control/proplet/results "$(jq -nc --arg id "$uid" '{task_id: $id, proplet_id: "d", results: "real", error: null}')"
wait_task slow completed
publish control/proplet/results "$(forged "$uid" d)"
add_task last "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task last completed
expect_eq "results of a finished Task" real "$(task slow .status.results)"
