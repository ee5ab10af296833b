#!/usr/bin/env bash
# A fleet with windows: its memory beside the same fleet without, its opening at one second with Tasks that wait, and
# its close with Tasks that run. Windows have whole minutes, so the scenario waits for some of them.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PROPLETS=${BENCH_PROPLETS:-10000}
TASKS=${BENCH_TASKS:-1000}
MINUTE=60
QUIET=${BENCH_SETTLE_SECONDS:-45} # idle connections are closed after 10 s, pages given back every 15

# anon_at_rest [GENERATION]: the memory of a leader that has read everything anew, once the statuses are of this
# generation; quiet, as edits are written at once and a leader writes what it hears
anon_at_rest() {
    wait_for 600 "all statuses to be of generation ${1:-1}" statuses_are_of "${1:-1}"
    controller_stop
    operator_start
    proplets_await 300 Running "$PROPLETS"
    sleep "$QUIET"
    wait_for 60 "nothing to be due" settled
    memory RssAnon
}

# The conditions of a device that is heard are written last.
statuses_are_of() {
    local count
    count=$(k get --raw "/apis/$GROUP/v1/namespaces/$NS/proplets" | jq --argjson generation "$1" \
        '[.items[].status.conditions[]? | select(.type == "Connected" and .observedGeneration == $generation)] | length')
    printf '%s of %s\n' "$count" "$PROPLETS"
    ((count == PROPLETS))
}

# writes_a_second MARK SECOND: the most writes of Proplets in one second since this one
writes_a_second() {
    operator_requests "$1" '.objectRef.resource == "proplets" and .verb == "patch"' |
        jq -r '.requestReceivedTimestamp[:19]' | awk -v since="$(date -u -d "@$2" +%FT%T)" '$1 >= since' |
        sort | uniq -c | awk '$1 > most { most = $1 } END { print most + 0 }'
}

# times EVENT: of the journal, in order; a result is the word on a stop, as none comes by itself
times() { jq -r --arg event "$1" 'select(.event == $event).time' "$PART/fleet.journal" | sort -n; }

main() {
    local bare opens closes mark first last
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$PROPLETS"
    fleet_start "$PROPLETS" --result-delay 1h --journal "$PART/fleet.journal"
    proplets_await 600 Running "$PROPLETS"
    bare=$(anon_at_rest)

    opens=$(($(date +%s) / MINUTE * MINUTE + ${BENCH_OPENS_AFTER:-6} * MINUTE)) closes=$((opens + 2 * MINUTE))
    tasks_py windows "$PROPLETS" --window "$(date -u -d "@$opens" +%H:%M)-$(date -u -d "@$closes" +%H:%M)"
    figure "RssAnon of the windows of a Proplet (bytes)" "$(ratio $((($(anon_at_rest 2) - bare) * 1024)) "$PROPLETS" 0)" "<= 200"
    tasks_py many "$TASKS" --prefix window >/dev/null
    tasks_await 300 pending "$TASKS"
    (($(date +%s) < opens)) || fail "the fleet opened before $TASKS Tasks waited: BENCH_OPENS_AFTER"

    mark=$(audit_mark)
    tasks_await 600 running "$TASKS"
    first=$(times start | head -n 1) last=$(times start | tail -n 1)
    figure "the second at which it opens -> first start (ms)" "$(jq -n "($first - $opens) * 1000 | round")" "<= 100"
    figure "starts (Tasks/s)" "$(ratio "$TASKS" "$(jq -n "$last - $first")" 1)"
    (($(date +%s) < closes)) || fail "the fleet closed before all Tasks ran"
    wait_for 600 "all stops" fleet_count_is stopped "$TASKS"
    figure "the second at which it closes -> last stop (s)" \
        "$(jq -n "$(times result | sed -n "${TASKS}p") - $closes | . * 100 | round / 100")" "<= 2"
    figure "most writes of Proplets in a second" "$(writes_a_second "$mark" "$opens")" "<= 64"
    figure "ids on two devices" "$(fleet_count elsewhere)" "<= 0"
}

main "$@"
