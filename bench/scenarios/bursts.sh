#!/usr/bin/env bash
# What bursts of Tasks leave behind in memory: at once, after a quiet time, and when the Tasks are gone; a second
# burst leaves no more than the first.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TASKS=${BENCH_BURST:-650}
PROPLETS=20
QUIET=${BENCH_SETTLE_SECONDS:-45} # idle connections are closed after 10 s, pages given back every 15

burst() { # burst NUMBER
    local before
    before=$(fleet_count answered)
    tasks_py many "$TASKS" --prefix "burst$1" >/dev/null
    wait_for 1200 "$TASKS answers" fleet_count_is answered $((before + TASKS))
    tasks_await 300 completed "$TASKS"
    figure "burst $1, $TASKS Tasks there: RssAnon at once (KiB)" "$(memory RssAnon)"
    observe_for "$QUIET"
    figure "burst $1, $TASKS Tasks there: RssAnon after $QUIET s (KiB)" "$(memory RssAnon)"
    tasks_drop "burst$1" "$TASKS"
    figure "burst $1, Tasks deleted: RssAnon at once (KiB)" "$(memory RssAnon)"
    observe_for "$QUIET"
    figure "burst $1, Tasks deleted: RssAnon after $QUIET s (KiB)" "$(memory RssAnon)"
}

main() {
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$PROPLETS" --max-tasks 10
    fleet_start "$PROPLETS"
    proplets_await 120 Running "$PROPLETS"
    observe_for "$QUIET"
    figure "no burst yet: RssAnon (KiB)" "$(memory RssAnon)"
    burst 1
    burst 2
}

main "$@"
