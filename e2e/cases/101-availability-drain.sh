#!/usr/bin/env bash
# A Proplet that closes drains: what runs has its grace, is stopped at the second of status.availability.stopAt, also by
# a controller that came later, and goes elsewhere. Who has less time than it needs does not start.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

in_seconds() { date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ; }
available() { kn patch proplet "$1" --type=merge -p "{\"spec\":{\"availability\":$2}}" >/dev/null; }
# closed GRACE SECONDS: by an override from now on
closed() { printf '{"gracefulShutdownTimeout":"%s","override":{"state":"Closed","until":"%s"}}' "$1" "$(in_seconds "$2")"; }
state_is() { field_is proplets "$1" '.status.availability.state' "$2"; }
wait_state() { wait_for 30 "Proplet $1 to be $2" state_is "$1" "$2"; }
started() { wait_for 30 "the start of $1" journal_has devices ".event == \"start\" and .task == \"$1\""; }
# stopped_at UID: seconds of the device's clock
stopped_at() { journal devices ".event == \"stopped\" and .task == \"$1\"" | jq -r .time; }
# expect_stop UID STOP: within a second behind it, and not before (the clock of the test is the controller's)
expect_stop() {
    wait_for 60 "the stop of $1" journal_has devices ".event == \"stopped\" and .task == \"$1\""
    awk -v at="$(stopped_at "$1")" -v stop="$(date -d "$2" +%s)" 'BEGIN { exit !(at >= stop && at < stop + 2) }' ||
        fail "$1 was stopped at $(stopped_at "$1"), and its stop was $2"
}
on_either='{"spec":{"propletSelector":{"matchLabels":{"site":"here"}}}}'

world_start device-1 device-2
add_proplet worker device-1 '{"metadata":{"labels":{"site":"here"}}}'
device_start devices --identity device-1 --identity device-2
wait_proplet worker Running

# It runs on until the stop, and then on another Proplet; what ends within the grace counts.
add_task long "$(wasm sleep)" '[-1]' "$on_either"
wait_task long running
uid=$(task long .metadata.uid)
started "$uid"
add_proplet other device-2 '{"metadata":{"labels":{"site":"here"}}}'
wait_proplet other Running
add_task short "$(wasm sleep)" '[200]' "$(task_on worker)"
started "$(task short .metadata.uid)"
available worker "$(closed 10s 600)"
wait_state worker Draining
stop=$(proplet worker .status.availability.stopAt)
wait_task short completed
expect_eq "phase within the grace" running "$(task long .status.phase)"
expect_stop "$uid" "$stop"
wait_for 30 "the other Proplet to have it" field_is tasks long .status.assignedProplet other
wait_task long running
expect_eq "failures" null "$(task long .status.failures | sed 's/^0$/null/')"
(($(task long .status.cutAfterSeconds) >= 5)) || fail "cutAfterSeconds is $(task long .status.cutAfterSeconds)"
wait_state worker Closed
wait_for 30 "the Event of the Task" has_event long '^Normal Interrupted '
wait_for 30 "the Event of the Proplet" has_event worker '^Warning TasksCut 1 Task was stopped because it closed$'

# It needs more time than is left here, and says so.
kn patch task long --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
wait_task long interrupted
available worker "{\"schedule\":{\"enabled\":false,\"daysOfWeek\":[\"mon-sun\"],\"hoursOfDay\":[\"0-23\"]}}"
wait_condition proplets worker Available '^False Disabled '
cut=$(task long .status.cutAfterSeconds)
available other "{\"schedule\":{\"daysOfWeek\":[\"$(LC_ALL=C date -u -d '+3 days' +%a | tr '[:upper:]' '[:lower:]')\"],\"hoursOfDay\":[\"1\"]},\"override\":{\"state\":\"Open\",\"until\":\"$(in_seconds "$cut")\"}}"
wait_condition proplets other Available '^True OverrideOpen '
kn patch task long --type=merge -p '{"spec":{"suspend":false}}' >/dev/null
wait_condition tasks long Scheduled '^False NoCandidates none of 2 Proplets fits: 1 is closed, 1 closes too early$'
kn delete task long --wait=false >/dev/null
wait_task_gone long
available other null
available worker null
wait_condition proplets worker Ready '^True '

# A controller that comes in the middle stops at the same second; open again in time, nothing is stopped.
add_task second "$(wasm sleep)" '[-1]' "$(task_on worker)"
add_task spared "$(wasm sleep)" '[-1]' "$(task_on other)"
wait_task second running
wait_task spared running
started "$(task second .metadata.uid)"
started "$(task spared .metadata.uid)"
grace=15s
! operator_in_pods || grace=40s # the next pod leads when the Lease of the one that was killed is over
available worker "$(closed "$grace" 600)"
available other "$(closed "$grace" 600)"
wait_state worker Draining
wait_state other Draining
stop=$(proplet worker .status.availability.stopAt)
controller_crash_restart
available other null
expect_stop "$(task second .metadata.uid)" "$stop"
wait_condition tasks second Scheduled "^False PropletUnavailable Proplet 'worker' is closed$"
expect_eq "phase of the one that was spared" running "$(task spared .status.phase)"
expect_eq "stops of the one that was spared" 0 \
    "$(journal_count devices ".event == \"stopped\" and .task == \"$(task spared .metadata.uid)\"")"

# The policy Fail ends it for good, whatever its retries are.
available worker null
add_task last "$(wasm sleep)" '[-1]' "$(task_on worker | jq -c '.spec += {propletLostPolicy: "Fail", backoffLimit: 3}')"
kn delete task second --wait=false >/dev/null
wait_task last running
started "$(task last .metadata.uid)"
available worker "$(closed 0s 600)"
wait_task last failed
expect_eq "reason" AvailabilityEnded "$(task last .status.reason)"
