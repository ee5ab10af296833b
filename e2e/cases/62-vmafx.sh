#!/usr/bin/env bash
# The kinds of vmafx.dev: without their CRDs and rights they hold up nothing; then a job is followed to its score by
# GetJob, a node is healthy until its heartbeat is late, and a training has what its trainer says. The controller is
# killed in between, and nothing is told twice. Answers that cannot be used change nothing and hold up no other job,
# and the VMAFX controller may speak TLS. Without the flag nothing of vmafx.dev is asked for.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_process "speaks to a peer of this machine"
VMAFX=vmafx.dev/v1
vmafx_begin
vmafx_peer_start

vmafx() { api "/apis/$VMAFX/namespaces/$NS/$1/$2" | jq -r "$3"; }
vmafx_is() { # vmafx_is KIND NAME FILTER EXPECTED
    local seen
    seen=$(vmafx "$1" "$2" "$3") || return 1
    printf "%s of %s '%s' is '%s'\n" "$3" "$1" "$2" "$seen"
    [[ $seen == "$4" ]]
}
wait_vmafx() { wait_for "${5:-30}" "$3 of $2 to be $4" vmafx_is "$@"; }
# set_status KIND NAME JSON: as the scheduler or the node does
set_status() { kn patch "$1.vmafx.dev" "$2" --subresource=status --type=merge --patch "{\"status\": $3}" >/dev/null; }
reasons() { # reasons KIND: of their Events, sorted
    kn get events.events.k8s.io -o json | jq -r --arg kind "$1" \
        '[.items[] | select(.regarding.kind == $kind).reason] | sort | join(" ")'
}
reasons_are() {
    local seen
    seen=$(reasons "$1")
    printf '%s\n' "$seen"
    [[ $seen == "$2" ]]
}

# ---- without CRDs and rights ----

broker_prepare device-1
broker_start
controller_prepare
PLAIN_OPTIONS=("${CONTROLLER_OPTIONS[@]}")
CONTROLLER_OPTIONS+=("${VMAFX_OPTIONS[@]}" --namespace "$NS")
controller_start
device_start device-1 --identity device-1
add_proplet worker device-1
add_task sum "$ADDITION" '[10, 32]'
wait_task sum completed 60
if ! has_standalone; then
    wait_for 30 "readyz to say what is missing" readyz_says '^\[\+\]vmafx ok: .*vmafx'
    vmafx_install
fi
wait_for 60 "the kinds to be watched" readyz_says '^\[\+\]vmafx ok$'

# ---- a job and its node ----

kn apply -f "$ROOT/config/samples/vmafx" >/dev/null
wait_vmafx vmafxjobs sample .status.phase Pending
expect_eq "requests for a job without an id" 0 "$(vmafx_asked job)"
vmafx_peer_says '{"jobs": {"job-7": {"status": "RUNNING", "node": "gpu-1"}}}'
set_status vmafxjob sample '{"controllerJobID": "job-7"}'
wait_vmafx vmafxjobs sample '.status | "\(.phase) \(.assignedNode)"' "Running gpu-1"
wait_vmafx vmafxnodes gpu-1 '.status | "\(.healthy) \(.assignedJobs)"' "true 1"

vmafx_peer_says '{"grpc": 14}'
wait_for 30 "the absence to be told" reasons_are VmafxJob "ControllerUnavailable Started"
crash controller
vmafx_peer_says '{"grpc": 0, "jobs": {"job-7": {"status": "COMPLETED", "score": -0.5, "updated_at": 1700000000}}}'
controller_start
wait_vmafx vmafxjobs sample '.status | "\(.phase) \(.score) \(.controllerJobID) \(.finishedAt)"' \
    "Succeeded -0.5 job-7 2023-11-14T22:13:20Z"
wait_vmafx vmafxnodes gpu-1 .status.assignedJobs 0
expect_eq "Events of the job" "Completed ControllerUnavailable Started" "$(reasons VmafxJob)"

# Byte for byte, while it is in time and when it is late.
late_at=$(($(date +%s) + 4))
heartbeat=$(date --date="@$((late_at - 60))" +%Y-%m-%dT%H:%M:%S.250%:z)
set_status vmafxnode gpu-1 "{\"lastHeartbeat\": \"$heartbeat\", \"detectedDevice\": \"a card\"}"
wait_vmafx vmafxnodes gpu-1 .status.healthy false
((EPOCHSECONDS >= late_at)) || fail "unhealthy before the heartbeat was late"
say "measured: unhealthy $((EPOCHSECONDS - late_at)) s after the heartbeat was late"
expect_eq "what the node wrote" "$heartbeat a card" "$(vmafx vmafxnodes gpu-1 '.status | "\(.lastHeartbeat) \(.detectedDevice)"')"
set_status vmafxnode gpu-1 '{"lastHeartbeat": null}'
wait_vmafx vmafxnodes gpu-1 .status.healthy true
wait_for 30 "the Events of the node" reasons_are VmafxNode "NodeHealthy NodeHealthy NodeUnhealthy"

# ---- answers of a bad server, all of them while others work ----

kn delete vmafxjob --all --timeout=30s >/dev/null
kn delete events.events.k8s.io --all >/dev/null
vmafx_peer_says '{"jobs": {"bad-1": {"hang": true}, "bad-2": {"bytes": 5000000, "status": "FAILED"}, "bad-3": {"status": 9},
    "bad-4": {"grpc": 13}, "bad-5": {"grpc": 16}, "nan-1": {"status": "COMPLETED", "score": "nan"}, "good-1": {"status": "RUNNING"}}}'
vmafx_make_jobs bad- 5
vmafx_make_jobs nan- 1
vmafx_make_jobs good- 1
wait_vmafx vmafxjobs good-1 .status.phase Running
wait_vmafx vmafxjobs nan-1 '.status | "\(.phase): \(.message)"' "Failed: the controller reports no number as score"
each_is_told() { reasons_are VmafxJob "ControllerUnavailable ControllerUnavailable ControllerUnavailable ControllerUnavailable ControllerUnavailable Failed Started"; }
wait_for 60 "an Event for each answer that cannot be used" each_is_told
for number in 1 2 3 4 5; do
    expect_eq "phase of bad-$number" Pending "$(vmafx vmafxjobs "bad-$number" .status.phase)"
done
vmafx_peer_says '{"jobs": {"bad-1": {"hang": false, "status": "FAILED", "error": "out of memory"}, "good-1": {"status": "CANCELLED"}}}'
wait_vmafx vmafxjobs bad-1 '.status | "\(.phase): \(.message)"' "Failed: out of memory" 90
wait_vmafx vmafxjobs good-1 '.status | "\(.phase): \(.message)"' "Failed: cancelled by controller"
told=$(reasons VmafxJob)

# ---- a training ----

vmafx_peer_says '{"trainers": {"trained": {"phase": "running", "current_samples": 42, "model_version": "v3",
    "last_checkpoint_time": "2026-11-21T10:00:00+01:00"}}}'
wait_vmafx vmafxmodeltrainings quality .status.phase Initializing
jq '.metadata.name = "trained"' < <(kn create --dry-run=client -o json -f "$ROOT/config/samples/vmafx/vmafxmodeltraining.yaml") | create
wait_vmafx vmafxmodeltrainings trained '.status | "\(.phase) \(.currentSamples) \(.modelVersion) \(.lastCheckpoint)"' \
    "Running 42 v3 2026-11-21T09:00:00Z"
wait_for 30 "the Event of the checkpoint" reasons_are VmafxModelTraining CheckpointWritten
polled=$(vmafx_asked trainer)
crash controller
crash peer
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=vmafx -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$PART/vmafx.key" -out "$PART/vmafx.crt" 2>/dev/null
vmafx_peer_start --tls "$PART/vmafx.crt" "$PART/vmafx.key"
CONTROLLER_OPTIONS+=(--vmafx-controller-grpc-address "https://127.0.0.1:$GRPC_PORT" --vmafx-ca-file "$PART/vmafx.crt")
vmafx_peer_says '{"any": {"status": "COMPLETED", "score": 95.25}}'
kn delete vmafxjob bad-1 bad-2 bad-3 bad-4 bad-5 >/dev/null
vmafx_make_jobs secure- 1
controller_start
wait_vmafx vmafxjobs secure-1 '.status | "\(.phase) \(.score)"' "Succeeded 95.25"
again() { (($(vmafx_asked trainer) >= polled + 2)); }
wait_for 30 "the trainers to be polled by the next process" again
expect_eq "Events of the training" CheckpointWritten "$(reasons VmafxModelTraining)"
expect_eq "Events of the jobs" "$(tr ' ' '\n' <<<"$told Completed" | sort | paste -sd ' ')" "$(reasons VmafxJob)"

# ---- deletion, admission, and no flag ----

kn delete vmafxjob,vmafxnode,vmafxmodeltraining --all --timeout=30s >/dev/null
if has_standalone; then
    expect_failure "a video that is no URI" 'spec.reference: Invalid value: "a.yuv": must be a URI such as s3://bucket/video.yuv' \
        kn create -f - < <(jq '.spec.reference = "a.yuv"' < <(kn create --dry-run=client -o json -f "$ROOT/config/samples/vmafx/vmafxjob.yaml"))
fi
controller_stop
# shellcheck disable=SC2034 # for controller_start
CONTROLLER_OPTIONS=("${PLAIN_OPTIONS[@]}" --namespace "$NS")
since=$(date -u +%Y-%m-%dT%H:%M:%S.%6NZ)
controller_start
add_task other "$ADDITION" '[1, 2]'
wait_task other completed 60
expect_eq "lines of readyz about vmafx" 0 "$(readyz | grep -c vmafx || true)"
expect_eq "requests about vmafx.dev without the flag" 0 \
    "$(jq -r --arg since "$since" 'select(.objectRef.apiGroup == "vmafx.dev" and .requestReceivedTimestamp > $since)
        | select(.user.username | startswith("system:serviceaccount:")) | .requestURI' "$CLUSTER/audit.log" | wc -l)"
