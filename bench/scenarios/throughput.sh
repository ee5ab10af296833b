#!/usr/bin/env bash
# 1,000 and then 10,000 Tasks over 100 Proplets, beside the ceiling: the same number and kinds of writes by the same
# client library alone, on the same API server. The Tasks are there before the operator is, and the time is that
# from its first write of a Task to its last, by the audit log.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PROPLETS=${BENCH_PROPLETS:-100}
read -ra SIZES <<<"${BENCH_THROUGHPUT:-1000 10000}"
SHARE=90 # percent
declare -A seen

# of_run MARK COUNT: what the operator did since the mark: seconds, writes of Tasks, of their metadata each, Events
of_run() {
    operator_requests "$1" '.objectRef.namespace == "'"$NS"'" and .responseStatus.code < 300
            and (.verb | IN("create", "update", "patch"))' | jq -s --argjson n "$2" '
        def seconds: (.[:19] + "Z" | fromdate) + ("0." + .[20:26] | tonumber);
        map(select(.objectRef.resource == "tasks")) as $tasks
        | ($tasks | map(.stageTimestamp | seconds)) as $times
        | { seconds: (($times | max) - ($times | min)), writes: ($tasks | length),
            metadata: ($tasks | map(select(.objectRef.subresource == null)) | length / $n | round),
            events: (map(select(.objectRef.resource == "events")) | length) }'
}
of() { jq ".$1" <<<"${seen[$2]}"; }

run() { # run COUNT
    local count=$1 mark before cpu
    controller_stop
    tasks_py many "$count" --prefix "run$count" >/dev/null
    before=$(fleet_count answered)
    mark=$(audit_mark)
    operator_start
    wait_for 3600 "$count answers" fleet_count_is answered $((before + count))
    tasks_await 600 completed "$count"
    cpu=$(cpu_ms) # of a process that did nothing else
    seen[$count]=$(of_run "$mark" "$count")
    figure "$count Tasks (Tasks/s)" "$(ratio "$count" "$(of seconds "$count")" 1)"
    figure "$count Tasks: writes of Tasks each" "$(ratio "$(of writes "$count")" "$count")" "<= 3"
    figure "$count Tasks: processor time each (ms)" "$(ratio "$cpu" "$count")"
    figure "$count Tasks: ids on two devices" "$(fleet_count elsewhere)" "<= 0"
    tasks_drop "run$count" "$count"
}

ceiling() { # ceiling COUNT: the operator is not there
    local count=$1 rate
    tasks_py many "$count" --prefix "bare$count" >/dev/null
    "$ROOT/build/plain/bench/writes" --kubeconfig "$PART/peer.kubeconfig" --namespace "$NS" --tasks "$count" \
        --prefix "bare$count" --metadata "$(of metadata "$count")" --events "$(of events "$count")" >"$PART/bare"
    # shellcheck source=/dev/null
    source "$PART/bare"
    rate=$(ratio "${writes:?}" "${seconds:?}" 1)
    figure "$count Tasks: bare writes of the same kinds (writes/s)" "$rate"
    figure "$count Tasks: writes while they run (writes/s)" "$(ratio "$(of writes "$count")" "$(of seconds "$count")" 1)"
    figure "$count Tasks: share of the bare writes (%)" \
        "$(ratio "$(of writes "$count")" "$(jq -n "$(of seconds "$count") * $rate / 100")" 1)" ">= $SHARE"
    tasks_drop "bare$count" "$count"
}

main() {
    local count
    scenario_begin
    broker_prepare
    broker_start
    peer_prepare # its account makes the bare writes
    operator_start
    add_proplets "$PROPLETS"
    fleet_start "$PROPLETS"
    proplets_await 120 Running "$PROPLETS"
    for count in "${SIZES[@]}"; do
        run "$count"
        controller_stop
        ceiling "$count"
        operator_start
    done
    controller_stop
}

main "$@"
