#!/usr/bin/env bash
# A broadcast and a round of federated learning while Proplets close and open: a target that closes is stopped and
# fails; a round waits for participants that open by time, and not for those that people closed.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_process "runs the coordinator as a process"

in_seconds() { date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ; }
edit() { kn patch proplet "$1" --type=merge -p "{\"spec\":$2}" >/dev/null; }
# closed NAME SECONDS: from now on, and for so long
closed() {
    edit "$1" "{\"availability\":{\"gracefulShutdownTimeout\":\"0s\",\"override\":{\"state\":\"Closed\",\"until\":\"$(in_seconds "$2")\"}}}"
    wait_condition proplets "$1" Available '^False OverrideClosed '
}
opened() {
    edit "$1" '{"availability":null,"killSwitch":null}'
    wait_for 30 "Proplet $1 to be open" field_is proplets "$1" .status.availability null
}
# targets_run COUNT
targets_run() { field_is tasks cut '[.status.broadcastResults[]? | select(.phase == "running")] | length' "$1"; }
broadcast() { jq -nc '{spec: {broadcast: true}}'; }

federated_world 3

# A broadcast goes to those that are open, and a target that closes is stopped.
closed worker-3 600
add_task everywhere "$ADDITION" '[1, 2]' "$(broadcast)"
wait_task everywhere completed
expect_eq "targets" "2 2 0" "$(task everywhere '.status.targets | "\(.total) \(.completed) \(.failed)"')"
opened worker-3
add_task cut "$(wasm sleep)" '[-1]' "$(broadcast)"
wait_for 30 "all targets to run" targets_run 3
closed worker-2 600
wait_for 30 "the target to fail" field_is tasks cut .status.targets.failed 1
wait_for 30 "two targets to run on" targets_run 2
expect_match "why it failed" AvailabilityEnded "$(task cut '.status.broadcastResults | tojson')"
kn delete task cut --wait=false >/dev/null
wait_task_gone cut

# The round waits for the one that opens by time.
closed worker-2 12
add_federated late 3 3 1
wait_condition trainingrounds round-1-late Progressing '^False ParticipantsUnavailable '
expect_eq "its participant" Unavailable "$(training_round round-1-late '.status.participants[] | select(.propletId == "worker-2").status')"
wait_federated late Completed

# One that people closed is away, and the round is made by the others.
edit worker-1 '{"killSwitch":true}'
wait_condition proplets worker-1 Available '^False KillSwitch '
add_federated early 3 2 1
wait_federated early Completed
expect_eq "its participant" Offline "$(training_round round-1-early '.status.participants[] | select(.propletId == "worker-1").status')"
opened worker-1
