#!/usr/bin/env bash
# VmafxJobs that run and VmafxNodes that are healthy, at rest: calls, probes, writes, processor time and memory.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

OBJECTS=1000
SPAN=${BENCH_STEADY_SECONDS:-120}

asked() { jq -rs --arg what "$1" 'map(select(.ask == $what)) | length' "$PART/asked.jsonl"; }
patch_each() { # patch_each PLURAL PATCH: the status of each, by the names in stdin
    local plural=$1 patch=$2
    sed "s|^|http://localhost/apis/vmafx.dev/v1/namespaces/$NS/$plural/|; s|\$|/status|" |
        xargs -P 4 -n 50 curl -sSf --output /dev/null --unix-socket "$CLUSTER/api" -X PATCH \
            -H 'Content-Type: application/merge-patch+json' -d "$patch" >/dev/null
}
make_many() { # make_many KIND SPEC
    seq 1 "$OBJECTS" | jq -c --arg kind "$1" --argjson spec "$2" \
        '{apiVersion: "vmafx.dev/v1", kind: $kind, metadata: {name: "n\(.)"}, spec: $spec}' | kn create -f - >/dev/null
}
all_are() { # all_are PLURAL FILTER
    local seen
    seen=$(api "/apis/vmafx.dev/v1/namespaces/$NS/$1" | jq "[.items[] | select($2)] | length")
    printf '%s of %s\n' "$seen" "$OBJECTS"
    ((seen == OBJECTS))
}

main() {
    local mark before empty grpc http calls probes
    [[ $BENCH_WHO == ours ]] || return 0 # a peer has no such kinds
    scenario_begin
    k apply --server-side -f "$ROOT/crds/vmafx/" -f "$ROOT/rbac/vmafx/" -f "$ROOT/config/overlays/vmafx/bindings.yaml" >/dev/null
    k wait --for=condition=Established --timeout=30s -f "$ROOT/crds/vmafx/" >/dev/null
    grpc=$(free_port) http=$(free_port)
    : >"$PART/asked.jsonl"
    printf '{"any": {"status": "RUNNING", "node": "n1"}}\n' >"$PART/script.json"
    spawn peer "$PYTHON_HOME/bin/python" -B "$ROOT/e2e/vmafx/peer.py" --script "$PART/script.json" \
        --journal "$PART/asked.jsonl" --grpc "$grpc" --http "$http"
    broker_prepare
    broker_start
    operator_start --enable-vmafx --vmafx-controller-grpc-address "127.0.0.1:$grpc" \
        --vmafx-controller-http-address "http://127.0.0.1:$http"
    empty=$(memory RssAnon)
    make_many VmafxJob '{"reference": "s3://a/b", "distorted": "s3://a/c"}'
    make_many VmafxNode '{"gpuVendor": "nvidia"}'
    seq -f 'n%g' 1 "$OBJECTS" | patch_each vmafxjobs '{"status": {"controllerJobID": "job"}}'
    wait_for 300 "all jobs to run" all_are vmafxjobs '.status.phase == "Running"'
    wait_for 300 "all nodes to be healthy" all_are vmafxnodes '.status.healthy'
    wait_for 300 "the node to know its jobs" all_are vmafxnodes \
        ".status.assignedJobs == (if .metadata.name == \"n1\" then $OBJECTS else 0 end)"

    mark=$(audit_mark)
    calls=$(asked job) probes=$(asked healthz)
    before=$(cpu_ms)
    observe_for "$SPAN"
    figure "processor time of $OBJECTS jobs and nodes (% of a core)" "$(ratio $((($(cpu_ms) - before) / 10)) "$SPAN")" "<= 8"
    calls=$(ratio $(($(asked job) - calls)) "$SPAN")
    figure "calls of GetJob a second" "$calls"
    figure "distance from a call of each job in ten seconds" \
        "$(awk -v calls="$calls" -v due=$((OBJECTS / 10)) 'BEGIN { print calls < due ? due - calls : calls - due }')" "<= $((OBJECTS / 100))"
    figure "probes a minute" "$(ratio $((($(asked healthz) - probes) * 60)) "$SPAN")" "<= 2.5"
    figure "connections of gRPC" "$(asked connection)" "<= 1"
    figure "writes" "$(operator_requests "$mark" '.objectRef.apiGroup == "vmafx.dev" and .verb == "patch"' | wc -l)" "<= 0"
    figure "RssAnon of an object (KiB)" "$(ratio $(($(memory RssAnon) - empty)) $((2 * OBJECTS)))" "<= 2"
}

main "$@"
