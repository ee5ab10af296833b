#!/usr/bin/env bash
# Edits of availability while a Task runs: what cannot be read starts nothing and stops nothing, an override that is past
# or far away, a manifest that a GitOps tool applies every second, and annotations that mean nothing.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

available() { kn patch proplet worker --type=merge -p "{\"spec\":{\"availability\":$1}}" >/dev/null; }
is() { wait_condition proplets worker Available "^$1 "; }
stops() { journal_count devices ".event == \"stopped\" and .task == \"$uid\""; }
ALWAYS='{"daysOfWeek":["mon-sun"],"hoursOfDay":["0-23"]}'
MARS=$(jq -c '.timezone = "Mars/Olympus"' <<<"$ALWAYS")
day=$(LC_ALL=C date -u -d '+3 days' +%a)
LATER="{\"daysOfWeek\":[\"${day,,}\"],\"hoursOfDay\":[\"1\"]}"

world_start device-1
add_proplet worker device-1
device_start devices --identity device-1
wait_proplet worker Running
add_task long "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task long running
uid=$(task long .metadata.uid) count=0

# Texts that cannot be read, while no webhook checks them. propeller-standalone always does.
if has_standalone; then
    expect_failure "a day" 'daysOfWeek\[0\]' available '{"schedule":{"daysOfWeek":["monday"],"hoursOfDay":["1"]}}'
    expect_failure "a time zone" Mars/Olympus available "{\"schedule\":$MARS}"
    add_task other "$ADDITION" '[1, 2]' "$(task_on worker)"
else
    available '{"schedule":{"daysOfWeek":["monday"],"hoursOfDay":["1"]}}'
    is 'Unknown InvalidSchedule'
    add_task other "$ADDITION" '[1, 2]' "$(task_on worker)"
    wait_condition tasks other Scheduled '^False PropletUnavailable '
    available "{\"schedule\":$MARS}"
    is 'Unknown UnknownTimeZone'
    expect_eq "phase of the one that waits" pending "$(task other .status.phase)"
fi
available "{\"schedule\":$(jq -c '.timezone = "Asia/Kathmandu"' <<<"$ALWAYS")}"
is 'True InWindow'
wait_task other completed

# Overrides: one that is past decides nothing, one may end in the year 9999.
available "{\"schedule\":$ALWAYS,\"override\":{\"state\":\"Closed\",\"until\":\"2020-01-01T00:00:00Z\"}}"
is 'True InWindow'
available "{\"schedule\":$LATER,\"override\":{\"state\":\"Open\",\"until\":\"9999-12-31T23:59:59Z\"}}"
is 'True OverrideOpen'

# A schedule that closes it, and another edit in its grace.
available "{\"schedule\":$LATER,\"override\":null}"
is 'False OutsideWindow'
expect_eq "state" Draining "$(proplet worker .status.availability.state)"
available "{\"schedule\":$ALWAYS}"
is 'True InWindow'
expect_eq "phase after all edits" running "$(task long .status.phase)"
expect_eq "stops after all edits" 0 "$(stops)"

# Values of the annotation that mean nothing.
for value in True yes ''; do
    kn annotate proplet worker --overwrite "$GROUP/reclaim-requested=$value" >/dev/null
    add_task "with-$((++count))" "$ADDITION" '[1, 2]' "$(task_on worker)"
    wait_task "with-$count" completed
done
expect_eq "stops after these annotations" 0 "$(stops)"

# The owner wants it back, and a repository says otherwise, every second and by force.
kn annotate proplet worker --overwrite "$GROUP/reclaim-requested=true" >/dev/null
is 'False Reclaimed'
kn get proplet worker -o json | jq '{apiVersion, kind, metadata: {name: .metadata.name}, spec: (.spec | .killSwitch = false)}' >"$PART/manifest"
for _ in 1 2 3; do
    kn apply --server-side --force-conflicts -f "$PART/manifest" >/dev/null
    observe_for 1 # real time: a GitOps tool applies at intervals
done
is 'False Reclaimed'
wait_for 30 "the stop" journal_has devices ".event == \"stopped\" and .task == \"$uid\""
expect_eq "stops" 1 "$(stops)"
wait_condition tasks long Scheduled '^False PropletUnavailable '
expect_eq "starts while it is reclaimed" 1 "$(journal_count devices '.event == "start" and (.task | startswith("'"$uid"'"))')"
kn annotate proplet worker "$GROUP/reclaim-requested-" >/dev/null
wait_task long running
