#!/usr/bin/env bash
# Runs unit tests and replays fuzz corpora: unit.sh build/<flavour>/<folder>/tests/<program>...
#
# Prints one line per program, and the whole output of a program that failed. At the end it repeats the first
# lines of each failure with the command that runs this program again, and prints the sum of each flavour.
# With TEST_TALLY set, "unit-<flavour> <passed> <failed>" is appended to the file it names; with TEST_FAILURES set,
# the failures are appended to that file.
set -euo pipefail

readonly TIME_LIMIT_S=1200
# A loop that allocates would take the machine with it. Sanitizers reserve more addresses than they use.
readonly MEMORY_LIMIT_KIB=$((8 << 20))
readonly PARALLEL=$((4 * $(nproc))) # most tests wait for most of their time

# A report of a sanitizer ends the program.
export ASAN_OPTIONS=halt_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Some tests talk to their own servers with a client of their own.
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
# Files of tests lie in memory where that has room: a disk makes them wait, and none of them looks behind fsync.
if [[ -z ${TMPDIR:-} && -w /dev/shm && $(df --output=avail -k /dev/shm | tail -n 1) -gt 4000000 ]]; then
    export TMPDIR=/dev/shm
fi
# Against hangs only: nothing is timed, and the machine may be busy.
export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-60}

# "passed failed" of a test program by check's summary. A program that ends otherwise has one failure.
count_checks() {
    local output=$1 status=$2 summary checks bad
    summary=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$output" | tail -n 1 || true)
    if [[ $summary =~ Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+) ]]; then
        checks=${BASH_REMATCH[1]}
        bad=$((BASH_REMATCH[2] + BASH_REMATCH[3]))
        if [[ $status -ne 0 && $bad -eq 0 ]]; then
            echo "$checks 1" # all checks passed, and the program still failed: a leak
        else
            echo "$((checks - bad)) $bad"
        fi
    else
        echo "0 1"
    fi
}

# "passed failed" of a fuzz target: it names each input that it survived.
count_inputs() {
    local output=$1 status=$2 survived
    survived=$(grep -c '^survived ' "$output" || true)
    # a target without a corpus proves nothing
    echo "$survived $((status == 0 && survived > 0 ? 0 : 1))"
}

# build/<flavour>/<folder>/fuzz_<target>: <folder>/corpus/<target>
corpus_of() {
    local source=${1#build/*/}
    echo "${source%/*}/corpus/${source##*/fuzz_}"
}

# build/asan/common/tests/test_json: asan, and common/json, as make unit names them
flavour_of() { cut -d/ -f2 <<<"$1"; }
name_of() { sed -E 's,^build/[^/]*/,,; s,/tests/(fuzz/)?(test_)?,/,' <<<"$1"; }

# How to run it again. check can run one of its groups of tests alone, which is the fourth field of a failure.
again() {
    local program=$1 output=$2 group flavour
    flavour=$(flavour_of "$program")
    [[ $flavour != plain ]] || flavour=
    group=$(grep -aE '^[^ ]+:[0-9]+:[FE]:' "$output" | head -n 1 | cut -d: -f4)
    printf '%smake unit%s TEST=%s\n' "${group:+CK_RUN_CASE=${group@Q} }" "${flavour:+ FLAVOUR=$flavour}" \
        "$(name_of "$program")"
}

# The first failing lines of a program; the end of its output if none is recognised.
failure_of() {
    local program=$1 output=$2 status=$3 lines
    lines=$(grep -aE ':[FE]:|^SUMMARY|runtime error|Assertion' "$output" | head -n 8 || true)
    [[ -n $lines ]] || lines=$(tail -n 4 "$output")
    printf 'unit-%s %s, exit status %s:\n%s\n    again: %s\n' "$(flavour_of "$program")" "$(name_of "$program")" \
        "$status" "$(cut -c1-300 <<<"$lines")" "$(again "$program" "$output")"
}

run_one() {
    local program=$1 results=$2 name output status=0 passed failed started took
    local -a inputs=()
    name=$(basename "$program")
    # By its path: two folders may have a test of the same name.
    output=$results/${program//\//-}.output

    if [[ $name == fuzz_* ]]; then
        shopt -s nullglob
        inputs=("$(corpus_of "$program")"/*)
    fi
    started=$(date +%s%3N)
    (
        [[ $(flavour_of "$program") != plain ]] || ulimit -v "$MEMORY_LIMIT_KIB"
        exec timeout --kill-after=5 "$TIME_LIMIT_S" "$program" "${inputs[@]}" >"$output" 2>&1 </dev/null
    ) || status=$?

    if [[ $name == fuzz_* ]]; then
        read -r passed failed < <(count_inputs "$output" "$status")
    else
        read -r passed failed < <(count_checks "$output" "$status")
    fi
    took=$(($(date +%s%3N) - started))
    echo "$passed $failed" >"${output%.output}.result"
    echo "$program $took" >"${output%.output}.took"
    if [[ $failed -eq 0 ]]; then
        printf '  %-5s %-42s %5d checks, 0 failures %6d ms\n' "$(flavour_of "$program")" "$(name_of "$program")" \
            "$passed" "$took"
    else
        # one write, so that the outputs of two programs do not mix
        printf '  %-5s %-42s %5d checks, %d failures (exit status %d)\n%s\n' "$(flavour_of "$program")" \
            "$(name_of "$program")" $((passed + failed)) "$failed" "$status" "$(sed 's/^/    /' "$output")"
        failure_of "$program" "$output" "$status" >"${output%.output}.failure"
    fi
}

if [[ ${1:-} == --one ]]; then
    run_one "$3" "$2"
    exit 0
fi

(($#)) || {
    echo "usage: unit.sh build/<flavour>/<folder>/tests/<program>..." >&2
    exit 2
}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# The slowest first, as the last runs on this machine measured them, so that none of them runs alone at the end.
TIMES=${XDG_CACHE_HOME:-$HOME/.cache}/propeller/unit.times
slowest_first() {
    awk 'FILENAME != "-" { took[$1] = $2; next } { print ($1 in took ? took[$1] : 0), $1 }' "$TIMES" - |
        sort -s -k 1,1nr | cut -d' ' -f2
}
mkdir -p "${TIMES%/*}"
[[ -e $TIMES ]] || : >"$TIMES"
printf '%s\n' "$@" | slowest_first | xargs -r -n 1 -P "$PARALLEL" "$0" --one "$results"
cat "$TIMES" "$results"/*.took | awk '{ took[$1] = $2 } END { for (p in took) print p, took[p] }' >"$TIMES.$$"
mv "$TIMES.$$" "$TIMES"

declare -A passed=() failed=()
bad=0
for program in "$@"; do
    flavour=$(flavour_of "$program")
    if ! read -r p f 2>/dev/null <"$results/${program//\//-}.result"; then
        p=0 f=1
        printf 'unit-%s %s did not end\n' "$flavour" "$(name_of "$program")" >"$results/${program//\//-}.failure"
    fi
    passed[$flavour]=$((${passed[$flavour]:-0} + p))
    failed[$flavour]=$((${failed[$flavour]:-0} + f))
    bad=$((bad + f))
    [[ ! -e $results/${program//\//-}.failure ]] || cat "$results/${program//\//-}.failure" >>"$results/failures"
done

if [[ -s $results/failures ]]; then
    [[ -z ${TEST_FAILURES:-} ]] || cat "$results/failures" >>"$TEST_FAILURES"
    echo
    cat "$results/failures"
fi
for flavour in "${!passed[@]}"; do
    [[ -z ${TEST_TALLY:-} ]] || echo "unit-$flavour ${passed[$flavour]} ${failed[$flavour]}" >>"$TEST_TALLY"
    echo "unit ($flavour): ${passed[$flavour]} passed, ${failed[$flavour]} failed"
done
((bad == 0))
