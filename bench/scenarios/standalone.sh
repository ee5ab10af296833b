#!/usr/bin/env bash
# propeller-standalone beside etcd with kube-apiserver (the column of the peer), both on the same disk and with every
# write synced, neither with controllers: start, memory, writes, watches. BENCH_STANDALONE="0 1000 50000" Tasks.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

OBJECTS=${BENCH_STANDALONE:-0 1000 50000}
SPAN=${BENCH_STANDALONE_SECONDS:-10}
WATCHES=100
SETTLE=15
POLL=0.02 POLL_SLOW=0.02 # the start of one of them is shorter than the usual 0.1 s

# ---- the two servers: prepare, spawn, PROCESSES, READY ----

alone_prepare() {
    standalone_prepare
    PROCESSES=(standalone)
    READY=(--header "Authorization: Bearer $(sed -n 's/^ *token: //p' "$CLUSTER/admin.kubeconfig")")
}
alone_spawn() { spawn standalone "$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" --controller=false; }

kube_prepare() {
    cluster_keys
    cluster_ports
    cluster_kubeconfigs
    PROCESSES=(etcd apiserver)
    READY=(--cert "$CLUSTER/admin.crt" --key "$CLUSTER/admin.key")
}
kube_spawn() {
    local -a ETCD_OPTIONS=(--quota-backend-bytes 4294967296 --log-level warn) # it syncs
    cluster_etcd
    spawn apiserver "$CONTROL_PLANE_BIN/kube-apiserver" --bind-address 127.0.0.1 --secure-port "$APISERVER_PORT" \
        --etcd-servers "http://127.0.0.1:$ETCD_PORT" --advertise-address 127.0.0.1 --endpoint-reconciler-type none \
        --service-cluster-ip-range 10.96.0.0/16 --authorization-mode RBAC --anonymous-auth=false \
        --client-ca-file "$CLUSTER/ca.crt" --tls-cert-file "$CLUSTER/apiserver.crt" \
        --tls-private-key-file "$CLUSTER/apiserver.key" --service-account-key-file "$CLUSTER/sa.pub" \
        --service-account-issuer https://kubernetes.default.svc.cluster.local --service-account-signing-key-file "$CLUSTER/sa.key"
}
kinds() { if [[ $SERVER == kube ]]; then cluster_prepare >/dev/null; fi; }

# ---- what is measured ----

server_ready() {
    curl -sSf --max-time 5 -o /dev/null --cacert "$CLUSTER/ca.crt" "${READY[@]}" "https://127.0.0.1:$APISERVER_PORT/readyz"
}
# start WHAT [BUDGET]: the figure of it
start() {
    local began
    began=$(now_ms)
    "${SERVER}_spawn"
    wait_for 300 "the server" server_ready
    figure "start to ready, $1 (ms)" $(($(now_ms) - began)) "${2:-}"
}
server_mib() {
    local name sum=0
    for name in "${PROCESSES[@]}"; do
        sum=$((sum + $(awk '$1 == "VmRSS:" { print $2 }' "/proc/$(pid_of "$name")/status")))
    done
    ratio "$sum" 1024 1
}
# User and system time of the server so far, in ms.
server_cpu_ms() {
    local name sum=0
    for name in "${PROCESSES[@]}"; do
        sum=$((sum + $(awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$(pid_of "$name")/stat")))
    done
    printf '%s\n' "$sum"
}
end() {
    local name
    for name in "${PROCESSES[@]}"; do crash "$name"; done
}
# load MODE [NUMBER]: the lines of bench/apiserver
load() {
    "$ROOT/build/plain/bench/apiserver" "$1" --kubeconfig "$CLUSTER/admin.kubeconfig" --namespace "$NS" \
        --seconds "$SPAN" --number "${2:-1}"
}
kept() { sed -n "s/^$1 //p" <<<"$2"; }
kind_is_served() { k get --raw "/apis/$API/namespaces/$NS/tasks?limit=1"; }

version() { k get --raw "/apis/$API/namespaces/$NS/tasks?limit=1" | jq -r .metadata.resourceVersion; }
# has_written SINCE: for wait_for
has_written() {
    local now
    now=$(version)
    printf 'at %s\n' "$now"
    ((now > $1 + 50))
}
# The end of the server, while 16 writers are at work.
end_under_writers() {
    local writers since
    since=$(version)
    load writes 16 &>/dev/null &
    writers=$!
    wait_for 120 "writes" has_written "$since"
    end
    wait "$writers" || true # its server is gone
}

measure() {
    local count lines writers before
    start "empty"
    kinds
    k create namespace "$NS" >/dev/null
    wait_for 120 "Tasks to be served" kind_is_served
    for writers in 1 16; do
        lines=$(load writes "$writers")
        figure "writes a second, $writers writers" "$(kept writes-per-second "$lines")"
    done
    before=$(server_cpu_ms)
    lines=$(load fanout "$WATCHES")
    figure "processor time an event to a watch (us)" "$(ratio "$((1000 * ($(server_cpu_ms) - before)))" "$(kept events "$lines")" 0)"
    figure "events a second to $WATCHES watches" "$(kept events-per-second "$lines")"
    figure "last of $WATCHES watches behind a burst of writes (ms)" "$(kept behind-ms "$lines")"
    figure "all of $WATCHES watches told of a single write (ms)" "$(kept told-ms "$lines")"
    for count in $OBJECTS; do
        ((count == 0)) || load fill "$count" >/dev/null
        end_under_writers
        start "$count Tasks, after kill -9 under 16 writers" "<= 1000"
        wait_for 120 "Tasks to be served" kind_is_served
        before=$(server_cpu_ms)
        lines=$(load list)
        figure "processor time a list of $count Tasks (ms)" "$(ratio "$(($(server_cpu_ms) - before))" "$(kept lists "$lines")" 1)"
        figure "list of $count Tasks in pages (ms)" "$(kept list-ms "$lines")"
        observe_for "$SETTLE"
        figure "memory with $count Tasks (MiB)" "$(server_mib)"
    done
    end
}

main() {
    local name theirs
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    theirs=$CLUSTER
    for name in manager apiserver etcd; do # they would take their part of the machine
        signal_noted STOP "$theirs/pids/$name"
    done
    for SERVER in alone kube; do
        CLUSTER=$PART/$SERVER
        mkdir -p "$CLUSTER"
        BENCH_WHO=$([[ $SERVER == alone ]] && echo ours || echo peer)
        "${SERVER}_prepare"
        measure
    done
}

main "$@"
