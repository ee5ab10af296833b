#!/usr/bin/env bash
# The most memory that an aggregation takes: 100 participants with 10^6 parameters each, read one at a time.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

PARTICIPANTS=100
PARAMETERS=1000000
# 16 bytes a parameter for the sums, one update as it is stored and as numbers, the model as numbers and text; what
# holds all updates at once (800 MB) takes them in blocks of 64 MiB
BUDGETS=("fedavg <= 96" "median <= 160" "trimmed-mean <= 160" "krum <= 160")

main() {
    local line algorithm budget peak
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    for line in "${BUDGETS[@]}"; do
        read -r algorithm budget <<<"$line"
        peak=$("$ROOT/build/plain/bench/aggregate" "{\"algorithm\":\"$algorithm\"}" --made \
            "$PARTICIPANTS" "$PARAMETERS" 2>&1 | sed -n 's/^peak-kib //p')
        figure "peak memory of $algorithm, $PARTICIPANTS x $PARAMETERS (MiB)" "$(ratio "$peak" 1024 1)" "$budget"
    done
}

main "$@"
