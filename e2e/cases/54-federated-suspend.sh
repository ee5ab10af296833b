#!/usr/bin/env bash
# A suspended job interrupts its round and goes on where it was; without a coordinator updates come
# on topics and in results messages, and models go in the environment of the Tasks.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

COORDINATOR=off
federated_world 2
device_say device-2 hold device-2
add_federated train 2 2 2
wait_for 120 "the first update" field_is trainingrounds round-1-train .status.updatesReceived 1
wait_task round-1-train-worker-2 running 60 # or there would be nothing to interrupt
kn patch federatedjob train --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
wait_condition federatedjobs train Suspended '^True Suspended'
wait_condition trainingrounds round-1-train Progressing '^False Suspended'
wait_task round-1-train-worker-2 interrupted 60
device_say device-2 release device-2 # too late: it is of an attempt that was stopped
expect_eq "the round" Running "$(training_round round-1-train .status.phase)"

kn patch federatedjob train --type=merge -p '{"spec":{"suspend":false}}' >/dev/null
wait_federated train Completed
expect_eq "attempts of the interrupted Task" 2 "$(task round-1-train-worker-2 .status.attempt)"
expect_match "way of an update" topic "$(journal device-1 '.event == "update"' | jq -r .how | sed -n 1p)"
expect_match "the model of the first round" '^\[[-0-9.,e]+\]$' \
    "$(task round-2-train-worker-1 .spec.env.FL_GLOBAL_UPDATE_B64 | base64 -d)"

# Deleted in the middle of a round, nothing stays, and the device is told to stop.
device_say device-2 hold device-2
add_federated short 2 2 1
wait_for 120 "the first update" field_is trainingrounds round-1-short .status.updatesReceived 1
kn delete federatedjob short train --wait=false >/dev/null
for kind in federatedjobs trainingrounds tasks; do
    wait_for 90 "its $kind to be gone" phase_none "$kind"
done
expect_eq "models that are left" 0 "$(api "/api/v1/namespaces/$NS/configmaps" | jq '[.items[] | select(.metadata.name | test("-model-"))] | length')"
