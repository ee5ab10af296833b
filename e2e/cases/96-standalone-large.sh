#!/usr/bin/env bash
# propeller-standalone without its controller: what 400 clients needed goes back to the system when they have gone.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_no_node "has a server of its own"

mkdir "$PART/large"
said=$(python3 -B "$HERE/standalone/large.py" "$STANDALONE_BIN" "$PART/large" 2>&1) || fail "$said"
say "measured: $said"
