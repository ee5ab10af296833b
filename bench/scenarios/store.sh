#!/usr/bin/env bash
# The embedded store of the standalone program alone: what a write costs, what objects take, what watches see.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# measure WHAT NUMBER: the lines of bench/kv on a new file
measure() {
    local file
    file=$(mktemp -d "$PART/store.XXXXXX")/store.db
    "$ROOT/build/plain/bench/kv" "$1" "$file" "$2"
    rm -rf "${file%/*}"
}

# kept NAME LINES: the value of a line
kept() { sed -n "s/^$1 //p" <<<"$2"; }

main() {
    local number lines
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    for number in 1 16; do
        figure "writes a second, $number writers (synced)" "$(kept writes-per-second "$(measure writes "$number")")"
    done
    for number in 0 1000 50000; do
        lines=$(measure objects "$number")
        figure "memory with $number objects (MiB)" "$(ratio "$(kept resident-kib "$lines")" 1024 1)" "<= 16"
        figure "start with $number objects, file checked (ms)" "$(kept start-ms "$lines")" "<= 1000"
        figure "start with $number objects, processor time (ms)" "$(kept start-cpu-ms "$lines")" "<= 1000"
        figure "list of $number objects in pages of 500 (ms)" "$(kept list-ms "$lines")"
    done
    lines=$(measure fanout 100)
    figure "events a second to 100 watches" "$(kept events-per-second "$lines")"
    figure "last watch behind the last write (ms)" "$(kept behind-ms "$lines")"
}

main "$@"
