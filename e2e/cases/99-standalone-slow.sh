#!/usr/bin/env bash
# Watchers of propeller-standalone that do not read while more is written than the history keeps: the others do not
# notice, the memory stays within its bounds, who reads at last has no gap before its 410, and goes on with a list.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_no_node "has a server of its own"

mkdir "$PART/slow"
said=$(python3 -B "$HERE/standalone/slow.py" "$STANDALONE_BIN" "$PART/slow" 2>&1) || fail "$said"
say "measured: $said"
