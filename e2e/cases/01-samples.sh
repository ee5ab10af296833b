#!/usr/bin/env bash
# Manifests written for the Go operator are accepted as they are, and the documented sample runs.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

SAMPLES=$(samples_of_others)

# field KIND FILTER: of the first object of that kind among the samples that matches
field() {
    jq -r --arg kind "$1" "[.items[] | select(.kind == \$kind)] | map(select($2)) | .[0] | $3" "$PART/samples.json"
}

# The Go operator's default QoS stands in its samples; who asks for it is told what that means.
warned=$(kn apply -f "$SAMPLES" 2>&1 | grep Warning | grep -vF 'spec.connectionConfig.mqttQos: 0: ' || true)
expect_eq "warnings for samples" "" "$warned"
kn apply -f "$SAMPLES" >/dev/null
changed=$(kn get tasks,proplets -o json | jq -c '.items[] | select(.metadata.generation != 1) | .metadata.name')
expect_eq "samples that a second apply changes" "" "$changed"

kn apply -f "$SAMPLES" --dry-run=server -o json >"$PART/samples.json"
# The two Proplets have the same words where a clientId belongs, so one must give way; where admission gave it a
# finalizer, as soon as there is a controller.
kn delete proplet --wait=false --field-selector metadata.name!=external-proplet,metadata.name!=gateway >/dev/null
device='.metadata.name == "external-proplet" or .metadata.name == "gateway"'
with_file='.spec.file != null'
# one that a device can run as it is
with_image='.spec.imageUrl != null and .spec.preferredPropletType != "k8s" and (.spec.encrypted | not)'
DOMAIN=$(field Proplet "$device" .spec.connectionConfig.domainId)
CHANNEL=$(field Proplet "$device" .spec.connectionConfig.channelId)
identity=$(field Proplet "$device" .spec.connectionConfig.clientId)
world_start "$identity"
broker_record
device_start device --identity "$identity"

name=$(field Task "$with_file" .metadata.name)
wait_task "$name" completed
expect_eq "result of the sample" 42 "$(kn get task "$name" -o 'jsonpath={.status.results}')"
expect_eq "assignedProplet, the name in Kubernetes" "$(field Proplet "$device" .metadata.name)" \
    "$(task "$name" .status.assignedProplet)"

# The one with an image: played by us, the proxy delivers the module when the device asks for it.
name=$(field Task "$with_image" .metadata.name)
image=$(field Task "$with_image" .spec.imageUrl)
asked() { wire_messages registry/proplet .app_name | grep -xF "\"$image\"" >/dev/null; }
wait_for 30 "the device to ask for $image" asked
publish registry/server "$(jq -nc --arg app "$image" --arg data "$ADDITION" \
    '{app_name: $app, chunk_idx: 0, total_chunks: 1, data: $data}')"
wait_task "$name" completed
sum=$(field Task "$with_image" '.spec.inputs | map(tonumber) | add')
expect_eq "result of the sample with an image" "$sum" "$(task "$name" .status.results)"
