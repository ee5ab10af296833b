# shellcheck shell=bash
# A mosquitto with the hardened configuration of config/mosquitto, paths and ports put in.

DOMAIN=dom-1
CHANNEL=chan-1
CONTROLLER_USER=propeller-controller
OBSERVER=observer

secret_of() { printf 'secret-of-%s\n' "$1"; }

# broker_prepare IDENTITY...: files only; broker_start starts it (again) on the same port and data.
# BROKER_DATA: a folder for what it saves, if not one of this part
broker_prepare() {
    BROKER=$PART/broker
    BROKER_PORT=$(free_port)
    mkdir -p "$BROKER/data"
    sed -e "s#/etc/mosquitto/#$BROKER/#; s#/var/lib/mosquitto/#${BROKER_DATA:-$BROKER/data}/#" \
        -e "s#^listener .*#listener $BROKER_PORT $(has_node || printf 127.0.0.1)#" -e '/^\(certfile\|keyfile\) /d' \
        "$ROOT/config/mosquitto/mosquitto.conf" >"$BROKER/mosquitto.conf"
    # Started as root it would change to a user that may not read this folder.
    printf '\nuser %s\n' "$(id -un)" >>"$BROKER/mosquitto.conf"
    cp "$ROOT/config/mosquitto/acl" "$BROKER/acl"
    printf '\nuser %s\ntopic readwrite #\n' "$OBSERVER" >>"$BROKER/acl"
    : >"$BROKER/identities"
    broker_accounts "$CONTROLLER_USER" "$OBSERVER"
    broker_devices "$@"
}

broker_accounts() {
    local identity
    for identity in "$@"; do
        printf '%s:%s\n' "$identity" "$(secret_of "$identity")"
    done >>"$BROKER/identities"
    cp "$BROKER/identities" "$BROKER/passwords.new"
    mosquitto_passwd -U "$BROKER/passwords.new"
    chmod 600 "$BROKER/passwords.new" "$BROKER/acl"
    mv "$BROKER/passwords.new" "$BROKER/passwords"
}

# Accounts that may speak on the shared channel of this run, as the ACL example describes it.
broker_devices() {
    local identity
    (($#)) || return 0
    for identity in "$@"; do
        printf '\nuser %s\n' "$identity"
        sed -n 's/^# *\(topic .*\)DOMAIN\(.*\)CHANNEL/\1'"$DOMAIN"'\2'"$CHANNEL"'/p' \
            "$ROOT/config/mosquitto/acl"
    done >>"$BROKER/acl"
    broker_accounts "$@"
    if is_running broker; then
        kill -HUP "$(pid_of broker)"
    fi
}

# broker_withholds USER TOPIC COMMAND...: while COMMAND runs, the broker sends USER no message of this topic
broker_withholds() {
    local user=$1 topic=$2
    shift 2
    cp "$BROKER/acl" "$BROKER/acl.all"
    sed -i "s#^user $user\$#&\ntopic deny $topic#" "$BROKER/acl"
    kill -HUP "$(pid_of broker)"
    "$@"
    mv "$BROKER/acl.all" "$BROKER/acl"
    kill -HUP "$(pid_of broker)"
}

broker_start() {
    spawn broker mosquitto -c "$BROKER/mosquitto.conf"
    wait_for 30 "the broker to answer" broker_answers
}

broker_answers() {
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" \
        -i "probe-$$" -t probe -n
}

# publish TOPIC-SUFFIX PAYLOAD [OPTION...]: as somebody who may say anything on the channel
publish() {
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" \
        -q 1 -t "m/$DOMAIN/c/$CHANNEL/$1" -m "$2" "${@:3}"
}

# zeros COUNT: an array of two bytes a value
zeros() { awk -v count="$1" 'BEGIN { printf "["; for (i = 1; i < count; i++) printf "0,"; printf "0]" }'; }
# publish_huge TOPIC MEMBERS: 9.8 MB, just below message_size_limit of config/mosquitto
publish_huge() {
    {
        printf '{%s:' "$2"
        zeros 4899900
        printf '}'
    } >"$PART/huge"
    mosquitto_pub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" -q 1 -t "$1" -f "$PART/huge"
}
# publish_huge_everywhere IDENTITY: on every topic that the controller reads, in the name of this device
publish_huge_everywhere() {
    local suffix
    for suffix in alive create metrics task_metrics results invoke_results reclaim; do
        publish_huge "m/$DOMAIN/c/$CHANNEL/control/proplet/$suffix" \
            '"forged":true,"proplet_id":"'"$1"'","status":"alive","task_id":"nobody","results"'
    done
    publish_huge "fl/rounds/1/updates/$1" '"update"'
}

# broker_record: every message of the broker into LOGS/wire.log, as `TOPIC PAYLOAD`
broker_record() {
    spawn wire mosquitto_sub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" \
        -P "$(secret_of "$OBSERVER")" -i recorder -q 1 -t '#' -F '%U %t %p'
    wait_for 30 "the recorder" wire_answers
}
wire_answers() {
    publish probe recorder
    grep -q ' m/.*/probe recorder' "$LOGS/wire.log"
}

# wire_messages TOPIC-SUFFIX [JQ-FILTER]: payloads seen so far
wire_messages() {
    sed -n "s#^[0-9.]* m/[^ ]*/$1 ##p" "$LOGS/wire.log" | jq -c "${2:-.}"
}
