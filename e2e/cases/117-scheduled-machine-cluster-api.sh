#!/usr/bin/env bash
# ScheduledMachines with the core manager of Cluster API, as it is, and its webhooks: a machine is made, gets a Node and
# taints, is drained and removed, reclaimed, killed and deleted. A small provider stands for bootstrap and infrastructure.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies CRDs of another project"

VERSION=${CLUSTER_API_VERSIONS[-1]}
manager_begin() {
    local port
    "$HERE/setup.sh" cluster-api-manager >/dev/null
    machines_install "$VERSION"
    k apply --server-side --force-conflicts -f "$CACHE/cluster-api-$VERSION.yaml" >/dev/null
    k wait --for=condition=Established --timeout=60s -f "$CACHE/cluster-api-$VERSION.yaml" >/dev/null
    # The version that fulfils the contract of providers.
    k label crd k0sworkerconfigs.bootstrap.cluster.x-k8s.io remoteproxies.infrastructure.cluster.x-k8s.io \
        cluster.x-k8s.io/v1beta2=v1beta1 >/dev/null
    port=$(free_port) HEALTH=127.0.0.1:$(free_port)
    mkdir -p "$PART/certs"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=manager \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$PART/certs/tls.key" -out "$PART/certs/tls.crt" 2>/dev/null
    kn create secret generic edge-kubeconfig --type cluster.x-k8s.io/secret --from-file=value="$CLUSTER/admin.kubeconfig" >/dev/null
    kn label secret edge-kubeconfig cluster.x-k8s.io/cluster-name=edge >/dev/null
    spawn capi-manager "$CONTROL_PLANE_BIN/cluster-api" --kubeconfig "$CLUSTER/admin.kubeconfig" --namespace "$NS" \
        --webhook-port "$port" --webhook-cert-dir "$PART/certs" --health-addr "$HEALTH" \
        --diagnostics-address "127.0.0.1:$(free_port)" --insecure-diagnostics --skip-crd-migration-phases StorageVersionMigration,CleanupManagedFields
    wait_for 60 "the manager of Cluster API" curl -sSf "http://$HEALTH/readyz"
    k create --dry-run=client -o json -f "$CACHE/cluster-api-$VERSION-webhooks.yaml" |
        jq -c --arg ns "$NS" --arg url "https://127.0.0.1:$port" --arg ca "$(base64 -w0 "$PART/certs/tls.crt")" '
            (if .items then .items[] else . end) | .metadata.name = "\($ns)-\(.kind | ascii_downcase)"
            | .webhooks |= [.[] | select(.name | test("[.](machine|cluster)[.]cluster[.]x-k8s[.]io$"))
                | .clientConfig = {url: "\($url)\(.clientConfig.service.path)", caBundle: $ca}
                | .namespaceSelector.matchLabels["kubernetes.io/metadata.name"] = $ns]' | k create -f - >/dev/null
    spawn provider "$PYTHON_HOME/bin/python" -B "$HERE/machines/provider.py" --socket "$CLUSTER/api" --namespace "$NS"
    # Without a machine of the control plane it drains none.
    jq -n '("edge", "control" | {apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "RemoteProxy", metadata: {name: .}, spec: {}}),
        {apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", metadata: {name: "control", labels: {
            "cluster.x-k8s.io/cluster-name": "edge", "cluster.x-k8s.io/control-plane": ""}},
        spec: {clusterName: "edge", bootstrap: {dataSecretName: "control"}, infrastructureRef: {
            apiGroup: "infrastructure.cluster.x-k8s.io", kind: "RemoteProxy", name: "control"}}},
        {apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Cluster", metadata: {name: "edge"},
        spec: {controlPlaneEndpoint: {host: "127.0.0.1", port: 6443}, infrastructureRef: {
            apiGroup: "infrastructure.cluster.x-k8s.io", kind: "RemoteProxy", name: "edge"}}}' | kn create -f - >/dev/null
}
manager_end() {
    kn delete machines.cluster.x-k8s.io control --wait=false >/dev/null
    kn delete clusters.cluster.x-k8s.io edge --timeout=60s >/dev/null
    k delete validatingwebhookconfiguration,mutatingwebhookconfiguration \
        "$NS-validatingwebhookconfiguration" "$NS-mutatingwebhookconfiguration" --ignore-not-found >/dev/null
    stop capi-manager
    stop provider
    machines_uninstall
    k delete --wait --timeout=60s --ignore-not-found -f "$CACHE/cluster-api-$VERSION.yaml" >/dev/null
}
is_up() { # is_up NAME: with everything that a manager says of it
    wait_phase "$1" Active 60
    wait_machine "$1" '.status.conditions[] | select(.type == "NodeReachable").reason' NodeFound 60
    wait_machine "$1" '.status.conditions[] | select(.type == "Ready").status' True 60
}
node_is_gone() { ! k get node "$NS-$1" >/dev/null 2>&1; }
is_down() {
    expect_eq "objects of $1" "" "$(machine_left "$1")"
    wait_for 30 "its Node to go" node_is_gone "$1"
}

manager_begin
broker_prepare device-1
broker_start
controller_prepare
CONTROLLER_OPTIONS+=(--enable-scheduled-machines)
controller_start

machine_put one "$MACHINE_ANYTIME" '{"nodeTaints": [{"key": "ours", "effect": "NoSchedule"}]}'
is_up one
wait_machine one '.status.conditions[] | select(.type == "NodeTainted").reason' Applied
expect_eq "timeout of the drain of Cluster API" 30 \
    "$(kn get machines.v1beta2.cluster.x-k8s.io one -o jsonpath='{.spec.deletion.nodeDrainTimeoutSeconds}')"
expect_eq "phase of the Machine" Running "$(kn get machines.v1beta2.cluster.x-k8s.io one -o jsonpath='{.status.phase}')"

# ---- closed ----
machine_pod worker one
machine_put one "$MACHINE_NEVER"
wait_phase one Inactive 120
is_down one
expect_failure "the pod that was evicted" NotFound kn get pod worker

# ---- open again, and reclaimed ----
machine_put one "$MACHINE_ANYTIME"
is_up one
k annotate node "$NS-one" 5spot.finos.org/reclaim-requested=true >/dev/null
wait_phase one Disabled 120
is_down one

# ---- the kill switch, and a deletion ----
machine_put one '{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"], "enabled": true}'
is_up one
machine_put one "$MACHINE_ANYTIME" '{"killSwitch": true}'
wait_phase one Terminated 60
wait_for 120 "all objects to go" nothing_left one
machine_put one "$MACHINE_ANYTIME"
is_up one
machine_pod worker one
kn delete sm one --timeout=120s >/dev/null
is_down one
expect_failure "the pod that Cluster API evicted" NotFound kn get pod worker
manager_end
