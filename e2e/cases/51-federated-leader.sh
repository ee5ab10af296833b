#!/usr/bin/env bash
# The controller killed in the middle of every round: each round counts nobody twice, and the models
# are those that NumPy makes of the same updates.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

received_at_least() {
    local count
    count=$(objects tasks | jq --arg round "round-$1-train-" '
        [.items[] | select((.metadata.name | startswith($round)) and .status.phase == "completed")] | length')
    printf '%s updates of round %s\n' "$count" "$1"
    ((count >= $2))
}

federated_world 4
for device in device-3 device-4; do
    device_say "$device" hold "$device"
done
add_federated train 4 4 3
for round in 1 2 3; do
    wait_for 120 "half of round $round" received_at_least "$round" 2
    kill_controller
    for device in device-3 device-4; do
        device_say "$device" release "$device"
    done
    ((round == 3)) || wait_round "round-$round-train" Completed
    for device in device-3 device-4; do
        ((round == 3)) || device_say "$device" hold "$device"
    done
done
wait_federated train Completed
say "$(federated_verify train)"
expect_match "what NumPy says" '^3 rounds.*loss falls' "$(federated_verify train)"
