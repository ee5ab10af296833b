#!/usr/bin/env bash
# Instructions of the hot paths, counted by callgrind: the same on every run and on a busy machine.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TIMES=200

instructions() { # instructions PATH TIMES
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$ROOT/build/plain/bench/paths" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : //p'
}

main() {
    local path
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    command -v valgrind >/dev/null || {
        say "valgrind is not here: instructions are not counted"
        return 0
    }
    for path in parse project plan review; do
        figure "$path (thousand instructions)" \
            "$(ratio $(($(instructions "$path" $((2 * TIMES))) - $(instructions "$path" "$TIMES"))) $((TIMES * 1000)))"
    done
}

main "$@"
