# shellcheck shell=bash
# One case: a namespace and a part of its own; nothing of it is left behind.

case_begin() {
    CASE=$(basename "$0" .sh)
    cluster_join
    part_begin "$CASE"
    NS=e2e-$CASE-$RANDOM
    trap case_end EXIT
    k create namespace "$NS" >/dev/null
}

# For cases that need powers over the cluster that an existing one does not give.
case_needs_own_cluster() {
    owns_cluster && return
    say "does not apply to an existing cluster" >"$PART/not-applicable"
    exit 0
}

# For cases whose pods really run; and for those that speak for pods themselves.
case_needs_node() {
    has_node && return
    say "needs pods that run: E2E_CLUSTER=local" >"$PART/not-applicable"
    exit 0
}
case_needs_no_node() {
    has_node || return 0
    say "speaks for the pods itself, which run with E2E_CLUSTER=local" >"$PART/not-applicable"
    exit 0
}

# world_start IDENTITY...: broker with these devices' accounts, and the controller
world_start() {
    broker_prepare "$@"
    broker_start
    controller_prepare
    controller_start
}

case_end() {
    local status=$?
    trap - EXIT
    set +e
    case_tells_no_secret || status=1
    ((status == 0)) || case_evidence
    webhook_unregister
    case_clear_objects
    case_clear_processes
    k delete namespace "$NS" --wait=false >/dev/null 2>&1
    ((status == 0)) && rm -rf "$LOGS"
    exit "$status"
}

case_evidence() {
    {
        kn get proplets,tasks -o wide
        kn get proplets,tasks -o yaml
        kn get events --sort-by=.metadata.creationTimestamp
        readyz
    } >"$LOGS/objects.txt" 2>&1
    tail -n 15 "$LOGS/controller.log" 2>/dev/null
}

# Passwords of the broker and tokens stand in nothing that this case produced: logs, journals, what
# went over the wire, events, statuses.
case_tells_no_secret() {
    local found
    {
        api "/api/v1/namespaces/$NS/events"
        objects tasks | jq '.items[].status'
        objects proplets | jq '.items[].status'
    } >"$LOGS/told.txt" 2>/dev/null
    found=$(grep -rlE "$(secret_of '')|eyJ[A-Za-z0-9_-]{20,}[.][A-Za-z0-9_-]{20,}" "$LOGS") || return 0
    printf 'FAILED: a secret stands in %s\n' "$found"
    return 1
}

# The controller may be gone by now, and nobody else would take its finalizers off.
case_clear_objects() {
    local name
    kn delete proplets,tasks --all --wait=false >/dev/null 2>&1
    is_running controller && stop controller TERM >/dev/null 2>&1
    for name in $(kn get proplets,tasks -o name 2>/dev/null); do
        kn patch "$name" --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1
    done
}

# The lease of a leader that is killed here holds for as long as it liked: not for the next case.
case_clear_processes() {
    local file
    for file in "$PIDS"/*; do
        [[ -e $file ]] && kill_group KILL "$(<"$file")"
    done
    ! owns_cluster || k delete lease propeller-controller --namespace "$SYSTEM_NS" --ignore-not-found >/dev/null 2>&1
}
