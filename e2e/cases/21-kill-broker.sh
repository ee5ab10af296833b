#!/usr/bin/env bash
# The broker killed twice under 200 Tasks: what died inside it is asked for again, nothing else is.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=${CRASH_TASKS:-200}
crash_world 5 4
crash_load "$COUNT"
for part in 1 3; do
    after_ended $((COUNT * part / 5)) kill_broker
done
# The window is one round trip per repeat: crossings were never seen, and two are chance.
crash_verdict --max-crossings 2
