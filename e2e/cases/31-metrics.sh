#!/usr/bin/env bash
# What devices measure comes into the cluster, corrected, and what cannot be meant does not.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare device-1
broker_start
controller_prepare
controller_start --domain-id "$DOMAIN" --channel-id "$CHANNEL" --status-refresh-interval 2s

# between LOW HIGH KIND NAME FIELD: a number in that range
between() {
    local seen
    seen=$(object "$3" "$4" | jq -r "$5 // empty")
    printf "%s of %s is '%s', should be from %s to %s\n" "$5" "$4" "$seen" "$1" "$2"
    [[ $seen =~ ^[0-9]+$ ]] && ((seen >= $1 && seen <= $2))
}
MIB=1048576
metric_at_least() { # SERIES VALUE
    local seen
    seen=$(metrics | awk -v series="$1" '$1 == series { print $2 }')
    printf "%s is '%s'\n" "$1" "$seen"
    ((${seen:-0} >= $2))
}

# The device came first: its only registration is remembered for the Proplet.
device_start device --identity device-1 --metrics-interval 1 --location rack-7
wait_for 30 "the registration to be read" metric_at_least 'propeller_mqtt_messages_total{kind="create"}' 1
add_proplet worker device-1 '{"spec":{"resources":{"cpu":"2","memory":"1Gi","npu":"1"}}}'
wait_proplet worker Running
wait_for 30 "metadata" field_is proplets worker .status.metadata.location rack-7
expect_eq "operating system" linux "$(proplet worker .status.metadata.os)"
expect_eq "resources" '{"cpu":"2","custom":{"npu":"1"},"memory":"1Gi"}' \
    "$(proplet worker '.status.availableResources | tojson' | jq -Sc .)"
condition_matches proplets worker Healthy '^Unknown NoTaskYet ' || fail "condition Healthy"

# Of the device: the process has more than a MiB and less than a GiB.
wait_for 30 "memory of the device" between $MIB $((1024 * MIB)) proplets worker .status.latestMetrics.memoryBytes
between 0 100000 proplets worker .status.latestMetrics.cpuMilliPercent
first=$(proplet worker .status.latestMetrics.timestamp)
newer() { [[ $(proplet worker .status.latestMetrics.timestamp) > $first ]]; }
wait_for 30 "a newer sample" newer

# Of a Task that runs: the same process, in bytes and not in 1024ths; no percent of memory.
add_task long "$(wasm sleep)" '[-1]' "$(jq -c '.spec += {activeDeadlineSeconds: 3600,
    monitoringProfile: {enabled: true, interval: "1s"}}' <<<"$(task_on worker)")"
wait_task long running
wait_for 30 "memory of the Task" between $MIB $((1024 * MIB)) tasks long .status.latestMetrics.memoryBytes
expect_eq "processor of the Task" 500 "$(task long .status.latestMetrics.cpuMilliPercent)"
expect_eq "percent of memory" null "$(task long .status.latestMetrics.memoryMilliPercent)"

# One that ends before its turn comes has its last sample all the same.
kn delete task long --wait=false >/dev/null
wait_task_gone long 60
# Behind all samples of the long one.
publish control/proplet/metrics '{"proplet_id":"stranger","cpu_metrics":{"percent":1}}'
wait_for 30 "what came before to be read" metric_at_least \
    'propeller_samples_rejected_total{reason="unknown_proplet"}' 1
samples() { metrics | awk '$1 == "propeller_mqtt_messages_total{kind=\"task_metrics\"}" { print $2 }'; }
before=$(samples)
device_say device hold device-1
add_task short "$(wasm sleep)" '[50]' "$(task_on worker)"
wait_for 30 "a sample of the short one" metric_at_least 'propeller_mqtt_messages_total{kind="task_metrics"}' $((before + 1))
device_say device release device-1
wait_task short completed
between $MIB $((1024 * MIB)) tasks short .status.latestMetrics.memoryBytes

# What cannot be meant is counted by its reason.
publish control/proplet/metrics '{"proplet_id":"device-1","cpu_metrics":{"percent":-1}}'
publish control/proplet/metrics '{"proplet_id":"device-1","memory_metrics":{"rss_bytes":1e999}}'
publish control/proplet/metrics '{"proplet_id":"device-1","cpu_metrics":{"percent":"42"}}'
publish control/proplet/metrics '{"proplet_id":"device-1","cpu_metrics":{"percent":NaN}}'
publish control/proplet/task_metrics '{"task_id":"nobody","proplet_id":"device-1","metrics":{"cpu_percent":1}}'
for reason in negative too_large not_a_number unknown_task; do
    wait_for 30 "a sample rejected: $reason" metric_at_least \
        "propeller_samples_rejected_total{reason=\"$reason\"}" 1
done
wait_for 30 "a malformed sample" metric_at_least 'propeller_mqtt_malformed_total{kind="metrics"}' 1
between 0 100000 proplets worker .status.latestMetrics.cpuMilliPercent
wait_proplet worker Running

# ---- of the client of the API server ----

expect_match "requests to the API server" \
    'rest_client_requests_total\{code="200",method="PATCH",host="[^"/]+"\} [1-9]' "$(metrics)"
