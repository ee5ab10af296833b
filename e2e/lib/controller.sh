# shellcheck shell=bash
# The controller under test.

CONTROLLER_BIN=${CONTROLLER_BIN:-$ROOT/build/bin/propeller-controller}
# shellcheck disable=SC2034 # for cases: those of an installation
CONTROLLER_LEASE=(--leader-elect-lease-duration 15s --leader-elect-renew-deadline 10s
    --leader-elect-retry-period 2s)
# Short times, so that waiting for a lease or a lost device does not make the run long.
CONTROLLER_TIMES=(--leader-elect-lease-duration 4s --leader-elect-renew-deadline 3s
    --leader-elect-retry-period 500ms --last-seen-threshold 3s)

# controller_prepare: ports and files, once; controller_start may then be called again and again
controller_prepare() {
    HEALTH_PORT=$(free_port)
    METRICS_PORT=$(free_port)
    PAGE_PORT=$(free_port)
    secret_of "$CONTROLLER_USER" >"$PART/controller.key"
    chmod 600 "$PART/controller.key"
    CONTROLLER_ACCESS=(--kubeconfig "$CLUSTER/controller.kubeconfig") # one inside a server takes none
    CONTROLLER_OPTIONS=(--health-probe-bind-address "127.0.0.1:$HEALTH_PORT"
        --metrics-bind-address "127.0.0.1:$METRICS_PORT" --page-bind-address "127.0.0.1:$PAGE_PORT"
        --mqtt-address "tcp://127.0.0.1:$BROKER_PORT" --client-id "$CONTROLLER_USER"
        --client-key-file "$PART/controller.key" "${CONTROLLER_TIMES[@]}")
    # Nodes take a part of a slow machine: that must not look like a leader that stands still.
    ! operator_in_pods || CONTROLLER_OPTIONS+=(--leader-elect-lease-duration 15s --leader-elect-renew-deadline 10s)
    if has_standalone; then # one identity, in this lane nobody else's
        CONTROLLER_OPTIONS+=(--leader-election-namespace "$SYSTEM_NS" --manage-webhook-certificates=false)
        if case_reads_audit_log; then
            case_needs_apart "only requests of another process can be recorded"
            CONTROLLER_ACCESS=(--kubeconfig "$CLUSTER/audited.kubeconfig")
        fi
    elif owns_cluster || operator_in_pods; then
        CONTROLLER_OPTIONS+=(--use-service-account-credentials)
    else # one identity, which may be anybody's; another controller may hold the usual Lease
        CONTROLLER_OPTIONS+=(--leader-election-namespace "$NS")
    fi
}

controller_spawn() {
    [[ -n ${LANE_CLUSTER:-} ]] || : >"$WORK/controller-was-started"
    if operator_in_pods; then
        operator_start "$@"
        return
    fi
    if operator_embedded; then
        standalone_embed "$@"
        return
    fi
    spawn controller "$CONTROLLER_BIN" "${CONTROLLER_ACCESS[@]}" "${CONTROLLER_OPTIONS[@]}" "$@"
}

controller_start() {
    controller_spawn "$@"
    wait_for "$(operator_in_pods && echo 90 || echo 30)" "the controller to be ready" controller_ready
}

controller_url() { # controller_url health|metrics: of the one that leads
    case $(operator_in_pods && printf 'pods ')$1 in
    pods*) operator_url "$1" ;;
    health) printf 'http://127.0.0.1:%s\n' "$HEALTH_PORT" ;;
    metrics) printf 'http://127.0.0.1:%s\n' "$METRICS_PORT" ;;
    esac
}
readyz() { curl -sS --max-time 5 "$(controller_url health)/readyz?verbose"; }
metrics() { curl -sSf --max-time 5 "$(controller_url metrics)/metrics"; }
controller_log() { cat "$LOGS/controller.log" "$LOGS/$OPERATOR"-*.log 2>/dev/null || true; } # of one of the two

controller_ready() {
    if operator_in_pods; then
        operator_ready
        return
    fi
    is_running controller || {
        printf "it has ended; last line: %s\n" "$(tail -n 1 "$LOGS/controller.log")"
        return 1
    }
    curl -sSf -o /dev/null "http://127.0.0.1:$HEALTH_PORT/readyz" || {
        readyz
        return 1
    }
}

# readyz_says PATTERN: the one that leads; while nobody does, as without rights, one of them
readyz_says() {
    local said
    said=$(readyz 2>&1) || said=$(operator_in_pods && operator_readyz) || return 1
    printf '%s\n' "$said"
    grep -qE "$1" <<<"$said"
}

controller_stop() { stop controller TERM; }

# Killed without warning and started again; waits until it leads.
controller_crash_restart() {
    crash controller
    controller_start
}

# memory FIELD: VmRSS or RssAnon of the controller in KiB
memory() { awk -v field="$1:" '$1 == field { print $2 }' "/proc/$(pid_of controller)/status"; }
