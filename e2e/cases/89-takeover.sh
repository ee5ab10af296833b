#!/usr/bin/env bash
# Objects as a live Go operator leaves them, under kinds as it installs them: the steps of docs/how-to/install.md
# take them over. Nothing is lost, nothing that runs or is finished is started again, and what hung is released.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
OTHER=propeller-k8s-operator
WHEN=2026-01-02T03:04:05Z

# The commands of a block of the page, with this cluster's kubectl: commands NUMBER
mkdir "$PART/bin"
ln -s "$KUBECTL" "$PART/bin/kubectl"
commands() {
    awk -v wanted="$1" '/^ *```/ { inside = !inside; block += inside; next } inside && block == wanted' \
        "$ROOT/docs/how-to/take-over.md" |
        KUBECONFIG=$CLUSTER/admin.kubeconfig PATH=$PART/bin:$PATH bash -euo pipefail -s 2>&1
}

# ---- its kinds: no rules between fields, none of our fields, applied by the client ----
OURS='["suspend", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "propletLostPolicy",
    "propletLostSeconds", "concurrencyPolicy", "startingDeadlineSeconds", "historyLimit", "broadcastQuorum",
    "parallelism", "failurePolicy", "managedBy", "unschedulable", "lateUpdates", "observedGeneration", "scheduledAt",
    "attempt", "failures", "run", "reason", "history", "targets", "broadcastResults", "activeTaskCount"]'
k create --dry-run=client -o json -f "$ROOT/crds/" | jq -s --argjson ours "$OURS" '
    { apiVersion: "v1", kind: "List", items: [.[] | if .kind == "List" then .items[] else . end
        | .metadata |= { name, annotations: { "controller-gen.kubebuilder.io/version": "v0.18.0" } }
        | del(.spec.names.shortNames, .spec.names.categories)
        | .spec.versions[0].schema.openAPIV3Schema |= (walk(if type == "object" then del(."x-kubernetes-validations") else . end)
            | reduce $ours[] as $name (.; del(.properties.spec.properties[$name], .properties.status.properties[$name])))
        | if .spec.names.kind == "Task" then .spec.versions[0].schema.openAPIV3Schema.properties |=
            (.spec.properties.file = { type: "string", format: "byte" } | .status.required = ["conditions", "phase"])
          else . end] }' >"$PART/kinds.json"
k apply -f "$PART/kinds.json" >/dev/null
k wait --for=condition=Established --timeout=60s crd --all >/dev/null

# ---- its objects ----
broker_prepare edge-id pods-id
broker_start
broker_record
device_start edge --identity edge-id
device_say edge hold edge-id

status() { # status KIND NAME JSON
    kn patch "$1" "$2" --subresource=status --type=merge -p "{\"status\": $3}" >/dev/null
}
condition_json() { jq -nc --arg type "$1" --arg when "$WHEN" '[{ type: $type, status: "True", reason: $type, message: "m", lastTransitionTime: $when }]'; }
FINALIZER='{"metadata": {"finalizers": ["'$GROUP'/task-finalizer"]}}'
left_task() { # left_task NAME PHASE MORE-STATUS [MORE-OBJECT]
    task_json "$1" "$ADDITION" '[10, 32]' "$(jq -nc --argjson a "$FINALIZER" --argjson b "$(task_on edge)" --argjson c "${4:-{\}}" '$a * $b * $c')" | create
    status task "$1" "$(jq -nc --arg phase "$2" --argjson conditions "$(condition_json Started)" --argjson more "$3" \
        '{ phase: $phase, assignedProplet: "edge", conditions: $conditions } * $more')"
}
proplet_json edge edge-id '{"metadata": {"finalizers": ["'$GROUP'/finalizer"]}, "spec": {"external": {"deviceType": "pi"}}}' | create
status proplet edge '{"phase": "Running", "alive": true, "taskCount": 4, "lastSeen": "'$WHEN'", "aliveHistory": ["'$WHEN'"],
    "conditions": '"$(condition_json Ready)"'}'
left_task 'done' completed '{"results": "42", "startedAt": "'$WHEN'", "finishedAt": "'$WHEN'"}'
left_task broken failed '{"error": "boom", "startedAt": "'$WHEN'", "finishedAt": "'$WHEN'"}'
left_task chosen scheduled '{}'
left_task fresh pending '{"assignedProplet": null, "conditions": []}'
left_task going running '{"startedAt": "'$WHEN'"}'
left_task endless running '{"startedAt": "'$WHEN'"}' "$(jq -nc --arg file "$(wasm sleep)" '
    { spec: { file: $file, inputs: [-1], monitoringProfile: { enabled: true, interval: "1s", collectCpu: true, exportToMqtt: true } } }')"
left_task stuck completed '{"results": "1"}'
kn delete task stuck --wait=false >/dev/null
proplet_json gone gone-id '{"metadata": {"finalizers": ["'$GROUP'/finalizer"]}}' | create
kn delete proplet gone --wait=false >/dev/null
jq -n --arg api "$API" '{ apiVersion: $api, kind: "PropellerJob", metadata: { name: "batch" },
    spec: { name: "batch", tasks: [{ name: "one", imageUrl: "i" }] } }' | create
status propellerjob batch '{"phase": "Completed", "taskCount": 1, "completedCount": 1}'

# What it told the device: one start each, with the UID of the Task.
started_by_other() {
    publish control/manager/start "$(task "$1" | jq -c '{ id: .metadata.uid, name: "main", state: 0, file: .spec.file,
        inputs: [.spec.inputs[] | tostring], proplet_id: "edge-id", daemon: false, broadcast: false, encrypted: false,
        latent: false, cli_args: null,
        monitoring_profile: { enabled: true, interval: 1, collect_cpu: true, collect_memory: false, collect_disk_io: false,
            collect_threads: false, collect_file_descriptors: false, export_to_mqtt: true, retain_history: false, history_size: 1 } }')"
}
started_by_other going
started_by_other endless
wait_for 30 "the device to have started both" journal_has edge '.event == "start"' 2

# In the cluster: a Deployment and a Job without any of our labels.
owned() { # owned KIND NAME: an owner reference as a controller's
    jq -nc --arg api "$API" --arg kind "$1" --arg name "$2" --arg uid "$(object "$3" "$2" | jq -r .metadata.uid)" \
        '{ metadata: { ownerReferences: [{ apiVersion: $api, kind: $kind, name: $name, uid: $uid, controller: true, blockOwnerDeletion: true }] } }'
}
kn create secret generic keys --from-literal=clientKey="$(secret_of pods-id)" >/dev/null
add_proplet inside pods-id "$(k8s_json registry.example.com/proplet:1)"
jq -n --argjson owned "$(owned Proplet inside proplets)" '
    { apiVersion: "apps/v1", kind: "Deployment",
      metadata: { name: "inside-proplet", labels: { "app.kubernetes.io/name": "proplet", "propeller.absmach.fr/proplet": "inside" } },
      spec: { replicas: 1, selector: { matchLabels: { "propeller.absmach.fr/proplet": "inside" } },
              template: { metadata: { labels: { "propeller.absmach.fr/proplet": "inside" } },
                          spec: { containers: [{ name: "inside-proplet", image: "registry.example.com/proplet:1", imagePullPolicy: "Always",
                              env: [{ name: "PROPLET_CLIENT_ID", value: "pods-id" }, { name: "PROPLET_CLIENT_KEY", value: "plain" }] }] } } } } * $owned' | create
left_task injob running '{"assignedProplet": "inside", "startedAt": "'$WHEN'"}' \
    '{"spec": {"imageUrl": "registry.example.com/run:1", "file": null, "propletSelector": {"propletId": "inside"}}}'
jq -n --argjson owned "$(owned Task injob tasks)" --arg uid "$(task injob .metadata.uid)" '
    { apiVersion: "batch/v1", kind: "Job", metadata: { name: "injob-job" },
      spec: { template: { spec: { restartPolicy: "OnFailure", containers: [{ name: "task", image: "registry.example.com/run:1",
          env: [{ name: "TASK_ID", value: $uid }] }] } } } } * $owned' | create
wait_for 60 "the pod of the Job" has_pod job-name=injob-job

# Itself, stopped in the middle: its webhook refuses everything.
k create namespace "$OTHER-system" >/dev/null
k --namespace "$OTHER-system" create deployment "$OTHER-controller-manager" --image registry.example.com/controller:1 >/dev/null
k create clusterrole "$OTHER-manager-role" --verb=get --resource=pods >/dev/null
for kind in Mutating Validating; do
    jq -n --arg kind "${kind}WebhookConfiguration" --arg name "$OTHER-${kind,,}-webhook-configuration" --arg ns "$OTHER-system" --arg group "$GROUP" '
        { apiVersion: "admissionregistration.k8s.io/v1", kind: $kind, metadata: { name: $name },
          webhooks: [{ name: "task-v1.kb.io", admissionReviewVersions: ["v1"], sideEffects: "None", failurePolicy: "Fail",
              clientConfig: { service: { name: "webhook-service", namespace: $ns, path: "/x" } },
              rules: [{ apiGroups: [$group], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["tasks"] }] }] }' |
        k create -f - >/dev/null
done
refused() {
    local said
    said=$(kn label task 'done' "seen=$RANDOM" --overwrite 2>&1)
    printf '%s\n' "$said"
    [[ $said == *"failed calling webhook"* ]]
}
wait_for 30 "its webhook to refuse" refused
snapshot() {
    kn get tasks,proplets,propellerjobs -o json |
        jq '[.items[] | select(.metadata.deletionTimestamp | not) | { (.metadata.uid): { spec, status } }] | add'
}
snapshot >"$PART/before.json"

# ---- the steps ----
commands 1 >"$LOGS/step-1.log" || fail "step 1: $(<"$LOGS/step-1.log")"
k kustomize "$ROOT/crds" | k apply --server-side --force-conflicts --field-manager=propeller-deploy -f - >/dev/null
k wait --for=condition=Established --timeout=60s crd --all >/dev/null
kinds_are_new() {
    local wanted
    wanted=$(CLUSTER=$LANE_CLUSTER k get crd -o json | jq -cS --arg group "$GROUP" '[.items[] | select(.spec.group == $group) | .spec]')
    [[ $(k get crd -o json | jq -cS --arg group "$GROUP" '[.items[] | select(.spec.group == $group) | .spec]') == "$wanted" ]]
}
kinds_are_new || fail "the kinds are not those of a new installation"
snapshot >"$PART/after.json"
expect_eq "objects that lost something with the upgrade of the kinds, which only adds defaults" "[]" "$(jq -nc '
    [inputs] | .[0] as $before | .[1] as $after | [$before | keys[] | select($after[.] * $before[.] != $after[.])]' \
    "$PART/before.json" "$PART/after.json")"
k apply --server-side -f "$ROOT/rbac/base/" -f "$ROOT/rbac/cluster/" >/dev/null
identity_kubeconfig "$CLUSTER/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
wait_for 30 "the rights" k auth can-i get leases/propeller-controller --namespace "$SYSTEM_NS" --as "system:serviceaccount:$SYSTEM_NS:propeller-controller"
controller_prepare
controller_start --start-confirm-timeout 2s
device_say edge release edge-id

# ---- what became of it ----
for name in chosen fresh going; do
    wait_task "$name" completed 60
    expect_eq "result of $name" 42 "$(task "$name" .status.results)"
done
wait_task_gone stuck
wait_for 30 "the Proplet that hung to be gone" object_gone proplets gone
# Its samples confirm it, for longer than a start may stay unconfirmed.
samples() { wire_messages control/proplet/task_metrics ".task_id // .id" | grep -c "$(task endless .metadata.uid)"; }
from=$(samples)
more_samples() { (($(samples | tee /dev/stderr) >= from + 6)); }
wait_for 60 "the endless one to go on" more_samples
starts() { wire_messages control/manager/start .id | grep -c "\"$(task "$1" .metadata.uid)" || true; }
for name in 'done=0' broken=0 going=1 endless=1 chosen=1 fresh=1; do
    expect_eq "starts of ${name%=*}" "${name#*=}" "$(starts "${name%=*}")"
done
expect_eq "the finished Task" "completed 42 $WHEN" "$(task 'done' '.status | "\(.phase) \(.results) \(.finishedAt)"')"
expect_eq "the failed Task" "failed boom" "$(task broken '.status | "\(.phase) \(.error)"')"
expect_eq "the endless Task" running "$(task endless .status.phase)"
expect_eq "the finished job" Completed "$(object propellerjobs batch | jq -r .status.phase)"
object_gone tasks batch-one || fail "the finished job was started again"
kn delete task endless --wait=false >/dev/null
wait_task_gone endless

# In the cluster: the same Deployment with another template, no key in plain words; one Job, whose end counts.
wait_made deployments inside-proplet '[.spec.template.spec.containers[].env[] | select(.value == "plain")] | length' 0
expect_eq "templates of the Deployment" 2 "$(made deployments inside-proplet .metadata.generation)"
kubelet_ended "$(pods_where job-name=injob-job)" 0 7
wait_made jobs injob-job '[.status.conditions[]? | select(.type == "Complete") | .status] | join(" ")' True
kn annotate task injob look=now >/dev/null
wait_task injob completed
expect_eq "result of the Job" 7 "$(task injob .status.results)"
expect_eq "Jobs" job.batch/injob-job "$(kn get jobs -o name)"

commands 2 >"$LOGS/step-3.log" || fail "step 3: $(<"$LOGS/step-3.log")"
other_is_gone() { [[ -z $(k get namespaces,clusterroles -o name | grep "$OTHER" | tee /dev/stderr) ]]; }
wait_for 60 "what is left of it to be gone" other_is_gone
