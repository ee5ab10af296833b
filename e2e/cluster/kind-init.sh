#!/usr/bin/env bash
# kind-init.sh STATE DATA: the first process of a Docker daemon in mount, PID and network namespaces of
# its own; all of it ends with it. DATA keeps its images.
set -u
STATE=$1 DATA=$2
mount --make-rshared /
mkdir -p /run/docker /run/containerd
mount -t tmpfs tmpfs /run/docker
mount -t tmpfs tmpfs /run/containerd
echo 1 >/proc/sys/net/ipv4/ip_forward
ulimit -n "$(ulimit -Hn)"
RUNTIME=()
# `docker run --privileged` asks for every capability there is; without this one runc would fail.
(($(awk '/^CapBnd/ { print "0x" $2 }' /proc/self/status) >> 24 & 1)) ||
    RUNTIME=(--add-runtime "less=$(dirname "$0")/runc-less" --default-runtime less)
dockerd --data-root "$DATA" --exec-root /run/docker/exec --pidfile "$STATE/docker.pid" \
    --host "unix://$STATE/docker.sock" --storage-driver overlay2 --exec-opt native.cgroupdriver=cgroupfs \
    --cgroup-parent /propeller-kind --oom-score-adjust 0 "${RUNTIME[@]}" &
while :; do wait; done
