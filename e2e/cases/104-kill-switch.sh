#!/usr/bin/env bash
# The kill switch and the owner of a machine do not wait: devices are stopped at once. A reclaim by MQTT survives the
# controller, closes once, and only people take it away, whatever a GitOps tool applies.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

stopped() { wait_for 30 "the stop of $1" journal_has devices ".event == \"stopped\" and .task == \"$1\""; }
is_closed() { wait_condition proplets worker Available "^False $1 "; }
annotation() { proplet worker ".metadata.annotations[\"$GROUP/$1\"]"; }
reclaim() { publish control/proplet/reclaim "$1" "${@:2}"; }
# counted NAME: the value of a series
counted() { metrics | awk -v name="$1" '$1 == name { print $2 }'; }
counted_is() {
    local value
    value=$(counted "$1")
    printf '%s is %s\n' "$1" "$value"
    [[ $value == "$2" ]]
}
REJECTED=propeller_reclaims_rejected_total

world_start device-1 device-2
add_proplet worker device-1
add_proplet other device-2
device_start devices --identity device-1 --identity device-2
wait_proplet worker Running
wait_proplet other Running

# The kill switch; false again: as before.
add_task killed "$(wasm sleep)" '[-1]' "$(task_on worker)"
add_task serves "$(wasm sleep)" '[-1]' "$(task_on worker | jq -c '.spec.daemon = true')"
wait_task killed running
wait_task serves running
kn patch proplet worker --type=merge -p '{"spec":{"killSwitch":true}}' >/dev/null
stopped "$(task killed .metadata.uid)"
is_closed KillSwitch
wait_condition tasks killed Scheduled '^False PropletUnavailable '
wait_condition tasks serves Scheduled '^False PropletUnavailable '
expect_eq "cutAfterSeconds" null "$(task killed .status.cutAfterSeconds)"
wait_for 30 "the Event of both" has_event worker '^Warning TasksCut 2 Tasks were stopped because it closed$'
kn patch proplet worker --type=merge -p '{"spec":{"killSwitch":false}}' >/dev/null
wait_task killed running
wait_task serves running

# Messages that do not count.
reclaim '{"proplet_id":"device-1","reason":7}'
reclaim '{"proplet_id":"nobody"}'
reclaim "{\"proplet_id\":\"device-1\",\"reason\":\"$(printf 'x%.0s' {1..1024})\"}"
wait_for 30 "the malformed one" counted_is "$REJECTED{reason=\"malformed\"}" 1
wait_for 30 "the unknown one" counted_is "$REJECTED{reason=\"unknown_proplet\"}" 1
wait_for 30 "the large one" counted_is "$REJECTED{reason=\"too_large\"}" 1
expect_eq "condition of a Proplet without the fields" "" "$(condition proplets worker Available)"

# The owner wants it back, while no controller is there.
controller_stop
reclaim '{"proplet_id":"device-1","reason":"a meeting\nin the room"}'
controller_start
is_closed Reclaimed
stopped "$(task killed .metadata.uid).2"
expect_eq "reason" "a meeting in the room" "$(annotation reclaim-reason)"
[[ $(annotation reclaim-requested-at) == 20* ]] || fail "no time beside the annotation"
wait_for 30 "the Event with the reason" has_event worker '^Warning Reclaimed its owner wants the machine back: a meeting in the room$'

# Again, retained, and a manifest that is applied each second: it stays as it is.
version=$(proplet worker '.metadata.annotations | tojson')
reclaim '{"proplet_id":"device-1","reason":"another"}'
for _ in 1 2 3; do
    kn patch proplet worker --type=merge -p '{"spec":{"killSwitch":false,"availability":null}}' >/dev/null
    observe_for 1 # real time: a GitOps tool applies at intervals
done
expect_eq "annotations" "$version" "$(proplet worker '.metadata.annotations | tojson')"
is_closed Reclaimed

# People give it back, and a retained message reclaims nothing at the next connection.
reclaim '{"proplet_id":"device-2"}' -r
wait_condition proplets other Available '^False Reclaimed '
kn annotate proplet other "$GROUP/reclaim-requested-" >/dev/null
kn annotate proplet worker "$GROUP/reclaim-requested-" >/dev/null
wait_task killed running
wait_task serves running
controller_stop
controller_start
wait_for 30 "the retained message" counted_is "$REJECTED{reason=\"retained\"}" 1
add_task probe "$ADDITION" '[1, 2]' "$(task_on other)"
wait_task probe completed
expect_eq "condition of the other Proplet" "" "$(condition proplets other Available)"
