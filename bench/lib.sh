# shellcheck shell=bash
# What the scenarios share: figures, the operator that is measured, its memory and processor time.
#
# A scenario is bench/scenarios/NAME.sh, a program of its own that run.sh starts with BENCH_WHO=ours, and again
# with BENCH_WHO=peer if there is a peer. It brings up what it needs on a control plane that run.sh made for it, in
# a namespace, and says what it measured with `figure`. Nothing is asserted: times depend on the machine.

BENCH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/lib.sh
source "$BENCH/../e2e/lib.sh"

PEER_ACCOUNT=bench-peer
FLEET_BIN=$ROOT/build/bin/propeller-fleet
# As they are by default, and the devices' intervals, too.
CONTROLLER_TIMES=()
READY_SECONDS=600 # 100,000 objects on a slow machine

# figure WHAT VALUE [BUDGET]: a number, with its unit in WHAT; BUDGET as '<= 15' or '>= 90'
figure() {
    jq -nc --arg scenario "$SCENARIO" --arg who "$BENCH_WHO" --arg what "$1" --argjson value "$2" \
        --arg budget "${3:-}" '{$scenario, $who, $what, $value, $budget, at: (now | todate)}' >>"$BENCH_FIGURES"
}

# The same from lines `WHAT|VALUE[|BUDGET]`.
figures() {
    local what value budget
    while IFS='|' read -r what value budget; do
        figure "$what" "$value" "$budget"
    done
}

# point SERIES X VALUE [BUDGET]: a figure of something that grows with X; bench/growth.py draws the series
point() {
    jq -nc --arg scenario "$SCENARIO" --arg who "$BENCH_WHO" --arg series "$1" --argjson x "$2" --argjson value "$3" \
        --arg budget "${4:-}" '{$scenario, $who, what: "\($x) \($series)", $value, $budget, $series, $x, at: (now | todate)}' >>"$BENCH_FIGURES"
}

# lines: how straight the series of this scenario are
lines() {
    "$PYTHON_HOME/bin/python" "$BENCH/growth.py" --figures "$BENCH_FIGURES" --scenario "$SCENARIO" --who "$BENCH_WHO" | figures
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

# The broker saves after every change before it says anything, with a sync that takes a disk 5 to 50 ms: a part of
# the time until a start arrives that nobody but its disk changes. To be called before broker_prepare.
broker_in_memory() {
    BROKER_DATA=$(mktemp -d /dev/shm/propeller-bench.XXXXXX)
}

scenario_end() {
    local status=$?
    trap - EXIT
    set +e
    ((status == 0)) || [[ -z ${HEALTH_PORT:-} ]] || readyz
    case_clear_processes # the objects go with the control plane
    rm -rf "${BROKER_DATA:-}"
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

# Who has ended will not be ready any more.
ready_or_ended() { controller_ready || ! is_running controller; }
operator_await() {
    wait_for "$READY_SECONDS" "the operator to be ready" ready_or_ended
    is_running controller || die "the operator has ended: $(tail -n 1 "$LOGS/controller.log")"
}

# operator_start [OPTION...]: ours with these options added, or the peer; returns when it is ready
operator_start() {
    local command
    [[ -n ${HEALTH_PORT:-} ]] || controller_prepare
    if [[ $BENCH_WHO == ours ]]; then
        controller_spawn "$@"
        operator_await
        return
    fi
    # Once: how long a start takes is measured.
    [[ -e $PART/peer.kubeconfig ]] || peer_prepare
    command=$BENCH_PEER
    command=${command//KUBECONFIG/$PART/peer.kubeconfig}
    command=${command//HEALTH/127.0.0.1:$HEALTH_PORT}
    command=${command//METRICS/127.0.0.1:$METRICS_PORT}
    command=${command//BROKER/127.0.0.1:$BROKER_PORT}
    command=${command//USER/$CONTROLLER_USER}
    command=${command//KEYFILE/$PART/controller.key}
    read -ra command <<<"$command"
    spawn controller "${command[@]}"
    operator_await
}

# User and system time of the operator so far, in ms.
cpu_ms() {
    awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$(pid_of controller)/stat"
}

# From now on VmHWM is the most since now.
peak_reset() { printf '5\n' >"/proc/$(pid_of controller)/clear_refs"; }

settled() { [[ $(metrics | awk '/^workqueue_depth/ { sum += $2 } END { print sum + 0 }') == 0 ]]; }

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

# tasks_await SECONDS STATE COUNT: until so many are in it; a phase or a reason, or empty for all of them
tasks_await() { tasks_py await "$3" --state "$2" --patience "$1"; }
# proplets_await SECONDS PHASE COUNT
proplets_await() { tasks_py await "$3" --kind proplets --state "$2" --patience "$1"; }

# tasks_drop PREFIX COUNT: those of `tasks_py many`, until all Tasks of the namespace are gone
tasks_drop() {
    tasks_py drop "$2" --prefix "$1"
    tasks_await 3600 "" 0
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

# operator_requests MARK [JQ-CONDITION]: the lines of the audit log behind a mark (audit_mark) that are requests
# of the operator's identities for which it holds
operator_requests() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | jq -c '
        select(.user.username | startswith("system:serviceaccount:'"$SYSTEM_NS"':")) | select('"${2:-true}"')'
}
