#!/usr/bin/env bash
# Jobs that fail, each told by its reason, and Jobs and pods that cannot be made: said in condition
# and event, and not tried again and again. The case writes the pods' status as a kubelet would.
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
controller_start --allow-pod-template
add_cluster_proplet pods

reason_of() { task "$1" '"\(.status.phase) \(.status.reason): \(.status.error)"'; }
# failed TASK PATTERN: failed for this reason, in status and event
failed() {
    wait_task "$1" failed
    expect_match "why $1 failed" "^failed $2" "$(reason_of "$1")"
    expect_eq "Failed of $1" "True ${2%%:*}" "$(condition tasks "$1" Failed | cut -d ' ' -f 1,2)"
    wait_for 30 "an event" has_event "$1" "^Warning Failed "
}
# held_up TASK REASON: it waits, and says why
held_up() {
    wait_condition tasks "$1" Started "^False $2 "
    expect_eq "reason of $1" "$2" "$(task "$1" .status.reason)"
}

# A container that ends badly.
add_image_task exits pods
pod=$(pod_of_task exits)
kubelet_runs "$pod"
kubelet_ended "$pod" 3 $'key not found\n'
failed exits 'ExitCode: exit code 3: key not found$'
add_image_task memory pods
kubelet_ended "$(pod_of_task memory)" 137 '' OOMKilled
failed memory 'OOMKilled: out of memory, exit code 137$'

# Longer than it may; the Job sees to that, whoever else sleeps.
add_image_task late pods '{"spec": {"activeDeadlineSeconds": 1}}'
kubelet_runs "$(pod_of_task late)"
failed late 'DeadlineExceeded: '

# An image that is not there: told at once.
add_image_task unpulled pods
kubelet_waits "$(pod_of_task unpulled)" ErrImagePull 'not found'
held_up unpulled ImagePullBackOff

# Drained: another attempt, no failure.
add_image_task drained pods
pod=$(pod_of_task drained)
kubelet_runs "$pod"
wait_task drained running
kubelet_evicted "$pod"
kubelet_ended "$(pod_of_task drained 2)" 0 42
wait_task drained completed
expect_eq "attempts and failures" "2 0" "$(task drained '"\(.status.attempt) \(.status.failures // 0)"')"
wait_for 30 "an event" has_event drained '^Normal Interrupted '

# Names that somebody else has: said, waited for, found free.
kn create configmap config-taken-config >/dev/null
kn create job job-taken-job --image=registry.example/other:1 >/dev/null
mark=$(audit_mark)
add_image_task config-taken pods
add_image_task job-taken pods
held_up config-taken NameTaken
held_up job-taken NameTaken
expect_match "whose name" "Job 'job-taken-job' exists and is not of this Task" "$(condition tasks job-taken Started)"
expect_eq "somebody else's Job" registry.example/other:1 "$(made jobs job-taken-job '.spec.template.spec.containers[0].image')"
# real time: requests per second are what is measured
observe_for 5 "how often it is tried"
tries=$(audit_writes "$mark" '.objectRef.resource == "jobs" or .objectRef.resource == "configmaps"' | wc -l)
expect_le "attempts to make what is there, of two Tasks in 5 s" "$tries" 12
kn delete configmap config-taken-config >/dev/null
kn annotate task config-taken look=again >/dev/null
kubelet_ended "$(pod_of_task config-taken)" 0 1
wait_task config-taken completed

# Refused pods: a quota, and Pod Security. Only an event of the Job tells.
kn create quota full --hard=count/pods=0 >/dev/null
add_image_task crowded pods
held_up crowded QuotaExceeded
kn delete quota full >/dev/null
kn delete task crowded >/dev/null
add_cluster_proplet rooted '{"spec": {"k8s": {"podTemplate": {"spec": {"securityContext":
    {"runAsNonRoot": false}}}}}}'
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
add_image_task insecure rooted
held_up insecure PodSecurity
# What the API server does not know, it leaves out; who wrote it is told.
add_cluster_proplet mistaken '{"spec": {"k8s": {"podTemplate": {"spec": {"tolerationz": [{"operator": "Exists"}]}}}}}'
wait_condition proplets mistaken PodTemplateApplied \
    '^False UnknownField spec.k8s.podTemplate.spec.tolerationz: the API server does not know'

# None of those that wait is looked at again and again: neither reads nor writes.
mark=$(audit_mark)
# real time: requests per second are what is measured
observe_for 10 "what those that wait cost"
requests=$(audit_requests "$mark")
expect_le "requests for three Tasks in 10 s: $(xargs <<<"$requests")" "$(grep -c . <<<"$requests" || true)" 12
kn delete task job-taken >/dev/null

# Somebody's webhook that does not answer: nobody can make a Job. That is said, and passes.
jq -n --arg name "e2e-$NS" --arg ns "$NS" '{ apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration", metadata: { name: $name },
    webhooks: [{ name: "away.example.com", admissionReviewVersions: ["v1"], sideEffects: "None", failurePolicy: "Fail",
        timeoutSeconds: 1, clientConfig: { url: "https://127.0.0.1:1/" },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": $ns } },
        rules: [{ apiGroups: ["batch"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["jobs"] }] }] }' |
    k create -f - >/dev/null
refused_job() {
    local said
    said=$(kn create job probe --image=registry.example/other:1 --dry-run=server 2>&1) || true
    printf '%s\n' "$said"
    [[ $said == *'failed calling webhook'* ]]
}
wait_for 30 "the API server to ask it" refused_job
add_image_task unasked pods
held_up unasked WebhookUnavailable
k delete validatingwebhookconfiguration "e2e-$NS" >/dev/null
not_refused_job() { ! refused_job; }
wait_for 30 "the API server to ask it no more" not_refused_job
kn annotate task unasked look=again >/dev/null
kubelet_ended "$(pod_of_task unasked)" 0 1
wait_task unasked completed

# What waits elsewhere is held up by none of these.
add_image_task well pods
kubelet_ended "$(pod_of_task well)" 0 '"fine"'
wait_task well completed

# Who cannot start has --pod-start-timeout, and his Job goes.
controller_stop
controller_start --allow-pod-template --pod-start-timeout 1s
failed unpulled 'ImagePullBackOff: '
failed insecure 'PodSecurity: '
wait_made_gone jobs unpulled-job
wait_made_gone jobs insecure-job

# The namespace is being deleted: nothing can be made in it, no event either.
add_image_task tardy pods '{"spec": {"suspend": true}}'
wait_condition tasks tardy Scheduled '^False Suspended '
namespace_ends tardy
namespace_goes
