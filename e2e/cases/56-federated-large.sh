#!/usr/bin/env bash
# Six participants send updates of a million parameters over HTTP at once, more bytes than the controller
# takes at a time: all six count, the model is NumPy's, and memory stays within its bounds.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_process "its memory is read, and its S3 server is this machine's own"

PARTICIPANTS=6
PARAMETERS=1000000
# It was 362 MiB with eight of them; with eight read at once, instead of two, it was beyond this.
MEMORY_KIB=$((448 << 10))

s3_start
federated_world "$PARTICIPANTS" "${S3_OPTIONS[@]}"
for i in $(seq "$PARTICIPANTS"); do
    "$PYTHON_HOME/bin/python" "$HERE/federated/large.py" make "$PARAMETERS" "$i" >"$PART/update-$i"
    device_say "device-$i" hold "device-$i" # its own answer would be another update
done
expect_eq "more than the controller takes at once (COORDINATOR_MAX_BODIES)" true \
    "$(cat "$PART"/update-* | wc -c | jq '. > (96 * 1024 * 1024)')"

samples=$(jq -nc --argjson n "$PARTICIPANTS" '[range(1; $n + 1) | { key: "worker-\(.)", value: (2 * . + 1) }] |
    { numSamples: from_entries }')
add_federated large "$PARTICIPANTS" "$PARTICIPANTS" 1 "$(jq -nc --argjson samples "$samples" \
    --arg url "${MODULE_URL%/*}/scalar.wasm" '{hyperparams: $samples, taskWasmImage: $url, timeoutSeconds: 900}')"
all_run() {
    local running
    running=$(objects tasks | jq '[.items[] | select(.status.phase == "running")] | length')
    printf '%s Tasks run\n' "$running"
    ((running == PARTICIPANTS))
}
wait_for 120 "all participants to train" all_run

# Whoever waits for room longer than COORDINATOR_PATIENCE_MS is told 503, and sends again. What is said goes into a
# file: curl empties it before it tries again, and gives up where it cannot, as with /dev/null.
post() { # post NUMBER TASK-UID
    curl -sS --max-time 600 --retry 20 --retry-delay 1 -o "$PART/said-$1" -w "participant $1: %{http_code}\n" \
        -X POST -H 'Expect:' -T "$PART/update-$1" "$COORDINATOR_URL/t/$2/update" >"$PART/answer-$1" 2>&1
}
posts=()
for i in $(seq "$PARTICIPANTS"); do
    post "$i" "$(task "round-1-large-worker-$i" .metadata.uid)" &
    posts+=($!)
done
for i in "${posts[@]}"; do
    wait "$i" || true # what counts is the round
done
cat "$PART"/answer-*
printf 'measured: %s updates answered 200 at first\n' "$(grep -c ': 200$' "$PART"/answer-* /dev/null | awk -F: '{ n += $2 } END { print n }')"

wait_federated large Completed 600
expect_eq "updates that count" "$PARTICIPANTS $PARTICIPANTS" "$(training_round round-1-large \
    '"\(.status.updatesReceived) \([.status.participants[] | select(.status == "Received" and .updateReceived)] | length)"')"
uid=$(federated large .metadata.uid)
curl -sSf "$COORDINATOR_URL/j/$uid/models/1" >"$PART/model"
means=()
for i in $(seq "$PARTICIPANTS"); do
    means+=("$((2 * i + 1)):$PART/update-$i")
done
printf 'measured: %s\n' "$("$PYTHON_HOME/bin/python" "$HERE/federated/large.py" mean "$PART/model" "${means[@]}")"

peak=$(memory VmHWM)
printf 'measured: most memory of the controller: %s MiB, with %s MiB of updates\n' "$((peak / 1024))" \
    "$(cat "$PART"/update-* | wc -c | jq '. / 1048576 | floor')"
expect_eq "within $((MEMORY_KIB / 1024)) MiB" true "$(jq -n "$peak <= $MEMORY_KIB")"
wait_for 120 "the model alone to be left in the bucket" s3_count_is "propeller/$NS/" 1
