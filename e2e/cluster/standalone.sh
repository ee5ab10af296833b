# shellcheck shell=bash disable=SC2034 # used by those who source it
# E2E_CLUSTER=standalone: propeller-standalone in place of a control plane. The cases have their own
# controllers, as processes; the demo and those about standalone itself have the one inside.

STANDALONE_BIN=${STANDALONE_BIN:-$ROOT/build/bin/propeller-standalone}

has_standalone() { [[ ${E2E_CLUSTER:-} == standalone ]]; }

# Debian's kubectl will do where none was built.
standalone_kubectl() {
    [[ -x $KUBECTL ]] || KUBECTL=$(command -v kubectl) || die "there is no kubectl"
}

# standalone_prepare: certificates and kubeconfigs, once; the files of $CLUSTER as a control plane has them
standalone_prepare() {
    standalone_kubectl
    APISERVER_PORT=$(free_port)
    printf 'APISERVER_PORT=%s\n' "$APISERVER_PORT" >"$CLUSTER/ports"
    STANDALONE_OPTIONS=(--data-dir "$CLUSTER/data" --address "127.0.0.1:$APISERVER_PORT")
    "$STANDALONE_BIN" init "${STANDALONE_OPTIONS[@]}"
    cp "$CLUSTER/data/admin.kubeconfig" "$CLUSTER/data/controller.kubeconfig" "$CLUSTER/"
}

standalone_ready() { k get --raw /readyz; }

# standalone_start [OPTION...]
standalone_start() {
    spawn standalone "$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" "$@"
    wait_for 60 "the standalone server" standalone_ready
}
