#!/usr/bin/env bash
# node-image.sh FOLDER NAME: FOLDER/node.tar, a node image for kind where none can be pulled: a Debian
# tree, the files that kind itself puts into its images (of the pinned Go module), the programs of the
# control plane and, in its containerd, an image of each. Does what kind's images/base/Dockerfile and
# `kind build node-image` do, without a daemon and without a registry.
#
# Needs root and Debian's mmdebstrap, containerd, nftables and jq; setup.sh kind brings them.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"
# shellcheck source=e2e/cluster/images.sh
source "$HERE/cluster/images.sh"
FOLDER=$1 NAME=$2
TREE=$FOLDER/tree
KIND_FILES=$(cd "$HERE/controlplane/kind" && GOFLAGS=-mod=readonly GOWORK=off PATH=$PATH:$GO_HOME/go/bin \
    go list -m -f '{{.Dir}}' sigs.k8s.io/kind)/images/base/files
PACKAGES=systemd,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,pigz,bash
PACKAGES+=,ca-certificates,curl,jq,procps,containerd,runc,containernetworking-plugins,socat
SUITE=bookworm # its systemd takes cgroup v1 as it is

debian_tree() {
    # In a mount namespace of its own: interrupted, it would leave /proc and /sys mounted in there.
    unshare --mount mmdebstrap --quiet --variant=minbase --include="$PACKAGES" "$SUITE" "$TREE"
}

files_of_kind() {
    local file
    chmod -R u+w "$TREE/etc" && cp -r "$KIND_FILES/." "$TREE/"
    chmod -R u+w "$TREE"/{kind,etc,usr/local,LICENSES}
    find "$TREE"/{kind,etc/containerd,etc/default,etc/sysctl.d,etc/systemd/system} -type f -exec chmod 644 {} +
    chmod 755 "$TREE"/usr/local/bin/* "$TREE/kind" "$TREE/kind/bin" "$TREE"/kind/bin/*
    rm -f "$TREE"/lib/systemd/system/{sysinit.target.wants/systemd-tmpfiles-setup.service,containerd.service} \
        "$TREE"/lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* \
        "$TREE"/lib/systemd/system/sockets.target.wants/*{udev,initctl}* "$TREE"/etc/systemd/system/*.wants/*
    printf 'ReadKMsg=no\n' >>"$TREE/etc/systemd/journald.conf"
    ln -sf /usr/lib/systemd/systemd "$TREE/sbin/init"
    for file in containerd ctr containerd-shim-runc-v2; do
        ln -sf "/usr/bin/$file" "$TREE/usr/local/bin/$file"
    done
    # What a machine without CAP_SYS_RESOURCE cannot do; others do not miss it.
    sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' "$TREE/etc/containerd/config.toml"
    sed -i '/^OOMScoreAdjust/d' "$TREE/etc/systemd/system/containerd.service"
    mkdir -p "$TREE/etc/kubernetes/manifests" "$TREE/opt/cni/bin" "$TREE/kind/manifests"
    cp "$TREE"/usr/lib/cni/{ptp,host-local,portmap,loopback} "$TREE/opt/cni/bin/"
    chroot "$TREE" systemctl enable kubelet containerd undo-mount-hacks 2>/dev/null
    chroot "$TREE" systemctl mask systemd-binfmt 2>/dev/null
    chroot "$TREE" ctr oci spec | jq '.hooks.createContainer |= [{"path": "/kind/bin/mount-product-files.sh"}]
        | del(.process.rlimits)' >"$TREE/etc/containerd/cri-base.json"
    cp "$CONTROL_PLANE_BIN"/{kubeadm,kubelet,kubectl} "$TREE/usr/bin/"
    printf '%s' "$KUBERNETES_VERSION" >"$TREE/kind/version"
}

# program_image NAME PROGRAM [TOOL...]: an image with this program, and tools with their libraries
program_image() {
    local name=$1 program=$2 root=$FOLDER/root tool
    shift 2
    rm -rf "$root"
    mkdir -p "$root/usr/local/bin" "$root/tmp"
    if [[ $program == pause ]]; then
        gcc -O2 -static -o "$root/usr/local/bin/pause" "$HERE/cluster/pause.c"
    else
        cp "$CONTROL_PLANE_BIN/$program" "$root/usr/local/bin/"
    fi
    ln -s "usr/local/bin/$program" "$root/$program"
    for tool in "$@"; do
        install -D "$tool" "$root$tool"
        with_libraries "$root" "$tool"
    done
    "$PYTHON_HOME/bin/python" -B "$HERE/../config/image/oci.py" --name "$name" --user 0:0 \
        --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$root" "$FOLDER/image.tar" "/$program"
    ctr --address "$FOLDER/c.sock" --namespace k8s.io images import --no-unpack "$FOLDER/image.tar" >/dev/null
    rm -rf "$root" "$FOLDER/image.tar"
}

# Into the tree's containerd, under the names that kubeadm will ask for.
images_of_kubernetes() {
    local name program pid
    printf 'version = 2\nroot = "%s"\nstate = "%s/run"\ndisabled_plugins = ["io.containerd.grpc.v1.cri", %s]\n[grpc]\naddress = "%s"\n' \
        "$TREE/var/lib/containerd" "$FOLDER" '"io.containerd.internal.v1.opt"' "$FOLDER/c.sock" >"$FOLDER/c.toml"
    containerd --config "$FOLDER/c.toml" >"$FOLDER/containerd.log" 2>&1 &
    pid=$!
    # shellcheck disable=SC2064 # this process, whatever the variable is by then
    trap "kill $pid 2>/dev/null || true" EXIT
    until ctr --address "$FOLDER/c.sock" version >/dev/null 2>&1; do
        kill -0 "$pid" && sleep 0.2
    done
    for name in $("$CONTROL_PLANE_BIN/kubeadm" config images list --kubernetes-version "$KUBERNETES_VERSION" | grep -v /pause:) \
        "$(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$TREE/etc/containerd/config.toml")"; do
        program=${name##*/}
        program=${program%:*}
        if [[ $program == kube-proxy ]]; then
            program_image "$name" "$program" /usr/sbin/nft /usr/sbin/conntrack
        else
            program_image "$name" "$program"
        fi
    done
    kill "$pid"
    wait "$pid" || true
    trap - EXIT
}

# `docker import` could not say which signal stops it.
docker_archive() {
    local config=$FOLDER/config.json
    tar --create --numeric-owner --one-file-system --directory "$TREE" --file "$FOLDER/layer.tar" .
    jq -nc --arg layer "sha256:$(sha256sum "$FOLDER/layer.tar" | cut -d' ' -f1)" '
        {architecture: "amd64", os: "linux", rootfs: {type: "layers", diff_ids: [$layer]}, config: {
            Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "container=docker"],
            Entrypoint: ["/usr/local/bin/entrypoint", "/sbin/init"], StopSignal: "SIGRTMIN+3"}}' >"$config"
    jq -nc --arg name "$NAME" '[{Config: "config.json", RepoTags: [$name], Layers: ["layer.tar"]}]' >"$FOLDER/manifest.json"
    tar --create --directory "$FOLDER" --file "$FOLDER/node.new" manifest.json config.json layer.tar
    rm -rf --one-file-system "$TREE" "$FOLDER"/{layer.tar,config.json,manifest.json,run} "$FOLDER"/c.*
    mv "$FOLDER/node.new" "$FOLDER/node.tar"
}

mkdir -p "$FOLDER"
rm -rf --one-file-system "$TREE"
debian_tree
files_of_kind
images_of_kubernetes
docker_archive
