#!/usr/bin/env bash
# Measures the controller on a real control plane and prints a table. Nothing is asserted here:
# times depend on the machine.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"

DEVICES=${BENCH_DEVICES:-100}
SAMPLES=${BENCH_SAMPLES:-200}
TASKS=${BENCH_TASKS:-1000}

row() { printf '%-58s %s\n' "$1" "$2"; }
memory_row() { row "$1: VmRSS / RssAnon (KiB)" "$(memory VmRSS) / $(memory RssAnon)"; }

all_completed() { phase_count_is tasks completed "$1"; }

measure_latency() {
    "$PYTHON_HOME/bin/python" "$ROOT/bench/latency.py" --socket "$CLUSTER/api" --namespace "$NS" \
        --journal "$LOGS/devices.journal" --samples "$SAMPLES" --module "$ADDITION"
}

measure_throughput() {
    local started mark
    kn delete tasks --all --wait=true >/dev/null
    mark=$(audit_mark)
    task_json many-NUMBER "$ADDITION" '["NUMBER", 1000]' | add_numbered "$TASKS" &
    started=$(now_ms)
    wait_for 600 "$TASKS Tasks" all_completed "$TASKS"
    row "throughput, $TASKS Tasks over $DEVICES Proplets (Tasks/s)" \
        $((TASKS * 1000 / ($(now_ms) - started)))
    wait
    audit_writes "$mark" '.objectRef.resource == "tasks" and .responseStatus.code < 300' |
        jq -rs --argjson n "$TASKS" '
            "status writes per Task|\(map(select(.[2] == "status")) | length / $n)",
            "metadata writes per Task|\(map(select(.[2] == "")) | length / $n)"' |
        while IFS='|' read -r what value; do row "$what" "$value"; done
}

main() {
    local -a identities
    "$HERE/setup.sh" build run
    make -C "$ROOT" --no-print-directory all
    work_begin
    cluster_start >/dev/null 2>&1
    part_begin bench
    NS=bench
    k create namespace $NS >/dev/null
    mapfile -t identities < <(printf 'device-%s\n' $(seq "$DEVICES"))
    broker_prepare "${identities[@]}"
    broker_start
    controller_prepare
    controller_start
    printf '%-58s %s\n' measured value
    memory_row "idle"
    proplet_json worker-NUMBER device-NUMBER | add_numbered "$DEVICES"
    device_start devices --count "$DEVICES"
    wait_for 120 "all Proplets to run" phase_count_is proplets Running "$DEVICES"
    memory_row "$DEVICES heartbeating devices"
    measure_latency | while IFS='|' read -r what value; do row "$what" "$value"; done
    measure_throughput
    memory_row "after $((SAMPLES + TASKS)) Tasks"
}

main "$@"
