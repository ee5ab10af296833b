# shellcheck shell=bash
# Several replicas of the controller, each with a letter: `replica-a.log`, exit status in
# PART/replica-a.exit, ports of its own. After controller_prepare.

declare -A REPLICA_HEALTH=() REPLICA_METRICS=()

# replica_start LETTER [OPTION...]: as a replica of a Deployment; does not wait
replica_start() {
    local letter=$1
    shift
    if operator_in_pods; then
        replica_pod_start "$letter" "$@"
        return
    fi
    REPLICA_HEALTH[$letter]=$(free_port)
    REPLICA_METRICS[$letter]=$(free_port)
    rm -f "$PART/replica-$letter.exit"
    # The shell around it lives on to write down how it ended.
    # shellcheck disable=SC2016 # expanded by the other shell
    spawn "replica-$letter" bash -c 'trap : TERM; "$@"; printf "%s\n" $? >"$0.new"; mv "$0.new" "$0"' \
        "$PART/replica-$letter.exit" "$CONTROLLER_BIN" "${CONTROLLER_ACCESS[@]}" "${CONTROLLER_OPTIONS[@]}" \
        --health-probe-bind-address "127.0.0.1:${REPLICA_HEALTH[$letter]}" \
        --metrics-bind-address "127.0.0.1:${REPLICA_METRICS[$letter]}" --page-bind-address 0 "$@"
}

replica_signal() {
    if operator_in_pods; then
        kill "-$2" "$(pod_process "replica-$1")"
    else
        signal_noted "$2" "$PIDS/replica-$1"
    fi
}

replica_url() { # replica_url LETTER health|metrics
    case $(operator_in_pods && printf 'pods ')$2 in
    pods*) operator_url "$2" "replica-$1" ;;
    health) printf 'http://127.0.0.1:%s\n' "${REPLICA_HEALTH[$1]}" ;;
    metrics) printf 'http://127.0.0.1:%s\n' "${REPLICA_METRICS[$1]}" ;;
    esac
}

# A standby is ready, too.
replica_ready() { curl -sSf --max-time 5 -o /dev/null "$(replica_url "$1" health)/readyz"; }
replica_leads() {
    curl -sSf --max-time 5 "$(replica_url "$1" metrics)/metrics" |
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

replica_exit() {
    if operator_in_pods; then
        replica_pod_status "$1"
    else
        cat "$PART/replica-$1.exit"
    fi
}
# replica_ended LETTER STATUS: for wait_for; killed ones say 137
replica_ended() {
    local status
    status=$(replica_exit "$1" 2>&1) && [[ $status == "$2" ]] && return
    printf 'exit status: %s; last line: %s\n' "$status" "$(tail -n 1 "$LOGS/replica-$1.log")"
    return 1
}

lease_holder() {
    api "/apis/coordination.k8s.io/v1/namespaces/$SYSTEM_NS/leases/propeller-controller" |
        jq -r '.spec.holderIdentity // ""'
}
