#!/usr/bin/env bash
# Tasks that hand over 64 KiB once a minute: latency, processor time, memory and writes of the controller.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TASKS=${BENCH_TASKS:-500}
SPAN=${BENCH_STEADY_SECONDS:-120}
INTERVAL=60
PROPLETS=50

writes() { # writes MARK RESOURCE VERB [SUBRESOURCE]
    operator_requests "$1" "(.objectRef.resource == \"$2\") and (.verb == \"$3\") and ((.objectRef.subresource // \"\") == \"${4:-}\")" | wc -l
}

main() {
    local mark before anon stored
    [[ $BENCH_WHO == ours ]] || return 0 # a peer has no checkpoints
    scenario_begin
    broker_prepare
    broker_start
    COORDINATOR=127.0.0.1:$(free_port)
    operator_start --coordinator-bind-address "$COORDINATOR" --coordinator-url "http://$COORDINATOR"
    add_proplets "$PROPLETS"
    fleet_start "$PROPLETS" --result-delay 1h
    proplets_await 300 Running "$PROPLETS"
    tasks_py many "$TASKS" --checkpoint >/dev/null
    tasks_await 300 running "$TASKS"
    anon=$(memory RssAnon)
    kn get tasks -o json | jq -r '.items[].metadata.uid' >"$PART/ids"

    mark=$(audit_mark)
    before=$(cpu_ms)
    "$PYTHON_HOME/bin/python" "$BENCH/checkpoints.py" --url "http://$COORDINATOR" --ids "$PART/ids" \
        --bytes 65536 --interval "$INTERVAL" --seconds "$SPAN" >"$PART/figures"
    figure "processor time of $TASKS Tasks (% of a core)" "$(ratio $((($(cpu_ms) - before) / 10)) "$SPAN")" "<= 10"
    figure "RssAnon more than without (KiB)" $(($(memory RssAnon) - anon)) "<= 2048"
    stored=$(sed -n 's/^checkpoints that were stored|//p' "$PART/figures")
    figures <"$PART/figures"
    figure "status writes a checkpoint" "$(ratio "$(writes "$mark" tasks patch status)" "$stored")" "<= 1.05"
    figure "ConfigMaps made a checkpoint" "$(ratio "$(writes "$mark" configmaps create)" "$stored")" "<= 1"
    figure "ConfigMaps removed a checkpoint" "$(ratio "$(writes "$mark" configmaps delete)" "$stored")" "<= 1"
}

main "$@"
