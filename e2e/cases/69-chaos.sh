#!/usr/bin/env bash
# A minute of chaos: faults of every sort by a seed under a stream of Tasks, three controllers, 50
# devices; nothing is lost, doubled or forged, and only the leader speaks. `make chaos` has longer ones.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
# shellcheck source=e2e/chaos/chaos.sh
source "$HERE/chaos/chaos.sh"
case_begin

case_needs_own_cluster
case_needs_apart "has replicas"
case_needs_process "the judge kills processes"
options=()
[[ -z ${CHAOS_FAULTS:-} ]] || options+=(--faults "$CHAOS_FAULTS")
! has_standalone || options+=(--without missing-rights) # it has no RBAC
[[ -z ${CHAOS_TASKS:-} ]] || options+=(--tasks "$CHAOS_TASKS")
chaos_run "${CHAOS_SEED:-7}" "${CHAOS_DURATION:-60}" "${options[@]}"
