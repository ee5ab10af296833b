# shellcheck shell=bash
# Assertions: each prints both sides and ends the case.

fail() {
    local frame=0
    printf 'FAILED: %s\n' "$*" >&2
    while caller $frame >&2; do frame=$((frame + 1)); done
    exit 1
}

expect_eq() {
    [[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
}

expect_le() {
    (($2 <= $3)) || fail "$1: $2 is more than $3"
}

expect_match() {
    [[ $3 =~ $2 ]] || fail "$1: '$3' does not match '$2'"
}

# expect_failure WHAT PATTERN COMMAND...: it fails, and its output matches
expect_failure() {
    local what=$1 pattern=$2 output
    shift 2
    if output=$("$@" 2>&1); then
        fail "$what: succeeded, expected a failure like '$pattern'; output: $output"
    fi
    expect_match "$what" "$pattern" "$output"
}
