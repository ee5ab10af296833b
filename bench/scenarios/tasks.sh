#!/usr/bin/env bash
# Real devices and small numbers: memory, created -> start on the device, throughput, writes per Task.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

DEVICES=${BENCH_DEVICES:-100}
SAMPLES=${BENCH_SAMPLES:-200}
TASKS=${BENCH_TASKS:-1000}

all_completed() { phase_count_is tasks completed "$1"; }

measure_throughput() {
    local started mark cpu
    kn delete tasks --all --wait=true >/dev/null
    cpu=$(cpu_ms)
    mark=$(audit_mark)
    started=$(now_ms)
    tasks_py many "$TASKS" | figures
    # The devices' journal first: asking the API server all the time would slow it down.
    wait_for 600 "$TASKS results" journal_has devices '.event == "result"' $((SAMPLES + TASKS))
    wait_for 60 "$TASKS Tasks" all_completed "$TASKS"
    figure "throughput, $TASKS Tasks over $DEVICES Proplets (Tasks/s)" \
        "$(ratio $((TASKS * 1000)) $(($(now_ms) - started)))"
    figure "processor time per Task (ms)" "$(ratio $(($(cpu_ms) - cpu)) "$TASKS")"
    audit_writes "$mark" '.objectRef.resource == "tasks" and .responseStatus.code < 300' |
        jq -rs --argjson n "$TASKS" '
            "status writes per Task|\(map(select(.[2] == "status")) | length / $n)|<= 3",
            "metadata writes per Task|\(map(select(.[2] == "")) | length / $n)|<= 1"' | figures
}

main() {
    local -a identities
    scenario_begin
    mapfile -t identities < <(printf 'device-%s\n' $(seq "$DEVICES"))
    broker_prepare "${identities[@]}"
    broker_start
    operator_start
    memory_figures "nothing to do" "<= $((16 << 10))" "<= $((5 << 10))"
    proplet_json worker-NUMBER device-NUMBER | add_numbered "$DEVICES"
    device_start devices --count "$DEVICES"
    wait_for 120 "all Proplets to run" phase_count_is proplets Running "$DEVICES"
    memory_figures "$DEVICES heartbeating devices"
    tasks_py latency "$SAMPLES" --journal "$LOGS/devices.journal" | figures
    measure_throughput
    memory_figures "after $((SAMPLES + TASKS)) Tasks"
}

main "$@"
