#!/usr/bin/env bash
# Tasks in the cluster over several attempts: retries with a Job each, runs of a schedule, and what
# is suspended, deleted or loses its Proplet while the controller is away. The case writes the pods'
# status as a kubelet would.
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
job_of() { # job_of TASK ATTEMPT: the Job's name
    (($2 == 1)) && printf '%s-job\n' "$1" || printf '%s-job-%s\n' "$1" "$2"
}
id_of() { made jobs "$1" '.spec.template.spec.containers[0].env[] | select(.name == "TASK_ID").value'; }
told() { task "$1" '"\(.status.phase) attempt \(.status.attempt) failures \(.status.failures // 0)"'; }

# ---- retries ----

# One that fails and then does not, and one that has no more retries.
add_image_task mended pods '{"spec": {"backoffLimit": 1}}'
add_image_task broken pods '{"spec": {"backoffLimit": 1}}'
for name in mended broken; do
    pod=$(pod_of_task "$name")
    kubelet_runs "$pod"
    wait_task "$name" running
    kubelet_ended "$pod" 3 'not yet'
    wait_condition tasks "$name" Failed '^False BackingOff .*exit code 3: not yet'
    wait_for 10 "an event" has_event "$name" '^Warning Retrying '
    expect_eq "its Job while it waits" 0 "$(made jobs "$name-job" '.status.active // 0')"
done
kubelet_ended "$(pod_of_task mended 2)" 0 42
kubelet_ended "$(pod_of_task broken 2)" 4 'again'
wait_task mended completed
wait_task broken failed
expect_eq "mended" "completed attempt 2 failures 1" "$(told mended)"
expect_eq "its result" 42 "$(task mended .status.results)"
expect_eq "broken" "failed attempt 2 failures 2" "$(told broken)"
expect_eq "its error" "exit code 4: again" "$(task broken .status.error)"
wait_condition tasks broken Failed '^True ExitCode '
for name in mended broken; do
    uid=$(task "$name" .metadata.uid)
    expect_eq "ids of $name" "$uid $uid.2" "$(id_of "$(job_of "$name" 1)") $(id_of "$(job_of "$name" 2)")"
    made_gone jobs "$(job_of "$name" 3)" >/dev/null
    kn delete task "$name" --wait=false >/dev/null
    for attempt in 1 2; do wait_made_gone jobs "$(job_of "$name" "$attempt")"; done
done

# ---- a schedule ----

# Each time is an attempt with a Job of its own; the last ones stay for their logs.
add_image_task beat pods '{"spec": {"isRecurring": true, "schedule": "@every 2s", "historyLimit": 1}}'
for run in 1 2 3; do kubelet_ended "$(pod_of_task beat "$run")" 0 "$run"; done
pod_of_task beat 4 >/dev/null
wait_for 30 "the Jobs of runs long past to go" made_gone jobs beat-job
wait_made_gone jobs beat-job-2
expect_eq "the id of the fourth run" "$(task beat .metadata.uid).4" "$(id_of beat-job-4)"
expect_eq "the last end in history" "3 completed" "$(task beat '.status.history[-1] | "\(.run) \(.phase)"')"
kn delete task beat --wait=false >/dev/null
for attempt in 3 4; do wait_made_gone jobs "beat-job-$attempt"; done

# ---- the controller is away ----

add_cluster_proplet leaving
for name in paused deleted orphan; do
    on=pods
    [[ $name != orphan ]] || on=leaving
    add_image_task "$name" "$on"
    kubelet_runs "$(pod_of_task "$name")"
    wait_task "$name" running
done
add_image_task ends pods
pod=$(pod_of_task ends)
kubelet_runs "$pod"
wait_task ends running
controller_stop
kn patch task paused --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
kn delete task deleted --wait=false >/dev/null
kn delete proplet leaving --wait=false >/dev/null
kubelet_ended "$pod" 5 'nobody saw it'
controller_start
wait_task paused interrupted
wait_task_gone deleted
for name in paused deleted orphan; do wait_made_gone jobs "$name-job"; done
wait_task ends failed
expect_eq "its error" "exit code 5: nobody saw it" "$(task ends .status.error)"
wait_for 30 "the Proplet to go" made_gone deployments leaving-proplet
wait_condition tasks orphan Scheduled "^False NoProplet Proplet 'leaving' does not exist"
expect_eq "attempt of the one without a Proplet" 1 "$(task orphan .status.attempt)"
