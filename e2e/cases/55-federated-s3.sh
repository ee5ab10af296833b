#!/usr/bin/env bash
# Models and large updates in an S3 server that verifies signatures: a job from a model in the bucket to
# its deletion, and what lies in the bucket at each point.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

s3_start
printf '[2,-3,0.5]' >"$PART/initial"
s3 /initial.json "$PART/initial"
federated_world 3 "${S3_OPTIONS[@]}"

# ---- a model of the user's, four rounds, of which two are kept ----

add_federated train 3 3 4 "$(jq -nc --arg uri "s3://models/exports/$NS/train" '{historyLimit: 2,
    modelRef: "s3://models/initial.json", checkpoint: {keep: 1, uri: $uri}}')"
wait_federated train Completed
say "$(federated_verify train)"
uid=$(federated train .metadata.uid)
wait_for 60 "models of the kept rounds alone: what they began with, and what they made" \
    s3_count_is "propeller/$NS/$uid/" 3
for key in $(s3_keys "propeller/$NS/$uid/"); do
    expect_eq "what is stored as ${key##*/}" "${key##*sha256-}" "$(s3 "/$key" | sha256sum | cut -d' ' -f1)"
done
expect_eq "models in ConfigMaps" 0 "$(api "/api/v1/namespaces/$NS/configmaps" |
    jq '[.items[] | select(.metadata.name | test("-model-"))] | length')"

wait_condition federatedjobs train Exported '^True Written' 60
exported() { field_is federatedjobs train .status.lastCheckpoint.uri "s3://models/exports/$NS/train/round-4"; }
wait_for 60 "the copy of the last model" exported
for name in round-4 latest; do
    expect_eq "the copy $name" "$(curl -sSf "$COORDINATOR_URL/j/$uid/models/4" | sha256sum)" "$(s3 "/exports/$NS/train/$name" | sha256sum)"
done

# ---- its model is another job's first one ----

add_federated again 3 3 1 "$(jq -nc --arg model "$(federated train .status.aggregatedModelRef)" '{modelRef: $model}')"
wait_federated again Completed
expect_eq "what the other job begins with" "$(curl -sSf "$COORDINATOR_URL/j/$uid/models/4")" \
    "$(curl -sSf "$COORDINATOR_URL/j/$(federated again .metadata.uid)/models/0")"

# ---- updates that no status holds ----

for i in 1 2 3; do
    "$PYTHON_HOME/bin/python" "$HERE/federated/large.py" make 5000 "$i" >"$PART/update-$i"
    device_say "device-$i" reply "device-$i" "\"$(<"$PART/update-$i")\""
done
device_say device-3 hold device-3
samples='{"numSamples": {"worker-1": 3, "worker-2": 5, "worker-3": 7}}'
add_federated large 3 3 1 "$(jq -nc --argjson samples "$samples" --arg url "${MODULE_URL%/*}/scalar.wasm" \
    '{hyperparams: $samples, taskWasmImage: $url}')"
wait_for 120 "two updates" field_is trainingrounds round-1-large .status.updatesReceived 2
round=$(training_round round-1-large .metadata.uid)
expect_eq "updates in the bucket" 2 "$(s3_keys "propeller/$NS/$round/" | wc -l)"
expect_match "what the status says instead" '^model://sha256:[0-9a-f]{64}$' "$(task round-1-large-worker-1 .status.results.ref)"
device_say device-3 release device-3
wait_federated large Completed
curl -sSf "$COORDINATOR_URL/j/$(federated large .metadata.uid)/models/1" >"$PART/model"
say "$("$PYTHON_HOME/bin/python" "$HERE/federated/large.py" mean "$PART/model" \
    "3:$PART/update-1" "5:$PART/update-2" "7:$PART/update-3")"

# ---- checkpoints of a Task, larger than a ConfigMap takes ----

add_task long "$(wasm sleep)" '["-1"]' '{"spec": {"checkpoint": {"interval": "10s", "keep": 1}}}'
wait_task long running
long=$(task long .metadata.uid)
head -c $((2 << 20)) /dev/urandom >"$PART/state"
put() { curl -sS -o /dev/null -w '%{http_code}' -T "$PART/state" "$COORDINATOR_URL/t/$long/checkpoint?step=$1"; }
expect_eq "a checkpoint of 2 MiB" 200 "$(put 1)"
expect_eq "checkpoints in the bucket" "propeller/$NS/$long/sha256-$(sha256sum <"$PART/state" | cut -d' ' -f1)" \
    "$(s3_keys "propeller/$NS/$long/")"
expect_eq "what is fetched" "$(sha256sum <"$PART/state")" "$(curl -sSf "$COORDINATOR_URL/t/$long/checkpoint" | sha256sum)"
printf 'more' >>"$PART/state"
not_too_soon() { [[ $(put 2) == 200 ]]; }
wait_for 30 "the next checkpoint" not_too_soon
wait_for 30 "the newest one alone" s3_count_is "propeller/$NS/$long/" 1
kn delete task long --wait=false >/dev/null
wait_for 60 "nothing of a deleted Task" s3_count_is "propeller/$NS/$long/" 0

# ---- what may not be read, and a server that is away ----

while read -r reference why; do
    name=bad-$((RANDOM % 10000))
    add_federated "$name" 3 3 1 "$(jq -nc --arg model "$reference" '{modelRef: $model, timeoutSeconds: 5}')"
    wait_federated "$name" Failed 60
    expect_match "why $reference is refused" "ModelUnavailable.*$why" "$(condition federatedjobs "$name" Failed)"
done <<TABLE
s3://models/none.json NoSuchKey
s3://elsewhere/initial.json --s3-bucket
s3://models/propeller/$NS/$uid/x model://
s3://models/x/../initial.json '\.\.'
TABLE
