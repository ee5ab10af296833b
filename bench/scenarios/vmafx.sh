#!/usr/bin/env bash
# VmafxJobs that run and VmafxNodes that are healthy, at rest: calls, probes, writes, processor time and memory.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

OBJECTS=1000
SPAN=${BENCH_STEADY_SECONDS:-120}

all_are() { # all_are PLURAL FILTER
    local seen
    seen=$(api "/apis/vmafx.dev/v1/namespaces/$NS/$1" | jq "[.items[] | select($2)] | length")
    printf '%s of %s\n' "$seen" "$OBJECTS"
    ((seen == OBJECTS))
}

main() {
    local mark before empty calls probes
    [[ $BENCH_WHO == ours ]] || return 0 # a peer has no such kinds
    scenario_begin
    vmafx_install
    vmafx_begin
    vmafx_peer_says '{"any": {"status": "RUNNING", "node": "n1"}}'
    vmafx_peer_start
    broker_prepare
    broker_start
    operator_start "${VMAFX_OPTIONS[@]}"
    empty=$(memory RssAnon)
    seq 1 "$OBJECTS" | jq -c '{apiVersion: "vmafx.dev/v1", kind: "VmafxNode", metadata: {name: "n\(.)"}, spec: {gpuVendor: "nvidia"}}' |
        kn create -f - >/dev/null
    vmafx_make_jobs n "$OBJECTS"
    wait_for 300 "all jobs to run" all_are vmafxjobs '.status.phase == "Running"'
    wait_for 300 "all nodes to be healthy" all_are vmafxnodes '.status.healthy'
    wait_for 300 "the node to know its jobs" all_are vmafxnodes \
        ".status.assignedJobs == (if .metadata.name == \"n1\" then $OBJECTS else 0 end)"

    mark=$(audit_mark)
    calls=$(vmafx_asked job) probes=$(vmafx_asked healthz)
    before=$(cpu_ms)
    observe_for "$SPAN"
    figure "processor time of $OBJECTS jobs and nodes (% of a core)" "$(ratio $((($(cpu_ms) - before) / 10)) "$SPAN")" "<= 8"
    calls=$(ratio $(($(vmafx_asked job) - calls)) "$SPAN")
    figure "calls of GetJob a second" "$calls"
    figure "distance from a call of each job in ten seconds" \
        "$(awk -v calls="$calls" -v due=$((OBJECTS / 10)) 'BEGIN { print calls < due ? due - calls : calls - due }')" "<= $((OBJECTS / 100))"
    figure "probes a minute" "$(ratio $((($(vmafx_asked healthz) - probes) * 60)) "$SPAN")" "<= 2.5"
    figure "connections of gRPC" "$(vmafx_asked connection)" "<= 1"
    figure "writes" "$(operator_requests "$mark" '.objectRef.apiGroup == "vmafx.dev" and .verb == "patch"' | wc -l)" "<= 0"
    figure "RssAnon of an object (KiB)" "$(ratio $(($(memory RssAnon) - empty)) $((2 * OBJECTS)))" "<= 2"
}

main "$@"
