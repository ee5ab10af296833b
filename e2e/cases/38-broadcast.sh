#!/usr/bin/env bash
# A broadcast runs once on every Proplet that matched; dying devices, a quorum and a killed controller.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=30
mapfile -t devices < <(seq -f 'device-%g' "$COUNT")
broker_prepare "${devices[@]}"
broker_start
controller_prepare
# Who keeps its result back looks as if it had not heard the start: not to be told again meanwhile.
CONTROLLER_OPTIONS+=(--start-confirm-timeout 60s)
controller_start

# everywhere NAME [JSON]: to all with the label, each of whom answers 7 after a nap
everywhere() {
    task_json "$1" "$(wasm nap)" '["25", 7]' "$(jq -nc --argjson more "${2:-{\}}" '
        { spec: { broadcast: true, propletLostSeconds: 10,
                  propletSelector: { matchLabels: { site: "hall-3" } },
                  monitoringProfile: { enabled: true, interval: "1s" } } } * $more')" | create
}
ended() { task "$1" "[.status.broadcastResults[]? | select(.phase == \"$2\")] | length"; }
ended_is() { [[ $(ended "$1" "$2") == "$3" ]] || ! task "$1" -c .status.targets; }
# Every start of it that devices accepted: its number, and whether a device saw more than one.
starts_of() {
    local uid
    uid=$(task "$1" .metadata.uid)
    cat "$LOGS"/*.journal | jq -Rc 'fromjson? | select(.event == "start")' |
        jq -sr --arg uid "$uid" '[.[] | select(.task | startswith($uid))] |
            "\(length) by \([.[].device] | unique | length), ids \([.[].task] | unique | length)"'
}

# Nobody matches yet.
everywhere nobody
wait_condition tasks nobody Scheduled '^False NoProplet '
expect_eq "phase without a target" pending "$(task nobody '.status.phase // "pending"')"
kn delete task nobody >/dev/null

proplet_json worker-NUMBER device-NUMBER '{"metadata":{"labels":{"site":"hall-3"}}}' | add_numbered "$COUNT"
device_start many --count 27
for number in 28 29 30; do
    device_start "device-$number" --identity "device-$number"
done
wait_for 90 "all Proplets to run" phase_count_is proplets Running "$COUNT"

# All of them answer, and somebody who waits for a Proplet begins when one matches.
everywhere all
everywhere later '{"spec":{"propletSelector":{"matchLabels":{"site":"hall-4"}}}}'
wait_task all completed 90
expect_eq "targets" "30 30 0" "$(task all '.status.targets | "\(.total) \(.completed) \(.failed)"')"
expect_eq "answers" 30 "$(task all '[.status.broadcastResults[] | select(.results == "7")] | length')"
expect_eq "starts" "30 by 30, ids 30" "$(starts_of all)"
wait_condition tasks later Scheduled '^False NoCandidates '
kn label proplet worker-1 site=hall-4 --overwrite >/dev/null
wait_task later completed 60
expect_eq "its target" worker-1 "$(task later '[.status.broadcastResults[].proplet] | join(" ")')"
kn label proplet worker-1 site=hall-3 --overwrite >/dev/null

# Three die while they compute, and the controller is killed meanwhile: the other 27 outcomes stand.
for number in 28 29 30; do
    device_say "device-$number" hold "device-$number"
done
everywhere dying
for number in 28 29 30; do
    wait_for 60 "the start on device-$number" journal_has "device-$number" \
        ".event == \"start\" and (.task | startswith(\"$(task dying .metadata.uid)\"))"
done
for number in 28 29 30; do
    device_crash "device-$number"
done
kill_controller
wait_task dying failed 120
expect_eq "why" TargetsFailed "$(task dying .status.reason)"
expect_eq "targets" "30 27 3" "$(task dying '.status.targets | "\(.total) \(.completed) \(.failed)"')"
expect_eq "those that failed" "worker-28 PropletLost worker-29 PropletLost worker-30 PropletLost" \
    "$(task dying '[.status.broadcastResults[] | select(.phase == "failed") | "\(.proplet) \(.reason)"] | join(" ")')"
for number in 28 29 30; do
    [[ $(task dying .status.error) == *"worker-$number (PropletLost)"* ]] || fail "status.error does not name worker-$number"
done
expect_eq "starts" "30 by 30, ids 30" "$(starts_of dying)"

# A quorum of 27 does not wait for three that never answer: they are told to stop.
for number in 28 29 30; do
    device_start "device-$number" --identity "device-$number"
    device_say "device-$number" hold "device-$number"
done
wait_for 60 "all Proplets to run" phase_count_is proplets Running "$COUNT"
everywhere enough '{"spec":{"broadcastQuorum":27}}'
wait_task enough completed 90
expect_eq "targets" "30 27 0" "$(task enough '.status.targets | "\(.total) \(.completed) \(.failed)"')"
expect_eq "those that were not waited for" 3 "$(ended enough interrupted)"

# A quorum of 28 is not met: two of the three are lost.
device_say device-28 release device-28
everywhere short '{"spec":{"broadcastQuorum":29}}'
wait_for 60 "28 answers" ended_is short completed 28
for number in 29 30; do
    device_crash "device-$number"
done
wait_task short failed 120
expect_eq "targets" "30 28 2" "$(task short '.status.targets | "\(.total) \(.completed) \(.failed)"')"

# Deleted while it runs, it tells all of them to stop.
stops_are() {
    local count
    count=$(cat "$LOGS"/*.journal | jq -Rc 'fromjson? | select(.event == "stopped")' | jq -r .task | grep -c "^$1")
    printf '%s of %s stopped\n' "$count" "$2"
    ((count == $2))
}
everywhere stopped '{"spec":{"inputs":["3000", 7]}}'
uid=$(task stopped .metadata.uid)
wait_for 60 "28 to run it" ended_is stopped running 28
kn delete task stopped --timeout=90s >/dev/null
wait_for 30 "all of them to stop" stops_are "$uid" 28
