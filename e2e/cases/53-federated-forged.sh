#!/usr/bin/env bash
# Updates that somebody else sends, or that belong to another round, change nothing and are counted.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# publish_update ROUND-UID IDENTITY PAYLOAD: as somebody who may say anything
publish_update() {
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" \
        -q 1 -t "fl/rounds/$1/updates/$2" -m "$3"
}

federated_world 3
device_say device-2 hold device-2
add_federated train 3 3 2
wait_for 120 "the others to have answered" field_is trainingrounds round-1-train .status.updatesReceived 2
first=$(training_round round-1-train .metadata.uid)
waiting=$(task round-1-train-worker-2 .metadata.uid)

publish_update "$first" device-9 '[9,9,9]'
wait_for 30 "a stranger to be counted" rejected_at_least other_proplet 1
publish_update nobody device-2 '[9,9,9]'
wait_for 30 "a round that is not there to be counted" rejected_at_least unknown_task 1
publish_update "$first" device-1 '[9,9,9]'
wait_for 30 "a second update to be counted" rejected_at_least duplicate 1
publish_update "$first" device-2 '{"update":[9,9,9],"proplet_id":"device-1","num_samples":1}'
wait_for 30 "an update in another's name to be counted" rejected_at_least invalid_update 1
publish control/proplet/results "$(jq -nc --arg id "$waiting" '{task_id: $id, error: null,
    results: {proplet_id: "device-1", num_samples: 5, format: "json-f64", update_b64: "WzksOSw5XQ=="}}')"
wait_for 30 "a result in another's name to be counted" rejected_at_least other_proplet 2
expect_eq "an attempt that was never made" 404 "$(http_status POST "/t/$waiting.7/update" '[9,9,9]')"
expect_eq "nonsense by HTTP" 422 "$(http_status POST "/t/$waiting/update" '[9,"x"]')"
expect_eq "the round still waits" Running "$(training_round round-1-train .status.phase)"

device_say device-2 release device-2
wait_round round-1-train Completed
publish_update "$first" device-2 '[9,9,9]' # a replay
wait_federated train Completed
say "$(federated_verify train)"
