#!/usr/bin/env bash
# Objects that only are there: memory for each of them, the peak while they are listed, and how long a start
# takes until it is ready, beside a bare list of the same objects.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

read -ra SIZES <<<"${BENCH_OBJECTS:-0 1000 10000}"
declare -A anon

settled() { [[ $(metrics | awk '/^workqueue_depth/ { sum += $2 } END { print sum + 0 }') == 0 ]]; }

list_ms() {
    local before
    before=$(now_ms)
    objects 'proplets?resourceVersion=0' >/dev/null
    objects 'tasks?resourceVersion=0' >/dev/null
    printf '%s\n' $(($(now_ms) - before))
}

# There are COUNT Proplets and as many suspended Tasks: nothing happens with them.
measure() { # measure COUNT
    local count=$1 started peak_budget=
    ((count != 10000)) || peak_budget="<= $((56 << 10))"
    controller_stop
    started=$(now_ms)
    operator_start
    figure "$count + $count: start to ready (ms)" $(($(now_ms) - started))
    figure "$count + $count: a bare list of both (ms)" "$(list_ms)"
    wait_for 600 "it to have settled" settled
    observe_for 10
    anon[$count]=$(memory RssAnon)
    figure "$count + $count: VmHWM (KiB)" "$(memory VmHWM)" "$peak_budget"
    memory_figures "$count + $count, settled"
}

grow() { # grow FROM TO
    (($2 > $1)) || return 0
    add_proplets "$2" --from "$1"
    tasks_py many "$2" --from "$1" --prefix rest --suspend >/dev/null
    wait_for 3600 "$2 suspended Tasks" suspended "$2"
}
suspended() {
    local count
    count=$(objects tasks | jq '[.items[] | select(.status.reason == "Suspended")] | length')
    printf '%s of %s\n' "$count" "$1"
    ((count == $1))
}

main() {
    local count last=0 before=0
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    for count in "${SIZES[@]}"; do
        grow "$last" "$count"
        measure "$count"
        before=$last last=$count
    done
    # Of the last step: what the first objects wake is no part of it.
    ((last == before)) ||
        figure "an object, from $before + $before on: RssAnon (KiB)" \
            "$(ratio $((anon[$last] - anon[$before])) $((2 * (last - before))))" "<= 2"
}

main "$@"
