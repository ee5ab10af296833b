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
before=$(rejected invalid_update)
expect_eq "nonsense by HTTP" 422 "$(http_status POST "/t/$waiting/update" '[9,"x"]')"
expect_eq "another's name by HTTP" 422 \
    "$(http_status POST "/t/$waiting/update" '{"update":[9,9,9],"proplet_id":"device-1","num_samples":1}')"
expect_eq "both are counted" $((before + 2)) "$(rejected invalid_update)"
before=$(rejected duplicate)
expect_eq "an update for who has sent one, by HTTP" 404 \
    "$(http_status POST "/t/$(task round-1-train-worker-1 .metadata.uid)/update" '[9,9,9]')"
expect_eq "it is counted" $((before + 1)) "$(rejected duplicate)"
expect_eq "the round still waits" Running "$(training_round round-1-train .status.phase)"

device_say device-3 hold device-3 # in the second round
device_say device-2 release device-2
wait_round round-1-train Completed

# A replay of the first round while the second one waits: on its topic, by HTTP, and as results. Until
# then five results messages that followed an update are duplicates, too, and the two from above.
wait_for 120 "the others to have answered" field_is trainingrounds round-2-train .status.updatesReceived 2
wait_task round-2-train-worker-3 running
wait_for 60 "the usual duplicates" rejected_is duplicate 7
publish_update "$first" device-3 '[9,9,9]'
wait_for 30 "a replay to be counted" rejected_is duplicate 8
expect_eq "a replay by HTTP" 404 "$(http_status POST "/t/$(task round-1-train-worker-3 .metadata.uid)/update" '[9,9,9]')"
expect_eq "replays that are counted" 9 "$(rejected duplicate)"
publish control/proplet/results "$(journal device-3 '.event == "result"' | tail -n 1 |
    jq -c '{task_id: .task, results: .results, error: null}')"
wait_for 30 "replayed results to be counted" rejected_is duplicate 10
expect_eq "who still waits in the second round" running "$(task round-2-train-worker-3 .status.phase)"
device_say device-3 release device-3
wait_federated train Completed
say "$(federated_verify train)"
