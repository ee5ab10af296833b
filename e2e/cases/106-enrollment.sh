#!/usr/bin/env bash
# Devices that nobody announced: they appear, are approved, and run Tasks with nothing restarted. Ten thousand hostile
# identities fill the list to its limit, and nothing else grows. Automatic approval obeys its limits and its right.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
has_standalone || case_needs_own_cluster

enroll() { # enroll NAME SPEC-JSON
    jq -n --arg api "$API" --arg name "$1" --arg domain "$DOMAIN" --arg broker "tcp://127.0.0.1:$BROKER_PORT" \
        --argjson spec "$2" '{apiVersion: $api, kind: "Enrollment", metadata: {name: $name},
            spec: ({domainId: $domain, mqttAddress: $broker} * $spec)}' | create
}
ready_is() { wait_condition enrollments "$1" Ready "^$2"; } # ready_is NAME 'STATUS REASON'
pending() { p pending -o json | jq -r '[.devices[].clientId] | sort | join(" ")'; }
pending_is() { # pending_is CLIENT-IDS
    local seen
    seen=$(pending)
    printf 'pending: %s\n' "$seen"
    [[ $seen == "$1" ]]
}
pending_has() { [[ " $(pending) " == *" $1 "* ]]; }
pending_count_is() { object enrollments "$1" | jq -e --argjson count "$2" '.status.pendingCount == $count'; }
second_is_over() { (($(date +%s) > $1)); }
say_on() { # say_on CHANNEL TOPIC-SUFFIX PAYLOAD
    CHANNEL=$1 publish "control/proplet/$2" "$3"
}
sensors() { device_start "$1" --channel '{id}' --identity "$1" --tags lab "${@:2}"; }
runs() { # runs PROPLET TASK: it is Running, and runs a Task
    wait_proplet "$1" Running
    add_task "$2" "$ADDITION" '[10, 32]' "$(task_on "$1")"
    wait_task "$2" completed
    expect_eq "result of $2" 42 "$(task "$2" .status.results)"
}

world_start device-1
broker_accounts sensor-1 sensor-2 sensor-3 sensor-5 sensor-6 sensor-7 sensor-8
kill -HUP "$(pid_of broker)"
before=$(pid_of controller)

# Without an Enrollment a stranger of another channel is not received at all.
sensors sensor-1
expect_eq "devices that wait without an Enrollment" "" "$(pending)"
enroll sensors '{"channelPerDevice": true, "match": {"clientIdPrefix": "sensor-", "tags": ["lab"]},
    "template": {"labels": {"site": "lab"}}}'
ready_is sensors 'True Listening'

# A device appears within two seconds of its first heartbeat, with what it says of itself.
started=$(now_ms)
sensors sensor-2 --description "a sensor"
wait_for 10 "the device to appear" pending_has sensor-2
printf 'measured: %s ms from the start of a device until it is listed\n' $(($(now_ms) - started))
expect_le "ms until it is listed" $(($(now_ms) - started)) 5000
expect_eq "what it says of itself" "a sensor lab" \
    "$(p pending -o json | jq -r '.devices[] | select(.clientId == "sensor-2") | "\(.description) \(.tags | join(","))"')"

# The create of sensor-1 was sent before: it says nothing of itself until it connects again.
device_stop sensor-1
sensors sensor-1
wait_for 30 "both devices" pending_is "sensor-1 sensor-2"

# Forged messages on the channel of another device list nothing.
for channel in sensor-2 elsewhere; do
    say_on $channel create '{"proplet_id": "sensor-forged", "metadata": {"tags": ["lab"]}}'
    say_on $channel alive '{"proplet_id": "sensor-forged", "status": "alive"}'
    say_on $channel alive '{"proplet_id": "sensor-manager", "status": "offline"}'
done
sensors sensor-3
wait_for 30 "the device behind the forged ones" pending_is "sensor-1 sensor-2 sensor-3"

# Approval by the command, and by a manifest that is applied.
secret_of sensor-1 >"$PART/sensor-1.key"
expect_eq "output of approve" "proplet/sensor-1 created" "$(p approve sensor-1 --key-file "$PART/sensor-1.key" | tee "$PART/said")"
expect_eq "labels of the Proplet" "lab sensors" \
    "$(proplet sensor-1 '.metadata.labels | "\(.site) \(."'"$GROUP"'/enrollment")"')"
expect_eq "key in the Secret" "$(secret_of sensor-1)" \
    "$(kn get secret sensor-1-key -o json | jq -r '.data.clientKey | @base64d')"
runs sensor-1 first
expect_failure "the name is taken" "is listed|lists a device" p approve sensor-1
p approve sensor-2 --name second --dry-run -o yaml >"$PART/second.yaml" 2>>"$PART/said"
expect_eq "Proplets after a dry run" 1 "$(kn get proplets -o name | wc -l)"
kn apply -f "$PART/second.yaml" >/dev/null
runs second second
p reject sensor-3 >>"$PART/said"
wait_for 30 "the list to be empty" pending_is ""
expect_eq "client ids that are rejected" sensor-3 "$(object enrollments sensors | jq -r '.spec.rejected | join(" ")')"

# A device that is not set up yet: its environment file has its key, and its account is known to the broker.
p device add sensor-4 --enrollment sensors -o env >"$PART/sensor-4.env"
(
    set -a
    # shellcheck source=/dev/null
    source "$PART/sensor-4.env"
    printf '%s:%s\n' "$PROPLET_CLIENT_ID" "$PROPLET_API_KEY" >>"$BROKER/identities"
)
sed -n 's/^# \(sensor-4:.*\)/\1/p' "$PART/sensor-4.env" >>"$BROKER/passwords"
kill -HUP "$(pid_of broker)"
sensors sensor-4
runs sensor-4 fourth
p device add plain --broker tcp://broker:1883 --domain other -o yaml >>"$PART/said"
expect_eq "channel of a device without an Enrollment" plain "$(proplet plain .spec.connectionConfig.channelId)"

# Two Enrollments of one channel: the older one lists, and the other one takes over.
enroll shared "{\"channelId\": \"$CHANNEL\", \"limit\": 20}"
ready_is shared 'True Listening'
wait_for 5 "another second" second_is_over "$(date +%s)"
enroll younger "{\"channelId\": \"$CHANNEL\", \"limit\": 20}"
ready_is younger "False Conflict .*$NS/shared"
kn delete enrollment shared >/dev/null
ready_is younger 'True Listening'

# Ten thousand hostile identities, three times.
memory_before=$(memory RssAnon)
k get enrollments --namespace "$NS" younger --watch --output name >"$PART/writes" &
watcher=$!
for round in 1 2 3; do
    seq 1 10000 | jq -c --arg round "$round" '{proplet_id: "hostile-\(.)-\("x" * 150)", status: "alive"}' |
        mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" -q 0 -l \
            -t "m/$DOMAIN/c/$CHANNEL/control/proplet/alive"
done
overflows() { object enrollments younger | jq -e '.status.overflow and .status.pendingCount == 20'; }
wait_for 30 "the list to be full" overflows
publish control/proplet/alive '{"proplet_id": "behind", "status": "alive"}'
add_task behind "$ADDITION" '[10, 32]' "$(task_on sensor-1)"
wait_task behind completed
kill "$watcher"
printf 'measured: %s KiB more memory, %s writes of the list\n' $(($(memory RssAnon) - memory_before)) "$(wc -l <"$PART/writes")"
expect_le "writes of the list" "$(wc -l <"$PART/writes")" 8
expect_le "memory in KiB" $(($(memory RssAnon) - memory_before)) 8192
expect_eq "the process" "$before" "$(pid_of controller)"

# The leader is killed while devices wait.
sensors sensor-5
wait_for 30 "a device that waits" pending_has sensor-5
seen=$(object enrollments sensors | jq -r '.status.pending[] | select(.clientId == "sensor-5") | .firstSeen')
controller_crash_restart
expect_eq "its first heartbeat" "$seen" \
    "$(object enrollments sensors | jq -r '.status.pending[] | select(.clientId == "sensor-5") | .firstSeen')"
secret_of sensor-5 >"$PART/sensor-5.key"
p approve sensor-5 --key-file "$PART/sensor-5.key" >>"$PART/said"
runs sensor-5 fifth

# Automatic: without its right it says so; with it, two of three devices get a Proplet.
kn delete enrollment sensors younger >/dev/null
enroll automatic '{"channelPerDevice": true, "approval": "Automatic", "maxProplets": 2, "match": {"tags": ["lab"]},
    "template": {"namePrefix": "auto-"}}'
for number in 6 7 8; do sensors sensor-$number; done
if ! has_standalone; then
    ready_is automatic 'False NotAllowed .*cannot create resource'
    k apply -f "$ROOT/rbac/automatic-enrollment/role.yaml" >/dev/null
fi
enrolled() { object enrollments automatic | jq -e '.status.enrolledCount == 2'; }
wait_for 100 "two Proplets" enrolled
ready_is automatic 'True Listening'
made() { kn get proplets -o name | grep -c /auto- || true; }
expect_eq "Proplets that were made" 2 "$(made)"
wait_for 60 "the device that is left" pending_count_is automatic 1
expect_eq "Proplets that were made" 2 "$(made)"
has_standalone || k delete -f "$ROOT/rbac/automatic-enrollment/role.yaml" >/dev/null

# No key is in any output but the environment file.
p pending -o yaml >>"$PART/said"
kn get enrollments,proplets -o yaml >>"$PART/said"
key=$(sed -n 's/^PROPLET_CLIENT_KEY=//p' "$PART/sensor-4.env")
for secret in "$key" "$(secret_of sensor-1)" "$(secret_of sensor-5)"; do
    expect_eq "places with a key" "" "$(grep -lF -- "$secret" "$PART/said" "$PART/second.yaml" "$LOGS/controller.log" || true)"
done
