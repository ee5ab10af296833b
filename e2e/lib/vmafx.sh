# shellcheck shell=bash disable=SC2034 # used by those who source it
# A VMAFX controller with its trainers (vmafx/peer.py), which says what PART/script.json says.

# vmafx_begin: sets GRPC_PORT, PAGES_PORT and VMAFX_OPTIONS for a controller
vmafx_begin() {
    "$HERE/setup.sh" vmafx >/dev/null
    GRPC_PORT=$(free_port) PAGES_PORT=$(free_port)
    VMAFX_OPTIONS=(--enable-vmafx --vmafx-controller-grpc-address "127.0.0.1:$GRPC_PORT"
        --vmafx-controller-http-address "http://127.0.0.1:$PAGES_PORT/{namespace}"
        --vmafx-trainer-url "http://127.0.0.1:$PAGES_PORT/{namespace}/{name}/status")
    : >"$PART/asked.jsonl"
    printf '{}\n' >"$PART/script.json"
}

vmafx_peer_is_up() { curl -sSf "http://127.0.0.1:$PAGES_PORT/any/healthz"; }
vmafx_peer_start() { # vmafx_peer_start [OPTION...]
    spawn peer "$VMAFX_HOME/bin/python" -B "$HERE/vmafx/peer.py" --script "$PART/script.json" \
        --journal "$PART/asked.jsonl" --grpc "$GRPC_PORT" --http "$PAGES_PORT" "$@"
    wait_for 30 "the VMAFX controller" vmafx_peer_is_up
}

# vmafx_peer_says JSON: merged into what it says
vmafx_peer_says() {
    jq -c ". * $1" "$PART/script.json" >"$PART/script.new"
    mv "$PART/script.new" "$PART/script.json"
}
# vmafx_asked WHAT: how many requests (or connections) of this sort came
vmafx_asked() { jq -rs --arg what "$1" 'map(select(.ask == $what)) | length' "$PART/asked.jsonl"; }

vmafx_install() {
    k apply --server-side -f "$ROOT/crds/vmafx/" >/dev/null
    k wait --for=condition=Established --timeout=30s -f "$ROOT/crds/vmafx/" >/dev/null
    k apply --server-side -f "$ROOT/rbac/vmafx/" -f "$ROOT/config/overlays/vmafx/bindings.yaml" >/dev/null
}

# vmafx_set_ids: each VmafxJob of the namespace has its name as the id of the controller
vmafx_set_ids() {
    kn get vmafxjobs.vmafx.dev -o json | jq -r '.items[].metadata.name' | while read -r name; do
        printf 'next\nurl = "http://localhost/apis/vmafx.dev/v1/namespaces/%s/vmafxjobs/%s/status"\n' "$NS" "$name"
        printf 'unix-socket = "%s/api"\nrequest = PATCH\nheader = "Content-Type: application/merge-patch+json"\n' "$CLUSTER"
        printf 'data = "{\\"status\\": {\\"controllerJobID\\": \\"%s\\"}}"\noutput = /dev/null\n' "$name"
    done | sed 1d | curl -sSf --config -
}
# vmafx_make_jobs PREFIX NUMBER
vmafx_make_jobs() {
    seq 1 "$2" | jq -c --arg prefix "$1" '{apiVersion: "vmafx.dev/v1", kind: "VmafxJob",
        metadata: {name: "\($prefix)\(.)"}, spec: {reference: "s3://a/b", distorted: "s3://a/c"}}' | kn create -f - >/dev/null
    vmafx_set_ids
}
