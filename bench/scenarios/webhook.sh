#!/usr/bin/env bash
# The webhook: how long its answers take at steady rates, and its memory. A request is due at its time whether
# the one before it was answered or not, and its latency counts from there: who is late makes the next one late.
#
# BENCH_PEER_WEBHOOK="COMMAND..." measures another one beside it, in turn; in it PORT and CERTS stand for
# the port to listen on and for the folder with tls.crt and tls.key, for example
# BENCH_PEER_WEBHOOK="/opt/manager --webhook-port=PORT --webhook-cert-path=CERTS".
# BENCH_PEER_PATH: where the other one takes reviews of Tasks, if not where we do.
set -euo pipefail

# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

read -ra RATES <<<"${BENCH_RATES:-100 500 2000}"
SPAN=${BENCH_WEBHOOK_SECONDS:-10}
REVIEW=$ROOT/webhook/tests/reviews/validate-task/file-addition.request.json
CONNECTIONS=(8 512)
BUDGET_MS=5
declare -A BUDGET_KIB=([8]=$((12 << 10)) [512]=$((40 << 10)))

value() { sed -n "s/^$1=//p" "$PART/said"; }

ours() { printf '%s --port PORT --cert-dir CERTS --health-probe-bind-address 0 --metrics-bind-address 0' "$WEBHOOK_BIN"; }

listens() { (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

# measure NAME COMMAND PATH CONNECTIONS RATE: a process of its own, because its peak stays
measure() {
    local name=$1 path=$3 connections=$4 rate=$5 port command budget=
    port=$(free_port)
    command=${2//PORT/$port}
    read -ra command <<<"${command//CERTS/$PART}"
    spawn "$name" "${command[@]}"
    wait_for 30 "$name to listen" listens
    "$ROOT/build/plain/bench/load" --url "https://127.0.0.1:$port$path" --ca "$PART/ca.crt" \
        --body "$REVIEW" --connections "$connections" --rate "$rate" --requests $((rate * SPAN)) >"$PART/said" ||
        die "$name: $(value failed) requests failed; log: $LOGS/$name.log"
    ((rate != 500)) || budget="<= $BUDGET_MS"
    figure "$connections connections, $rate/s: p50 (ms)" "$(value p50_ms)"
    figure "$connections connections, $rate/s: p99 (ms)" "$(value p99_ms)" "$budget"
    figure "$connections connections, $rate/s: the slowest (ms)" "$(value max_ms)"
    figure "$connections connections, $rate/s: VmHWM (KiB)" \
        "$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$(pid_of "$name")/status")" "<= ${BUDGET_KIB[$connections]}"
    stop "$name"
}

main() {
    local connections rate
    [[ $BENCH_WHO == ours ]] || return 0 # its peer is another one
    scenario_begin
    authority "$PART/ca" bench-ca
    CLUSTER=$PART certificate tls /CN=webhook IP:127.0.0.1
    for connections in "${CONNECTIONS[@]}"; do
        for rate in "${RATES[@]}"; do
            measure webhook "$(ours)" "$LOAD_PATH" "$connections" "$rate"
            [[ -z ${BENCH_PEER_WEBHOOK:-} ]] ||
                BENCH_WHO=peer measure peer "$BENCH_PEER_WEBHOOK" "${BENCH_PEER_PATH:-$LOAD_PATH}" "$connections" "$rate"
        done
    done
}

main "$@"
