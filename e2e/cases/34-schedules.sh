#!/usr/bin/env bash
# Tasks with a schedule: each time runs once under an id of its own, also when the controller dies;
# of what passed meanwhile one run is caught up; a run that lasts is let run or replaced; what was
# left out stands in history and events.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# every SECONDS [JSON of spec]: a recurring Task's spec
every() {
    jq -nc --arg schedule "@every ${1}s" --argjson more "${2:-{\}}" \
        '{spec: ({isRecurring: true, schedule: $schedule} + $more)}'
}
seconds_of() { date -d "$(task "$1" "$2")" +%s; }
# runs_done NAME COUNT: so many runs have ended
runs_done() {
    local seen
    seen=$(task "$1" '"\(.status.run) \(.status.phase)"')
    printf '%s\n' "$seen"
    [[ $seen =~ ^([0-9]+)\ (.*)$ ]] || return 1
    ((BASH_REMATCH[1] > $2 || (BASH_REMATCH[1] == $2 && $(final "${BASH_REMATCH[2]}"))))
}
final() { [[ $1 == completed || $1 == failed ]] && echo 1 || echo 0; }
# Runs no more, once the run that is under way has ended: a spec is not edited during one.
settle() {
    wait_for 60 "the end of a run of $1" kn patch task "$1" --type merge --patch '{"spec":{"isRecurring":false}}'
    wait_for 30 "no next run of $1" field_is tasks "$1" '.status.nextRun // "none"' none
    wait_task "$1" completed
}
ids_of() { journal device '.event == "start"' | jq -r .task | grep "^$(task "$1" .metadata.uid)" || true; }

world_start device-1
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running

# ---- every time once, under an id of its own ----

add_task beat "$ADDITION" '[10, 32]' "$(every 2 '{"historyLimit": 2}')"
wait_condition tasks beat Scheduled '^False WaitingForSchedule the next run is at '
wait_for 60 "four runs" runs_done beat 4
columns=$(kn get task beat -o wide | sed -n 1p)
expect_match "columns" 'LAST RUN +NEXT RUN' "$columns"
settle beat
runs=$(task beat .status.run)
expect_eq "result" 42 "$(task beat .status.results)"
expect_eq "attempts" "$runs" "$(task beat .status.attempt)"
expect_eq "runs in history" "$((runs - 2)) $((runs - 1))" "$(task beat '[.status.history[].run | tostring] | join(" ")')"
expect_eq "ends in history" "completed completed" "$(task beat '[.status.history[].phase] | join(" ")')"
expect_eq "results in history" 0 "$(task beat '[.status.history[] | select(has("results"))] | length')"
expect_eq "starts" "$runs" "$(ids_of beat | wc -l)"
expect_eq "starts of one id" "" "$(ids_of beat | sort | uniq -d)"
expect_match "events in describe" 'Started +.*the start went out to the Proplet' "$(kn describe task beat)"

# ---- the controller dies; three times pass ----

add_task away "$ADDITION" '[1, 2]' "$(every 8)"
wait_for 60 "a run" runs_done away 1
controller_stop
run=$(task away .status.run)
last=$(seconds_of away .status.lastRun)
wait_for 60 "three times to pass" clock_reached $(((last + 25) * 1000))
controller_start
wait_for 30 "the run that is caught up" runs_done away $((run + 1))
wait_for 30 "what was missed" has_event away '^Normal Skipped '
settle away
now=$(seconds_of away .status.lastRun)
runs=$(task away .status.run)
(((now - last) % 8 == 0)) || fail "lastRun moved by $((now - last)) s, which are no intervals of 8"
# Each run takes one interval, and one of them what was missed as well.
(((runs - run) * 8 <= now - last - 16)) || fail "$((runs - run)) runs in $((now - last)) s: more than one was caught up"
expect_eq "starts" "$runs" "$(ids_of away | wc -l)"
expect_eq "starts of one id" "" "$(ids_of away | sort | uniq -d)"

# ---- a run that has not ended when the next one is due ----

add_task patient "$(wasm sleep)" '[-1]' "$(every 2)"
add_task hasty "$(wasm sleep)" '[-1]' "$(every 4 '{"concurrencyPolicy": "Replace"}')"
left_out() { (($(event_count patient Skipped) >= 2)) || ! events patient; }
wait_for 60 "two times that are left out" left_out
expect_eq "runs of the patient one" "1 running" "$(task patient '"\(.status.run) \(.status.phase)"')"
replaced() { [[ $(task hasty '[.status.history[]? | select(.phase == "interrupted" and .reason == "Replaced")] | length') -ge 2 ]] || ! task hasty .status; }
wait_for 60 "two runs that were replaced" replaced
stops() { journal_has device ".event == \"stopped\" and (.task | startswith(\"$(task hasty .metadata.uid)\"))" 2; }
wait_for 30 "their stops on the device" stops
expect_eq "starts of one id" "" "$(ids_of hasty | sort | uniq -d)"
expect_eq "starts of the patient one" 1 "$(ids_of patient | wc -l)"

# ---- a run that nobody takes in time ----

add_task nowhere "$ADDITION" '[1, 2]' \
    "$(every 6 '{"startingDeadlineSeconds": 2, "propletSelector": {"propletId": "nobody"}}')"
skipped() { field_is tasks nowhere '.status.history[0] | "\(.phase) \(.reason)"' "skipped StartingDeadlineExceeded"; }
wait_for 60 "a run that is left out" skipped
wait_for 30 "its event" has_event nowhere '^Normal Skipped '

# ---- what cannot be told ----

add_martian() { add_task martian "$ADDITION" '[1, 2]' '{"spec":{"schedule":"0 3 * * *","timezone":"'"$1"'"}}'; }
if has_standalone; then # its admission is always asked
    expect_failure "a zone that is not there" 'spec.timezone: Invalid value: "Mars/Olympus"' add_martian Mars/Olympus
    add_martian UTC
else
    add_martian Mars/Olympus
    wait_condition tasks martian Scheduled "^False UnknownTimeZone spec.timezone: there is no time zone 'Mars/Olympus'"
fi
kn patch task martian --type merge --patch '{"spec":{"timezone":"Europe/Berlin"}}' >/dev/null
wait_condition tasks martian Scheduled '^False WaitingForSchedule the next run is at '
expected=$(TZ=Europe/Berlin date -d "$(task martian .status.nextRun)" +%H:%M)
expect_eq "the hour in its zone" 03:00 "$expected"
kn patch task martian --type merge --patch '{"spec":{"suspend":true}}' >/dev/null
wait_condition tasks martian Scheduled '^False Suspended '
wait_for 30 "no next run" field_is tasks martian '.status.nextRun // "none"' none
