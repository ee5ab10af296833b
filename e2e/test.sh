#!/usr/bin/env bash
# test.sh quick [STAGE...]    what a change must pass (make test)
# test.sh full [STAGE...]     everything that proves something (make test-full)
# test.sh flakes N [STAGE...] unit and e2e of the quick suite N times on one core with a busy neighbour (make flakes),
#                             without programs of one thread, which nothing else on the machine can disturb
#
# With stages it runs these alone. Every suite goes on after a failure; the table at its end and its exit status tell.
# docs/contributing/testing.md says what each stage proves. build/test/full.json holds what the full suite proved and for which
# state of the sources; a stage that passed for the present state is not run again unless it is named.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"
SUITE=${1:-}
mkdir -p build/test
TALLIES=build/test/tallies
PROVED=build/test/full.proved                 # of the full suite: a line a stage, for later runs
export TEST_FAILURES=$ROOT/build/test/failures # a few lines of each failure, by those that count
: >"$TALLIES"
: >"$TEST_FAILURES"

# End-to-end cases that prove on real parts what nothing cheaper can (docs/contributing/testing.md), the longest first.
QUICK_CASES=(23 24 64 63 97 60 40 110 49 07 35 02 33 50 43 73 31 01 28 03 12 17 15 29 16 08)
QUICK_CRASH_TASKS=60
QUICK_CLUSTER_API=v1.12.4
NODE_CASES=(59 80 81 82 83 84 85 86 87 90 91 94) # need pods that run; 88 and 114 need several nodes

# The commit, and what differs from it.
state() {
    local change
    change=$({ git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0r sha256sum; } | sha256sum | cut -c1-12)
    git rev-parse HEAD 2>/dev/null || echo none
    [[ $change == "$(sha256sum </dev/null | cut -c1-12)" ]] || echo "$change"
}

is_wanted() { ((${#STAGES[@]} == 0)) || [[ " ${STAGES[*]} " == *" $1 "* ]]; }

# stage NAME COMMAND...: commands that count write to $TEST_TALLY; another one is one check
stage() {
    local name=$1 started=$SECONDS status=0 tally=$ROOT/build/test/$1.tally
    shift
    KNOWN+=("$name")
    is_wanted "$name" || return 0
    if [[ $SUITE == full ]] && ((${#STAGES[@]} == 0)) && proved_already "$name"; then
        printf '\n#### %s: passed for this state of the sources before (build/test/full.json)\n' "$name"
        return
    fi
    printf '\n#### %s: %s\n' "$name" "$*"
    rm -f "$tally"
    TEST_TALLY=$tally "$@" || status=$?
    if [[ ! -s $tally ]]; then
        printf '%s %s %s\n' "$name" $((status == 0 ? 1 : 0)) $((status == 0 ? 0 : 1)) >"$tally"
    elif ((status != 0)) && ! awk '{ failed += $3 } END { exit !failed }' "$tally"; then
        printf '%s 0 1\n' "$name" >>"$tally"
    fi
    ((status == 0)) || printf '%s: ended with status %s\n    again: make %s STAGE=%s\n' "$name" "$status" \
        "$([[ $SUITE == full ]] && echo test-full || echo test)" "$name" >>"$TEST_FAILURES"
    awk -v seconds=$((SECONDS - started)) '{ print $0, NR == 1 ? seconds : "" }' "$tally" >>"$TALLIES"
    [[ $SUITE != full ]] || remember "$name" $((SECONDS - started)) "$tally"
}

#### What the full suite remembers: "<stage> <state> <passed> <failed> <seconds> <when>".

proved_already() {
    [[ -e $PROVED ]] || return 1
    awk -v stage="$1" -v state="$STATE" '$1 == stage && $2 == state && $3 > 0 && $4 == 0 { print $1, $3, $4, $5; found = 1 }
        END { exit !found }' "$PROVED" >>"$TALLIES"
}

remember() { # remember STAGE SECONDS TALLY
    touch "$PROVED"
    {
        awk -v stage="$1" '$1 != stage' "$PROVED"
        awk -v stage="$1" -v state="$STATE" -v seconds="$2" -v when="$(date -u +%FT%TZ)" '
            { passed += $2; failed += $3 } END { print stage, state, passed + 0, failed + 0, seconds, when }' "$3"
    } >"$PROVED.new"
    mv "$PROVED.new" "$PROVED"
    awk -v state="$STATE" 'BEGIN { printf "{\"state\": \"%s\", \"stages\": [", state }
        { printf "%s\n  {\"stage\": \"%s\", \"commit\": \"%s\", \"passed\": %d, \"failed\": %d, \"seconds\": %d, \"finished\": \"%s\"}",
              (NR > 1 ? "," : ""), $1, $2, $3, $4, $5, $6 }
        END { print "\n]}" }' "$PROVED" >build/test/full.json
}

#### What works beside the others, by what they leave of the processors, as a process group.

BESIDE=0
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
    ((BESIDE != 0)) || return 0
    wait "$BESIDE" || true
    BESIDE=0
    cat build/test/beside.output
}
end_beside() { ((BESIDE == 0)) || kill -TERM -- "-$BESIDE" 2>/dev/null || true; }

table() {
    awk 'BEGIN { printf "\n%-20s %7s %7s %8s\n", "stage", "passed", "failed", "seconds" }
         { printf "%-20s %7d %7d %8s\n", $1, $2, $3, $4 }' "$TALLIES"
    printf '%-20s %24d\n' "all of it" "$SECONDS"
    # Whoever sees only the end of a long output sees this.
    if [[ -s $TEST_FAILURES ]]; then
        printf '\nwhat failed first:\n'
        head -n 60 "$TEST_FAILURES"
    fi
    awk '{ passed += $2; failed += $3 }
         END { printf "\n%d passed, %d failed\n", passed, failed; exit failed > 0 }' "$TALLIES"
}

# Tests of what the tests themselves are made of: a line and a check each.
tools() {
    local file passed=0 failed=0
    for file in e2e/oracle/test_oracle.py e2e/tools/test_audit.py e2e/tools/test_prose.py e2e/proxy/test_links.py \
        config/image/test_image.py config/systemd/test_systemd.py config/packages/test_packages.py bench/tests/test_report.py e2e/chaos/test_chaos.py; do
        if python3 -B "$file"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf '%s:\n    again: python3 -B %s\n' "$file" "$file" >>"$TEST_FAILURES"
        fi
    done
    printf 'tools %s %s\n' "$passed" "$failed" >"$TEST_TALLY"
    ((failed == 0))
}

build() {
    make --no-print-directory -j"$(nproc)" all benchmarks &&
    make --no-print-directory unit-quick-build
}

quick_cases() { CRASH_TASKS=$QUICK_CRASH_TASKS CLUSTER_API=$QUICK_CLUSTER_API E2E_CLUSTER=control-plane e2e/run.sh "${QUICK_CASES[@]}"; }

# Only computes, while the other stages wait for most of their time. The parts of Kubernetes are built where they
# are missing.
quick_beside() {
    ! is_wanted e2e || stage control-plane e2e/setup.sh control-plane
    stage lint make --no-print-directory lint
    stage tools tools
}

quick() {
    stage set-up e2e/setup.sh build lint device
    stage build build
    beside quick_beside
    KNOWN+=(control-plane lint tools)
    stage unit make --no-print-directory unit-quick
    stage graphs make --no-print-directory graphs GRAPHS=300
    stage simulate make --no-print-directory simulate
    stage demo e2e/demo.sh
    stage e2e quick_cases
    beside_ends
}

full_beside() {
    stage lint make --no-print-directory lint ALL=1
    e2e/nodes.sh --obstacle >/dev/null || e2e/setup.sh node # whether that worked the stage will say
}

all_on_standalone() { E2E_CLUSTER=standalone e2e/run.sh; }
on_kind() {
    if [[ $EUID != 0 ]]; then
        printf 'kind:n/a 0 0\n' >>"$TEST_TALLY"
        echo "kind: n/a on this machine: not root"
        return
    fi
    E2E_CLUSTER=kind e2e/run.sh "${NODE_CASES[@]}" 88 114
}

full() {
    export TEST_POWER=full
    stage set-up e2e/setup.sh all
    stage build make --no-print-directory -j"$(nproc)" all
    beside full_beside
    KNOWN+=(lint)
    for flavour in plain asan tsan; do
        stage unit-$flavour make --no-print-directory -j"$(nproc)" FLAVOUR=$flavour unit
    done
    stage simulate make --no-print-directory simulate SEEDS=100000
    stage tools tools
    stage schedules make --no-print-directory schedules SCHEDULES=20000
    stage graphs make --no-print-directory graphs GRAPHS=10000
    stage aggregators make --no-print-directory aggregators AGGREGATIONS=2000
    stage docs make --no-print-directory docs man
    stage doc-test make --no-print-directory doc-test
    stage metrics make --no-print-directory metrics-test
    stage page make --no-print-directory page-test
    stage chart make --no-print-directory chart-test
    stage health make --no-print-directory health
    stage s3 make --no-print-directory s3
    stage demo e2e/demo.sh
    stage demo-cluster env CLUSTER=1 e2e/demo.sh
    stage demo-fl e2e/demo-fl.sh
    stage differential env COMPARE_SECONDS=300 e2e/standalone/differential.sh 5000 21
    stage standalone all_on_standalone
    stage e2e env E2E_CLUSTER=control-plane e2e/run.sh
    stage chaos make --no-print-directory chaos DURATION=300 SEED=5
    stage kills make --no-print-directory kills
    beside_ends
    stage fuzz make --no-print-directory fuzz FUZZ_SECONDS=30
    stage nodes e2e/nodes.sh "${NODE_CASES[@]}"
    stage kind on_kind
}

# Prints what failed in which round; the failures say how to repeat them.
flakes() {
    local round neighbour bad=0 cpu
    [[ ${1:-} =~ ^[1-9][0-9]*$ ]] || { echo "flakes: N is '${1:-}', it must be a number" >&2; exit 2; }
    build
    cpu=$(taskset -cp $$ | sed 's/.*[:,-] *//')
    taskset -cp "$cpu" $$ >/dev/null
    bash -c 'while :; do :; done' &
    neighbour=$!
    # shellcheck disable=SC2064 # this one
    trap "kill $neighbour 2>/dev/null" EXIT
    for ((round = 1; round <= $1; round++)); do
        : >"$TEST_FAILURES"
        ! is_wanted unit || make --no-print-directory unit-threaded >build/test/flakes.output 2>&1 || true
        ! is_wanted e2e || E2E_LANES=1 quick_cases >>build/test/flakes.output 2>&1 || true
        if [[ -s $TEST_FAILURES ]]; then
            bad=$((bad + 1))
            printf 'round %s of %s, on one core with a busy neighbour (taskset -c %s):\n' "$round" "$1" "$cpu"
            cat "$TEST_FAILURES"
        fi
        printf 'flakes: %s of %s rounds without a failure, %s s\n' $((round - bad)) "$1" "$SECONDS"
    done
    ((bad == 0))
}

trap end_beside EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
KNOWN=()
STAGES=("${@:2}")
STATE=$(state | paste -sd+)
case $SUITE in
quick | full)
    "$SUITE"
    for name in "${STAGES[@]}"; do
        [[ " ${KNOWN[*]} " == *" $name "* ]] || { echo "test: no stage '$name'; there are: ${KNOWN[*]}" >&2; exit 2; }
    done
    table
    ;;
flakes)
    STAGES=("${@:3}")
    flakes "${2:-}"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
