# shellcheck shell=bash
# Several replicas of the controller, each with a letter: `replica-a.log`, exit status in
# PART/replica-a.exit, ports of its own. After controller_prepare.

declare -A REPLICA_HEALTH=() REPLICA_METRICS=()

# replica_start LETTER [OPTION...]: as a replica of a Deployment; does not wait
replica_start() {
    local letter=$1
    shift
    REPLICA_HEALTH[$letter]=$(free_port)
    REPLICA_METRICS[$letter]=$(free_port)
    rm -f "$PART/replica-$letter.exit"
    # The shell around it lives on to write down how it ended.
    # shellcheck disable=SC2016 # expanded by the other shell
    spawn "replica-$letter" bash -c 'trap : TERM; "$@"; printf "%s\n" $? >"$0.new"; mv "$0.new" "$0"' \
        "$PART/replica-$letter.exit" "$CONTROLLER_BIN" "${CONTROLLER_OPTIONS[@]}" \
        --health-probe-bind-address "127.0.0.1:${REPLICA_HEALTH[$letter]}" \
        --metrics-bind-address "127.0.0.1:${REPLICA_METRICS[$letter]}" "$@"
}

replica_signal() { kill_group "$2" "$(pid_of "replica-$1")"; }

# A standby is ready, too.
replica_ready() { curl -sSf --max-time 5 -o /dev/null "http://127.0.0.1:${REPLICA_HEALTH[$1]}/readyz"; }
replica_leads() {
    curl -sSf --max-time 5 "http://127.0.0.1:${REPLICA_METRICS[$1]}/metrics" |
        grep 'leader_election_master_status{name="propeller-controller"} 1'
}
# leader_of LETTER...: the one that leads
leader_of() {
    local letter
    for letter in "$@"; do
        if replica_leads "$letter" >/dev/null 2>&1; then
            printf '%s\n' "$letter"
            return
        fi
    done
    printf 'none of %s leads\n' "$*"
    return 1
}
# One leads and is ready, its connections to the broker included.
one_serves() {
    local letter
    letter=$(leader_of "$@") && replica_ready "$letter" && printf '%s\n' "$letter"
}

# replica_ended LETTER STATUS: for wait_for; killed ones say 137
replica_ended() {
    local status
    status=$(cat "$PART/replica-$1.exit" 2>&1) && [[ $status == "$2" ]] && return
    printf 'exit status: %s; last line: %s\n' "$status" "$(tail -n 1 "$LOGS/replica-$1.log")"
    return 1
}

lease_holder() {
    api "/apis/coordination.k8s.io/v1/namespaces/$SYSTEM_NS/leases/propeller-controller" |
        jq -r '.spec.holderIdentity // ""'
}

# broker_connections: of the controllers, in order, one line each, of the control connection
broker_connections() {
    grep "New client connected from .* as $CONTROLLER_USER (" "$LOGS/broker.log" || true
}
