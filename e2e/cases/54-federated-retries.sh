#!/usr/bin/env bash
# Devices are killed in three rounds of a job, which are made again: the job completes, and its models are those that
# NumPy makes of the updates that counted. One failure beyond the limit fails a job, and the annotation lets it go on
# without a round twice. Models of checkpoints outlive their rounds.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

federated_world 3

# One participant is slow, so that it is killed before its round ends.
slow_start() {
    trainer_start device-3 --result-delay 3
    wait_proplet worker-3 Running 60
}
device_crash device-3
wait_proplet worker-3 Offline 60
slow_start

attempt_runs() { field_is trainingrounds "$1" .status.phase Running; }
round_exists() { object trainingrounds "$1" >/dev/null; }
round_of() { local attempt=$3; printf 'round-%s-%s%s\n' "$2" "$1" "$( ((attempt == 1)) || printf -- '-r%s' "$attempt")"; }

add_federated train 3 3 6 '{"backoffLimit": 1, "timeoutSeconds": 8, "checkpoint": {"keep": 2}}'
for round in 2 4 6; do
    wait_for 120 "round $round" attempt_runs "$(round_of train "$round" 1)"
    device_crash device-3
    wait_condition federatedjobs train Progressing '^False BackingOff ' 60
    slow_start
    wait_for 60 "its second attempt" round_exists "$(round_of train "$round" 2)"
    expect_eq "the model of both attempts of round $round" "$(training_round "$(round_of train "$round" 1)" .spec.modelRef)" \
        "$(training_round "$(round_of train "$round" 2)" .spec.modelRef)"
done
wait_federated train Completed
expect_eq "attempts that failed" 3 "$(objects trainingrounds | jq '[.items[] | select(.status.phase == "Failed")] | length')"
say "$(federated_verify train)"
expect_eq "models that are kept" "6 5" "$(federated train '[.status.checkpoints[].round] | join(" ")')"

# One failure is too many here; the annotation goes on after the completed rounds.
add_federated brittle 3 3 2 '{"timeoutSeconds": 8}'
wait_for 60 "a round" attempt_runs round-1-brittle
device_crash device-3
wait_federated brittle Failed 60
slow_start
kn annotate federatedjob brittle "$GROUP/restart=once" >/dev/null
wait_federated brittle Completed
expect_eq "rounds of the restarted job" "round-1-brittle round-1-brittle-r2 round-2-brittle" "$(objects trainingrounds |
    jq -r '[.items[].metadata.name | select(endswith("brittle") or contains("brittle-r"))] | sort | join(" ")')"
say "$(federated_verify brittle)"
