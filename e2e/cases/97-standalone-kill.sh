#!/usr/bin/env bash
# propeller-standalone under 16 writers, killed with SIGKILL at random: nothing that was acknowledged is lost,
# nothing is half written, no resourceVersion goes back. `make kills` does it 200 times.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

mkdir "$PART/kill"
said=$(python3 -B "$HERE/standalone/kill.py" "$ROOT/build/bin/propeller-standalone" "$PART/kill" --kills 15 --seed "$RANDOM" 2>&1) || die "$said"
say "$said"
