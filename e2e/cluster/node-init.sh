#!/usr/bin/env bash
# node-init.sh STATE CGROUP PROGRAMS ADDRESS NAME: the first process of a node, in mount, PID and
# network namespaces of its own. Keeps containerd, the kubelet and kube-proxy running; all of it ends with it.
set -u
STATE=$1 CGROUP=$2 PROGRAMS=$3 ADDRESS=$4 NAME=$5

mount --make-rshared /
for folder in log/containers lib/cni; do
    mkdir -p "/var/$folder" "$STATE/var/$folder"
    mount --bind "$STATE/var/$folder" "/var/$folder"
done
echo 1 >/proc/sys/net/ipv4/ip_forward

# cgroup v1: a fresh cpuset is empty, and no process can enter it.
for controller in /sys/fs/cgroup/*/; do
    mkdir -p "$controller$CGROUP" 2>/dev/null
done
for file in cpuset.cpus cpuset.mems; do
    cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$CGROUP/$file"
done 2>/dev/null

# keep NAME COMMAND...: started again when it ends, unless NAME.held is there, and found by its pid file
keep() {
    local name=$1
    shift
    while :; do
        while [[ -e $STATE/$name.held ]]; do timeout 0.2 tail -f /dev/null; done
        "$@" >>"$STATE/$name.log" 2>&1 &
        echo $! >"$STATE/$name.pid"
        wait $!
        timeout 0.3 tail -f /dev/null
    done
}
keep containerd containerd --config "$STATE/containerd.toml" &
keep kubelet "$PROGRAMS/kubelet" --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/kubelet.kubeconfig" \
    --root-dir "$STATE/kubelet" --hostname-override "$NAME" --node-ip "$ADDRESS" &
keep proxy "$PROGRAMS/kube-proxy" --config "$STATE/proxy.yaml" &
while :; do wait; done
