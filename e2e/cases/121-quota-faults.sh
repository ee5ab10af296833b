#!/usr/bin/env bash
# What comes between a PropellerJob and its quota: the controller is killed before each step, a Workload is deleted or
# finished by hand, the queue is taken from the job, and a write to the Workload is refused. Held, said, healed.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"
case_needs_kueue

ADMIT='"queues": {"team": "cq"}, "quota": {"cq": {"everywhere": 2}}'
REFUSAL=quota-refusal

broker_prepare device-1 device-2
broker_start
quota_install
flavor everywhere '{}'
controller_prepare
CONTROLLER_OPTIONS+=(--enable-kueue)
controller_start
add_proplet worker-1 device-1
add_proplet worker-2 device-2
device_start devices --count 2
wait_for 60 "all Proplets to run" phase_count_is proplets Running 2
device_say devices hold '*' # until then Tasks run
quota_is '{}'
queue_start

workload_exists() { [[ -n $(workload_of "$1" .metadata.uid) ]]; }
workload_gone() { ! workload_exists "$1"; }
name_of() { workload_of "$1" .metadata.name; }
# evict JOB: by Kueue, as for another job
evict() { quota_is "{$ADMIT, \"evict\": {\"$(name_of "$1")\": \"Preempted\"}}"; }
tasks_of() { objects tasks | jq --arg prefix "$1-" '[.items[] | select(.metadata.name | startswith($prefix))] | length'; }

# ---- the controller is away while Kueue admits, evicts, and while the Tasks end ----

job_json killed team '{}' '{}' "$(nap one)" | create
wait_for 30 "a Workload" workload_exists killed
crash controller
quota_is "{$ADMIT}"
wait_workload killed Admitted True
expect_eq "Tasks before the controller knows of the admission" 0 "$(tasks_of killed)"
controller_start
wait_task killed-one running 60
wait_workload killed PodsReady True

crash controller
evict killed
wait_workload killed Evicted True
expect_eq "quota while the Task is at work" True "$(workload_says killed QuotaReserved)"
controller_start
wait_task killed-one interrupted 60
wait_workload killed QuotaReserved False
expect_eq "what the Workload still has" null "$(workload_of killed .status.admission)"

quota_is "{$ADMIT}"
wait_task killed-one running 60
crash controller
device_say devices release '*'
wait_for 30 "the result of the device" journal_has devices '.event == "result"' 1
controller_start
wait_job killed Complete
wait_workload killed Finished True
expect_eq "finalizers of the Workload" null "$(workload_of killed .metadata.finalizers)"
device_say devices hold '*'

# ---- a Workload is deleted, and finished, by hand ----

job_json handled team '{}' '{}' "$(nap one)" | create
wait_task handled-one running 60
uid=$(workload_of handled .metadata.uid)
kn delete workload "$(name_of handled)" --wait=false >/dev/null
made_again() { [[ $(workload_of handled .metadata.uid) != "$uid" ]] && workload_is handled Admitted True; }
wait_for 60 "another Workload" made_again
wait_task handled-one running 60
expect_eq "attempts of the Task" 2 "$(task handled-one .status.attempt)"

now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
kn patch workload "$(name_of handled)" --subresource status --type json -p "[{\"op\": \"add\", \"path\": \"/status/conditions/-\",
    \"value\": {\"type\": \"Finished\", \"status\": \"True\", \"reason\": \"ByHand\", \"message\": \"by hand\", \"lastTransitionTime\": \"$now\"}}]" >/dev/null
wait_quota handled '^False WorkloadFinished'
wait_task handled-one interrupted 60
uid=$(workload_of handled .metadata.uid)
kn delete workload "$(name_of handled)" --wait=false >/dev/null
wait_for 60 "another Workload" made_again
wait_task handled-one running 60

# ---- the queue is taken from the job, while no webhook refuses it ----

kn label propellerjob handled kueue.x-k8s.io/queue-name- >/dev/null
wait_for 60 "its Workload to be gone" workload_gone handled
wait_task handled-one running 60
expect_eq "its condition of quota" "" "$(condition propellerjobs handled QuotaReserved)"
kn label propellerjob handled kueue.x-k8s.io/queue-name=team >/dev/null
wait_quota handled '^True Admitted'
wait_task handled-one running 60
expect_eq "the podSet of its Task" tasks-0 "$(task handled-one '.metadata.labels["'"$GROUP"'/podset"]')"

# A job that ran without a queue: its Task gets the label, by which its flavor finds it, before it goes on.
job_json later team '{}' '{}' "$(nap one)" | jq -c 'del(.metadata.labels)' | create
wait_task later-one running 60
kn label propellerjob later kueue.x-k8s.io/queue-name=team >/dev/null
wait_quota later '^True Admitted'
wait_task later-one running 60
expect_eq "the podSet of its Task" tasks-0 "$(task later-one '.metadata.labels["'"$GROUP"'/podset"]')"

# ---- a write to the Workload is refused ----

k apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: $REFUSAL}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [kueue.x-k8s.io], apiVersions: ["*"], operations: [UPDATE], resources: [workloads/status]}]
  matchConditions: [{name: finished, expression: "object.status.conditions.exists(c, c.type == 'Finished')"}]
  validations: [{expression: "false", message: Kueue says no}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: $REFUSAL}
spec: {policyName: $REFUSAL, validationActions: [Deny]}
END
is_refused() {
    ! kn patch workload "$(name_of handled)" --subresource status --dry-run=server --type json -p "[{\"op\": \"add\", \"path\": \"/status/conditions/-\",
    \"value\": {\"type\": \"Finished\", \"status\": \"True\", \"reason\": \"ByHand\", \"message\": \"by hand\", \"lastTransitionTime\": \"$now\"}}]" 2>/dev/null
}
wait_for 30 "the policy to be in force" is_refused
device_say devices release '*'
wait_job handled Complete
wait_quota handled '^False WorkloadRefused .*ValidatingAdmissionPolicy'
k delete validatingadmissionpolicybinding,validatingadmissionpolicy "$REFUSAL" >/dev/null
wait_workload handled Finished True
wait_quota handled '^False Finished'

kn delete propellerjobs --all >/dev/null
no_workload_is_left() { [[ $(workloads | jq '.items | length') == 0 ]]; }
wait_for 60 "all Workloads to be gone" no_workload_is_left
