#!/usr/bin/env bash
# Failed Tasks are tried again with growing pauses, over a restart of the controller; restarts by users, suspension, deadline, time to live.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start device-1 device-2
proplet_json worker-NUMBER device-NUMBER | add_numbered 2
device_start devices --count 2
wait_for 30 "all Proplets to run" phase_count_is proplets Running 2

# spec JSON: for add_task
spec() { jq -nc --argjson spec "$1" '{spec: $spec}'; }
change() { kn patch "$1" "$2" --type merge -p "$3" >/dev/null; }
# failed_times NAME COUNT: it backs off after so many failures, or more
failed_times() {
    local phase count
    read -r phase count < <(task "$1" '.status | "\(.phase) \(.failures // 0)"')
    printf '%s %s\n' "$phase" "$count"
    ((count >= $2))
}
# The controller dies while the Task backs off, whatever the machine's pace: pauses grow.
crash_in_pause() {
    local count=1
    while :; do
        wait_for 90 "failure $count of $1" failed_times "$1" $count
        crash controller
        [[ $(task "$1" '"\(.status.phase) \(.status.reason)"') == "failed BackingOff" ]] && return
        controller_start
        count=$((count + 1))
    done
}
starts_of() { journal devices '.event == "start"' | jq -r --arg id "$1" 'select(.task == $id) | .time'; }

# Broken, and mended by its user in a pause; what waits for it waits on.
add_task mended "$(wasm trap)" '[]' "$(spec '{"backoffLimit": 10}')"
add_task behind "$ADDITION" '[1, 2]' "$(spec '{"dependsOn": ["mended"]}')"
# Never mended.
add_task broken "$(wasm trap)" '[]' "$(spec '{"backoffLimit": 1}')"
add_task useless "$ADDITION" '[1, 2]' "$(spec '{"dependsOn": ["broken"]}')"
add_task cure "$ADDITION" '[1, 2]' "$(spec '{"dependsOn": ["broken"], "runIf": "failure"}')"

# Count and time stand in the status, whoever reads it.
crash_in_pause mended
read -r attempt failures next < <(task mended '.status | "\(.attempt) \(.failures) \(.nextRetry)"')
expect_eq "attempts and failures" "$attempt" "$failures"
expect_match "what the failure is" "^False BackingOff attempt $attempt failed: DeviceError: " "$(condition tasks mended Failed)"
expect_match "why it waits" "^False BackingOff retry $failures of 10 waits" "$(condition tasks mended Scheduled)"
expect_eq "not final for those who wait" "" "$(condition tasks mended Completed)"
expect_match "what waits for it" "^False WaitingForDependencies" "$(condition tasks behind Scheduled)"

# Suspended in the pause: nothing happens, nothing is forgotten.
change task mended '{"spec": {"suspend": true}}'
controller_start
wait_condition tasks mended Scheduled "^False Suspended"
expect_eq "count and time" "$failures $next" "$(task mended '.status | "\(.failures) \(.nextRetry)"')"
change task mended '{"spec": {"suspend": false}}'
wait_for 90 "the next failure" failed_times mended $((failures + 1))
start=$(starts_of "$(task mended .metadata.uid).$((attempt + 1))")
expect_le "time of the retry, and its start" "$(date -d "$next" +%s)" "${start%.*}"

# Mended in a pause: while it runs its spec is fixed.
wait_for 60 "the spec to be mended" change task mended "{\"spec\": {\"file\": \"$ADDITION\", \"inputs\": [10, 32]}}"
wait_task mended completed 200
expect_eq "result" 42 "$(task mended .status.results)"
expect_eq "failures of all attempts but the last" \
    "$(task mended '.status.attempt - 1')" "$(task mended .status.failures)"
expect_eq "no trace of the failure" null "$(task mended '.status | .error // .nextRetry')"
wait_task behind completed

kn wait --for condition=Failed --timeout 60s task/broken >/dev/null
expect_eq "the end of the broken one" "failed 2 2 DeviceError" \
    "$(task broken '.status | "\(.phase) \(.attempt) \(.failures) \(.reason)"')"
wait_for 30 "an Event" has_event broken "^Warning Retrying "
wait_task useless skipped
wait_task cure completed

# Restarted by its user: a new run, with its counts at zero and the old one in the history.
change task broken "{\"spec\": {\"file\": \"$ADDITION\", \"inputs\": [10, 32]}}"
kn annotate task broken propeller.propeller.abstractmachines.fr/restart=once >/dev/null
wait_task broken completed
expect_eq "the new run" "42 1 3 0" "$(task broken '.status | "\(.results) \(.run) \(.attempt) \(.failures)"')"
expect_eq "the old one" "0 2 failed DeviceError" \
    "$(task broken '.status.history[0] | "\(.run) \(.attempt) \(.phase) \(.reason)"')"
expect_eq "results in the history" null "$(task broken '.status.history[0].results')"
kn annotate task useless propeller.propeller.abstractmachines.fr/restart=once >/dev/null
wait_for 30 "the restart to be noted" field_is tasks useless .status.observedRestart once
expect_eq "a skipped one stays so" skipped "$(task useless .status.phase)"

# A running one is interrupted by suspend and starts over; a deadline is final, whatever the limit.
add_task nap "$(wasm sleep)" '["-1"]'
wait_task nap running
change task nap '{"spec": {"suspend": true}}'
wait_task nap interrupted
change task nap '{"spec": {"inputs": ["10"]}}'
change task nap '{"spec": {"suspend": false}}'
wait_task nap completed
expect_eq "its attempts" "2 0" "$(task nap '.status | "\(.attempt) \(.failures)"')"
add_task late "$(wasm sleep)" '["-1"]' "$(spec '{"activeDeadlineSeconds": 1, "backoffLimit": 3}')"
kn wait --for condition=Failed --timeout 60s task/late >/dev/null
expect_eq "a deadline" "failed 1 DeadlineExceeded" "$(task late '.status | "\(.phase) \(.attempt) \(.reason)"')"

# Time to live: not while somebody waits for the outcome, and then exactly.
add_task short "$ADDITION" '[1, 2]' "$(spec '{"ttlSecondsAfterFinished": 1}')"
add_task held "$ADDITION" '[1, 2]' "$(spec '{"dependsOn": ["kept", "absent"]}')"
add_task kept "$ADDITION" '[1, 2]' "$(spec '{"ttlSecondsAfterFinished": 0}')"
wait_task_gone short 60
wait_task kept completed
add_task absent "$ADDITION" '[1, 2]'
wait_task held completed
wait_task_gone kept 60

# A job that fails fast ends a Task that backs off, and hands its limit to Tasks without one.
device_say devices hold device-2 # the hasty one fails when the other one has failed
jq -n --arg api "$API" --arg trap "$(wasm trap)" '
    { apiVersion: $api, kind: "PropellerJob", metadata: { name: "fast" },
      spec: { name: "fast", backoffLimit: 5, tasks: [
          { name: "patient", functionName: "main", file: $trap, propletSelector: { propletId: "worker-1" } },
          { name: "hasty", functionName: "main", file: $trap, backoffLimit: 0,
            propletSelector: { propletId: "worker-2" } } ] } }' | create
wait_for 60 "the patient one to fail" failed_times fast-patient 1
device_say devices release device-2
kn wait --for condition=Failed --timeout 60s propellerjob/fast >/dev/null
expect_match "which task decided it" "True TaskFailed Task 'fast-hasty' failed: DeviceError" \
    "$(condition propellerjobs fast Failed)"
expect_match "the one that backed off" "^failed [1-9] StoppedByJob\$" \
    "$(task fast-patient '.status | "\(.phase) \(.failures) \(.reason)"')"

twice=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
