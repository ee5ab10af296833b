# shellcheck shell=bash disable=SC2034 # used by those who source it
# E2E_CLUSTER=kind: three nodes made by kind, in a Docker daemon of its own. The daemon, its nodes and all
# pods live in mount, PID and network namespaces, so that no rule, bridge or mount reaches the machine and
# killing their first process ends everything at once:
#
#   machine  198.19.0.1 <--> 198.19.0.2  daemon  198.19.1.0/24  nodes  10.245.N.0/24  pods
#
# Everything is routed and nothing translated: pods reach this machine at 198.19.0.1, and it reaches them.
# The node image is the one that E2E_KIND_IMAGE names, where images can be pulled; without it one is built
# (cluster/node-image.sh), once per version. One such cluster at a time on a machine. `e2e/tools/kind up`
# makes one that stays, and that the cases then use.
#
# Needs root and cgroup v1 or v2, Debian's docker.io, and what setup.sh brings for "kind".

KIND_STATE=/run/propeller-kind
KIND_NAME=propeller
KIND_IMAGE_KEY=$(cat "$HERE"/cluster/{node-image.sh,pause.c} "$HERE/../config/image/oci.py" "$HERE/versions.sh" | cksum | cut -d' ' -f1)
KIND_CACHE=$CACHE/kind-$KUBERNETES_VERSION-$KIND_IMAGE_KEY
KIND_IMAGE=${E2E_KIND_IMAGE:-local/node:$KUBERNETES_VERSION}
KIND_MACHINE=198.19.0.1
KIND_NODES=198.19.1.0/24
KIND_PODS=10.245.0.0/16
KIND_SERVICES=10.97.0.0/16
KIND_CONTROL=$KIND_NAME-control-plane
KIND_MANIFESTS=/etc/kubernetes/manifests

in_docker() { DOCKER_HOST=unix://$KIND_STATE/docker.sock "$@"; }
kind_is_up() { [[ -e $KIND_STATE/kubeconfig ]]; }

# kind_up LOG: from nothing to three nodes that are Ready
kind_up() {
    ((EUID == 0)) || die "E2E_CLUSTER=kind needs root"
    ip netns add propeller-kind 2>/dev/null ||
        die "there is a kind cluster already; e2e/tools/kind down ends it"
    mkdir -p "$KIND_STATE/audit" "$KIND_CACHE"
    cp "$HERE/manifests/audit-policy.yaml" "$KIND_STATE/audit/policy.yaml"
    : >"$KIND_STATE/audit/audit.log" # what is there is appended to, also when somebody has emptied it
    node_sysctls >"$KIND_STATE/sysctls"
    kind_network
    kind_docker >>"$1" 2>&1 || die "the Docker daemon did not start; see $1"
    kind_image >>"$1" 2>&1 || die "no node image; see $1"
    cgroup_weight propeller-kind 10
    kind_create >>"$1" 2>&1 || die "kind made no cluster; see $1"
    kind_routes >>"$1" 2>&1
    wait_for 180 "all nodes to be ready" kind_nodes_ready
}

# kind_take: the one that is up, or one for this run, which ends with it
kind_take() {
    if ! kind_is_up; then
        : >"$WORK/kind-is-ours"
        kind_up "$LOGS/kind.log"
    fi
    E2E_KUBECONFIG=$KIND_STATE/kubeconfig
    node_variables
    : >"$KIND_STATE/audit/audit.log"
    ln -s "$KIND_STATE/audit/audit.log" "$CLUSTER/audit.log"
    : >"$CLUSTER/apiserver-starts"
    kind_kubectl config view --raw -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$CLUSTER/ca.crt"
    kind_kubectl --namespace default create serviceaccount e2e-nobody --dry-run=client -o json | kind_kubectl apply -f - >/dev/null
    printf '%s=%s\n' APISERVER_URL https://198.19.0.2:6443 \
        USELESS_TOKEN "$(kind_kubectl --namespace default create token e2e-nobody --duration 24h)" >"$CLUSTER/ports"
}

kind_network() {
    ip link add pnkind type veth peer name eth0 netns propeller-kind
    ip addr add "$KIND_MACHINE/30" dev pnkind
    ip link set pnkind up
    ip -n propeller-kind link set lo up
    ip -n propeller-kind addr add 198.19.0.2/30 dev eth0
    ip -n propeller-kind link set eth0 up
    ip -n propeller-kind route add default via "$KIND_MACHINE"
    ip route replace "$KIND_NODES" via 198.19.0.2
    ip route replace "$KIND_PODS" via 198.19.0.2
    ip route replace "$KIND_SERVICES" via 198.19.0.2
}

kind_docker() {
    rm -f "$KIND_STATE/docker.pid"
    setsid nsenter --net=/run/netns/propeller-kind unshare --mount --pid --fork --kill-child --mount-proc \
        bash "$HERE/cluster/kind-init.sh" "$KIND_STATE" "$KIND_CACHE/docker" >"$KIND_STATE/docker.log" 2>&1 </dev/null &
    printf '%s\n' $! >"$KIND_STATE/first.pid"
    disown $!
    wait_for 60 "the Docker daemon" in_docker docker version || return 1
    # Not kind's own choice of addresses: the machine may have another daemon.
    in_docker docker network inspect kind >/dev/null 2>&1 ||
        in_docker docker network create --subnet "$KIND_NODES" \
            --opt com.docker.network.bridge.enable_ip_masquerade=false kind
    ip netns exec propeller-kind iptables -I DOCKER-USER -j ACCEPT
}

kind_image() {
    ! in_docker docker image inspect "$KIND_IMAGE" >/dev/null 2>&1 || return 0
    if [[ -n ${E2E_KIND_IMAGE:-} ]]; then
        in_docker docker pull "$KIND_IMAGE"
        return
    fi
    [[ -e $KIND_CACHE/node.tar ]] || "$HERE/cluster/node-image.sh" "$KIND_CACHE" "$KIND_IMAGE"
    in_docker docker load --input "$KIND_CACHE/node.tar"
    rm "$KIND_CACHE/node.tar" # the daemon's folder keeps it
}

# Pods of a node that does not answer are given up after some seconds instead of five minutes.
kind_create() {
    cat >"$KIND_STATE/kind.yaml" <<YAML
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  apiServerAddress: 198.19.0.2
  apiServerPort: 6443
  disableDefaultCNI: true
  kubeProxyMode: nftables
  podSubnet: $KIND_PODS
  serviceSubnet: $KIND_SERVICES
nodes:
  - {role: control-plane, extraMounts: [{hostPath: $KIND_STATE/audit, containerPath: /audit}]}
  - {role: worker}
  - {role: worker}
kubeadmConfigPatches:
  - |
    kind: KubeletConfiguration
    failCgroupV1: false
  - |
    kind: InitConfiguration
    nodeRegistration: {taints: []}
  - |
    kind: ClusterConfiguration
    etcd: {local: {extraArgs: {unsafe-no-fsync: "true"}}}
    apiServer:
      extraArgs:
        default-not-ready-toleration-seconds: "5"
        default-unreachable-toleration-seconds: "5"
        audit-policy-file: /audit/policy.yaml
        audit-log-path: /audit/audit.log
        audit-log-maxsize: "4000"
      extraVolumes: [{name: audit, hostPath: /audit, mountPath: /audit, pathType: Directory}]
    controllerManager:
      extraArgs: {node-monitor-grace-period: 20s, kube-api-qps: "200", kube-api-burst: "400", leader-elect: "false"}
    scheduler: {extraArgs: {leader-elect: "false"}}
YAML
    in_docker "$CONTROL_PLANE_BIN/kind" create cluster --name "$KIND_NAME" --image "$KIND_IMAGE" \
        --config "$KIND_STATE/kind.yaml" --kubeconfig "$KIND_STATE/kubeconfig.new" || return 1
    mv "$KIND_STATE/kubeconfig.new" "$KIND_STATE/kubeconfig"
}

kind_kubectl() { "$KUBECTL" --kubeconfig "$KIND_STATE/kubeconfig" "$@"; }

# The pod network: on each node the part of the addresses that is its own, and the ways to the others.
# To be said again when a node was started anew.
kind_routes() {
    local node cidr address other other_cidr other_address
    wait_for 60 "all nodes to have addresses for pods" kind_has_addresses || return 1
    while read -r node cidr address; do
        sed -e "s#STATE#/run#; s#PODS#$cidr#" "$HERE/cluster/cni.conflist" |
            in_docker docker exec -i "$node" sh -c 'cat >/etc/cni/net.d/.new && mv /etc/cni/net.d/.new /etc/cni/net.d/10-node.conflist'
        ip -n propeller-kind route replace "$cidr" via "$address"
        while read -r other other_cidr other_address; do
            [[ $other == "$node" ]] || in_docker docker exec "$node" ip route replace "$other_cidr" via "$other_address" </dev/null
        done <"$KIND_STATE/addresses"
    done <"$KIND_STATE/addresses"
    ip -n propeller-kind route replace "$KIND_SERVICES" via "$(awk -v node="$KIND_CONTROL" '$1 == node { print $3 }' "$KIND_STATE/addresses")"
}
kind_has_addresses() {
    kind_kubectl get nodes --output json | jq -r '.items[] | [.metadata.name, .spec.podCIDR // "none",
        (.status.addresses[] | select(.type == "InternalIP") | .address)] | join(" ")' | tee "$KIND_STATE/addresses"
    (($(wc -l <"$KIND_STATE/addresses") == 3)) && ! grep -q ' none ' "$KIND_STATE/addresses"
}

kind_nodes_ready() {
    local ready
    ready=$(kind_kubectl get nodes --output json | jq '[.items[] | select(.spec.unschedulable != true and
        any(.status.conditions[]; .type == "Ready" and .status == "True"))] | length') || return 1
    printf '%s of 3 nodes are ready\n' "$ready"
    ((ready == 3))
}

# kind_services: every node reaches Services. A kube-proxy was seen once that had lost the addresses of all of
# them (nftables 1.0.6 on Linux 6.18), which is not what a case is about: it is started anew, and that is said.
kind_services() {
    local node
    for node in $(nodes); do
        ! kind_node_serves "$node" || continue
        printf 'measured: kube-proxy of %s had lost its Services\n' "$node"
        {
            k --namespace kube-system logs --selector k8s-app=kube-proxy --prefix --tail 100
            on_node "$node" nft list ruleset
        } >"$LOGS/kube-proxy-$node.log" 2>&1 || true
        k --namespace kube-system delete pods --selector k8s-app=kube-proxy --field-selector "spec.nodeName=$node" >/dev/null
        wait_for 120 "$node to reach Services" kind_node_serves "$node"
    done
}
# An API server that was killed takes its address out of the Service when it starts, and puts it back when it is
# ready. A kube-proxy whose watch ends in between asks again up to a minute later: until then its node has none.
kind_services_back() { wait_for 180 "all nodes to reach the API server through its Service" kind_nodes_serve; }
kind_nodes_serve() {
    local node
    for node in $(nodes); do kind_node_serves "$node" || return 1; done
}
kind_node_serves() { on_node "$1" curl -sSkf --max-time 10 -o /dev/null "https://${KIND_SERVICES%0/16}1/readyz" 2>&1; }

# The API server is a pod of its node's kubelet, which starts it again until its manifest is away.
kind_apiserver() {
    local process
    for process in $(pgrep -x kube-apiserver); do
        ! grep -q /propeller-kind/ "/proc/$process/cgroup" 2>/dev/null || printf '%s\n' "$process"
    done
}
# Killed as often as the kubelet starts it, until that has understood.
kind_apiserver_gone() {
    local process
    for process in $(kind_apiserver); do kill -KILL "$process" 2>/dev/null; done
    ! in_docker docker exec "$KIND_CONTROL" sh -c 'ls -d /var/lib/kubelet/pods/*/containers/kube-apiserver' 2>/dev/null
}
kind_apiserver_crash() {
    in_docker docker exec "$KIND_CONTROL" mv "$KIND_MANIFESTS/kube-apiserver.yaml" /etc/kubernetes/
    wait_for 60 "the API server to be gone" kind_apiserver_gone
}
kind_apiserver_begin() { # also where it was never stopped
    date +%s.%N >>"$CLUSTER/apiserver-starts"
    in_docker docker exec "$KIND_CONTROL" sh -c \
        "! [ -e /etc/kubernetes/kube-apiserver.yaml ] || mv /etc/kubernetes/kube-apiserver.yaml $KIND_MANIFESTS/"
}

# kind_import FILE: an image archive, to every node
kind_import() {
    local node
    for node in $(in_docker "$CONTROL_PLANE_BIN/kind" get nodes --name "$KIND_NAME"); do
        in_docker docker exec -i "$node" ctr --namespace k8s.io images import - <"$1" >/dev/null || return 1
    done
}

# Also after something failed half way, and when there is nothing.
kind_down() {
    local first
    [[ -d $KIND_STATE || -e /run/netns/propeller-kind ]] || return 0
    if [[ -e $KIND_STATE/kubeconfig ]]; then # the daemon's folder is kept, without the nodes' volumes
        in_docker timeout 60 "$CONTROL_PLANE_BIN/kind" delete cluster --name "$KIND_NAME" \
            --kubeconfig "$KIND_STATE/kubeconfig" >/dev/null 2>&1
    fi
    if first=$(cat "$KIND_STATE/first.pid" 2>/dev/null); then
        first=$(pgrep -P "$first") && kill -KILL "$first" 2>/dev/null
        wait_for 20 "the daemon to end" kind_daemon_gone "$first" >/dev/null 2>&1
    fi
    ip link del pnkind 2>/dev/null
    ip netns del propeller-kind 2>/dev/null
    cgroups_remove propeller-kind
    sysctls_restore "$KIND_STATE/sysctls"
    rm -rf "$KIND_STATE"
}
kind_daemon_gone() { ! kill -0 "$1" 2>/dev/null; }
