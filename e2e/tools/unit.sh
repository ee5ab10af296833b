#!/usr/bin/env bash
# Runs the unit tests and replays the fuzz corpora of one flavour: unit.sh build/<flavour> PROGRAM...
#
# A line a program, its whole output only when it failed; at the end the first lines of each failure
# again, for who sees no more than the end, and the sum. With TEST_TALLY set, "<suite> <passed> <failed>"
# is appended to the file it names, and with TEST_FAILURES the lines of the failures to that one.
set -euo pipefail

readonly TIME_LIMIT_S=1200
PARALLEL=$(nproc)
readonly PARALLEL=$((PARALLEL < 3 ? PARALLEL + 1 : 4)) # many wait; at most as many as have ports of their own (process_free_port)

# A report of a sanitizer ends the program.
export ASAN_OPTIONS=halt_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Some tests talk to their own servers with a client of their own.
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
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

# The name and the first failing lines of a program; of its output the end where none is known as such.
failure_of() {
    local program=$1 output=$2 status=$3 lines
    lines=$(grep -aE ':[FE]:|^SUMMARY|runtime error|Assertion' "$output" | head -n 8 || true)
    [[ -n $lines ]] || lines=$(tail -n 4 "$output")
    printf 'unit-%s %s, exit status %s:\n%s\n' "$(cut -d/ -f2 <<<"$program")" "$(basename "$program")" "$status" \
        "$(cut -c1-300 <<<"$lines")"
}

run_one() {
    local program=$1 results=$2 name output status=0 passed failed started=$SECONDS
    local -a inputs=()
    name=$(basename "$program")
    # By its path: two folders may have a test of the same name.
    output=$results/${program//\//-}.output

    if [[ $name == fuzz_* ]]; then
        shopt -s nullglob
        inputs=("$(corpus_of "$program")"/*)
    fi
    timeout --kill-after=5 "$TIME_LIMIT_S" "$program" "${inputs[@]}" >"$output" 2>&1 </dev/null || status=$?

    if [[ $name == fuzz_* ]]; then
        read -r passed failed < <(count_inputs "$output" "$status")
    else
        read -r passed failed < <(count_checks "$output" "$status")
    fi
    echo "$passed $failed" >"${output%.output}.result"
    if [[ $failed -eq 0 ]]; then
        printf '  %-32s %5d checks, 0 failures %5d s\n' "$name" "$passed" $((SECONDS - started))
    else
        # one write, so that the outputs of two programs do not mix
        printf '  %-32s %5d checks, %d failures (exit status %d)\n%s\n' "$name" \
            $((passed + failed)) "$failed" "$status" "$(sed 's/^/    /' "$output")"
        failure_of "$program" "$output" "$status" >"${output%.output}.failure"
    fi
}

if [[ ${1:-} == --one ]]; then
    run_one "$3" "$2"
    exit 0
fi

out=${1:?usage: unit.sh build/<flavour> PROGRAM...}
flavour=$(basename "$out")
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

programs=("${@:2}")

printf '%s\0' "${programs[@]}" | xargs -0 -n 1 -P "$PARALLEL" --process-slot-var=TEST_SLOT "$0" --one "$results"

passed=0
failed=0
for program in "${programs[@]}"; do
    if read -r p f 2>/dev/null <"$results/${program//\//-}.result"; then
        passed=$((passed + p))
        failed=$((failed + f))
    else
        failed=$((failed + 1))
        printf 'unit-%s %s did not end\n' "$flavour" "$(basename "$program")" >"$results/${program//\//-}.failure"
    fi
    [[ ! -e $results/${program//\//-}.failure ]] || cat "$results/${program//\//-}.failure" >>"$results/failures"
done

if [[ -n ${TEST_TALLY:-} ]]; then
    echo "unit-$flavour $passed $failed" >>"$TEST_TALLY"
fi
if [[ -s $results/failures ]]; then
    [[ -z ${TEST_FAILURES:-} ]] || cat "$results/failures" >>"$TEST_FAILURES"
    echo
    cat "$results/failures"
fi
echo "unit ($flavour): $passed passed, $failed failed"
[[ $failed -eq 0 ]]
