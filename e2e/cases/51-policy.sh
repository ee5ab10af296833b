#!/usr/bin/env bash
# An administrator's policy refuses modules that it does not allow, also those of a job's Tasks when they are created.
# Objects that are older than the policy run on, and their other fields can change.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# The judge is the webhook, or the server with the controller in it.
if has_standalone; then
    operator_embedded || case_needs_kubernetes "starts the server of the lane with other flags"
    POLICY_BIN=("$STANDALONE_BIN" serve --data-dir "$PART/none")
else
    webhook_prepare
    webhook_certificate
    webhook_start
    webhook_register "$WEBHOOK_CA"
    POLICY_BIN=("$WEBHOOK_BIN")
fi
policy_start() {
    if has_standalone; then
        controller_stop
        controller_start "$@"
    else
        stop webhook TERM
        webhook_start "$@"
    fi
}

status=0
"${POLICY_BIN[@]}" --allow-image-schemes oci,ftp >"$PART/unusable" 2>&1 || status=$?
expect_eq "exit status of an unusable value" 2 "$status"
expect_match "its message" "allow-image-schemes: 'ftp' is not one of inline, oci, https, http" "$(cat "$PART/unusable")"

world_start device-1
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running
device_say device hold device-1 # no result until it is released
add_task runs "$ADDITION" '[1, 2]'
wait_task runs running
jq -n --arg api "$API" --arg file "$ADDITION" '
    { apiVersion: $api, kind: "PropellerJob", metadata: { name: "pair" },
      spec: { name: "pair", suspend: true,
              tasks: [{ name: "first", functionName: "main", file: $file, inputs: [1, 2] }] } }' | create

policy_start --allow-image-schemes oci,https --allow-image-hosts registry.example/team \
    --allow-device-types pi,esp32
wait_proplet worker Running
kn patch task runs --type=merge -p '{"spec": {"ttlSecondsAfterFinished": 3600}}' >/dev/null
kn patch proplet worker --type=merge -p '{"spec": {"external": {"capabilities": ["camera"]}}}' >/dev/null

refuses() { # refuses WHAT PATTERN JSON
    printf '%s\n' "$3" >"$PART/refused.json"
    expect_failure "$1" "$2" kn create -f "$PART/refused.json"
}
refuses "an inline module" 'spec\.file: Forbidden: must not be inline: allowed are oci, https' "$(task_json t "$ADDITION" '[]')"
refuses "another registry" 'spec\.imageUrl: Forbidden: must not be of this host or path: allowed are registry\.example/team' \
    "$(task_json t "" '[]' '{"spec": {"imageUrl": "registry.example/team-b/m"}}' | jq 'del(.spec.file)')"
refuses "a Proplet without a type of device" 'spec\.external\.deviceType: Forbidden: must be one of pi, esp32' "$(proplet_json p c)"
task_json t "" '[]' '{"spec": {"imageUrl": "registry.example/team/m"}}' | jq 'del(.spec.file)' | create

device_say device release device-1
wait_task runs completed

kn patch propellerjob pair --type=merge -p '{"spec": {"suspend": false}}' >/dev/null
wait_condition propellerjobs pair Failed "^True TaskRefused .*must not be inline" 60
