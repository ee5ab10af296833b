#!/usr/bin/env bash
# make chaos: a run of chaos for DURATION seconds (60), by SEED (chosen and printed if not given).
# FAULTS and TASKS: other numbers of them. Logs stay in build/e2e/chaos when something is violated.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

DURATION=${DURATION:-60}
SEED=${SEED:-$RANDOM}
for name in DURATION SEED FAULTS TASKS; do
    [[ ${!name:-1} =~ ^[0-9]{1,9}$ ]] || die "$name is '${!name}', it must be a whole number"
done

"$HERE/setup.sh" build run
[[ $CONTROLLER_BIN != "$ROOT"/* ]] || make -C "$ROOT" --no-print-directory all
work_begin
wasm_build
cluster_start >"$WORK/cluster.output" 2>&1 || {
    cat "$WORK/cluster.output" >&2
    die "the control plane did not start; logs: $ROOT/build/e2e/cluster"
}
status=0
CHAOS_SEED=$SEED CHAOS_DURATION=$DURATION CHAOS_FAULTS=${FAULTS:-} CHAOS_TASKS=${TASKS:-} \
    bash "$HERE/cases/69-chaos.sh" </dev/null || status=$?
if ((status)); then
    say "chaos: FAILED with seed $SEED; logs: $ROOT/build/e2e/69-chaos"
    say "chaos: again with: make chaos SEED=$SEED DURATION=$DURATION${FAULTS:+ FAULTS=$FAULTS}${TASKS:+ TASKS=$TASKS}"
fi
exit "$status"
