# shellcheck shell=bash
# What the scenarios share: figures, the operator that is measured, its memory and processor time.
#
# A scenario is bench/scenarios/NAME.sh, a program of its own that run.sh starts with BENCH_WHO=ours, and again
# with BENCH_WHO=peer if there is a peer. It brings up what it needs on run.sh's control plane in a namespace of
# its own, and says what it measured with `figure`. Nothing is asserted: times depend on the machine.

BENCH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/lib.sh
source "$BENCH/../e2e/lib.sh"

PEER_ACCOUNT=bench-peer
FLEET_BIN=$ROOT/build/bin/propeller-fleet
# As they are by default, and the devices' intervals, too.
CONTROLLER_TIMES=()

# figure WHAT VALUE [BUDGET]: a number, with its unit in WHAT; BUDGET as '<= 15' or '>= 90'
figure() {
    jq -nc --arg scenario "$SCENARIO" --arg who "$BENCH_WHO" --arg what "$1" --argjson value "$2" \
        --arg budget "${3:-}" '{$scenario, $who, $what, $value, $budget}' >>"$BENCH_FIGURES"
}

# The same from lines `WHAT|VALUE[|BUDGET]`.
figures() {
    local what value budget
    while IFS='|' read -r what value budget; do
        figure "$what" "$value" "$budget"
    done
}

# ratio A B [DIGITS]: A / B
ratio() { awk -v a="$1" -v b="$2" -v digits="${3:-2}" 'BEGIN { printf "%.*f\n", digits, b ? a / b : 0 }'; }

# scenario_begin: a part of its own, ended with the script; with an API there is a namespace, too
scenario_begin() {
    SCENARIO=$(basename "$0" .sh)
    cluster_join
    part_begin "bench-$SCENARIO-$BENCH_WHO"
    NS=bench-$SCENARIO-$RANDOM
    trap scenario_end EXIT
    k create namespace "$NS" >/dev/null
}

scenario_end() {
    local status=$?
    trap - EXIT
    set +e
    ((status == 0)) || readyz
    case_clear_objects
    case_clear_processes
    k delete namespace "$NS" --wait=false >/dev/null 2>&1
    exit "$status"
}

# ---- the operator ----

# The peer is an administrator whom the audit log knows by name.
peer_prepare() {
    k create serviceaccount "$PEER_ACCOUNT" --namespace "$SYSTEM_NS" --dry-run=client -o yaml | k apply -f - >/dev/null
    k create clusterrolebinding "$PEER_ACCOUNT" --clusterrole cluster-admin \
        --serviceaccount "$SYSTEM_NS:$PEER_ACCOUNT" --dry-run=client -o yaml | k apply -f - >/dev/null
    identity_kubeconfig "$PART/peer.kubeconfig" "$SYSTEM_NS" "$PEER_ACCOUNT"
}

# operator_start [OPTION...]: ours with these options added, or the peer; returns when it is ready
operator_start() {
    local command
    [[ -n ${HEALTH_PORT:-} ]] || controller_prepare
    if [[ $BENCH_WHO == ours ]]; then
        controller_start "$@"
        return
    fi
    peer_prepare
    command=$BENCH_PEER
    command=${command//KUBECONFIG/$PART/peer.kubeconfig}
    command=${command//HEALTH/127.0.0.1:$HEALTH_PORT}
    command=${command//METRICS/127.0.0.1:$METRICS_PORT}
    command=${command//BROKER/127.0.0.1:$BROKER_PORT}
    command=${command//USER/$CONTROLLER_USER}
    command=${command//KEYFILE/$PART/controller.key}
    read -ra command <<<"$command"
    spawn controller "${command[@]}"
    wait_for 60 "the peer to be ready" controller_ready
}

# User and system time of the operator so far, in ms.
cpu_ms() {
    awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$(pid_of controller)/stat"
}

# memory_figures WHAT [RSS-BUDGET] [ANON-BUDGET]
memory_figures() {
    figure "$1: VmRSS (KiB)" "$(memory VmRSS)" "${2:-}"
    figure "$1: RssAnon (KiB)" "$(memory RssAnon)" "${3:-}"
}

# ---- objects ----

tasks_py() { # tasks_py MODE COUNT [OPTION...]
    local mode=$1 count=$2
    shift 2
    "$PYTHON_HOME/bin/python" "$BENCH/tasks.py" "$mode" --count "$count" --socket "$CLUSTER/api" \
        --namespace "$NS" --module "$ADDITION" "$@"
}

# add_proplets COUNT [OPTION...]: worker-1 ... of the devices device-1 ...
add_proplets() {
    local count=$1
    shift
    tasks_py proplets "$count" --broker "tcp://127.0.0.1:$BROKER_PORT" --domain "$DOMAIN" --channel "$CHANNEL" "$@"
}

# ---- the simulated fleet ----

# fleet_start COUNT [OPTION...]: device-1 ... device-COUNT; returns when they are connected
fleet_start() {
    local count=$1
    shift
    secret_of "$OBSERVER" >"$PART/fleet.key"
    rm -f "$PART/fleet.json"
    spawn fleet "$FLEET_BIN" --broker "127.0.0.1:$BROKER_PORT" --user "$OBSERVER" \
        --password-file "$PART/fleet.key" --domain "$DOMAIN" --channel "$CHANNEL" --devices "$count" \
        --summary "$PART/fleet.json" "$@"
    wait_for 120 "the fleet to be connected" fleet_count_is devices "$count"
}

fleet_count() { jq ".$1" "$PART/fleet.json"; }
# fleet_count_is NAME AT-LEAST: for wait_for
fleet_count_is() {
    local count
    is_running fleet || {
        tail -n 1 "$LOGS/fleet.log"
        return 1
    }
    count=$(fleet_count "$1") || return 1
    printf '%s is %s of %s\n' "$1" "$count" "$2"
    ((count >= $2))
}


# requests_since MARK JQ-CONDITION: how many requests of the operator's identities it holds for
operator_requests() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | jq -c '
        select(.user.username | startswith("system:serviceaccount:'"$SYSTEM_NS"':")) | select('"${2:-true}"')'
}
