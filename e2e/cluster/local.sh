# shellcheck shell=bash disable=SC2034 # used by those who source it
# E2E_CLUSTER=local: beside the control plane a node whose pods really run. containerd, the kubelet
# and all pods live in mount, PID and network namespaces of their own: killing their first process
# ends everything at once. The control plane stays on the machine, which the node reaches over a pair
# of virtual cards:
#
#   machine  198.18.N.1 <--> 198.18.N.2  node  10.244.N.0/24  pods, 10.96.N.0/24  Services
#
# Needs root, cgroup v1, Debian's containerd, runc and containernetworking-plugins; no registry.

# shellcheck source=e2e/cluster/images.sh
source "$HERE/cluster/images.sh"

# shellcheck source=e2e/cluster/nodes.sh
source "$HERE/cluster/nodes.sh"
# shellcheck source=e2e/cluster/kind.sh
source "$HERE/cluster/kind.sh"

has_local_node() { [[ ${E2E_CLUSTER:-} == local ]]; }
has_kind() { [[ ${E2E_CLUSTER:-} == kind ]]; }
has_node() { has_local_node || has_kind; } # pods run, and this machine and they reach each other

# node_obstacle: says what this machine does not allow, if that is so; then there can be no node on it
node_obstacle() {
    local folder
    if ((EUID != 0)); then
        say "not root"
    elif [[ ! -w /sys/fs/cgroup/memory/cgroup.procs || ! -w /sys/fs/cgroup/cpuset/cgroup.procs ]]; then
        say "no cgroup v1 that could be written to"
    elif ! command -v ip >/dev/null && ! command -v apt-get >/dev/null; then
        say "no iproute2"
    elif ! folder=$(mktemp -d) || ! mkdir "$folder"/{lower,upper,work,all} ||
        ! unshare --mount --net --pid --fork --mount-proc \
            mount -t overlay -o "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/all" 2>/dev/null; then
        rm -rf "$folder"
        say "no namespaces, or no overlay mounts"
    else
        rm -rf "$folder"
        return 1
    fi
}

# The kubelet sets these for the whole machine.
NODE_SYSCTLS=(vm/overcommit_memory kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys
    kernel/keys/root_maxbytes)

node_sysctls() {
    local name
    for name in "${NODE_SYSCTLS[@]}"; do
        printf '%s %s\n' "$name" "$(<"/proc/sys/$name")"
    done
}
sysctls_restore() { # sysctls_restore FILE
    local name value
    while read -r name value; do
        printf '%s\n' "$value" >"/proc/sys/$name"
    done <"$1"
}
# cgroup_weight NAME FACTOR: a busy machine divides its time among processes, and counts all of a group as
# one of them; as so many from now on
cgroup_weight() {
    if [[ -d /sys/fs/cgroup/cpu ]]; then
        mkdir -p "/sys/fs/cgroup/cpu/$1" && printf '%s\n' $((1024 * $2)) >"/sys/fs/cgroup/cpu/$1/cpu.shares"
    elif [[ -e /sys/fs/cgroup/$1/cpu.weight ]]; then
        printf '%s\n' $((100 * $2)) >"/sys/fs/cgroup/$1/cpu.weight"
    fi 2>/dev/null || true # where it may not be said it is slow
}
# cgroups_remove NAME: when what was in them is gone
cgroups_remove() { wait_for 20 "the cgroups to be removed" cgroups_removed "$1"; }
cgroups_removed() {
    find /sys/fs/cgroup/*/"$1" -depth -type d -exec rmdir {} + 2>/dev/null
    ! compgen -G "/sys/fs/cgroup/*/$1" >/dev/null
}

node_variables() {
    NODE=$CLUSTER/node
    ! has_kind || NODE_MACHINE=$KIND_MACHINE NODE_CGROUP=propeller-kind
    [[ -e $CLUSTER/node-number ]] || return 0
    NODE_NUMBER=$(<"$CLUSTER/node-number")
    NODE_NAME=node-$NODE_NUMBER
    NODE_MACHINE=198.18.$NODE_NUMBER.1
    NODE_ADDRESS=198.18.$NODE_NUMBER.2
    NODE_PODS=10.244.$NODE_NUMBER.0/24
    NODE_SERVICES=10.96.$NODE_NUMBER.0/24
    NODE_CGROUP=propeller-e2e-$NODE_NUMBER
}

# A pair of cards and a network namespace; first of all, as the keys hold the addresses.
node_network() {
    local number
    ((EUID == 0)) || die "E2E_CLUSTER=local needs root"
    for number in $(shuf -i 1-250); do
        ip netns add "propeller-$number" 2>/dev/null && break
    done
    printf '%s\n' "$number" >"$CLUSTER/node-number"
    node_variables
    mkdir -p "$NODE"
    ip link add "pn$number" type veth peer name eth0 netns "propeller-$number"
    ip addr add "$NODE_MACHINE/30" dev "pn$number"
    ip link set "pn$number" up
    ip -n "propeller-$number" link set lo up
    ip -n "propeller-$number" addr add "$NODE_ADDRESS/30" dev eth0
    ip -n "propeller-$number" link set eth0 up
    ip -n "propeller-$number" route add default via "$NODE_MACHINE"
    ip route replace "$NODE_PODS" via "$NODE_ADDRESS"
    ip route replace "$NODE_SERVICES" via "$NODE_ADDRESS"
}

node_keys() {
    certificate kubelet-serving "/CN=$NODE_NAME" "IP:$NODE_ADDRESS,DNS:$NODE_NAME"
    certificate kubelet "/O=system:nodes/CN=system:node:$NODE_NAME"
    certificate scheduler /CN=system:kube-scheduler
    certificate proxy /CN=system:kube-proxy
    certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver-kubelet-client
    kubeconfig "$CLUSTER/scheduler.kubeconfig" "$CLUSTER/ca.crt" "$(with_certificate scheduler)"
    kubeconfig "$NODE/kubelet.kubeconfig" "$CLUSTER/ca.crt" "$(with_certificate kubelet)" \
        "https://$NODE_MACHINE:$APISERVER_PORT"
    kubeconfig "$NODE/proxy.kubeconfig" "$CLUSTER/ca.crt" "$(with_certificate proxy)" \
        "https://$NODE_MACHINE:$APISERVER_PORT"
}

node_file() { # node_file NAME: a file of this folder with this node's values
    sed -e "s#STATE#$NODE#g; s#CLUSTER#$CLUSTER#g; s#CGROUP#$NODE_CGROUP#g; s#PODS#$NODE_PODS#g; s#NAME#$NODE_NAME#g" \
        "$HERE/cluster/$1"
}

node_start() {
    node_sysctls >"$CLUSTER/sysctls"
    mkdir -p "$NODE/cni"
    node_file containerd.toml >"$NODE/containerd.toml"
    node_file kubelet.yaml >"$NODE/kubelet.yaml"
    node_file proxy.yaml >"$NODE/proxy.yaml"
    node_file cni.conflist >"$NODE/cni/10-node.conflist"
    : >"$NODE/resolv.conf"
    spawn scheduler "$CONTROL_PLANE_BIN/kube-scheduler" --leader-elect=false --bind-address 127.0.0.1 \
        --secure-port "$(free_port)" --kubeconfig "$CLUSTER/scheduler.kubeconfig" \
        --kube-api-qps 500 --kube-api-burst 1000
    cgroup_weight "$NODE_CGROUP" 4
    spawn node nsenter --net="/run/netns/propeller-$NODE_NUMBER" unshare --mount --pid --fork --kill-child \
        --mount-proc bash "$HERE/cluster/node-init.sh" "$NODE" "$NODE_CGROUP" \
        "$CONTROL_PLANE_BIN" "$NODE_ADDRESS" "$NODE_NAME"
    wait_for 60 "containerd" ctr --address "$NODE/containerd.sock" version
    image pause:1 fill_pause "$HERE/cluster/pause.c"
    wait_for 120 "the node to be ready" node_ready
}

# The images of the cases: the test device, and the programs under test.
node_images() {
    mkdir -p "$NODE"
    image proplet:1 fill_proplet "$HERE"/device/*.py
    ! operator_in_pods || node_import "$WORK/image/propeller.tar"
}

node_import() { # node_import ARCHIVE
    if has_kind; then
        kind_import "$1"
    else
        ctr --address "$NODE/containerd.sock" --namespace k8s.io images import "$1" >/dev/null
    fi
}

# Its processes are gone: what the kernel keeps for them.
node_clear() {
    [[ -e $CLUSTER/node-number ]] || return 0
    node_variables
    ip link del "pn$NODE_NUMBER" 2>/dev/null
    ip netns del "propeller-$NODE_NUMBER" 2>/dev/null
    cgroups_remove "$NODE_CGROUP"
    sysctls_restore "$CLUSTER/sysctls"
} 2>/dev/null
