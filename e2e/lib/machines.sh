# shellcheck shell=bash disable=SC2034 # used by those who source it
# Cluster API by its CRDs alone. The functions here speak for its manager and for kubelets: they give a Machine a
# finalizer, a Node and a status, and let go of it.

# CLUSTER_API="v1.12.4" for one of them
read -ra MACHINE_VERSIONS <<<"${CLUSTER_API:-${CLUSTER_API_VERSIONS[*]}}"
MACHINE_MANAGER=machine.cluster.x-k8s.io
MACHINE_ANYTIME='{"daysOfWeek": ["mon-sun"], "hoursOfDay": ["0-23"]}'
MACHINE_NEVER='{"daysOfWeek": [], "hoursOfDay": []}'

# machine_crd GROUP KIND PLURAL: of a provider; any spec
machine_crd() {
    jq -n --arg group "$1" --arg kind "$2" --arg plural "$3" '{apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition", metadata: {name: "\($plural).\($group)"},
        spec: {group: $group, scope: "Namespaced", names: {kind: $kind, plural: $plural, singular: ($kind | ascii_downcase)},
            versions: [{name: "v1beta1", served: true, storage: true,
                schema: {openAPIV3Schema: {type: "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}'
}

# machines_install VERSION: CRDs of Cluster API and of two providers, rights and policies of ours
machines_install() {
    "$HERE/setup.sh" cluster-api >/dev/null
    {
        cat "$ROOT/crds/optional/scheduledmachine.yaml" "$CACHE/machines-$1.yaml"
        echo ---
        machine_crd bootstrap.cluster.x-k8s.io K0sWorkerConfig k0sworkerconfigs
        echo ---
        machine_crd infrastructure.cluster.x-k8s.io RemoteProxy remoteproxies
        echo ---
        machine_crd infrastructure.cluster.x-k8s.io RemoteMachine remotemachines
        echo ---
        machine_crd k0smotron.io K0sWorkerConfig k0sworkerconfigs
        echo ---
        machine_crd k0smotron.io RemoteMachine remotemachines
    } >"$PART/machines.yaml"
    k apply --server-side --force-conflicts -f "$PART/machines.yaml" >/dev/null
    k wait --for=condition=Established --timeout=60s -f "$PART/machines.yaml" >/dev/null
    k apply --server-side -f "$ROOT/rbac/scheduled-machines/" -f "$ROOT/config/components/scheduled-machines/bindings.yaml" \
        -f "$ROOT/config/components/scheduled-machines/policies.yaml" >/dev/null
}
machines_uninstall() {
    k delete --wait --timeout=60s -f "$PART/machines.yaml" >/dev/null
    k delete --ignore-not-found -f "$ROOT/config/components/scheduled-machines/policies.yaml" >/dev/null
}

# machine_put NAME SCHEDULE [SPEC]: SPEC is merged
machine_put() {
    jq -n --arg name "$1" --argjson schedule "$2" --argjson more "${3:-{\}}" '{apiVersion: "5spot.finos.org/v1alpha1",
        kind: "ScheduledMachine", metadata: {name: $name}, spec: ({schedule: $schedule, clusterName: "edge",
            gracefulShutdownTimeout: "2s", nodeDrainTimeout: "30s",
            bootstrapSpec: {apiVersion: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "K0sWorkerConfig", spec: {}},
            infrastructureSpec: {apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "RemoteProxy", spec: {}}}
            + $more)}' | kn apply --server-side --force-conflicts -f - >/dev/null
}
machine_says() { kn get sm "$1" -o json | jq -r "$2"; } # machine_says NAME FILTER
machine_is() {
    local seen
    seen=$(machine_says "$1" "$2") || return 1
    printf "%s of '%s' is '%s'\n" "$2" "$1" "$seen"
    [[ $seen == "$3" ]]
}
wait_phase() { wait_for "${3:-30}" "phase of $1 to be $2" machine_is "$1" .status.phase "$2"; }
wait_machine() { wait_for "${4:-30}" "$2 of $1 to be $3" machine_is "$@"; }

# machine_left NAME: which of the three objects exist
machine_left() {
    kn get --ignore-not-found -o name "machines.cluster.x-k8s.io/$1" "k0sworkerconfigs.bootstrap.cluster.x-k8s.io/$1" \
        "remoteproxies/$1" "k0sworkerconfigs.k0smotron.io/$1" "remotemachines.k0smotron.io/$1" |
        sed 's,\..*,,' | sort | paste -sd ' '
}
nothing_left() { [[ -z $(machine_left "$1") ]]; }

# manager_runs NAME [PROVIDER_ID]: the Machine has a Node, whose providerID may be another
manager_runs() {
    jq -n --arg name "$NS-$1" --arg id "${2:-test://$1}" '{apiVersion: "v1", kind: "Node", metadata: {name: $name},
        spec: {providerID: $id}}' | k apply -f - >/dev/null
    k patch node "$NS-$1" --subresource=status --type=merge \
        --patch '{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]}}' >/dev/null
    manager_knows "$1" "$NS-$1" "test://$1"
}
# manager_knows NAME NODE PROVIDER_ID: says of the Machine that it is ready, and which Node it has
manager_knows() {
    kn patch machines.cluster.x-k8s.io "$1" --type=merge \
        --patch "{\"metadata\": {\"finalizers\": [\"$MACHINE_MANAGER\"]}, \"spec\": {\"providerID\": \"$3\"}}" >/dev/null
    kn patch machines.cluster.x-k8s.io "$1" --subresource=status --type=merge --patch "$(
        jq -nc --arg node "$2" --arg now "$(date -u +%Y-%m-%dT%H:%M:%SZ)" '{status: {nodeRef: {name: $node},
            conditions: [{type: "Ready", status: "True", reason: "Ready", message: "it runs", lastTransitionTime: $now}]}}')" >/dev/null
}
is_going() { [[ $(kn get machines.cluster.x-k8s.io "$1" -o jsonpath='{.metadata.deletionTimestamp}') ]]; }
# manager_lets_go NAME: waits for the deletion of the Machine
manager_lets_go() {
    wait_for 60 "Machine $1 to be deleted" is_going "$1"
    k delete node "$NS-$1" --ignore-not-found >/dev/null
    kn patch machines.cluster.x-k8s.io "$1" --type=merge --patch '{"metadata": {"finalizers": null}}' >/dev/null
}

# kubelet_ends POD GRACE: the pod was told to end within GRACE seconds, and does
kubelet_ends() {
    told() { [[ $(kn get pod "$1" -o jsonpath='{.metadata.deletionGracePeriodSeconds}' | tee /dev/stderr) == "$2" ]]; }
    wait_for 30 "pod $1 to be told to end" told "$1" "$2"
    kn delete pod "$1" --grace-period=0 --force >/dev/null 2>&1
}

# machine_pod NAME MACHINE: on its Node; it ends as soon as it is told to
machine_pod() {
    jq -n --arg name "$1" --arg node "$NS-$2" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name, labels: {app: $name}},
        spec: {nodeName: $node, terminationGracePeriodSeconds: 0, containers: [{name: "a", image: "none"}]}}' | kn apply -f - >/dev/null
    kn patch pod "$1" --subresource=status --type=merge --patch '{"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}]}}' >/dev/null
}
