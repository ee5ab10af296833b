# shellcheck shell=bash disable=SC2034 # used by those who source it
# A control plane of the case's own with nothing of ours in it, for installations.

# own_cluster: from now on k, kn and api are about it; it ends with the case
own_cluster() {
    local part=$PART pids=$PIDS logs=$LOGS
    case_needs_own_cluster
    case_needs_kubernetes "installs into a control plane of its own"
    case_needs_no_node "has a control plane of its own, without a node"
    LANE_CLUSTER=$CLUSTER
    part_begin "$CASE-control-plane"
    CLUSTER=$PART
    cluster_keys
    cluster_ports
    cluster_kubeconfigs
    cluster_etcd
    cluster_apiserver
    wait_for 60 "the API server" apiserver_ready
    cluster_manager
    cluster_proxy
    PART=$part PIDS=$pids LOGS=$logs
    k create namespace "$NS" >/dev/null
}

own_cluster_end() {
    local file
    [[ -n ${LANE_CLUSTER:-} ]] || return 0
    for file in "$CLUSTER"/pids/*; do
        [[ -e $file ]] && signal_noted KILL "$file"
    done
    rm -rf "$CLUSTER" "$ROOT/build/e2e/$CASE-control-plane"
    CLUSTER=$LANE_CLUSTER
    # shellcheck source=/dev/null
    source "$CLUSTER/ports"
}

# stand_in_kind PLURAL KIND GROUP: an object of it can be stored; nothing looks after it
stand_in_kind() {
    jq -n --arg plural "$1" --arg kind "$2" --arg group "$3" '
        { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: "\($plural).\($group)" },
          spec: { group: $group, scope: "Namespaced",
                  names: { plural: $plural, singular: ($kind | ascii_downcase), kind: $kind },
                  versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema:
                    { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }] } }' |
        k create -f - >/dev/null
    k wait --for=condition=Established --timeout=60s "crd/$1.$3" >/dev/null
}

# stand_in_kinds: of cert-manager and of the Prometheus operator
stand_in_kinds() {
    stand_in_kind issuers Issuer cert-manager.io
    stand_in_kind certificates Certificate cert-manager.io
    stand_in_kind servicemonitors ServiceMonitor monitoring.coreos.com
    stand_in_kind prometheusrules PrometheusRule monitoring.coreos.com
}

# pods_play LABEL-SELECTOR: the pods of the system's namespace become ready, as with a kubelet
pods_play() {
    local pod
    for pod in $(k --namespace "$SYSTEM_NS" get pods --selector "$1" --output name); do
        k --namespace "$SYSTEM_NS" patch "$pod" --subresource=status --type=merge --patch '{"status": {"phase": "Running",
            "conditions": [{"type": "PodScheduled", "status": "True"},
                           {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}' >/dev/null
    done
}

# in_background NAME COMMAND...: its output in LOGS/NAME.log, its status in PART/NAME.exit
in_background() {
    local name=$1
    shift
    rm -f "$PART/$name.exit" "$LOGS/$name.log"
    # shellcheck disable=SC2016 # expanded by the other shell
    spawn "$name" bash -c '"$@"; printf "%s\n" $? >"$0.new"; mv "$0.new" "$0"' "$PART/$name.exit" "$@"
}
