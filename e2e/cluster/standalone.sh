# shellcheck shell=bash disable=SC2034 # used by those who source it
# E2E_CLUSTER=standalone: propeller-standalone in place of a control plane. With E2E_OPERATOR=embedded (the default
# there) the controller of a case is the one inside: `controller_start` starts the server again with the options
# of the case, and whoever ends the controller ends the server, which is then started again without one. With
# E2E_OPERATOR=process the server has none, and the controllers are processes of their own.

STANDALONE_BIN=${STANDALONE_BIN:-$ROOT/build/bin/propeller-standalone}

has_standalone() { [[ ${E2E_CLUSTER:-} == standalone ]]; }
operator_embedded() { [[ ${E2E_OPERATOR:-} == embedded ]]; }

# For cases about what only Kubernetes has: pods, RBAC, webhooks, kinds that come and go.
case_needs_kubernetes() { # case_needs_kubernetes WHY
    has_standalone || return 0
    say "needs Kubernetes: $1" >"$PART/not-applicable"
    exit 0
}
# For cases in which a controller and the API server live and die apart, or several controllers.
case_needs_apart() { # case_needs_apart WHY
    operator_embedded || return 0
    say "needs E2E_OPERATOR=process: $1" >"$PART/not-applicable"
    exit 0
}

# Debian's kubectl will do where none was built.
standalone_kubectl() {
    [[ -x $KUBECTL ]] || KUBECTL=$(command -v kubectl) || die "there is no kubectl"
}

# standalone_prepare: certificates and kubeconfigs, once; the files of $CLUSTER as a control plane has them
standalone_prepare() {
    standalone_kubectl
    APISERVER_PORT=$(free_port)
    AUDIT_PORT=$(free_port)
    printf '%s=%s\n' APISERVER_PORT "$APISERVER_PORT" AUDIT_PORT "$AUDIT_PORT" >"$CLUSTER/ports"
    standalone_options
    "$STANDALONE_BIN" init "${STANDALONE_OPTIONS[@]}"
    cp "$CLUSTER/data/admin.kubeconfig" "$CLUSTER/data/ca"/ca.{crt,key} "$CLUSTER/"
    # for controllers that are processes of their own
    "$STANDALONE_BIN" add-user "${STANDALONE_OPTIONS[@]}" --name propeller-controller --role admin >"$CLUSTER/controller.kubeconfig"
}
standalone_options() { STANDALONE_OPTIONS=(--data-dir "$CLUSTER/data" --address "127.0.0.1:$APISERVER_PORT"); }

standalone_ready() { # NAME: this process, and no other one, serves
    is_running "$1" || {
        printf 'it has ended; last line: %s\n' "$(tail -n 1 "$LOGS/$1.log")"
        return 1
    }
    k get --raw /readyz
}

# standalone_start [OPTION...]
standalone_start() { standalone_start_as standalone "$@"; }
standalone_start_as() { # NAME [OPTION...]
    spawn "$1" "$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" "${@:2}"
    wait_for 60 "the standalone server" standalone_ready "$1"
}

# own_server: for cases with a server of their own: from here on k, kn and api mean it
own_server() {
    case_needs_no_node "has a server of its own"
    THEIR_WORLD=("$CLUSTER" "$E2E_CLUSTER" "$E2E_OPERATOR")
    CLUSTER=$PART/server E2E_CLUSTER=standalone E2E_OPERATOR=process
    mkdir -p "$CLUSTER/data"
    trap own_server_end EXIT
}
own_server_end() {
    local status=$?
    set +e
    CLUSTER=${THEIR_WORLD[0]} E2E_CLUSTER=${THEIR_WORLD[1]} E2E_OPERATOR=${THEIR_WORLD[2]}
    (exit "$status") # case_end asks how the case ended
    case_end
}

# ---- the server of a lane, which is its API server; maybe with the controller of a case in it ----

standalone_alone() { in_cluster standalone_start_as apiserver --controller=false; }

standalone_token() { sed -n 's/^ *token: //p' "$CLUSTER/controller.kubeconfig"; }

# The namespace of the Lease, and who keeps the audit log that cases ask for.
standalone_cluster() {
    local token
    standalone_prepare
    standalone_alone
    k create namespace "$SYSTEM_NS"
    certificate apiserver /CN=kube-apiserver IP:127.0.0.1 # for what stands in front of it
    token=$(standalone_token)
    kubeconfig "$CLUSTER/audited.kubeconfig" "$CLUSTER/ca.crt" "token: $token" "https://127.0.0.1:$AUDIT_PORT"
    : >"$CLUSTER/audit.log"
    spawn audit "$PYTHON_HOME/bin/python" -B "$HERE/proxy/audit.py" --listen "$AUDIT_PORT" --server "127.0.0.1:$APISERVER_PORT" \
        --certificate "$CLUSTER/apiserver.crt" --key "$CLUSTER/apiserver.key" --authority "$CLUSTER/ca.crt" \
        --user "$(audit_identities_prefix)controller" --log "$CLUSTER/audit.log"
}

# standalone_embed [OPTION...]: from now on with the controller of this case
standalone_embed() {
    in_cluster stop apiserver
    printf '%s\n' "$@" >"$PART/embedded-options"
    standalone_embed_begin
}
standalone_embed_begin() {
    local -a options
    mapfile -t options < <(grep . "$PART/embedded-options")
    standalone_start_as controller "${CONTROLLER_OPTIONS[@]}" "${options[@]}"
    cp "$PIDS/controller" "$CLUSTER/pids/apiserver"
}

# standalone_disembed SIGNAL: the API goes on without it, unless the case took that away, too
standalone_disembed() {
    local status=0
    [[ -e $PIDS/controller ]] || return 0
    stop_process controller "$1" || status=1
    [[ ! -e $CLUSTER/pids/apiserver ]] || standalone_alone
    return "$status"
}

standalone_begin() {
    if operator_embedded && [[ -e $PIDS/controller ]]; then standalone_embed_begin; else standalone_alone; fi
}
# What a case killed and did not bring back.
standalone_revive() {
    signal_noted CONT "$CLUSTER/pids/apiserver" 2>/dev/null
    in_cluster is_running apiserver || standalone_begin
}
