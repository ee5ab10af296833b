#!/usr/bin/env bash
# Tasks with large modules inline (300 KiB each): what they cost at rest, while they are listed, and while they are
# handed to devices. A module is never in the cache; it is read when its Task starts.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TASKS=${BENCH_MODULES:-500}
MODULE_KIB=${BENCH_MODULE_KIB:-300}

# listed NAME: a leader that has just started with these Tasks there
listed() {
    controller_stop
    operator_start
    wait_for 600 "it to have settled" settled
    observe_for "${BENCH_SETTLE_SECONDS:-45}"
    figure "$1: VmHWM of a start (KiB)" "$(memory VmHWM)"
    figure "$1: RssAnon, settled (KiB)" "$(memory RssAnon)"
}

rest_of() { # rest_of NAME [OPTION...]: suspended Tasks, listed
    local name=$1
    shift
    tasks_py many "$TASKS" --prefix rest --suspend "$@" >/dev/null
    tasks_await 1200 Suspended "$TASKS"
    listed "$TASKS Tasks, $name"
    tasks_drop rest "$TASKS"
}

main() {
    local before
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    listed "no Task"
    rest_of "small modules"
    rest_of "modules of $MODULE_KIB KiB" --inline-bytes $((MODULE_KIB << 10))
    add_proplets 20 --max-tasks 4
    fleet_start 20
    proplets_await 120 Running 20
    peak_reset
    before=$(fleet_count answered)
    tasks_py many "$TASKS" --prefix run --inline-bytes $((MODULE_KIB << 10)) >/dev/null
    wait_for 1200 "$TASKS answers" fleet_count_is answered $((before + TASKS))
    tasks_await 300 completed "$TASKS"
    figure "$TASKS Tasks with such modules run: VmHWM (KiB)" "$(memory VmHWM)"
    observe_for "${BENCH_SETTLE_SECONDS:-45}"
    figure "$TASKS Tasks with such modules ran: RssAnon, settled (KiB)" "$(memory RssAnon)"
    tasks_drop run "$TASKS"
}

main "$@"
