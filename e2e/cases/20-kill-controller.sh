#!/usr/bin/env bash
# The controller killed three times under 200 Tasks: each ends with its result, none runs twice.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COUNT=${CRASH_TASKS:-200}
crash_world 5 4
crash_load "$COUNT"
for part in 1 2 3; do
    after_ended $((COUNT * part / 5)) kill_controller
done
# The window is one round trip per repeat: crossings were never seen, and two are chance.
crash_verdict --max-crossings 2
