#!/usr/bin/env bash
# A trap and a missing function fail the Task with the device's own words.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d
add_proplet worker d
device_start device --identity d
wait_proplet worker Running

# fails NAME WASM INPUTS FUNCTION PATTERN
fails() {
    local sent
    add_task "$1" "$2" "$3" "$(jq -nc --arg name "$4" '{spec: {functionName: $name}}')"
    wait_task "$1" failed
    expect_match "error of $1" "$5" "$(task "$1" .status.error)"
    sent=$(journal device ".event == \"result\" and .task == \"$(task "$1" .metadata.uid)\"" | jq -r .error)
    expect_eq "error of $1 as the device sent it" "$sent" "$(task "$1" .status.error)"
    condition_matches tasks "$1" Failed '^True ' || fail "condition Failed of $1"
    expect_match "finishedAt of $1" '^20.*Z$' "$(task "$1" .status.finishedAt)"
}

fails trap "$(wasm trap)" '[]' main "^Failed to call function 'main': error while executing at wasm backtrace"
fails missing "$(wasm other)" '[]' nosuch "^Function 'nosuch' not found, and fallbacks"
fails too-few "$ADDITION" '[1]' main 'expected 2 arguments but got 1'
fails not-a-number "$ADDITION" '["ten", 32]' main "Failed to parse 'ten' as i32"
fails broken AGFzbQEAAAAB '[]' main 'failed to parse WebAssembly module'

# One failure is not the next one's: the device still works.
add_task after "$ADDITION" '[10, 32]'
wait_task after completed
expect_eq "result after failures" 42 "$(task after .status.results)"
