#!/usr/bin/env bash
# Proplets that are only sometimes available: an override that ends, a schedule, the kill switch, and an owner who
# wants the machine back, on real clocks and across a change of the controller.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

in_seconds() { date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ; }
# set_available JSON: spec.availability of the worker
set_available() { kn patch proplet worker --type=merge -p "{\"spec\":{\"availability\":$1}}" >/dev/null; }
override() { printf '{"state":"%s","until":"%s"}' "$1" "$2"; }
is_closed() { wait_condition proplets worker Available "^False $1 "; }
waits() { wait_condition tasks "$1" Scheduled "^False $2"; }

world_start device-1 device-2
add_proplet worker device-1
add_proplet other device-2 '{"metadata":{"labels":{"site":"other"}}}'
device_start devices --identity device-1 --identity device-2
wait_proplet worker Running
wait_proplet other Running
expect_eq "availability without the fields" null "$(proplet worker .status.availability)"

# What the schema alone refuses.
expect_failure "a grace that is too long" 'must be a duration from 0s to 24h' \
    set_available '{"gracefulShutdownTimeout":"25h"}'
expect_failure "a grace that is none" 'must be a duration from 0s to 24h' \
    set_available '{"gracefulShutdownTimeout":"5 minutes"}'
expect_failure "half a schedule" 'daysOfWeek and hoursOfDay, or windows' \
    set_available '{"schedule":{"daysOfWeek":["mon"]}}'
expect_failure "both kinds of schedules" 'excludes daysOfWeek and hoursOfDay' \
    set_available '{"schedule":{"daysOfWeek":["mon"],"hoursOfDay":["1"],"windows":[{"days":["mon"],"from":"01:00","until":"02:00"}]}}'
expect_failure "a beginning that is no time" 'must be a time of day from 00:00 to 23:59' \
    set_available '{"schedule":{"windows":[{"days":["mon"],"from":"24:00","until":"02:00"}]}}'
expect_failure "an end that is no time" 'must be a time of day, or a day and a time' \
    set_available '{"schedule":{"windows":[{"days":["mon"],"from":"01:00","until":"monday 06:00"}]}}'

# Closed until a time: nothing starts before it, and everything that waited starts after it.
opens=$(in_seconds 10)
set_available "{\"override\":$(override Closed "$opens")}"
is_closed OverrideClosed
expect_eq "next transition" "$opens" "$(proplet worker .status.availability.nextTransition)"
add_task pinned "$ADDITION" '[1, 2]' "$(task_on worker)"
add_task labelled "$ADDITION" '[2, 2]' '{"spec":{"propletSelector":{"matchLabels":{"site":"none"}}}}'
waits pinned "PropletUnavailable Proplet 'worker' is closed$"
waits labelled 'NoCandidates none of 2 Proplets fits: 2 lack label site=none$'
wait_task pinned completed
[[ ! $(task pinned .status.startedAt) < $opens ]] ||
    fail "a start at $(task pinned .status.startedAt), and the Proplet opens at $opens"
wait_condition proplets worker Available '^True Always '
kn label proplet worker site=none >/dev/null
wait_task labelled completed

# A schedule that is closed today, and an override that opens it for a while.
then=$(date -u -d '+3 days' +%Y-%m-%d)
day=$(LC_ALL=C date -u -d "$then" +%a)
until=$(in_seconds 6)
schedule="{\"windows\":[{\"days\":[\"${day,,}\"],\"from\":\"01:30\",\"until\":\"02:00\"}]}"
set_available "{\"schedule\":$schedule,\"override\":$(override Open "$until")}"
wait_condition proplets worker Available '^True OverrideOpen '
add_task within "$ADDITION" '[3, 2]' "$(task_on worker)"
wait_task within completed
is_closed OutsideWindow
expect_eq "close" "$until" "$(proplet worker .status.availability.since)"
expect_eq "next transition" "${then}T01:30:00Z" \
    "$(proplet worker .status.availability.nextTransition)"
expect_eq "window" false "$(proplet worker .status.availability.inWindow)"
kn get proplet worker | grep -qE ' external +Running +True +Alive +False ' || fail "no column AVAILABLE: $(kn get proplet worker)"
set_available null
wait_for 30 "the status to forget the availability" field_is proplets worker .status.availability null

# The kill switch, and a controller that is started anew meanwhile.
kn patch proplet worker --type=merge -p '{"spec":{"killSwitch":true}}' >/dev/null
is_closed KillSwitch
since=$(proplet worker .status.availability.since)
add_task killed "$ADDITION" '[4, 2]' "$(task_on worker)"
waits killed PropletUnavailable
controller_stop
controller_start
add_task probe "$ADDITION" '[5, 2]' "$(task_on other)"
wait_task probe completed
waits killed PropletUnavailable
expect_eq "close of the kill switch" "$since" "$(proplet worker .status.availability.since)"
kn patch proplet worker --type=merge -p '{"spec":{"killSwitch":false}}' >/dev/null
wait_task killed completed
wait_for 30 "the Event of the kill switch" has_event worker '^Warning KillSwitch '
wait_for 30 "the Event of its end" has_event worker '^Normal Released '

# Its owner wants it back, until people take the annotation away.
kn annotate proplet worker "$GROUP/reclaim-requested=true" >/dev/null
is_closed Reclaimed
add_task reclaimed "$ADDITION" '[6, 2]' "$(task_on worker)"
waits reclaimed PropletUnavailable
kn annotate proplet worker "$GROUP/reclaim-requested-" >/dev/null
wait_task reclaimed completed
expect_eq "result" 8 "$(task reclaimed .status.results)"
wait_for 30 "the Event of the owner" has_event worker '^Warning Reclaimed '
