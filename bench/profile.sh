#!/usr/bin/env bash
# profile.sh [PATH [TIMES]]: where a hot path (parse, project, plan, review; all without arguments) spends its
# instructions, as callgrind counts them.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
OUT=$ROOT/build/profile
LINES=25

command -v valgrind >/dev/null || {
    printf 'profile: valgrind is missing; its Debian package is valgrind\n' >&2
    exit 1
}
make -C "$ROOT" --no-print-directory benchmarks
mkdir -p "$OUT"
# So often that the program's own start, most of it the linker's, is far down.
for path in ${1:-parse project plan review}; do
    valgrind --quiet --tool=callgrind --callgrind-out-file="$OUT/$path.callgrind" \
        "$ROOT/build/plain/bench/paths" "$path" "${2:-2000}"
    printf '==> %s (%s)\n' "$path" "build/profile/$path.callgrind"
    callgrind_annotate --auto=no "$OUT/$path.callgrind" | grep -E '^ *[0-9,]+ \(' | head -n "$LINES" |
        sed "s#$ROOT/##g"
done
