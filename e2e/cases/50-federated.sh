#!/usr/bin/env bash
# A FederatedJob trains over HTTP: its models are those that NumPy makes of the same updates, with one
# participant away, one that fails and stragglers that are stopped.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

federated_world 5
device_crash device-5
wait_proplet worker-5 Offline 60
device_say device-4 reply device-4 '"NaN"'
add_federated train 5 3 3
wait_federated train Completed

expect_eq "rounds" "3 3" "$(federated train '"\(.status.currentRound) \(.status.completedRounds)"')"
say "$(federated_verify train)"
expect_match "what NumPy says" 'loss falls' "$(federated_verify train)"
expect_eq "who was away" Offline "$(training_round round-1-train '.status.participants[] | select(.propletId == "worker-5").status')"
wait_condition federatedjobs train Complete '^True RoundsCompleted'
expect_eq "a way of the updates" true "$(journal_has device-1 '.event == "update" and .how == "http"' 3 >/dev/null && echo true)"

# The same by kubectl propeller: the rounds, and the model's bytes.
expect_eq "rounds of the plug-in" "3 of 3 Completed" "$(p rounds train -o json | python3 -B "$ROOT/e2e/tools/plugin_document.py" | jq -r '"\([.rounds[] | select(.phase == "Completed")] | length) of \(.rounds | length) Completed"')"
expect_eq "loss of each round by the plug-in" "$(for round in 1 2 3; do objects tasks | jq --arg prefix "round-$round-train-" '[.items[] | select((.metadata.name | startswith($prefix)) and .status.results.numSamples != null) | .status.results | {n: .numSamples, loss: .metrics.loss}] | (map(.n * .loss) | add) / (map(.n) | add) | . * 1e6 | round'; done | paste -sd' ')" \
    "$(p rounds train -o json | jq -r '[.rounds[].means.loss * 1e6 | round | tostring] | join(" ")')"
p model train --to "$PART/model" 2>/dev/null
expect_eq "digest of the model" "$(federated train .status.aggregatedModelRef)" "model://sha256:$(sha256sum <"$PART/model" | cut -d' ' -f1)"
p model train --round round-1-train --to "$PART/model" 2>/dev/null
expect_eq "digest of an older one" "$(training_round round-1-train .status.aggregatedModelRef)" "model://sha256:$(sha256sum <"$PART/model" | cut -d' ' -f1)"

# Nothing goes on, and who did not count was stopped or failed.
wait_for 60 "all Tasks to end" all_ended
expect_eq "Tasks that are owned by their rounds" 12 "$(objects tasks | jq '[.items[] | select(.metadata.ownerReferences[0].kind == "TrainingRound")] | length')"

uid=$(federated train .metadata.uid)
expect_eq "a model that was never made" 404 "$(http_status GET "/j/$uid/models/9")"
expect_eq "a job that is not there" 404 "$(http_status GET /j/nobody/models/1)"
expect_eq "an update for a Task that has ended" 404 \
    "$(http_status POST "/t/$(task round-1-train-worker-1 .metadata.uid)/update" '[1,2,3]')"
expect_eq "an update for nobody" 404 "$(http_status POST /t/nobody/update '[1,2,3]')"

# Another one begins with a model of the user's, and keeps one round.
kn create configmap initial --from-literal='model=[2,-3,0.5]' >/dev/null
add_federated again 4 2 3 '{"historyLimit": 1, "modelRef": "configmap://initial/model"}'
wait_federated again Completed
for round in 1 2; do
    wait_for 30 "round $round to be removed" object_gone trainingrounds "round-$round-again"
done
expect_eq "updates of the last round that began with a bad model" 0 "$(objects tasks | jq '
    [.items[] | select(.metadata.name | startswith("round-3-again-")) | .status.results.metrics.loss // empty
     | select(. > 0.1)] | length')"

# Deleted, it takes everything with it.
kn delete federatedjob train again --wait=false >/dev/null
for kind in trainingrounds tasks; do
    wait_for 60 "its $kind to be gone" phase_none "$kind"
done
