# shellcheck shell=bash
# For the tests of packages, which source it and set WORK: a line for each check that passes, the end at the first one
# that does not.
#
# WORK/log has what the commands print. `about` prints what is known of a failure; a test may have one of its own.

PASSED=0
TEST=$(basename "$0" .sh)

die() {
    printf '%s: %s\n' "$TEST" "$*" >&2
    exit 1
}
about() { tail -n 5 "$WORK/log"; }
# passes WHAT COMMAND...
passes() {
    "${@:2}" >>"$WORK/log" 2>&1 || die "$1: no; $(about)"
    PASSED=$((PASSED + 1))
    printf '  ok  %s\n' "$1"
}
not() { ! "$@"; }
wait_for() { # wait_for SECONDS COMMAND...
    local end=$((SECONDS + $1))
    until "${@:2}" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}
# change FILE: another byte in it
change() {
    local byte
    byte=$(od -An -tu1 -j 200 -N 1 "$1")
    printf '%b' "\\x$(printf '%02x' $(((byte + 1) % 256)))" | dd of="$1" bs=1 seek=200 conv=notrunc status=none
}
all_passed() { printf '%s: %s passed\n' "$TEST" $PASSED; }
