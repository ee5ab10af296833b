#!/usr/bin/env bash
# Tasks that wait for capacity: 1,000 and then 10,000 while daemons have the places of 100 Proplets, two each
# (maxTasks). When these are deleted the others drain at the same rate, at the same cost for each of them, and
# waiting costs little memory. The 1,000 come again after the 10,000: what the API server has become slower by
# meanwhile, or the machine, is not the number's doing. Then 1,000 have 100 different deadlines, and 1,000 have none.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PROPLETS=${BENCH_PROPLETS:-100}
FEW=${BENCH_FEW:-1000}
MANY=${BENCH_MANY:-10000}
declare -A rate cpu

# Threads have their memory then, and code has been read.
warm_up() {
    tasks_py many 200 --prefix warm >/dev/null
    tasks_await 600 completed 200
    tasks_drop warm 200
}

drain() { # drain COUNT NAME [OPTION...]: options of the Tasks
    local count=$1 name=$2 places=$((PROPLETS * 2)) anon before cpu_before lines
    tasks_py many "$places" --prefix place --daemon >/dev/null
    tasks_await 600 running "$places"
    anon=$(memory RssAnon)
    tasks_py many "$count" --prefix "wait-$name" "${@:3}" >/dev/null
    tasks_await 3600 InsufficientCapacity "$count"
    figure "$count Tasks wait ($name): RssAnon each (KiB)" "$(ratio $(($(memory RssAnon) - anon)) "$count")" "<= 2"
    before=$(fleet_count answered)
    lines=$(wc -l <"$PART/fleet.journal")
    cpu_before=$(cpu_ms)
    # By several writers: kubectl deletes one after the other, and 1,000 others are done before it is.
    tasks_py drop "$places" --prefix place
    wait_for 3600 "$count answers" fleet_count_is answered $((before + count))
    tasks_await 600 completed "$count"
    cpu[$name]=$(ratio $(($(cpu_ms) - cpu_before)) "$count")
    rate[$name]=$(tasks_py rate "$count" --journal "$PART/fleet.journal" --from "$lines")
    figure "$count Tasks drain ($name) (Tasks/s)" "${rate[$name]}"
    figure "$count Tasks drain ($name): processor time each (ms)" "${cpu[$name]}"
    figure "$count Tasks ($name): ids on two devices" "$(fleet_count elsewhere)" "<= 0"
    tasks_drop "wait-$name" "$count"
}

# over_mean rate|cpu NAME BEFORE AFTER: a drain over the mean of those before and after it
over_mean() {
    local -n of=$1
    awk -v it="${of[$2]}" -v before="${of[$3]}" -v after="${of[$4]}" \
        'BEGIN { printf "%.2f\n", 2 * it / (before + after) }'
}

main() {
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$PROPLETS" --max-tasks 2
    fleet_start "$PROPLETS" --alive-interval 2s --result-delay 200ms --journal "$PART/fleet.journal"
    proplets_await 120 Running "$PROPLETS"
    warm_up
    drain "$FEW" before
    drain "$MANY" many
    drain "$FEW" after
    drain "$FEW" deadlines --deadlines 100
    drain "$FEW" last
    figure "rate of $MANY over rate of $FEW" "$(over_mean rate many before after)" ">= 0.9"
    figure "rate of $FEW with 100 deadlines over rate without" "$(over_mean rate deadlines after last)" ">= 0.9"
    figure "processor time each, $MANY over $FEW" "$(over_mean cpu many before after)" "<= 1.2"
}

main "$@"
