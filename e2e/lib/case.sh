# shellcheck shell=bash
# One case: a namespace and a part of its own, and if it likes more namespaces whose names begin with
# "$NS-"; nothing of it is left behind.

# chosen_cases [NAME...]: the files of these cases, by number, name or both; of all
chosen_cases() {
    local name file found
    if (($# == 0)); then
        printf '%s\n' "$HERE"/cases/[0-9]*.sh
        return
    fi
    for name in "$@"; do
        found=
        for file in "$HERE"/cases/"$name".sh "$HERE"/cases/"$name"-*.sh "$HERE"/cases/[0-9]*-"$name".sh; do
            [[ -e $file ]] && found=$file
        done
        [[ -n $found ]] || die "no case '$name' in e2e/cases"
        printf '%s\n' "$found"
    done
}

case_begin() {
    CASE=$(basename "$0" .sh)
    cluster_join
    part_begin "$CASE"
    NS=e2e-$CASE-$RANDOM
    trap case_end EXIT
    ! has_kind || kind_services
    k create namespace "$NS" >/dev/null
    # Their pods cannot be made before. The controller manager makes it, which ends when the API server was away,
    # and which a kubelet starts again after a pause that doubles.
    ! has_node || wait_for 180 "the account of the pods" kn get serviceaccount default
}

# For cases that need powers over the cluster that an existing one does not give.
case_needs_own_cluster() {
    cluster_is_ours && return
    say "needs powers that an existing cluster does not give" >"$PART/not-applicable"
    exit 0
}

# For cases whose pods really run; and for those that speak for pods themselves.
case_needs_node() {
    has_node && return
    say "needs pods that run: E2E_CLUSTER=local or kind" >"$PART/not-applicable"
    exit 0
}
case_needs_no_node() { # case_needs_no_node [WHY]
    has_node || return 0
    say "${1:-speaks for the pods itself, and in this cluster they run}" >"$PART/not-applicable"
    exit 0
}

# Of standalone only what goes through a recorder can be counted.
case_reads_audit_log() { grep -qE '(audit_mark|start_was_read)' "$0"; }

# world_start IDENTITY...: broker with these devices' accounts, and the controller
world_start() {
    broker_prepare "$@"
    broker_start
    controller_prepare
    controller_start
}

# For cases that take kinds and rights away: the ones after it find them, however it ends.
case_uninstalls() { : >"$PART/uninstalls"; }
case_install_again() {
    [[ -e $PART/uninstalls ]] || return 0
    k delete mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" --ignore-not-found
    k delete namespace "$SYSTEM_NS" --ignore-not-found --timeout=300s # gone already if the case did what it should
    cluster_prepare
    ! owns_cluster || identity_kubeconfig "$CLUSTER/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
}

case_end() {
    local status=$?
    trap - EXIT
    set +e
    # Whom a signal ends has the status of the command before.
    ((status > 0 || SECONDS + 1 < ${CASE_SECONDS:-SECONDS + 2})) || status=124
    ((status == 0)) || pkill -TERM -P $$ -g 0 # what it waited for when its time was over, and no process that it noted
    ((status == 0)) || case_revive_cluster
    case_tells_no_secret || status=1
    ! operator_in_pods || operator_memory >>"$WORK/memory" 2>/dev/null
    ((status == 0)) || case_evidence
    webhook_unregister
    case_install_again >/dev/null 2>&1
    case_clear_processes
    own_cluster_end
    wait_for 300 "the case to be cleared away" case_clear_objects || status=1
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
    controller_log | tail -n 15
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

# What a case stopped of the control plane and, since it failed, did not bring back.
case_revive_cluster() {
    local name
    ! has_kind || { kind_apiserver_begin && apiserver_serves && nodes_revive && kind_services_back; }
    ! has_standalone || standalone_revive
    owns_cluster || return 0
    for name in etcd apiserver manager; do
        if in_cluster is_running "$name"; then
            signal_noted CONT "$CLUSTER/pids/$name"
        else
            in_cluster "cluster_$name"
        fi
    done
    apiserver_back
    ! has_local_node || nodes_revive
}

case_namespaces() { k get namespaces -o name | sed -nE "s#^namespace/($NS(-.*)?)\$#\\1#p"; }

# The next case may have a controller for all namespaces: it must find nothing to work on. Nobody is
# left who would take the finalizers off. Fails, with their names, as long as something is there.
case_clear_objects() {
    local namespaces namespace status=0
    namespaces=$(case_namespaces) || return 1
    for namespace in $namespaces; do
        case_clear_namespace "$namespace" || status=1
    done
    return "$status"
}
case_clear_namespace() {
    local NS=$1 kind left status=0
    # First: what a controller that was killed has asked for may still be under way.
    k delete namespace "$NS" --wait=false >/dev/null 2>&1
    for kind in enrollments federatedjobs trainingrounds propellerjobs tasks proplets; do
        api "/apis/$API/namespaces/$NS/$kind" -X DELETE --max-time 120 >/dev/null || return 1
        left=$(object_addresses "$kind") || return 1
        xargs -r curl -sS --max-time 60 --unix-socket "$CLUSTER/api" -X PATCH \
            -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"finalizers":null}}' \
            <<<"$left" >/dev/null || return 1
        left=$(object_addresses "$kind") || return 1
        [[ -z $left ]] || status=1
        printf '%s\n' "$left"
    done
    return "$status"
}
object_addresses() {
    objects "$1" | jq -r --arg at "http://localhost/apis/$API/namespaces/$NS/$1" '.items[].metadata.name | "\($at)/\(.)"'
}

# The lease of a leader that is killed here holds for as long as it liked: not for the next case.
case_clear_processes() {
    local file
    ! operator_embedded || stop controller KILL
    for file in "$PIDS"/*; do
        [[ -e $file ]] && signal_noted KILL "$file"
    done
    ! operator_in_pods || operator_clear
    owns_cluster || has_standalone || operator_in_pods || return 0
    k delete lease propeller-controller --namespace "$SYSTEM_NS" --ignore-not-found >/dev/null 2>&1
}
