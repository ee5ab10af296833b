#!/usr/bin/env bash
# propeller-standalone beside etcd with kube-apiserver (the column of the peer), both on the same disk and with every
# write synced, neither with controllers: start, memory, writes, watches. BENCH_STANDALONE="0 1000 50000" Tasks. Without
# a peer: memory with the controller, memory of large bodies, and changes of an administrator beside lists of a viewer.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

OBJECTS=${BENCH_STANDALONE:-0 1000 50000}
SPAN=${BENCH_STANDALONE_SECONDS:-10}
WATCHES=100
LISTERS=250 LISTED=1000 PATCHES=200
SETTLE=20 # memory is given back every 15 s
MEMORY="<= 16"
POLL=0.02 POLL_SLOW=0.02 # the start of one of them is shorter than the usual 0.1 s

# ---- the two servers: prepare, spawn, PROCESSES, READY ----

alone_prepare() {
    standalone_prepare
    PROCESSES=(standalone)
    READY=(--header "Authorization: Bearer $(sed -n 's/^ *token: //p' "$CLUSTER/admin.kubeconfig")")
}
alone_spawn() { spawn standalone "$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" "${ALONE_WITH[@]}"; }
ALONE_WITH=(--controller=false)

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
# server_kib FIELD
server_kib() {
    local name sum=0
    for name in "${PROCESSES[@]}"; do
        sum=$((sum + $(awk -v field="$1:" '$1 == field { print $2 }' "/proc/$(pid_of "$name")/status")))
    done
    printf '%s\n' "$sum"
}
# memory_of WHAT [BUDGET], in MiB
memory_of() { figure "memory $1 (MiB)" "$(ratio "$(server_kib VmRSS)" 1024 1)" "${2:-}"; }
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

# ---- of ours alone: what one client can take ----

# large_body NAME: 3 MB of what is refused before it is built, or after that; of members, as many as are stored
large_body() {
    local head='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":'
    case $1 in
    numbers.json) printf '%s[%s0]}' "$head" "$(seq 1500000 | sed 's/.*/0,/' | tr -d '\n')" ;;
    escapes.json) printf '%s{"a":"%s"}}' "$head" "$(seq 500000 | sed 's/.*/\\u0001/' | tr -d '\n')" ;;
    texts.json) printf '%s{%s"last":""}}' "$head" "$(seq 9000 | awk '{ printf "\"%d\":\"%310s\",", NR, "x" }')" ;;
    members.json)
        printf '{"apiVersion":"%s","kind":"Task","metadata":{"name":"large"},"spec":{"name":"large","imageUrl":"a/b:1",' \
            "$API"
        printf '"metadata":{%s"last":""}}}' "$(seq 9000 | awk '{ printf "\"A%062d\":\"\",", NR }')"
        ;;
    lines.yaml)
        printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n'
        seq 370000 | sed 's/.*/- 0    /'
        ;;
    esac
}
# post_large NAME PATH
post_large() {
    large_body "$1" >"$CLUSTER/$1"
    say "$1: $(stat -c %s "$CLUSTER/$1") bytes, $(curl -sS --max-time 60 -o /dev/null -w '%{http_code}' \
        --cacert "$CLUSTER/ca.crt" "${READY[@]}" --header "Content-Type: application/${1##*.}" \
        --data-binary "@$CLUSTER/$1" "https://127.0.0.1:$APISERVER_PORT$2")"
}
measure_bodies() {
    local name before
    before=$(server_kib VmRSS)
    printf '5\n' >"/proc/$(pid_of standalone)/clear_refs" # VmHWM begins anew
    for name in {numbers,escapes,texts}.json lines.yaml; do
        post_large "$name" "/api/v1/namespaces/$NS/configmaps"
    done
    post_large members.json "/apis/$API/namespaces/$NS/tasks"
    figure "most memory that bodies of 3 MB, one after another, add (MiB)" \
        "$(ratio "$(($(server_kib VmHWM) - before))" 1024 1)" "<= 32"
}
measure_lists() {
    local lines listers
    "$STANDALONE_BIN" add-user "${STANDALONE_OPTIONS[@]}" --name viewer --role view >"$CLUSTER/viewer.kubeconfig"
    "$ROOT/build/plain/bench/apiserver" lists --kubeconfig "$CLUSTER/viewer.kubeconfig" --namespace "$NS" \
        --seconds "$SPAN" --number "$LISTERS" >"$CLUSTER/lists" &
    listers=$!
    lines=$(load patches "$PATCHES")
    wait "$listers"
    say "$(tr '\n' ' ' <"$CLUSTER/lists")"
    figure "p99 of a PATCH beside $LISTERS clients of a viewer that list $LISTED Tasks (ms)" "$(kept p99-ms "$lines")" "<= 1000"
}
measure_alone() {
    start "empty, for large bodies"
    k create namespace "$NS" >/dev/null
    measure_bodies
    load fill "$LISTED" >/dev/null
    measure_lists
    end
    ALONE_WITH=("--metrics-bind-address=127.0.0.1:$(free_port)" "--health-probe-bind-address=127.0.0.1:$(free_port)"
        "--page-bind-address=127.0.0.1:$(free_port)")
    start "$LISTED Tasks, with the controller"
    observe_for "$SETTLE"
    memory_of "at start with the controller and $LISTED Tasks" "$MEMORY"
    load writes 16 >/dev/null
    observe_for "$SETTLE"
    memory_of "after 16 writers, with the controller and $LISTED Tasks" "$MEMORY"
    end
}

measure() {
    local count lines writers before
    start "empty"
    observe_for 1
    memory_of "at start" "$MEMORY"
    kinds
    k create namespace "$NS" >/dev/null
    wait_for 120 "Tasks to be served" kind_is_served
    for writers in 1 16; do
        lines=$(load writes "$writers")
        figure "writes a second, $writers writers" "$(kept writes-per-second "$lines")"
    done
    observe_for "$SETTLE"
    memory_of "after the writers" "$MEMORY"
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
        memory_of "with $count Tasks"
    done
    end
}

# begin FOLDER: a server with nothing in it
begin() {
    CLUSTER=$PART/$1
    mkdir -p "$CLUSTER"
    BENCH_WHO=$([[ $SERVER == alone ]] && echo ours || echo peer)
    "${SERVER}_prepare"
}

main() {
    local name theirs
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    theirs=$CLUSTER
    for name in manager apiserver etcd; do # they would take their part of the machine
        signal_noted STOP "$theirs/pids/$name"
    done
    for SERVER in kube alone; do
        begin "$SERVER"
        measure
    done
    begin limits
    measure_alone
}

main "$@"
