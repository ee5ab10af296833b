#!/usr/bin/env bash
# PropellerJobs of two queues share a fleet: never more at work than queue.py admits, a job of a higher priority preempts
# and its victim goes on where it was, and flavors are groups of Proplets. The controller is killed in the middle.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"
case_needs_kueue

JOBS=${QUOTA_JOBS:-200}
FLEET=20

world_prepare() {
    local -a devices
    mapfile -t devices < <(seq -f 'device-%g' "$FLEET")
    broker_prepare "${devices[@]}"
    broker_start
    quota_install
    flavor everywhere '{}'
    flavor north '{"site": "north"}'
    flavor south '{"site": "south"}'
    priority_class urgent 1000
    controller_prepare
    CONTROLLER_OPTIONS+=(--enable-kueue)
    controller_start
}
world_prepare
proplet_json worker-NUMBER device-NUMBER '{"metadata": {"labels": {"site": "north"}}}' | add_numbered 10
for number in $(seq 11 "$FLEET"); do
    proplet_json "worker-$number" "device-$number" '{"metadata": {"labels": {"site": "south"}}}'
done | jq -c . | create
device_start devices --count "$FLEET"
wait_for 60 "all Proplets to run" phase_count_is proplets Running "$FLEET"

no_workload_is_left() { [[ $(workloads | jq '.items | length') == 0 ]]; }

# ---- without anybody who admits: held, and said ----

quota_is '{}'
job_json early team-a '{}' '{}' "$(nap one)" | create
wait_quota early '^False Pending '
expect_eq "Tasks of a job that is held" 0 "$(objects tasks | jq '.items | length')"
expect_match "the column of its quota" 'QUOTA.*' "$(kn get pjob -o wide | sed -n 1p)"
queue_start
quota_is '{"queues": {"team-a": "cq-a", "team-b": "cq-b"}, "quota": {"cq-a": {"everywhere": 3}, "cq-b": {"everywhere": 2}}}'
wait_job early Complete
expect_match "its quota at the end" '^False Finished' "$(condition propellerjobs early QuotaReserved)"
expect_eq "its Workload" "True Succeeded" "$(workload_of early '.status.conditions[] | select(.type == "Finished") | "\(.status) \(.reason)"')"

# ---- many jobs of two queues: at most five at work, and all complete ----

mark=$(audit_mark)
brief=$(nap one 5)
for number in $(seq "$JOBS"); do
    job_json "batch-$number" "team-$( ((number % 2)) && echo a || echo b)" '{}' '{}' "$brief"
done | create
some_done() { (($(objects propellerjobs | jq '[.items[] | select(.status.phase == "Completed")] | length') > $1)); }
wait_for 120 "the first ones to complete" some_done $((JOBS / 10))
controller_crash_restart
wait_for 600 "all jobs to complete" phase_count_is propellerjobs Completed $((JOBS + 1))
# What is at work begins with its start and ends with its result.
most=$(journal devices '.event == "start" or .event == "result"' | jq -s '
    sort_by(.time) | reduce .[] as $line ({now: 0, most: 0}; .now += (if $line.event == "start" then 1 else -1 end)
        | .most = ([.most, .now] | max)) | .most')
expect_le "Tasks at work at once" "$most" 5
# By the audit log: a Workload has an admission of Kueue before the first Task of its job is made.
early=$(tail -n "+$((mark + 1))" "$CLUSTER/audit.log" | jq -rn --arg ns "$NS" '
    reduce (inputs | select(.stage == "ResponseComplete" and .objectRef.namespace == $ns and .responseStatus.code < 300)) as $line ({admitted: {}, early: []};
        if $line.objectRef.resource == "workloads" and ($line.requestURI | contains("fieldManager=kueue-admission"))
        then .admitted[$line.objectRef.name | sub("^propellerjob-"; "") | sub("-[0-9a-f]{5}$"; "")] += 1
        elif $line.objectRef.resource == "tasks" and $line.verb == "create" and ($line.objectRef.name | startswith("batch-"))
            and (.admitted[$line.objectRef.name | rtrimstr("-one")] == null)
        then .early += [$line.objectRef.name] else . end) | .early[]')
expect_eq "Tasks that were made before Kueue wrote to their Workload" "" "$early"
expect_eq "Tasks that were started twice" "" "$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)"
writes=$(audit_writes "$mark" '.objectRef.resource == "workloads"' | wc -l)
say "measured: $(awk -v writes="$writes" -v jobs="$JOBS" 'BEGIN { printf "%.1f", writes / jobs }') writes to the Workload of a job"

# ---- a more urgent job preempts, and its victim goes on where it was ----

quota_is '{"queues": {"team-a": "cq-a"}, "quota": {"cq-a": {"everywhere": 2}}}'
device_say devices hold '*' # until then Tasks run
job_json victim team-a '{}' '{"parallelism": 2}' "$(nap one)" "$(nap two)" "$(nap three)" | create
wait_task victim-one running
wait_task victim-two running
job_json urgent team-a '{"kueue.x-k8s.io/priority-class": "urgent"}' '{"parallelism": 2}' "$(nap one)" "$(nap two)" | create
wait_quota victim '^False (Evicted Preempted: |Pending )'
wait_task victim-one interrupted
wait_task urgent-one running
expect_match "the victim" '^True WaitingForQuota' "$(condition propellerjobs victim Suspended)"
device_say devices release '*'
wait_job urgent Complete
wait_job victim Complete
expect_eq "results of the victim" "completed completed completed" \
    "$(objects tasks | jq -r '[.items[] | select(.metadata.name | startswith("victim-")) | .status.phase] | join(" ")')"

# ---- flavors are groups of Proplets ----

quota_is '{"queues": {"team-a": "cq-a"}, "quota": {"cq-a": {"north": 4, "south": 4}}}'
for number in $(seq 8); do job_json "site-$number" team-a '{}' '{}' "$(nap one 50)"; done | create
sites_done() { [[ $(objects propellerjobs | jq '[.items[] | select(.metadata.name | startswith("site-")) | select(.status.phase == "Completed")] | length') == 8 ]]; }
wait_for 120 "the jobs of both sites" sites_done
# Where each Task ran, and where its flavor is.
flavor_of() { workload_of "$1" '.status.admission.podSetAssignments[0].flavors.pods'; }
for number in $(seq 8); do
    worker=$(task "site-$number-one" .status.assignedProplet)
    expect_eq "site of $worker" "$(flavor_of "site-$number")" "$(proplet "$worker" .metadata.labels.site)"
done

# ---- suspended, edited, deleted ----

device_say devices hold '*'
job_json edited team-a '{}' '{}' "$(nap one)" | create
wait_task edited-one running
kn patch propellerjob edited --type merge -p '{"spec": {"suspend": true}}' >/dev/null
wait_quota edited '^False Suspended'
wait_task edited-one interrupted
inactive() { [[ $(workload_of edited .spec.active) == false ]]; }
wait_for 30 "its Workload to be inactive" inactive
kn patch propellerjob edited --type merge -p '{"spec": {"suspend": false}}' >/dev/null
wait_task edited-one running 60
kn delete propellerjob edited >/dev/null
device_say devices release '*'
wait_task_gone edited-one 60
kn delete propellerjobs --all >/dev/null
wait_for 120 "all Workloads to be gone" no_workload_is_left
