#!/usr/bin/env bash
# ScheduledMachines on the CRDs of Cluster API, among many Nodes: memory and writes at rest, objects that are created a
# second when all of them open at once, and the time from the annotation of a Node to the deletion of its Machine.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

NODES=${BENCH_NODES:-1000}
MACHINES=${BENCH_MACHINES:-100}
PODS=30 # on each Node that is reclaimed
RECLAIMS=20
SPAN=${BENCH_STEADY_SECONDS:-120}

phases_are() { # phases_are PHASE
    local seen
    seen=$(api "/apis/5spot.finos.org/v1alpha1/namespaces/$NS/scheduledmachines" | jq --arg phase "$1" '[.items[] | select(.status.phase == $phase)] | length')
    printf '%s of %s\n' "$seen" "$MACHINES"
    ((seen == MACHINES))
}
machines_json() { # machines_json SCHEDULE: all of them
    seq 1 "$MACHINES" | jq -c --argjson schedule "$1" '{apiVersion: "5spot.finos.org/v1alpha1", kind: "ScheduledMachine",
        metadata: {name: "m\(.)"}, spec: {schedule: $schedule, clusterName: "edge",
        bootstrapSpec: {apiVersion: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "K0sWorkerConfig", spec: {}},
        infrastructureSpec: {apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "RemoteProxy", spec: {}}}}'
}
nodes_json() {
    seq 1 "$NODES" | jq -c --arg ns "$NS" '{apiVersion: "v1", kind: "Node", metadata: {name: "\($ns)-m\(.)"}, spec: {providerID: "test://m\(.)"}}'
}
pods_json() { # pods_json MACHINE
    seq 1 "$PODS" | jq -c --arg node "$NS-$1" --arg name "$1" '{apiVersion: "v1", kind: "Pod", metadata: {name: "\($name)-\(.)"},
        spec: {nodeName: $node, containers: [{name: "a", image: "none"}]}}'
}
# us FILTER: when the first request of the audit log for which it holds was received, in microseconds
us() { operator_requests "$1" "$2" | jq -rs 'map(.requestReceivedTimestamp) | min // empty' | xargs -I{} date -u -d {} +%s%6N; }

reclaim() { # reclaim MACHINE: prints the ms from the annotation to the deletion of the Machine
    local mark said ended
    pods_json "$1" | kn create -f - >/dev/null
    mark=$(audit_mark)
    said=$(date +%s%6N)
    k annotate node "$NS-$1" 5spot.finos.org/reclaim-requested=true >/dev/null
    deleted() { [[ -n $(us "$mark" '.verb == "delete" and .objectRef.resource == "machines" and .objectRef.name == "'"$1"'"') ]]; }
    wait_for 60 "Machine $1 to be deleted" deleted "$1"
    # The annotation is on the Node from the answer on; kubectl itself takes some of the time.
    said=$(tail -n "+$((mark + 1))" "$CLUSTER/audit.log" | jq -r --arg name "$NS-$1" 'select(.verb == "patch" and .objectRef.resource == "nodes" and
        .objectRef.name == $name and (.user.username | startswith("system:serviceaccount") | not)).stageTimestamp' | head -n 1 | xargs -I{} date -u -d {} +%s%6N)
    ended=$(us "$mark" '.verb == "delete" and .objectRef.resource == "machines" and .objectRef.name == "'"$1"'"')
    printf '%s\n' $(((ended - said) / 1000))
}

main() {
    local mark bare first last i
    [[ $BENCH_WHO == ours ]] || return 0 # a peer has no such kind
    scenario_begin
    machines_install "${CLUSTER_API_VERSIONS[-1]}"
    broker_prepare
    broker_start
    nodes_json | k create -f - >/dev/null
    operator_start
    observe_for 10
    bare=$(memory RssAnon)
    machines_json "$MACHINE_NEVER" | kn create -f - >/dev/null
    controller_stop
    operator_start --enable-scheduled-machines
    wait_for 300 "all to be inactive" phases_are Inactive
    controller_stop
    operator_start --enable-scheduled-machines
    observe_for 10
    figure "RssAnon of $MACHINES machines and $NODES Nodes (KiB)" $(($(memory RssAnon) - bare)) "<= 3072"
    mark=$(audit_mark)
    observe_for "$SPAN"
    figure "writes at rest a minute" "$(ratio $(($(operator_requests "$mark" '(.verb | IN("create", "patch", "delete")) and .objectRef.resource != "leases"' | wc -l) * 60)) "$SPAN")" "<= 0"

    mark=$(audit_mark)
    machines_json "$MACHINE_ANYTIME" | kn apply --server-side --force-conflicts -f - >/dev/null
    wait_for 300 "all to be active" phases_are Active
    created() { operator_requests "$mark" '.verb == "create" and .stage == "ResponseComplete" and (.objectRef.apiGroup | endswith("cluster.x-k8s.io"))' | jq -r .stageTimestamp | sort; }
    first=$(created | head -n 1 | xargs -I{} date -u -d {} +%s%6N) last=$(created | tail -n 1 | xargs -I{} date -u -d {} +%s%6N)
    figure "objects created a second" "$(ratio $((3 * MACHINES * 1000000)) $((last - first)) 1)"

    for ((i = 1; i <= RECLAIMS; i++)); do
        manager_knows "m$i" "$NS-m$i" "test://m$i"
    done
    for ((i = 1; i <= RECLAIMS; i++)); do
        reclaim "m$i"
    done | sort -n >"$PART/reclaims"
    figure "annotation -> Machine deleted, $PODS pods: p50 (ms)" "$(sed -n "$((RECLAIMS / 2))p" "$PART/reclaims")"
    figure "annotation -> Machine deleted, $PODS pods: the slowest of $RECLAIMS (ms)" "$(tail -n 1 "$PART/reclaims")" "<= 1000"
}

main "$@"
