#!/usr/bin/env bash
# Ten thousand messages a second from the broker: 1,000 Proplets with a heartbeat every 100 ms.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PROPLETS=${BENCH_INGEST_PROPLETS:-1000}
SPAN=${BENCH_INGEST_SECONDS:-30}

received() { metrics | awk '/^propeller_mqtt_messages_total/ { sum += $2 } END { print sum + 0 }'; }

main() {
    local before cpu_before sent took mark
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$PROPLETS"
    fleet_start "$PROPLETS" --alive-interval 100ms --metrics-interval 0s
    proplets_await 1200 Running "$PROPLETS"
    observe_for 10
    mark=$(audit_mark)
    before=$(received) cpu_before=$(cpu_ms) sent=$(fleet_count heartbeats) took=$(now_ms)
    observe_for "$SPAN"
    before=$(($(received) - before)) sent=$(($(fleet_count heartbeats) - sent)) took=$(($(now_ms) - took))
    figure "sent by the devices (messages/s)" "$(ratio $((sent * 1000)) "$took" 0)"
    if ((before > 0)); then
        figure "received (messages/s)" "$(ratio $((before * 1000)) "$took" 0)"
    else
        before=$sent # the peer has another name for it, or none
    fi
    figure "processor time a message (us)" "$(ratio $((($(cpu_ms) - cpu_before) * 1000)) "$before")"
    figure "writes in that time" "$(audit_writes "$mark" | wc -l)" "<= $((10 * (took / 1000 + 1)))"
    figure "Proplets that are not Running" \
        $((PROPLETS - $(phase_count proplets Running))) "<= 0"
    memory_figures "$PROPLETS Proplets at this rate"
}

main "$@"
