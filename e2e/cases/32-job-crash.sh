#!/usr/bin/env bash
# A large job whose controller is killed in the middle: each Task runs once, the status is written rarely.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
COUNT=${JOB_TASKS:-300}
world_start device-1 device-2 device-3 device-4 device-5
proplet_json worker-NUMBER device-NUMBER | add_numbered 5
device_start devices --count 5
wait_for 30 "all Proplets to run" phase_count_is proplets Running 5

job() { object propellerjobs big | jq -r "$1"; }
done_at_least() {
    local count
    count=$(phase_count tasks completed) || return 1
    printf '%s of %s completed\n' "$count" "$1"
    ((count >= $1))
}
made_at_least() {
    local count
    count=$(objects tasks | jq '.items | length') || return 1
    printf '%s of %s made\n' "$count" "$1"
    ((count >= $1))
}

mark=$(audit_mark)
jq -n --arg api "$API" --arg file "$ADDITION" --argjson count "$COUNT" '
    { apiVersion: $api, kind: "PropellerJob", metadata: { name: "big" },
      spec: { name: "big", tasks: [range($count) | { name: "t\(.)", functionName: "main", file: $file,
              inputs: ["\(.)", 1000] } + if . % 4 == 3 then { dependsOn: ["t\(. - 1)", "t\(. - 3)"] } else {} end] } }' | create

wait_for 60 "the first Tasks to be made" made_at_least 5
crash controller
controller_start
wait_for 300 "the first results" done_at_least $((COUNT / 3))
crash controller
controller_start
kn wait --for condition=Complete --timeout 400s propellerjob/big >/dev/null || { job .status; exit 1; }

expect_eq "counts" "$COUNT $COUNT 0" "$(job '.status | "\(.taskCount) \(.completedCount) \(.failedCount)"')"
wrong=$(objects tasks | jq -c '.items[] | select((.status.results | tonumber) != (.spec.inputs[0] | tonumber) + 1000)
    | [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"
twice=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
expect_eq "starts" "$COUNT" "$(journal_count devices '.event == "start"')"
seconds=$(job '(.status.finishTime | fromdate) - (.metadata.creationTimestamp | fromdate)')
writes=$(audit_writes "$mark" '.objectRef.resource == "propellerjobs"' | wc -l)
echo "measured: $writes writes to a job of $COUNT Tasks in $seconds s"
expect_le "writes to the job" "$writes" $((6 + seconds / 5))
