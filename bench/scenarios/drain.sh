#!/usr/bin/env bash
# Tasks that wait for capacity: 1,000 and then 10,000 while daemons have the places of 100 Proplets, two each
# (maxTasks). When these are deleted the others drain at the same rate, at the same cost for each of them, and
# waiting costs little memory.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PROPLETS=${BENCH_PROPLETS:-100}
FEW=${BENCH_FEW:-1000}
MANY=${BENCH_MANY:-10000}
declare -A rate cpu

waiting() { objects tasks | jq '[.items[] | select(.status.reason == "InsufficientCapacity")] | length'; }
all_wait() {
    local count
    count=$(waiting)
    printf '%s of %s wait\n' "$count" "$1"
    ((count == $1))
}

# reached COUNT: when, in ms, the fleet had given so many answers
reached() {
    wait_for 3600 "$1 answers" fleet_count_is answered "$1"
    now_ms
}

# Threads have their memory then, and code has been read.
warm_up() {
    tasks_py many 200 --prefix warm >/dev/null
    wait_for 600 "200 Tasks to be completed" phase_count_is tasks completed 200
}

drain() { # drain COUNT
    local count=$1 places=$((PROPLETS * 2)) anon before cpu_before tenth most daemons
    kn delete tasks --all --wait=true >/dev/null
    tasks_py many "$places" --prefix place --daemon >/dev/null
    wait_for 600 "daemons to have all places" phase_count_is tasks running "$places"
    anon=$(memory RssAnon)
    tasks_py many "$count" --prefix "wait$count" >/dev/null
    wait_for 1200 "$count Tasks to wait" all_wait "$count"
    figure "$count Tasks wait: RssAnon each (KiB)" "$(ratio $(($(memory RssAnon) - anon)) "$count")" "<= 2"
    before=$(fleet_count answered)
    cpu_before=$(cpu_ms)
    mapfile -t daemons < <(seq -f 'place-%g' "$places")
    kn delete tasks "${daemons[@]}" --wait=false >/dev/null
    # Without the first and the last tenth: the places become free one after the other, and at the end some
    # Proplets have nothing to do any more.
    tenth=$(reached $((before + count / 10)))
    most=$(reached $((before + count * 9 / 10)))
    reached $((before + count)) >/dev/null
    wait_for 600 "$count Tasks to be completed" phase_count_is tasks completed "$count"
    rate[$count]=$(ratio $((count * 800)) $((most - tenth)))
    cpu[$count]=$(ratio $(($(cpu_ms) - cpu_before)) "$count")
    figure "$count Tasks drain (Tasks/s)" "${rate[$count]}"
    figure "$count Tasks drain: processor time each (ms)" "${cpu[$count]}"
    figure "$count Tasks: ids on two devices" "$(fleet_count elsewhere)" "<= 0"
}

main() {
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$PROPLETS" --max-tasks 2
    fleet_start "$PROPLETS" --alive-interval 2s --result-delay 200ms
    wait_for 120 "all Proplets to run" phase_count_is proplets Running "$PROPLETS"
    warm_up
    drain "$FEW"
    drain "$MANY"
    figure "rate of $MANY over rate of $FEW" "$(ratio "${rate[$MANY]}" "${rate[$FEW]}")" ">= 0.9"
    figure "processor time each, $MANY over $FEW" "$(ratio "${cpu[$MANY]}" "${cpu[$FEW]}")" "<= 1.2"
}

main "$@"
