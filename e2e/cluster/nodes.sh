# shellcheck shell=bash
# What happens to nodes, whichever cluster they are of (local.sh, kind.sh). A node is named as in Kubernetes.

node_of() { made pods "$1" .spec.nodeName; } # node_of POD, of the case
nodes() { k get nodes --output name | sed 's#node/##'; }

# node_ready [NODE]: nothing keeps pods away
node_ready() {
    local node=${1:-$NODE_NAME} seen
    seen=$(api "/api/v1/nodes/$node" | jq -r '
        [(.status.conditions[] | select(.type == "Ready") | .status), (.spec.taints // [] | length)] | join(" ")') ||
        return 1
    # shellcheck disable=SC2153 # the folder of the local node, and not its name
    printf '%s: %s; %s\n' "$node" "$seen" "$(tail -n 1 "$NODE/kubelet.log" 2>/dev/null)"
    [[ $seen == "True 0" ]]
}

node_first() { pgrep -P "$(in_cluster pid_of node)"; } # the first process of the local node
on_node() { # on_node NODE COMMAND...
    local node=$1
    shift
    if has_kind; then
        in_docker docker exec "$node" "$@"
    else
        nsenter --target "$(node_first)" --mount --pid "$@"
    fi
}

node_daemon() { # node_daemon NODE NAME: its process, as the node counts
    if has_kind; then
        on_node "$1" systemctl show --property MainPID --value "$2"
    else
        cat "$NODE/$2.pid"
    fi
}
node_has_another() {
    local seen
    seen=$(node_daemon "$1" "$2") && printf 'process %s\n' "$seen"
    [[ -n $seen && $seen != 0 && $seen != "$3" ]]
}
# node_kill NODE NAME: containerd or kubelet, without warning; it is started again at once
node_kill() {
    local before
    before=$(node_daemon "$1" "$2")
    on_node "$1" kill -KILL "$before"
    wait_for 30 "another $2" node_has_another "$1" "$2" "$before"
}

# One that has just ended by itself is as good as stopped: it is held.
node_daemon_ended() { # node_daemon_ended NODE NAME
    ! on_node "$1" kill -TERM "$(node_daemon "$1" "$2")" 2>/dev/null
}
# node_stop NODE: kubelet and containerd, until node_begin; containers go on
node_stop() {
    local name
    for name in kubelet containerd; do
        if has_kind; then
            on_node "$1" systemctl stop "$name"
        else
            : >"$NODE/$name.held"
            wait_for 30 "$name to end" node_daemon_ended "$1" "$name"
        fi
    done
}
node_begin() {
    if has_kind; then
        on_node "$1" systemctl start containerd kubelet
    else
        rm -f "$NODE"/{kubelet,containerd}.held
    fi
}

# nodes_revive: what a case that failed left cordoned, stopped or dead
nodes_revive() {
    local node
    for node in $(nodes); do
        ! has_kind || in_docker docker start "$node" >/dev/null
        node_begin "$node"
        k uncordon "$node" >/dev/null
    done
    ! has_kind || kind_routes
}

# node_reboot NODE: everything on it ends at once, and begins anew
node_reboot() {
    if has_kind; then
        in_docker docker kill "$1" >/dev/null
        in_docker docker start "$1" >/dev/null
        kind_routes
        return
    fi
    node_stop "$1"
    # shellcheck disable=SC2016 # expanded by the other shell
    find /sys/fs/cgroup/pids/"$NODE_CGROUP"/kubepods -name cgroup.procs \
        -exec bash -c 'cat "$@" | xargs -r kill -KILL' all {} + 2>/dev/null || true
    node_begin "$1"
}
