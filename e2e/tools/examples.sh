#!/usr/bin/env bash
# Builds each of examples/, a line for each, and runs the commands of the README of those that were built.
#
# `make examples` brings what it can. An example whose compiler is not here is n/a with the reason. A module whose README does not name an address of it
# must fit into spec.file.
set -euo pipefail

readonly MAX_FILE_BYTES=537600 # of spec.file, as kubectl propeller run has it

passed=0 failed=0
pages=()

row() { printf '%-22s %-7s %s\n' "$@"; }

build() { # build NAME
    local name=$1 folder=examples/$1 missing output size=""
    missing=$(make -s -C "$folder" needs | paste -sd' ')
    if [[ -n $missing ]]; then
        row "$name" n/a "not here: $missing"
        return
    fi
    pages+=("$folder/README.md")
    if ! output=$(make --no-print-directory -C "$folder" -B wasm 2>&1); then
        row "$name" FAILED "${output##*$'\n'}"
        failed=$((failed + 1))
        return
    fi
    [[ ! -e build/examples/$name.wasm ]] || size=$(stat -c %s "build/examples/$name.wasm")
    if ((${size:-0} > MAX_FILE_BYTES)) && ! grep -q imageUrl "$folder/README.md"; then
        row "$name" FAILED "$size bytes, at most $MAX_FILE_BYTES in spec.file"
        failed=$((failed + 1))
        return
    fi
    row "$name" ok "${size:+$size bytes}"
    passed=$((passed + 1))
}

for makefile in examples/*/Makefile; do
    build "$(basename "$(dirname "$makefile")")"
done
if make --no-print-directory doc-test PAGES="${pages[*]}"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi
[[ -z ${TEST_TALLY:-} ]] || echo "examples $passed $failed" >>"$TEST_TALLY"
printf 'examples: %s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
