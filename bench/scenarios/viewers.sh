#!/usr/bin/env bash
# The fleet page: its memory, and created -> start on the device without viewers and with ten of them, in one run.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

DEVICES=${BENCH_DEVICES:-100}
SAMPLES=${BENCH_SAMPLES:-200}
VIEWERS=${BENCH_VIEWERS:-10}

# Each has a login, the overview and the list of Tasks, as a browser with two tabs.
viewer_start() { # viewer_start N
    local list token cookie=$PART/viewer-$1.cookie
    kn create serviceaccount "viewer-$1" >/dev/null
    k create clusterrolebinding "bench-viewer-$1" --clusterrole=cluster-admin --serviceaccount="$NS:viewer-$1" >/dev/null
    token=$(kn create token "viewer-$1")
    curl -sSf --cookie-jar "$cookie" -H "Content-Type: application/json" -d "{\"token\":\"$token\"}" "http://$PAGE/login"
    for list in fleet tasks; do
        spawn "viewer-$1-$list" curl -sSfN --cookie "$cookie" --max-time 3600 -o "$PART/viewer-$1.$list" \
            "http://$PAGE/api/stream?list=$list"
    done
}

viewer_watches() { [[ -s $PART/viewer-$1.tasks && -s $PART/viewer-$1.fleet ]]; }

latency() { # latency WHO
    kn delete tasks --all --wait=true >/dev/null # the names of the Tasks are the same each time
    tasks_py latency "$SAMPLES" --journal "$LOGS/devices.journal" --audit "$CLUSTER/audit.log" |
        sed "s/^/$1: /" | figures
}

main() {
    local -a identities
    local number
    [[ $BENCH_WHO == ours ]] || return 0 # a peer has no such page
    scenario_begin
    broker_in_memory
    mapfile -t identities < <(printf 'device-%s\n' $(seq "$DEVICES"))
    broker_prepare "${identities[@]}"
    broker_start
    PAGE=127.0.0.1:$(free_port)
    operator_start --page-bind-address "$PAGE"
    memory_figures "a page that no one looks at" "<= $((17 << 10))" "<= $((6 << 10))"
    proplet_json worker-NUMBER device-NUMBER | add_numbered "$DEVICES"
    device_start devices --count "$DEVICES"
    proplets_await 120 Running "$DEVICES"
    tasks_py many "$DEVICES" --prefix first >/dev/null
    tasks_await 60 completed "$DEVICES"
    latency "no viewer"

    for ((number = 1; number <= VIEWERS; number++)); do viewer_start "$number"; done
    for ((number = 1; number <= VIEWERS; number++)); do wait_for 60 "viewer $number" viewer_watches "$number"; done
    latency "$VIEWERS viewers"
    memory_figures "$VIEWERS viewers of $SAMPLES Tasks"
}

main "$@"
