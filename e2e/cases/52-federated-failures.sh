#!/usr/bin/env bash
# Jobs that cannot end well end at once, or at their deadline, and say who was missing; a model that
# was never stored is said before anything is started.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

federated_world 3
device_crash device-3
wait_proplet worker-3 Offline 60

add_federated too-few 3 3 2 '{"timeoutSeconds": 5}'
wait_federated too-few Failed 60
expect_match "why" 'NotEnoughParticipants.*worker-3 \(Offline\)' "$(condition federatedjobs too-few Failed)"
expect_eq "Tasks of those that were there" 2 "$(objects tasks | jq '.items | length')"

add_federated nobody 3 2 1 '{"participants": [{"propletId": "worker-1"}, {"propletId": "ghost"}], "timeoutSeconds": 5}'
wait_federated nobody Failed 60
expect_match "why" 'ghost \(Missing\)' "$(condition federatedjobs nobody Failed)"

# Two answer with what is no update: k is out of reach, long before the deadline.
device_say device-1 reply device-1 '"{\"update\":[1,\"x\"]}"'
device_say device-2 reply device-2 '"[]"'
add_federated nonsense 2 2 1
wait_federated nonsense Failed 120
expect_match "why" 'worker-[12] \(Failed: InvalidUpdate\)' "$(condition federatedjobs nonsense Failed)"

# Somebody never answers: the deadline.
device_say device-1 reply device-1 default
device_say device-2 reply device-2 default
device_say device-2 hold device-2
add_federated hangs 2 2 1 '{"timeoutSeconds": 5}'
wait_federated hangs Failed 120
expect_match "why" 'DeadlineExceeded: 1 of 2 updates.*worker-2 \(Training\)' "$(condition federatedjobs hangs Failed)"
wait_for 60 "the straggler to be stopped" journal_has device-2 '.event == "stopped" or .event == "unknown-stop"'

add_federated lost-model 2 1 1 '{"modelRef": "model://sha256:'"$(printf '0%.0s' {1..64})"'"}'
wait_federated lost-model Failed 60
expect_match "why" 'ModelUnavailable' "$(condition federatedjobs lost-model Failed)"
