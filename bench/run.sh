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

rows() { while IFS='|' read -r what value; do row "$what" "$value"; done; }

tasks_py() { # tasks_py MODE COUNT
    "$PYTHON_HOME/bin/python" "$ROOT/bench/tasks.py" "$1" --count "$2" --socket "$CLUSTER/api" \
        --namespace "$NS" --journal "$LOGS/devices.journal" --module "$ADDITION"
}

# User and system time of the controller so far, in ms.
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$(pid_of controller)/stat"; }

measure_throughput() {
    local started mark cpu
    cpu=$(cpu_ms)
    kn delete tasks --all --wait=true >/dev/null
    mark=$(audit_mark)
    started=$(now_ms)
    tasks_py many "$TASKS" | rows
    # The devices' journal first: asking the API server all the time would slow it down.
    wait_for 600 "$TASKS results" journal_has devices '.event == "result"' $((SAMPLES + TASKS))
    wait_for 60 "$TASKS Tasks" all_completed "$TASKS"
    row "throughput, $TASKS Tasks over $DEVICES Proplets (Tasks/s)" \
        $((TASKS * 1000 / ($(now_ms) - started)))
    row "processor time of the controller per Task (ms)" $((($(cpu_ms) - cpu) / TASKS))
    audit_writes "$mark" '.objectRef.resource == "tasks" and .responseStatus.code < 300' |
        jq -rs --argjson n "$TASKS" '
            "status writes per Task|\(map(select(.[2] == "status")) | length / $n)",
            "metadata writes per Task|\(map(select(.[2] == "")) | length / $n)"' | rows
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
    tasks_py latency "$SAMPLES" | rows
    measure_throughput
    memory_row "after $((SAMPLES + TASKS)) Tasks"
}

main "$@"
