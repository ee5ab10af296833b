#!/usr/bin/env bash
# The Node of a ScheduledMachine is one of a cluster whose pods really run. Its drain evicts what budgets allow, leaves
# DaemonSets and mirror pods alone, and ends by its timeout. Taints of others stay. In an emergency no budget is asked.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
(($(nodes | wc -l) >= 3)) || {
    say "drains a node while the operator runs on others: E2E_CLUSTER=kind" >"$PART/not-applicable"
    exit 0
}
NODE=$(nodes | grep -v control-plane | head -n 1)
PROVIDER_ID=$(k get node "$NODE" -o jsonpath='{.spec.providerID}')
MIRROR=/etc/kubernetes/manifests/mirror.yaml

node_is() { [[ $(k get node "$NODE" -o json | jq -r "$1" | tee /dev/stderr) == "$2" ]]; }
pods_on() { # pods_on LABEL: uids of the pods of this app
    kn get pods --selector "app=$1" --field-selector "spec.nodeName=$NODE" -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null).metadata.uid' | sort
}
runs() { # runs LABEL COUNT
    (($(kn get pods --selector "app=$1" --field-selector "spec.nodeName=$NODE,status.phase=Running" -o name | tee /dev/stderr | wc -l) == $2))
}
pod_spec() { # pod_spec LABEL: of a pod that does nothing, on this node
    jq -nc --arg app "$1" --arg node "$NODE" '{metadata: {labels: {app: $app}}, spec: {terminationGracePeriodSeconds: 1,
        nodeSelector: {"kubernetes.io/hostname": $node}, tolerations: (["ours", "theirs"] | map({key: ., operator: "Exists"})),
        containers: [{name: "a", image: "registry.k8s.io/pause:3.10", imagePullPolicy: "Never"}]}}'
}
workload() { # workload KIND LABEL [SPEC]
    jq -n --arg kind "$1" --arg app "$2" --argjson template "$(pod_spec "$2")" --argjson more "${3:-{\}}" '{apiVersion: "apps/v1",
        kind: $kind, metadata: {name: $app}, spec: ({selector: {matchLabels: {app: $app}}, template: $template} + $more)}' |
        kn apply -f - >/dev/null
}
in_node() { in_docker docker exec -i "$NODE" "$@"; }
node_restore() {
    in_node rm -f "$MIRROR" || true
    k uncordon "$NODE" >/dev/null
    k taint node "$NODE" ours:NoSchedule- theirs:NoSchedule- >/dev/null 2>&1 || true
    k annotate node "$NODE" 5spot.finos.org/{cordoned,applied-taints}- >/dev/null
}
machine_gone() { # the manager lets the Machine go, and the Node stays
    wait_for 90 "Machine one to be deleted" is_going one
    kn patch machines.cluster.x-k8s.io one --type=merge --patch '{"metadata": {"finalizers": null}}' >/dev/null
}

machines_install "${CLUSTER_API_VERSIONS[-1]}"
broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start
k taint node "$NODE" theirs=a:NoSchedule >/dev/null
machine_put one "$MACHINE_ANYTIME" '{"nodeTaints": [{"key": "ours", "value": "b", "effect": "NoSchedule"}]}'
wait_phase one Active
manager_knows one "$NODE" "$PROVIDER_ID"
wait_machine one '.status.conditions[] | select(.type == "NodeTainted").reason' Applied
expect_eq "taints" '["ours=b","theirs=a"]' "$(k get node "$NODE" -o json | jq -c '[.spec.taints[] | "\(.key)=\(.value)"] | sort')"

workload Deployment free '{"replicas": 2}'
workload Deployment held
workload DaemonSet daemon
jq -n '{apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: {name: "held"},
    spec: {minAvailable: 1, selector: {matchLabels: {app: "held"}}}}' | kn apply -f - >/dev/null
pod_spec mirror | jq --arg ns "$NS" 'del(.spec.nodeSelector) | {apiVersion: "v1", kind: "Pod"} + . | .metadata += {name: "mirror", namespace: $ns}' |
    in_node sh -c "cat >$MIRROR"
wait_for 90 "pods to run" runs free 2
wait_for 90 "the pod with a budget to run" runs held 1
wait_for 90 "the pod of the DaemonSet to run" runs daemon 1
wait_for 90 "the mirror pod to run" runs mirror 1
held=$(pods_on held) daemon=$(pods_on daemon) mirror=$(pods_on mirror)

# ---- a drain ----
machine_put one "$MACHINE_NEVER" '{"nodeTaints": [{"key": "ours", "value": "b", "effect": "NoSchedule"}], "nodeDrainTimeout": "20s"}'
wait_for 60 "the Node to be cordoned" node_is .spec.unschedulable true
wait_for 90 "Machine one to be deleted" is_going one
expect_eq "pods without a budget" "" "$(pods_on free)"
expect_eq "the pod with a budget" "$held" "$(pods_on held)"
expect_eq "the pod of the DaemonSet" "$daemon" "$(pods_on daemon)"
expect_eq "the mirror pod" "$mirror" "$(pods_on mirror)"
timed_out() { kn get events.events.k8s.io -o json | jq -er '.items[] | select(.reason == "NodeDrainTimedOut").note' | tee /dev/stderr; }
wait_for 30 "the Event about the drain" timed_out
expect_match "pods that are left" "$NS/held-" "$(timed_out)"
expect_eq "DaemonSets among them" 0 "$(timed_out | grep -c 'daemon-\|mirror' || true)"
machine_gone
wait_phase one Inactive 60
expect_eq "the other owner's taint" a "$(k get node "$NODE" -o json | jq -r '.spec.taints[] | select(.key == "theirs").value')"
node_restore

# ---- an emergency ----
machine_put one "$MACHINE_ANYTIME"
wait_phase one Active
manager_knows one "$NODE" "$PROVIDER_ID"
wait_machine one '.status.conditions[] | select(.type == "NodeReachable").reason' NodeFound
k annotate node "$NODE" 5spot.finos.org/reclaim-requested=true >/dev/null
other() { [[ $(pods_on held) != "$held" ]]; }
wait_for 60 "the pod to go against its budget" other
expect_eq "the pod of the DaemonSet" "$daemon" "$(pods_on daemon)"
machine_gone
wait_phase one Disabled 60
wait_for 30 "the annotation to be cleared" node_is '.metadata.annotations["5spot.finos.org/reclaim-requested"]' null
node_restore
kn delete deployments,daemonsets --all >/dev/null
kn delete sm one --timeout=60s >/dev/null
machines_uninstall
