#!/usr/bin/env bash
# A Task that ends soon costs two status writes and one metadata write.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
COUNT=50
broker_prepare device-1 device-2 device-3 device-4 device-5
broker_start
controller_prepare
# However slow the machine is, these end soon.
CONTROLLER_OPTIONS+=(--running-write-delay 10s)
controller_start
proplet_json worker-NUMBER device-NUMBER | add_numbered 5
device_start devices --count 5
wait_for 30 "all Proplets to run" phase_count_is proplets Running 5

mark=$(audit_mark)
task_json sum-NUMBER "$ADDITION" '["NUMBER", 1000]' | add_numbered $COUNT
wait_for 60 "all Tasks to be completed" phase_count_is tasks completed $COUNT
# real time: late writes would come after the last result
observe_for 2

writes=$(audit_writes "$mark" '.objectRef.resource == "tasks"')
most() { jq -r "select(.[4] < 300 and (.[2] $1)) | .[3]" <<<"$writes" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }'; }
status=$(most '== "status"')
metadata=$(most '== ""')
expect_le "status writes of one Task" "${status:-0}" 2
expect_le "metadata writes of one Task" "${metadata:-0}" 1
refused=$(jq -c 'select(.[4] >= 300)' <<<"$writes" | wc -l)
expect_le "refused writes" "$refused" $((COUNT / 10))
others=$(audit_writes "$mark" '.objectRef.resource | IN("tasks", "proplets", "events") | not')
expect_eq "writes to other things" "" "$others"
proplets=$(audit_writes "$mark" '.objectRef.resource == "proplets"' | wc -l)
expect_le "writes to Proplets" "$proplets" 10
printf 'measured: per Task at most %s status and %s metadata writes; %s refused, %s writes to Proplets\n' \
    "${status:-0}" "${metadata:-0}" "$refused" "$proplets"
