#!/usr/bin/env bash
# Everything that proves something: set-up, build, lint, unit tests in three flavours, demo, e2e.
# Goes on after a failure; the table and the exit status tell.
#
# Tests wait for most of their time. Lint, which only computes, and the programs of a node, which only the last suite
# needs, take beside them what they leave of the processors.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
mkdir -p build/test
NODES_BEFORE=${NODES_BEFORE:-2100} # seconds; in CI alone, which ends after an hour
TALLIES=build/test/tallies
export TEST_FAILURES=$ROOT/build/test/failures # a few lines of each failure, by those that count
: >"$TALLIES"
: >"$TEST_FAILURES"

# suite NAME COMMAND...: those that count write to $TEST_TALLY; the others are one check
suite() {
    local name=$1 started=$SECONDS status=0 tally=$ROOT/build/test/$1.tally
    shift
    printf '\n#### %s: %s\n' "$name" "$*"
    rm -f "$tally"
    TEST_TALLY=$tally "$@" || status=$?
    if [[ ! -s $tally ]]; then
        printf '%s %s %s\n' "$name" $((status == 0 ? 1 : 0)) $((status == 0 ? 0 : 1)) >"$tally"
    elif ((status != 0)) && ! awk '{ failed += $3 } END { exit !failed }' "$tally"; then
        printf '%s 0 1\n' "$name" >>"$tally"
    fi
    awk -v seconds=$((SECONDS - started)) '{ print $0, NR == 1 ? seconds : "" }' "$tally" >>"$TALLIES"
}

BESIDE=0 # who works beside the others, as a process group; its output in build/test/beside.output
beside() {
    set -m
    {
        chrt --idle --pid 0 "$BASHPID" 2>/dev/null || renice -n 19 -p "$BASHPID" >/dev/null || true
        "$@"
    } >build/test/beside.output 2>&1 </dev/null &
    set +m
    BESIDE=$!
}
beside_ends() {
    wait "$BESIDE" || true
    BESIDE=0
    cat build/test/beside.output
}
end_beside() { ((BESIDE == 0)) || kill -TERM -- "-$BESIDE" 2>/dev/null || true; }
trap end_beside EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# In this order: when lint is done the others have begun, and wait for no set-up.
what_computes() {
    suite lint make --no-print-directory lint
    e2e/nodes.sh --obstacle >/dev/null || e2e/setup.sh node # whether that worked the suite will say
}

table() {
    awk 'BEGIN { printf "\n%-20s %7s %7s %8s\n", "suite", "passed", "failed", "seconds" }
         { printf "%-20s %7d %7d %8s\n", $1, $2, $3, $4 }' "$TALLIES"
    # Who sees the end of a long output only sees this.
    if [[ -s $TEST_FAILURES ]]; then
        printf '\nwhat failed first:\n'
        head -n 60 "$TEST_FAILURES"
    fi
    awk '{ passed += $2; failed += $3 }
         END { printf "\n%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$TALLIES"
}

suite set-up e2e/setup.sh all
suite build make --no-print-directory -j"$(nproc)" all
beside what_computes
suite unit make --no-print-directory check
suite schedules make --no-print-directory schedules
suite aggregators make --no-print-directory aggregators
suite s3 make --no-print-directory s3
suite oracle python3 -B e2e/oracle/test_oracle.py
suite audit python3 -B e2e/tools/test_audit.py
suite links python3 -B e2e/proxy/test_links.py
suite image python3 -B config/image/test_image.py
suite bench python3 -B bench/tests/test_report.py
suite chaos python3 -B e2e/chaos/test_chaos.py
suite demo e2e/demo.sh
suite demo-cluster env CLUSTER=1 e2e/demo.sh
suite demo-fl e2e/demo-fl.sh
suite differential env COMPARE_SECONDS=60 e2e/standalone/differential.sh 1000 21
# A sample: kinds, results, places, liveness, counts of writes, faults, metrics, jobs, rounds. All of them take 12 min.
suite standalone env E2E_CLUSTER=standalone e2e/run.sh 00 01 02 05 07 12 17 22 31 33 50
suite e2e env E2E_CLUSTER=control-plane e2e/run.sh
beside_ends
# Who builds everything anew within an hour may have no time left for what needs a kubelet.
if [[ -z ${CI:-} ]] || ((SECONDS < NODES_BEFORE)); then
    suite nodes e2e/nodes.sh
else
    printf 'nodes:n/a 0 0\n' >>"$TALLIES"
    printf '\n#### nodes: n/a, as %s s have gone by; make e2e E2E_CLUSTER=local\n' "$SECONDS"
fi
table
