#!/usr/bin/env bash
# A thousand VmafxJobs go through every state that GetJob has, over one connection, while the VMAFX controller ends and
# comes back. The audit log has one write of the operator for each change and none beside.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "its writes are counted in the audit log"
case_needs_process "speaks to a peer of this machine"
JOBS=1000

states() { # states EXPECTED: "<number> <phase> [<score>] [<message>] [started]" of each group of jobs
    local seen
    seen=$(kn get vmafxjobs.vmafx.dev -o json | jq -r '[.items[].status
            | [.phase, .score, (.message | if . then sub("\u0027job-[0-9]+\u0027"; "it") else null end), if .startedAt then "started" else null end]
            | map(select(. != null) | tostring) | join(" ")]
        | group_by(.) | map("\(length) \(.[0])") | join(", ")')
    printf '%s\n' "$seen"
    [[ $seen == "$1" ]]
}
writes() { audit_writes "$mark" '.objectRef.resource == "vmafxjobs" and .objectRef.subresource == "status"' | wc -l; }
as_many_writes() { # the audit log is written behind the answers
    printf '%s of %s\n' "$(writes)" "$1"
    (($(writes) >= $1))
}

vmafx_begin
vmafx_install
vmafx_peer_says '{"any": {"status": "PENDING"}}'
vmafx_peer_start
broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=("${VMAFX_OPTIONS[@]}" --namespace "$NS")
controller_start
mark=$(audit_mark)
vmafx_make_jobs job- "$JOBS"
polled() { (($(vmafx_asked job) >= JOBS)); }
wait_for 120 "each job to be polled" polled
wait_for 120 "all jobs to be Pending" states "$JOBS Pending"
vmafx_peer_says '{"any": {"status": "RUNNING", "node": "gpu-1"}}'
wait_for 120 "all jobs to run" states "$JOBS Running started"
vmafx_peer_says '{"any": {"status": "PENDING"}}'
wait_for 120 "all jobs to be back in the queue" states "$JOBS Pending"
expect_eq "connections" 1 "$(vmafx_asked connection)"

# The number of the job chooses: 250 each, and the last 250 are known to nobody.
crash peer
vmafx_peer_says '{"any": [null, {"status": "COMPLETED", "score": 0}, {"status": "FAILED", "error": "broken"}, {"status": "CANCELLED"}]}'
vmafx_peer_start
quarter=$((JOBS / 4))
wait_for 300 "all jobs to have ended" states "$quarter Failed broken, $quarter Failed cancelled by controller, \
$quarter Failed the controller does not know job it, $quarter Succeeded 0"
wait_for 60 "the audit log of four changes of each job" as_many_writes $((4 * JOBS))
expect_eq "writes of four changes of each job" $((4 * JOBS)) "$(writes)"
expect_eq "connections, with one after the VMAFX controller came back" 2 "$(vmafx_asked connection)"
