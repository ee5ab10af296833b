#!/usr/bin/env bash
# Real devices and small numbers: memory, created -> start on the device, throughput, writes per Task.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

DEVICES=${BENCH_DEVICES:-100}
SAMPLES=${BENCH_SAMPLES:-200}
TASKS=${BENCH_TASKS:-1000}

REFRESH_QPS=10

# Counts of the Proplets change with each Task; they are written when a Proplet is due for its refresh, once a
# minute: so often each of them at most in that time, and ten a second in all.
proplet_writes() { # proplet_writes MARK MS
    local most=$((REFRESH_QPS * (1 + $2 / 1000))) each=$((DEVICES * (1 + ($2 + 59999) / 60000)))
    figure "writes of Proplets meanwhile" "$(audit_writes "$1" '.objectRef.resource == "proplets"' | wc -l)" \
        "<= $((most < each ? most : each))"
}

# No start goes to a device in the second after it came up, before a marker is back (docs/explanation/architecture.md).
warm_up() {
    tasks_py many "$DEVICES" --prefix first >/dev/null
    tasks_await 60 completed "$DEVICES"
}

# Tasks as the webhook leaves them: nothing is to be added.
measure_defaulted() {
    local mark
    mark=$(audit_mark)
    tasks_py many "$SAMPLES" --prefix defaulted --defaulted >/dev/null
    tasks_await 600 completed $((TASKS + SAMPLES))
    figure "metadata writes per Task that the webhook has seen" "$(ratio "$(audit_writes "$mark" '
        .objectRef.resource == "tasks" and .objectRef.subresource == null and .responseStatus.code < 300' |
        wc -l)" "$SAMPLES")" "<= 0"
}

measure_throughput() {
    local started took mark cpu
    kn delete tasks --all --wait=true >/dev/null
    cpu=$(cpu_ms)
    mark=$(audit_mark)
    started=$(now_ms)
    tasks_py many "$TASKS" | figures
    # The devices' journal first: asking the API server all the time would slow it down.
    wait_for 600 "$TASKS results" journal_has devices '.event == "result"' $((DEVICES + SAMPLES + TASKS))
    tasks_await 60 completed "$TASKS"
    took=$(($(now_ms) - started))
    figure "throughput, $TASKS Tasks over $DEVICES Proplets (Tasks/s)" "$(ratio $((TASKS * 1000)) "$took")"
    figure "processor time per Task (ms)" "$(ratio $(($(cpu_ms) - cpu)) "$TASKS")"
    audit_writes "$mark" '.objectRef.resource == "tasks" and .responseStatus.code < 300' |
        jq -rs --argjson n "$TASKS" '
            "status writes per Task|\(map(select(.[2] == "status")) | length / $n)|<= 2",
            "metadata writes per Task|\(map(select(.[2] == "")) | length / $n)|<= 1"' | figures
    proplet_writes "$mark" "$took"
}

main() {
    local -a identities
    scenario_begin
    broker_in_memory
    mapfile -t identities < <(printf 'device-%s\n' $(seq "$DEVICES"))
    broker_prepare "${identities[@]}"
    broker_start
    operator_start
    memory_figures "nothing to do" "<= $((16 << 10))" "<= $((5 << 10))"
    proplet_json worker-NUMBER device-NUMBER | add_numbered "$DEVICES"
    device_start devices --count "$DEVICES"
    proplets_await 120 Running "$DEVICES"
    memory_figures "$DEVICES heartbeating devices"
    warm_up
    tasks_py latency "$SAMPLES" --journal "$LOGS/devices.journal" --audit "$CLUSTER/audit.log" | figures
    measure_throughput
    measure_defaulted
    memory_figures "after $((DEVICES + 2 * SAMPLES + TASKS)) Tasks"
}

main "$@"
