#!/usr/bin/env bash
# A leader with nothing to do: what it asks the API server for, its processor time, its memory.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

SPAN=${BENCH_IDLE_SECONDS:-300} # the shortest in which each watch is renewed once

per_minute() { ratio $(($1 * 60)) "$SPAN"; }

# count MARK CONDITION: requests; the audit log has a watch twice, when it begins and when it ends
count() {
    operator_requests "$1" '.stage != "ResponseStarted" and ('"$2"')' | wc -l
}

main() {
    local mark before
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    observe_for 5 # the last of what a start brings
    mark=$(audit_mark)
    before=$(cpu_ms)
    observe_for "$SPAN"
    figure "processor time a minute (ms)" "$(per_minute $(($(cpu_ms) - before)))"
    # One renewal every two seconds, a watch at least every 300 s and for each kind.
    figure "renewals of the Lease a minute" "$(per_minute "$(count "$mark" '.objectRef.resource == "leases"')")" "<= 31"
    figure "watches a minute" "$(per_minute "$(count "$mark" '.verb == "watch"')")" "<= 6"
    figure "other requests a minute" \
        "$(per_minute "$(count "$mark" '.objectRef.resource != "leases" and .verb != "watch"')")" "<= 0"
    memory_figures "nothing to do" "<= $((16 << 10))" "<= $((5 << 10))"
    operator_requests "$mark" '.objectRef.resource != "leases"' |
        jq -r '"\(.verb) \(.objectRef.resource) \(.stage)"' | sort | uniq -c
}

main "$@"
