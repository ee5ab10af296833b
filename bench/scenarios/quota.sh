#!/usr/bin/env bash
# PropellerJobs with a queue on the CRDs of Kueue, which queue.py speaks for: memory and writes of held jobs at rest,
# jobs that pass through a quota, and an eviction of a job with many running Tasks.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

HELD=${BENCH_JOBS:-10000}
PASSING=${BENCH_PASSING:-1000}
QUOTA=50
EVICTED=100 # running Tasks of the job that is evicted
SPAN=${BENCH_STEADY_SECONDS:-120}
QUIET=${BENCH_SETTLE_SECONDS:-45}

# jobs_json PREFIX COUNT LABELS-JSON FIELDS-JSON
jobs_json() {
    seq 1 "$2" | jq -c --arg api "$API" --arg prefix "$1" --argjson labels "$3" --argjson fields "$4" --arg file "$ADDITION" '
        {apiVersion: $api, kind: "PropellerJob", metadata: {name: "\($prefix)-\(.)", labels: $labels},
         spec: ({name: "j", tasks: [{name: "one", functionName: "main", file: $file, inputs: [10, 32]}]} + $fields)}'
}
in_queue() { printf '{"kueue.x-k8s.io/queue-name": "%s"}' "$1"; }
held_are() { # held_are COUNT
    local seen
    seen=$(objects propellerjobs | jq '[.items[] | select(.status.conditions[]? | .type == "QuotaReserved" and .reason == "Pending")] | length')
    printf '%s of %s\n' "$seen" "$1"
    ((seen == $1))
}
restart() { # restart [OPTION...]: prints RssAnon of a leader that has read everything, and is at rest
    controller_stop
    operator_start "$@"
    wait_for 300 "nothing to be due" settled
    observe_for "$QUIET"
    memory RssAnon
}
writes() { operator_requests "$1" '(.verb | IN("create", "patch", "delete")) and '"$2" | wc -l; }
# times FILTER: "SECONDS NAME" of requests of the audit log since the mark $1 for which it holds
times() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | jq -r 'select(.stage == "ResponseComplete" and .responseStatus.code < 300) | select('"$2"')
        | "\(.stageTimestamp | (.[:19] + "Z" | fromdate) + (.[19:-1] | tonumber)) \(.objectRef.name)"'
}

at_rest() {
    local off empty bare mark
    off=$(restart)
    empty=$(restart --enable-kueue)
    figure "on and empty, beyond off: RssAnon (KiB)" $((empty - off)) "<= 1024"
    jobs_json bare "$HELD" '{}' '{"suspend": true}' | kn create -f - >/dev/null
    bare=$(restart --enable-kueue)
    kn delete propellerjobs --all >/dev/null
    jobs_json held "$HELD" "$(in_queue nobody)" '{}' | kn create -f - >/dev/null
    wait_for 1200 "all jobs to be held" held_are "$HELD"
    figure "a held job with its Workload, beyond a suspended one: RssAnon (bytes)" \
        "$(ratio $((($(restart --enable-kueue) - bare) * 1024)) "$HELD" 0)" "<= 1536"
    figure "$HELD held jobs, beyond empty: peak (KiB)" $(($(memory VmHWM) - empty)) "<= 20480"
    mark=$(audit_mark)
    observe_for "$SPAN"
    figure "writes of held jobs at rest" "$(writes "$mark" '.objectRef.resource != "leases"')" "<= 0"
    kn delete propellerjobs --all >/dev/null
}

passing() {
    local mark began ended count
    quota_is '{"queues": {"team": "cq"}, "quota": {"cq": {"everywhere": '"$QUOTA"'}}}'
    mark=$(audit_mark) began=$(date +%s)
    jobs_json pass "$PASSING" "$(in_queue team)" '{}' | kn create -f - >/dev/null
    wait_for 3600 "all jobs to complete" phase_count_is propellerjobs Completed "$PASSING"
    ended=$(date +%s)
    figure "jobs through a quota of $QUOTA (jobs/s)" "$(ratio "$PASSING" $((ended - began)) 1)"
    figure "writes to the Workload of a job" "$(ratio "$(writes "$mark" '.objectRef.resource == "workloads"')" "$PASSING" 1)" "<= 4"
    # The last write of Kueue before the first Task is the admission; the Task is made in the same second, or later.
    times "$mark" '.objectRef.resource == "workloads" and ((.requestURI // "") | contains("kueue-admission"))' |
        sed -E 's/ propellerjob-(.*)-[0-9a-f]{5}$/ \1/' | sort -k 2,2 -k 1,1n >"$PART/admitted"
    times "$mark" '.objectRef.resource == "tasks" and .verb == "create"' | sed 's/-one$//' | sort -k 2,2 >"$PART/made"
    join -1 2 -2 2 "$PART/admitted" "$PART/made" | awk '$2 <= $3 { last[$1] = $3 - $2 } END { for (job in last) printf "%.0f\n", last[job] * 1000 }' |
        sort -n >"$PART/latencies"
    count=$(wc -l <"$PART/latencies")
    figure "Admitted -> Task made: p50 (ms)" "$(sed -n "$((count / 2 + 1))p" "$PART/latencies")" "<= 15"
    figure "Admitted -> Task made: p99 (ms)" "$(sed -n "$((count * 99 / 100 + 1))p" "$PART/latencies")" "<= 50"
}

eviction() {
    local mark name said released
    quota_is '{"queues": {"team": "cq"}, "quota": {"cq": {"everywhere": '"$EVICTED"'}}}'
    jq -nc --arg api "$API" --arg file "$ADDITION" --argjson count "$EVICTED" --argjson labels "$(in_queue team)" '
        {apiVersion: $api, kind: "PropellerJob", metadata: {name: "wide", labels: $labels}, spec: {name: "wide",
         tasks: [range($count) | {name: "t\(.)", functionName: "main", file: $file, inputs: [10, 32]}]}}' | kn create -f - >/dev/null
    tasks_await 600 running "$EVICTED"
    mark=$(audit_mark)
    name=$(workload_of wide .metadata.name)
    quota_is '{"queues": {}, "evict": {"'"$name"'": "Preempted"}}'
    wait_workload wide QuotaReserved False
    said=$(times "$mark" '.objectRef.resource == "workloads" and ((.requestURI // "") | contains("kueue-admission"))' | head -n 1 | cut -d ' ' -f 1)
    released=$(times "$mark" '.objectRef.resource == "workloads" and .objectRef.subresource == "status" and
        (.user.username | endswith(":propellerjob-controller"))' | tail -n 1 | cut -d ' ' -f 1)
    figure "Evicted -> released, $EVICTED running Tasks (s)" "$(jq -n "$released - $said | . * 100 | round / 100")" "<= 2"
}

main() {
    [[ $BENCH_WHO == ours ]] || return 0 # a peer knows no quota
    [[ -d $KUEUE_CRDS ]] || {
        say "needs the CRDs of Kueue: E2E_FIXTURES/kueue/crds is not there"
        return 0
    }
    scenario_begin
    quota_install
    flavor everywhere '{}'
    broker_prepare
    broker_start
    operator_start
    at_rest
    quota_is '{}'
    queue_start
    add_proplets "$EVICTED"
    fleet_start "$EVICTED" --result-delay 100ms
    proplets_await 600 Running "$EVICTED"
    passing
    stop fleet TERM
    fleet_start "$EVICTED" --result-delay 1h
    proplets_await 600 Running "$EVICTED"
    eviction
}

main "$@"
