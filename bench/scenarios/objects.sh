#!/usr/bin/env bash
# Objects that only are there: memory for each of them, the peak while they are listed, and how long a start
# takes until it is ready, beside a bare list of the same objects.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# Of each of the two kinds. The budgets are for 10,000 of each, and the peak of 100,000 in all has one.
read -ra SIZES <<<"${BENCH_OBJECTS:-0 500 5000 10000 25000 50000}"
declare -A PEAK_BUDGET=([10000]="<= $((56 << 10))" [50000]="<= $((256 << 10))")
declare -A BEYOND_LIST_BUDGET=([10000]="<= 3000")
declare -A anon

# From the API server itself: the proxy of `api` would take its time, too.
list() {
    curl -sSf --max-time 300 -o /dev/null --cacert "$CLUSTER/ca.crt" --cert "$CLUSTER/admin.crt" \
        --key "$CLUSTER/admin.key" "https://127.0.0.1:$APISERVER_PORT/apis/$API/namespaces/$NS/$1?resourceVersion=0"
}
list_ms() {
    local before
    before=$(now_ms)
    list proplets
    list tasks
    printf '%s\n' $(($(now_ms) - before))
}

# There are COUNT Proplets and as many suspended Tasks: nothing happens with them.
measure() { # measure COUNT
    local count=$1 started ready list
    controller_stop
    started=$(now_ms)
    operator_start
    ready=$(($(now_ms) - started))
    list=$(list_ms)
    figure "$count + $count: start to ready (ms)" "$ready"
    figure "$count + $count: a bare list of both (ms)" "$list"
    figure "$count + $count: start to ready beyond the list (ms)" $((ready - list)) "${BEYOND_LIST_BUDGET[$count]:-}"
    wait_for 600 "it to have settled" settled
    observe_for 10
    point "objects, start: processor time (ms)" $((2 * count)) "$(cpu_ms)"
    point "objects, start: VmHWM (KiB)" $((2 * count)) "$(memory VmHWM)" "${PEAK_BUDGET[$count]:-}"
    observe_for "${BENCH_SETTLE_SECONDS:-45}" # free pages are given back four times a minute
    anon[$count]=$(memory RssAnon)
    point "objects, settled: RssAnon (KiB)" $((2 * count)) "${anon[$count]}"
    figure "$count + $count, settled: VmRSS (KiB)" "$(memory VmRSS)"
}

grow() { # grow FROM TO
    (($2 > $1)) || return 0
    add_proplets "$2" --from "$1" --defaulted
    tasks_py many "$2" --from "$1" --prefix rest --suspend --defaulted >/dev/null
    tasks_await 3600 Suspended "$2"
    wait_for 3600 "it to have settled" settled
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
    lines
}

main "$@"
