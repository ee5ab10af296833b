#!/usr/bin/env bash
# Most of a fleet gone at once is an outage: no Task moves, also under the next leader; two gone are lost.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

mapfile -t devices < <(seq -f 'device-%g' 12)
broker_prepare "${devices[@]}"
broker_start
proxy_start # for eight of the devices; the controller goes to the broker itself
controller_prepare
# Results are kept back for most of the case: no start is to be repeated for want of a sign.
CONTROLLER_OPTIONS+=(--start-confirm-timeout 10m)
controller_start
proplet_json worker-NUMBER device-NUMBER '{"spec":{"external":{"maxTasks":2}}}' | add_numbered 12
device_start far --count 8 --qos 1 --broker "127.0.0.1:$PROXY_PORT"
device_start near --identity device-9 --identity device-10
device_start pair --identity device-11 --identity device-12
wait_for 60 "all Proplets to run" phase_count_is proplets Running 12

hold_all() { # hold | release
    local number
    for number in {1..8}; do device_say far "$1" "device-$number"; done
    for number in 9 10; do device_say near "$1" "device-$number"; done
    for number in 11 12; do device_say pair "$1" "device-$number"; done
}
# load NAME: twelve Tasks, one a Proplet, which are lost five seconds after it
load() {
    task_json "$1-NUMBER" "$ADDITION" '["NUMBER", 30]' '{"spec":{"propletLostSeconds":5}}' | add_numbered 12
    wait_for 60 "all of $1 to run" phase_count_is tasks running 12
    expect_eq "Proplets with a Task of $1" 12 \
        "$(objects tasks | jq -r '[.items[] | select(.status.phase == "running") | .status.assignedProplet] | unique | length')"
}
# attempts NAME: how many Tasks are in which attempt
attempts() {
    objects tasks | jq -r --arg name "$1-" '[.items[] | select(.metadata.name | startswith($name)) |
        .status.attempt] | group_by(.) | map("\(length) in \(.[0])") | join(", ")'
}
attempts_are() {
    local seen
    seen=$(attempts "$1")
    printf '%s\n' "$seen"
    [[ $seen == "$2" ]]
}
held_is() {
    local count
    count=$(objects tasks | jq '[.items[] | select(.status.reason == "FleetOffline")] | length')
    printf '%s of %s Tasks say FleetOffline\n' "$count" "$1"
    ((count == $1))
}
brake() { metrics | awk '$1 == "propeller_fleet_brake" { print $2 }'; }
brake_is() { [[ $(brake) == "$1" ]] || ! brake; }
hold_all hold
load first
proxy_say refuse
proxy_say cut
wait_for 60 "eight Proplets to be Offline" phase_count_is proplets Offline 8
wait_for 60 "their Tasks to say why they wait" held_is 8
expect_eq "phase of all Tasks" 12 "$(phase_count tasks running)"
expect_eq "attempts" "12 in 1" "$(attempts first)"
brake_is 1 || fail "propeller_fleet_brake is $(brake)"

# The next leader knows it from the statuses.
kill_controller
wait_for 60 "the brake of the next leader" brake_is 1
# As long again as it takes to be lost, and no Task has moved.
# real time: nothing may follow, and only time shows that
observe_for 10
wait_for 30 "their Tasks to say again why they wait" held_is 8
expect_eq "attempts under the next leader" "12 in 1" "$(attempts first)"

proxy_say accept
wait_for 60 "all Proplets to run" phase_count_is proplets Running 12
wait_for 30 "the end of the brake" brake_is 0
hold_all release
wait_for 60 "all of them to complete" phase_count_is tasks completed 12
expect_eq "attempts at the end" "12 in 1" "$(attempts first)"

# Two of twelve are no outage of ours: their Tasks go elsewhere.
hold_all hold
load second
device_crash pair
wait_for 60 "two Proplets to be Offline" phase_count_is proplets Offline 2
wait_for 60 "their Tasks to begin elsewhere" attempts_are second "10 in 1, 2 in 2"
expect_eq "the brake" 0 "$(brake)"
for number in {1..8}; do device_say far release "device-$number"; done
for number in 9 10; do device_say near release "device-$number"; done
wait_for 60 "all Tasks to complete" phase_count_is tasks completed 24
expect_eq "attempts that were lost" "10 in 1, 2 in 2" "$(attempts second)"
