#!/usr/bin/env bash
# Devices killed while they compute: what becomes of a Task under each propletLostPolicy.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare device-1 device-2 device-3 device-4
broker_start
controller_prepare
# Who keeps its result back looks as if it had not heard the start: not to be told again meanwhile.
controller_start --start-confirm-timeout 5m
proplet_json worker-NUMBER device-NUMBER | add_numbered 4
for number in 1 2 3 4; do
    device_start "device-$number" --identity "device-$number"
done
for number in 1 2 3 4; do
    wait_proplet "worker-$number" Running
done

# begin NAME NUMBER POLICY: it runs on this device, which will not answer, and may run where the label is
begin() {
    device_say "device-$2" hold "device-$2"
    kn label proplet "worker-$2" "for=$1" --overwrite >/dev/null
    add_task "$1" "$(wasm nap)" '["50", 7]' "$(jq -nc --arg name "$1" --arg policy "$3" '
        { spec: { propletLostPolicy: $policy, propletLostSeconds: 3,
                  propletSelector: { matchLabels: { for: $name } } } }')"
    wait_for 60 "the start of $1" journal_has "device-$2" ".event == \"start\" and .task == \"$(task "$1" .metadata.uid)\""
    wait_task "$1" running
}
begin moves 1 Reschedule
begin waits 2 Wait
begin fails 3 Fail
kn label proplet worker-4 for=moves --overwrite >/dev/null
for number in 1 2 3; do
    device_crash "device-$number"
done

wait_task moves completed 60
expect_eq "it moved to" "worker-4 2 7" "$(task moves '.status | "\(.assignedProplet) \(.attempt) \(.results)"')"
wait_task fails failed 60
expect_eq "it failed" "worker-3 1 PropletLost" "$(task fails '.status | "\(.assignedProplet) \(.attempt) \(.reason)"')"
wait_for 60 "why it waits" field_is tasks waits .status.reason PropletOffline
expect_eq "it stays" "running worker-2 1" "$(task waits '.status | "\(.phase) \(.assignedProplet) \(.attempt)"')"

# Its device lost it with its process: it is computed there again.
device_start device-2 --identity device-2
wait_task waits completed 60
expect_eq "it stayed on" "worker-2 2 7" "$(task waits '.status | "\(.assignedProplet) \(.attempt) \(.results)"')"
expect_eq "ids started more than once" "" "$(cat "$LOGS"/*.journal | jq -Rr 'fromjson? | select(.event == "start") | .task' | sort | uniq -d)"
