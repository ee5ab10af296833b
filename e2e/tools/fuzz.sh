#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS: fuzz.sh build/fuzz [target...]
#
# New inputs are kept below build/fuzz/corpus; an input that breaks a target below
# build/fuzz/broken: add it to corpus/<target> beside the target, with the fix.
set -euo pipefail

readonly SECONDS_EACH=${FUZZ_SECONDS:-60}
readonly MAX_INPUT=65536
readonly INPUT_TIME_LIMIT_S=10
readonly MEMORY_MIB=2048

out=${1:?usage: fuzz.sh build/fuzz [target...]}
shift
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    for source in */tests/fuzz/fuzz_*.c; do
        name=$(basename "$source" .c)
        targets+=("${name#fuzz_}")
    done
fi

fuzz_one() {
    local target=$1 found=$out/corpus/$1 log=$out/$1.log folder
    folder=$(dirname ./*/tests/fuzz/"fuzz_$target.c")
    mkdir -p "$found" "$out/broken"
    "$out/$folder/fuzz_$target" -max_total_time="$SECONDS_EACH" -max_len="$MAX_INPUT" \
        -timeout="$INPUT_TIME_LIMIT_S" -rss_limit_mb="$MEMORY_MIB" -print_final_stats=1 \
        -artifact_prefix="$out/broken/$target-" "$found" "$folder/corpus/$target" >"$log" 2>&1
}

passed=0
failed=0
for target in "${targets[@]}"; do
    if fuzz_one "$target"; then
        passed=$((passed + 1))
        printf '  %-16s %s runs\n' "$target" "$(awk '/number_of_executed_units/ { print $2 }' "$out/$target.log")"
    else
        failed=$((failed + 1))
        printf '  %-16s broken; the end of %s:\n' "$target" "$out/$target.log"
        tail -n 30 "$out/$target.log"
    fi
done
if [[ -n ${TEST_TALLY:-} ]]; then
    echo "fuzz $passed $failed" >>"$TEST_TALLY"
fi
echo "fuzz: $passed passed, $failed failed"
((failed == 0))
