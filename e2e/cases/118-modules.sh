#!/usr/bin/env bash
# Tasks by imageUrl from a real registry: a module in the start, and one in parts of which a device loses one; one digest
# for all attempts of a run wherever its tag points; what a Task says whose module cannot be had.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

oci_start
base64 -d <<<"$ADDITION" >"$PART/add.wasm"
wasm scalar | base64 -d >"$PART/other.wasm"
padded_module $((2 << 20)) >"$PART/large.wasm"
PARTS=5
oci_push acme/add 1 "$PART/add.wasm"
oci_push acme/large 1 "$PART/large.wasm"

broker_prepare device-1 device-2 device-3
printf '\nlog_type all\n' >>"$BROKER/mosquitto.conf"
broker_start
controller_prepare
proplet_json worker-NUMBER device-NUMBER | add_numbered 3

threads() { cat "/proc/$(pid_of controller)"/task/*/comm | grep -E '^(module-pull|delivery)$' | sort | paste -sd ' '; }
subscribes() { grep "$1 (QoS" "$LOGS/broker.log"; }

# Without the flag there is no thread, folder or topic for modules.
controller_start
wait_for 30 "the controller to subscribe" subscribes control/proplet/results
expect_eq "threads for modules" "" "$(threads)"
! subscribes registry/proplet || fail "the controller reads requests for modules"
stop controller TERM

controller_start --module-registries "http://127.0.0.1:$OCI_PORT" --module-cache-dir "$PART/modules" --module-pull-timeout 10m
wait_for 30 "the controller to read requests for modules" subscribes registry/proplet
expect_eq "threads for modules" "delivery module-pull module-pull" "$(threads)"
device_start devices --count 3
wait_for 30 "all Proplets to run" phase_count_is proplets Running 3

by_reference() { # by_reference NAME REFERENCE [JSON]
    task_json "$1" "" '[10, 32]' "${3:-{\}}" | jq --arg url "127.0.0.1:$OCI_PORT/$2" 'del(.spec.file) | .spec.imageUrl = $url' | create
}
on() { jq -nc --arg id "worker-$1" '{spec: {propletSelector: {propletId: $id}}}'; }
digest_of() { printf 'sha256:%s\n' "$(sha256sum <"$1" | cut -d ' ' -f 1)"; }
counted() { metrics | awk -v name="$1" '$1 == name { print $2 }'; }
asked() { journal_count devices '.event == "asked"'; }

# ---- in the start ----

by_reference small acme/add:1
wait_task small completed 30
expect_eq "its result" 42 "$(task small .status.results)"
expect_eq "the digest of its module" "$(digest_of "$PART/add.wasm")" "$(task small .status.module.digest)"
expect_eq "its size" "$(wc -c <"$PART/add.wasm")" "$(task small .status.module.bytes)"
expect_eq "requests of devices" 0 "$(asked)"
by_reference again acme/add:1
wait_task again completed 30
expect_eq "blobs that the registry sent" 1 "$(oci_blobs "$(digest_of "$PART/add.wasm")")"

# ---- in parts ----

for number in 1 2 3; do
    by_reference "large-$number" acme/large:1 "$(on $number)"
done
for number in 1 2 3; do
    wait_task "large-$number" completed 60
    expect_eq "result of large-$number" 42 "$(task "large-$number" .status.results)"
done
expect_eq "blobs of the large module" 1 "$(oci_blobs "$(digest_of "$PART/large.wasm")")"
expect_eq "parts that were sent for three devices" "$PARTS" "$(counted propeller_module_chunks_sent_total)"

device_say devices drop device-2 3
for number in 1 2 3; do
    by_reference "lossy-$number" acme/large:1 "$(on $number)"
done
for number in 1 2 3; do
    wait_task "lossy-$number" completed 60
    expect_eq "attempts of lossy-$number" 1 "$(task "lossy-$number" .status.attempt)"
done
expect_eq "results of devices later than 15 s after their start" 0 "$(jq -s '
    (map(select(.event == "start") | {(.task): .time}) | add) as $started
    | map(select(.event == "result" and .time - $started[.task] > 15)) | length' "$LOGS/devices.journal")"
expect_eq "a part that device-2 lost" 1 "$(journal_count devices '.event == "lost"')"
expect_eq "parts for the second start of each, and those for device-2 again" $((3 * PARTS)) \
    "$(counted propeller_module_chunks_sent_total)"

# ---- a tag that moves ----

by_reference moved acme/add:1 '{"spec": {"backoffLimit": 1, "inputs": [1]}}'
wait_for 30 "its first attempt to fail" field_is tasks moved .status.reason BackingOff
oci_push acme/add 1 "$PART/other.wasm"
wait_for 60 "its second attempt" field_is tasks moved .status.attempt 2
wait_task moved failed 60
expect_eq "the module of its second attempt" "$(digest_of "$PART/add.wasm")" "$(task moved .status.module.digest)"
# An answer of the registry serves all who ask within ten seconds; the retry has waited for that.
by_reference newer acme/add:1 '{"spec": {"functionName": "i64", "inputs": [1]}}'
wait_for 30 "a Task to get the module that the tag stands for now" \
    field_is tasks newer .status.module.digest "$(digest_of "$PART/other.wasm")"

# ---- what cannot be had ----

by_reference missing acme/none:1
wait_task missing failed 30
expect_eq "why it failed" ModuleNotFound "$(task missing .status.reason)"
task_json elsewhere "" '[1, 2]' | jq 'del(.spec.file) | .spec.imageUrl = "registry.example/acme/add:1"' | create
wait_task elsewhere failed 30
expect_eq "why it failed" RegistryNotAllowed "$(task elsewhere .status.reason)"

oci_stop
by_reference away acme/large:1 "$(on 3)"
wait_for 60 "a Task to say that the registry is away" field_is tasks away .status.reason RegistryUnavailable
digest=$(task large-1 .status.module.manifest)
by_reference cached "acme/large@$digest" "$(on 1)"
wait_task cached completed 60
oci_start
wait_task away completed 120
