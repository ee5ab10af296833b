#!/usr/bin/env bash
# Jobs and daemons are made once and go when their Task is suspended, deleted, or its Proplet is. The
# case writes the pods' status as a kubelet would.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "has pods"
case_needs_no_node

broker_prepare pods
broker_start
controller_prepare
controller_start
add_cluster_proplet pods
add_cluster_proplet others
DAEMON='{"spec": {"daemon": true}}'
SUSPENDED='{"spec":{"suspend":true}}'
RESUMED='{"spec":{"suspend":false}}'
change() { kn patch task "$1" --type=merge --patch "$2" >/dev/null; }

# Suspend deletes the Job and its pod; resume is another attempt, with the environment of now.
add_image_task paused pods '{"spec": {"env": {"STEP": "1"}}}'
kubelet_runs "$(pod_of_task paused)"
wait_task paused running
change paused "$SUSPENDED"
wait_task paused interrupted
wait_made_gone jobs paused-job
change paused '{"spec": {"env": {"STEP": "2"}}}'
change paused "$RESUMED"
pod=$(pod_of_task paused 2)
expect_eq "the environment of the second attempt" 2 "$(kn get configmap paused-config -o jsonpath='{.data.STEP}')"
expect_eq "TASK_ID" "$(task paused .metadata.uid).2" \
    "$(made jobs paused-job-2 '.spec.template.spec.containers[0].env[] | select(.name == "TASK_ID").value')"
kubelet_ended "$pod" 0 7
wait_task paused completed
expect_eq "result" 7 "$(task paused .status.results)"

# A deadline counts from when the container runs, and may be moved then; the Job, whose own counts from when it was
# made, has it too, and on top the time that it waited.
add_image_task timed pods '{"spec": {"activeDeadlineSeconds": 3600}}'
pod=$(pod_of_task timed)
expect_eq "the deadline of a Job that waits" null "$(made jobs timed-job .spec.activeDeadlineSeconds)"
kubelet_runs "$pod"
wait_task timed running
deadline_is() { # deadline_is SECONDS: of the Task
    local waited
    waited=$(($(date -d "$(task timed .status.startedAt)" +%s) - $(date -d "$(made jobs timed-job .status.startTime)" +%s)))
    made_is jobs timed-job .spec.activeDeadlineSeconds $(($1 + (waited > 0 ? waited : 0)))
}
wait_for 30 "the deadline of the Job" deadline_is 3600
change timed '{"spec": {"activeDeadlineSeconds": 7200}}'
wait_for 30 "the deadline of the Job" deadline_is 7200

# Deleted while it runs: nothing stays, nothing is waited for.
add_image_task deleted pods
kubelet_runs "$(pod_of_task deleted)"
wait_task deleted running
kn delete task deleted --wait=false >/dev/null
wait_task_gone deleted
wait_made_gone jobs deleted-job

# A Job that somebody deletes is never made again: its Task has another attempt.
add_image_task robbed pods
kubelet_runs "$(pod_of_task robbed)"
wait_task robbed running
kn delete job robbed-job >/dev/null
kubelet_ended "$(pod_of_task robbed 2)" 0 8
wait_task robbed completed

# Its Proplet is deleted: it runs elsewhere.
add_cluster_proplet leaving
add_image_task moved leaving '{"spec": {"propletSelector": null}}'
wait_task moved scheduled
place=$(task moved .status.assignedProplet)
kubelet_runs "$(pod_of_task moved)"
wait_task moved running
kn delete proplet "$place" --wait=false >/dev/null
pod=$(pod_of_task moved 2)
[[ $(task moved .status.assignedProplet) != "$place" ]] || fail "it went back to $place"
wait_made_gone jobs moved-job
kubelet_ended "$pod" 0 9
wait_task moved completed

# A daemon is a Deployment of one pod.
add_image_task server others "$(jq -nc --argjson daemon "$DAEMON" '$daemon * {spec: {propletSelector: null}}')"
pod=$(pod_of_task server)
expect_eq "replicas" 1 "$(kn get deployment server-daemon -o jsonpath='{.spec.replicas}')"
kubelet_runs "$pod"
wait_task server running 60
# It is one pod as long as it runs, however somebody scales it.
kn scale deployment server-daemon --replicas=0 >/dev/null
wait_made deployments server-daemon .spec.replicas 1 60
kubelet_runs "$(pod_of_task server)"
expect_eq "attempt of the daemon" "running 1" "$(task server '.status | "\(.phase) \(.attempt)"')"
change server "$SUSPENDED"
wait_task server interrupted
wait_made_gone deployments server-daemon
change server "$RESUMED"
kubelet_runs "$(pod_of_task server 2)"
wait_task server running 60
kn delete deployment server-daemon >/dev/null
pod_of_task server 2 >/dev/null # made again: a daemon is there as long as its Task is
kn delete task server --wait=false >/dev/null
wait_task_gone server
wait_made_gone deployments server-daemon
