#!/usr/bin/env bash
# A microcontroller trains with Linux devices: its only message is the one on the topic of the round.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

federated_world 2
broker_devices mcu
CHANNEL=mcu # of its own
add_proplet chip mcu '{"spec":{"external":{"dialect":"embedded","maxTasks":1}}}'
embedded_start mcu
wait_proplet chip Running
registry_start
# What the others make of the module, which gives a microcontroller 7.
device_say device-1 reply device-1 '"9"'
device_say device-2 reply device-2 '"11"'

ALL='{"participants": [{"propletId": "chip"}, {"propletId": "worker-1"}, {"propletId": "worker-2"}]}'
# train NAME ROUNDS JSON: of the three
train() {
    local image='{"taskWasmImage": "registry.example/scalar"}'
    add_federated "$1" 3 3 "$2" "$(jq -nc "$ALL + $image + $3")"
    wait_federated "$1" Completed
}
model_of() { curl -sSf "$COORDINATOR_URL/j/$(federated "$1" .metadata.uid)/models/$2"; }

train means 2 '{}'
expect_eq "the model of the second round" 9 "$(model_of means 2)"
expect_eq "what the microcontroller fetched before it" 9 "$(journal mcu '.event == "model"' | jq -r .text | tail -n 1)"
expect_eq "its update" "json-f64 Nw==" "$(task round-2-means-chip '.status.results | "\(.format) \(.update_b64)"')"

# Deltas: each adds what it sends to the model that the round began with.
kn create configmap initial --from-literal=model=100 >/dev/null
train deltas 2 '{"hyperparams": {"format": "f32-delta"}, "modelRef": "configmap://initial/model"}'
expect_eq "the model of the first round" 109 "$(model_of deltas 1)"
expect_eq "the model of the second round" 118 "$(model_of deltas 2)"

# What the device says of its failure is the participant's reason; nobody waits for the deadline.
add_federated traps 1 1 1 '{"participants": [{"propletId": "chip"}], "taskWasmImage": "registry.example/trap"}'
wait_federated traps Failed 60
expect_match "why" 'chip \(Failed: InvalidUpdate\)' "$(condition federatedjobs traps Failed)"
expect_match "what the device reported" 'unreachable' "$(task round-1-traps-chip .status.error)"

# Start messages show the id of a Task to all who may read the channel: what somebody posts under it is
# not the device's last word.
add_federated waits 1 1 1 '{"participants": [{"propletId": "chip"}], "taskWasmImage": "registry.example/by-hand"}'
wait_for 60 "the start" grep -q by-hand "$LOGS/registry.log"
wait_task round-1-waits-chip running
id=$(task round-1-waits-chip .metadata.uid)
expect_eq "nonsense by HTTP" 422 "$(http_status POST "/t/$id/update" '["x"]')"
expect_eq "a failure by HTTP" 422 "$(http_status POST "/t/$id/update" '{"num_samples":0,"update":{},"error":"trap"}')"
expect_eq "its Task" running "$(task round-1-waits-chip .status.phase)"
registry_send registry.example/by-hand scalar
wait_federated waits Completed
expect_eq "the model" 7 "$(model_of waits 1)"
expect_eq "messages that it dropped or could not hear" 0 "$(journal_count mcu '.event == "dropped" or .event == "deaf"')"
