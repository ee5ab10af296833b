#!/usr/bin/env bash
# Proplets with heartbeats and metrics every ten seconds, and nothing else: writes, processor time and memory
# for each of them. The budget of writes is the refresh budget: each Proplet once a minute, ten a second in all.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

SPAN=${BENCH_STEADY_SECONDS:-120}
read -ra SIZES <<<"${BENCH_SIZES:-100 1000 10000}"
REFRESH_QPS=10

refreshes() { # refreshes COUNT: the most that may be written a minute
    local most=$((REFRESH_QPS * 60))
    printf '%s\n' $(($1 < most ? $1 : most))
}

writes() { audit_writes "$1" "${2:-true}" | wc -l; }

# Metadata and first metrics are written after the phases.
settled() {
    local from seen
    from=$(audit_mark)
    observe_for 6
    seen=$(writes "$from")
    printf '%s writes in 6 s\n' "$seen"
    ((seen <= $(refreshes "$1") / 10 + 2))
}

measure() { # measure COUNT
    local count=$1 mark before
    add_proplets "$count"
    fleet_start "$count"
    proplets_await 3600 Running "$count"
    wait_for 600 "the first refreshes" settled "$count"
    mark=$(audit_mark)
    before=$(cpu_ms)
    observe_for "$SPAN"
    figure "$count Proplets: writes a minute" "$(ratio $(($(writes "$mark") * 60)) "$SPAN")" \
        "<= $(($(refreshes "$count") + $(refreshes "$count") / 10 + 1))"
    figure "$count Proplets: writes that are no refresh" \
        "$(writes "$mark" '.objectRef.resource != "proplets" or .objectRef.subresource != "status"')" "<= 0"
    point "heartbeating Proplets: processor time a minute (ms)" "$count" "$(ratio $((($(cpu_ms) - before) * 60)) "$SPAN")"
    point "heartbeating Proplets: RssAnon (KiB)" "$count" "$(memory RssAnon)"
    figure "$count Proplets: VmRSS (KiB)" "$(memory VmRSS)"
    stop fleet TERM
}

main() {
    local count
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    memory_figures "no Proplet"
    for count in "${SIZES[@]}"; do
        measure "$count"
        tasks_py drop-proplets "$count"
        proplets_await 3600 "" 0 # the next ones have the same names
    done
    lines
}

main "$@"
