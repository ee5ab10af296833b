#!/usr/bin/env bash
# run.sh [SCENARIO...]: measures (all of bench/scenarios without arguments) on a real control plane, prints a table a
# scenario, and writes everything to build/bench/figures.json; with arguments the figures of other scenarios stay
# there. Nothing is asserted: times depend on the machine, so the table has the budget beside each figure, and ratios
# are taken within one run. The last lines say how many budgets are met, and which are not; the exit status only
# whether everything was measured.
#
# BENCH_REPEATS=N         each scenario so often: the table has the median and the spread
# BENCH_PEER="COMMAND..." another operator of the same API group, measured in turn; in
#                         it KUBECONFIG, BROKER (host:port), USER, KEYFILE (of the MQTT user), HEALTH and METRICS
#                         (host:port to listen on) are replaced; it is ready when GET /readyz of HEALTH says 200
set -euo pipefail

# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=bench/settings.sh
source "$BENCH/settings.sh"

REPEATS=${BENCH_REPEATS:-1}
OUT=$ROOT/build/bench

scenario_files() {
    local name
    if (($# == 0)); then
        printf '%s\n' "$BENCH"/scenarios/*.sh
        return
    fi
    for name in "$@"; do
        [[ -e $BENCH/scenarios/$name.sh ]] ||
            die "no scenario '$name'; there are: $(basename -s .sh -a "$BENCH"/scenarios/*.sh | paste -sd ' ')"
        printf '%s\n' "$BENCH/scenarios/$name.sh"
    done
}

report() { "$PYTHON_HOME/bin/python" "$BENCH/report.py" --figures "$BENCH_FIGURES" "$@"; }

# Every run has a control plane of its own: 100,000 objects of one would be the next one's load.
cluster_end() {
    local file
    for file in "$CLUSTER"/pids/*; do
        signal_noted KILL "$file"
    done
    rm -rf "$CLUSTER"
}

# scenario FILE WHO: beside this shell, which then hears a signal at once, and noted with what it starts. The folder
# is the first of all: who ends them must end first who would start others.
scenario() {
    local scenario status=0
    mkdir -p "$WORK/0/pids"
    BENCH_WHO=$2 setsid bash "$1" >"$OUT/$(basename "$1" .sh).$2.log" 2>&1 </dev/null &
    scenario=$!
    note_process "$WORK/0/pids/scenario" "$scenario"
    wait "$scenario" || status=$?
    rm "$WORK/0/pids/scenario"
    return "$status"
}

run_scenario() { # FILE WHO
    local name log status=0
    name=$(basename "$1" .sh)
    log=$OUT/$name.$2.log
    cluster_start "cluster-$((++runs))" >>"$OUT/cluster.log" 2>&1 ||
        die "the control plane did not start; log: $OUT/cluster.log"
    scenario "$1" "$2" || status=1
    cluster_end
    ((status)) || return 0
    failed+=("$name ($2)")
    printf '%s of %s FAILED; log: %s\n' "$name" "$2" "$log"
    tail -n 20 "$log" | sed 's/^/    /'
}

# With scenarios named, what was measured of others stays: so a table can be made in parts.
figures_begin() { # [SCENARIO...]
    local kept
    (($#)) || rm -rf "$OUT"
    mkdir -p "$OUT"
    touch "$BENCH_FIGURES"
    kept=$(jq -c 'select(.scenario | IN($ARGS.positional[]) | not)' --args "$@" <"$BENCH_FIGURES")
    printf '%s' "${kept:+$kept$'\n'}" >"$BENCH_FIGURES"
}

main() {
    local file who repeat
    local -a files
    failed=() runs=0
    settings_check
    mapfile -t files < <(scenario_files "$@")
    ((${#files[@]})) || exit 1
    "$HERE/setup.sh" build run
    make -C "$ROOT" --no-print-directory all benchmarks
    export GLIBC_TUNABLES=glibc.malloc.tcache_count=0 # as the image has it
    export BENCH_FIGURES=$OUT/figures.jsonl
    figures_begin "$@"
    work_begin
    wasm_build
    for file in "${files[@]}"; do
        for ((repeat = 0; repeat < REPEATS; repeat++)); do
            for who in ours ${BENCH_PEER:+peer}; do
                run_scenario "$file" "$who"
            done
        done
        report --scenario "$(basename "$file" .sh)" --json "$OUT/figures.json" # whoever stops it has the first ones
    done
    report --budgets
    "$PYTHON_HOME/bin/python" "$BENCH/growth.py" --figures "$BENCH_FIGURES" --svg "$OUT"
    printf 'figures: %s\n' "${OUT#"$ROOT"/}/figures.json"
    ((${#failed[@]} == 0)) || die "failed: ${failed[*]}"
}

main "$@"
