#!/usr/bin/env bash
# Proplets of type k8s: a Deployment is made, rolled out, scaled, put back and taken over; one of
# somebody else is left alone; what refuses the pods is said; all of it goes with its Proplet.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_kubernetes "has pods"

case_needs_own_cluster # pods are spoken for
case_needs_no_node
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
world_start device-1 device-2

# Made: passes Pod Security, ready with its pods, connected with its device, and runs a Task.
add_proplet alpha device-1 "$(k8s_json reg/proplet:1)"
wait_made deployments alpha-proplet .spec.replicas 1
wait_condition proplets alpha Ready '^False PodsNotReady 0 of 1 pods are ready$'
pods_run alpha 1
wait_proplet alpha Running
wait_condition proplets alpha Ready '^True PodsReady 1 of 1 pods are ready$'
wait_condition proplets alpha Connected '^False NoHeartbeat'
expect_eq "mirrored" 1/1 "$(proplet alpha '"\(.status.k8sStatus.readyReplicas)/\(.status.k8sStatus.availableReplicas)"')"
device_start device --identity device-1 # what would run in the pod
wait_condition proplets alpha Connected '^True Heartbeat'
add_task sum "$ADDITION" '[10, 32]' "$(task_on alpha)"
wait_task sum completed
expect_eq "result" 42 "$(task sum .status.results)"

# Nothing changes: nothing is written, and no pod is replaced.
first_pod=$(pods_of alpha)
mark=$(audit_mark)
kn label proplet alpha shelf=2 >/dev/null
kn annotate deployment alpha-proplet note=mine >/dev/null
wait_made deployments alpha-proplet .metadata.annotations.note mine
controller_crash_restart
wait_condition proplets alpha Connected '^True Heartbeat'
expect_eq "writes of Deployments" "" "$(audit_writes "$mark" '.objectRef.resource == "deployments"')"
expect_eq "the pod" "$first_pod" "$(pods_of alpha)"

# A change is rolled out, and only it: the old pod ends before the new one begins.
kn patch proplet alpha --type=merge -p '{"spec":{"k8s":{"image":"reg/proplet:2"}}}' >/dev/null
wait_made deployments alpha-proplet '.spec.template.spec.containers[0].image' reg/proplet:2
another_pod() {
    local pods
    pods=$(pods_of alpha)
    printf 'pods: %s\n' "$pods"
    [[ -n $pods && $pods != "$first_pod" ]]
}
wait_for 30 "another pod" another_pod
pods_run alpha 1
wait_proplet alpha Running
expect_eq "the annotation of somebody else" mine "$(made deployments alpha-proplet .metadata.annotations.note)"

# To zero and back; what somebody scales by hand is put back.
kn patch proplet alpha --type=merge -p '{"spec":{"k8s":{"replicas":0}}}' >/dev/null
wait_condition proplets alpha Ready '^False ScaledToZero'
wait_proplet alpha Offline
wait_for 30 "no pods" pod_count_is alpha 0
kn patch proplet alpha --type=merge -p '{"spec":{"k8s":{"replicas":1}}}' >/dev/null
pods_run alpha 1
wait_proplet alpha Running
kn scale deployment alpha-proplet --replicas=3 >/dev/null
wait_made deployments alpha-proplet .spec.replicas 1 60
wait_for 60 "one pod" pod_count_is alpha 1

# A key in the spec is in a Secret and in no pod; another one starts new pods.
key=$(secret_of device-2)
kn create secret generic reference --from-literal=clientKey="$key" >/dev/null
inline=$(k8s_json reg/proplet:1 | jq -c --arg key "$key" '.spec.connectionConfig = { clientKey: $key, clientKeySecretRef: null }')
add_proplet beta device-2 "$inline"
wait_made deployments beta-proplet .spec.replicas 1
expect_eq "the Secret" "$(made secrets reference .data.clientKey)" "$(made secrets beta-client-key .data.clientKey)"
[[ $(made deployments beta-proplet) != *"$key"* ]] || fail "the key stands in the Deployment"
key_version='.spec.template.metadata.annotations["propeller.propeller.abstractmachines.fr/client-key-version"]'
old_version=$(made deployments beta-proplet "$key_version")
another_key() { [[ $(made deployments beta-proplet "$key_version") != "$old_version" ]]; }
kn patch proplet beta --type=merge -p '{"spec":{"connectionConfig":{"clientKey":"another"}}}' >/dev/null
wait_for 30 "another version of the key" another_key

# One that another operator made for this Proplet is taken over: same object, none of its contents.
controller_stop
add_proplet gamma device-3 "$(k8s_json reg/proplet:1)"
gamma_uid=$(proplet gamma .metadata.uid)
made_by_others() { # made_by_others NAME OWNER-REFERENCES
    jq -n --arg name "$1" --argjson owners "$2" '
        { apiVersion: "apps/v1", kind: "Deployment",
          metadata: { name: ($name + "-proplet"), ownerReferences: $owners },
          spec: { replicas: 1, selector: { matchLabels: { "propeller.absmach.fr/proplet": $name } },
                  template: { metadata: { labels: { "propeller.absmach.fr/proplet": $name } },
                              spec: { containers: [{ name: "worker", image: "theirs",
                                      env: [{ name: "PROPLET_CLIENT_KEY", value: "open" },
                                            { name: "PROPLET_MQTT_TIMEOUT", value: "30s" }] }] } } } }' |
        create
}
made_by_others gamma "$(jq -nc --arg api "$API" --arg uid "$gamma_uid" '[{ apiVersion: $api,
    kind: "Proplet", name: "gamma", uid: $uid, controller: true, blockOwnerDeletion: true }]')"
made_by_others delta '[]'
gamma_deployment=$(made deployments gamma-proplet .metadata.uid)
add_proplet delta device-4 "$(k8s_json reg/proplet:1)"
controller_start
wait_made deployments gamma-proplet '[.spec.template.spec.containers[] | "\(.name) \(.image)"] | join(",")' 'proplet reg/proplet:1'
expect_eq "the Deployment" "$gamma_deployment" "$(made deployments gamma-proplet .metadata.uid)"
expect_eq "its strategy" Recreate "$(made deployments gamma-proplet .spec.strategy.type)"
expect_eq "its environment" 'PROPLET_MQTT_TIMEOUT=30 PROPLET_CLIENT_KEY=' \
    "$(made deployments gamma-proplet '[.spec.template.spec.containers[0].env[] | select(.name == ("PROPLET_MQTT_TIMEOUT", "PROPLET_CLIENT_KEY")) | "\(.name)=\(.value // "")"] | sort | reverse | join(" ")')"

# One of somebody else is left alone, and that is said; without it the Proplet gets its own.
wait_condition proplets delta Ready "^False NameTaken Deployment 'delta-proplet' belongs to somebody else\$"
expect_eq "its image" theirs "$(made deployments delta-proplet '.spec.template.spec.containers[0].image')"
kn delete deployment delta-proplet >/dev/null
kn label proplet delta try=again >/dev/null
wait_made deployments delta-proplet '.spec.template.spec.containers[0].image' reg/proplet:1

# What keeps the pods away is told by its reason.
pod=$(pods_of delta)
pod_say "$pod" '{"containerStatuses":[{"name":"proplet","image":"reg/proplet:1","imageID":"","ready":false,
    "restartCount":0,"state":{"waiting":{"reason":"ErrImagePull","message":"no such host"}}}]}'
wait_condition proplets delta Ready "^False ImagePullBackOff pod '$pod': image 'reg/proplet:1' cannot be pulled\$"
k create quota none --namespace "$NS" --hard=pods=0 >/dev/null
quota_counts() { [[ $(kn get quota none -o jsonpath='{.status.hard.pods}') == 0 ]]; }
wait_for 30 "the quota to count" quota_counts
add_proplet epsilon device-5 "$(k8s_json reg/proplet:1)"
wait_condition proplets epsilon Ready '^False QuotaExceeded .*exceeded quota: none'
mark=$(audit_mark)
# real time: requests per second are what is measured
observe_for 10 "what Proplets in trouble cost"
requests=$(audit_requests "$mark" | grep -E ' (deployments|statefulsets|secrets|pods) ' || true)
expect_eq "requests for their pods in 10 s" "" "$requests"
kn delete quota none >/dev/null

# Without the flag podTemplate changes nothing.
add_proplet zeta device-6 "$(k8s_json reg/proplet:1 '{"podTemplate":{"spec":{"hostNetwork":true}}}')"
wait_condition proplets zeta Ready '^False PodTemplateNotAllowed'
made_gone deployments zeta-proplet >/dev/null

# Identities of their own, and back.
add_proplet eta device-7 "$(k8s_json reg/proplet:1)"
wait_made deployments eta-proplet .spec.replicas 1
kn patch proplet eta --type=merge -p '{"spec":{"k8s":{"indexedClientIds":true,"replicas":1}}}' >/dev/null
wait_made statefulsets eta-proplet .spec.replicas 1
wait_made_gone deployments eta-proplet
kn patch proplet eta --type=merge -p '{"spec":{"k8s":{"replicas":2}}}' >/dev/null
pods_run eta 2
wait_proplet eta Running
wait_condition proplets eta Connected '^False NoHeartbeat' # see 72
kn patch proplet eta --type=merge -p '{"spec":{"k8s":{"indexedClientIds":false,"replicas":1}}}' >/dev/null
wait_made deployments eta-proplet .spec.replicas 1
wait_made_gone statefulsets eta-proplet

# Of all Secrets only those of Proplets may be written by the identity that writes these.
expect_failure "a Secret that is no Proplet's" 'proplet-controller writes Opaque Secrets' \
    kn --as "system:serviceaccount:$SYSTEM_NS:proplet-controller" create secret generic other --from-literal=a=b

as_controller() { kn --as "system:serviceaccount:$SYSTEM_NS:$1-controller" "${@:2}"; }
own="ValidatingAdmissionPolicy 'propeller-(children|pods)'"
kn create configmap other --from-literal=a=b >/dev/null
kn create deployment other --image=registry.example/other:1 >/dev/null
kn create job other --image=registry.example/other:1 >/dev/null
expect_failure "a ConfigMap that is no Task's, made" "$own" as_controller task create configmap another
expect_failure "... changed" "$own" as_controller task patch configmap other --type=merge -p '{"data":{"a":"c"}}'
expect_failure "... deleted" "$own" as_controller federatedjob delete configmap other --wait=false
expect_failure "a Deployment that is no Proplet's, changed" "$own" \
    as_controller proplet patch deployment other --type=merge -p '{"spec":{"replicas":0}}'
expect_failure "... deleted" "$own" as_controller proplet delete deployment other --wait=false
expect_failure "a Job that is no Task's, deleted" "$own" as_controller task delete job other --wait=false
expect_failure "the Deployment of a Proplet, given away" "$own" as_controller proplet patch deployment alpha-proplet \
    --type=merge -p '{"metadata":{"ownerReferences":null}}'

# All of it goes with its Proplet.
kn delete task sum --wait=false >/dev/null
kn delete proplets --all --wait=false >/dev/null
for name in alpha beta gamma delta eta; do wait_made_gone deployments "$name-proplet" 60; done
wait_made_gone secrets beta-client-key
wait_for 60 "no pods" pod_count_is alpha 0
