# shellcheck shell=bash
# Test devices (device/device.py): groups of identities, each group one process with a journal.

DEVICE_TIMES=(--alive-interval 1 --metrics-interval 10 --reconnect-max 2)

# device_start GROUP OPTION...: a group by any name; returns when all its identities are connected
device_start() {
    local group=$1
    shift
    rm -f "$PART/$group.control"
    mkfifo "$PART/$group.control"
    : >>"$LOGS/$group.journal"
    local before
    before=$(connections "$group")
    spawn "device-$group" "$PYTHON_HOME/bin/python" "$HERE/device/device.py" \
        --broker "127.0.0.1:$BROKER_PORT" --domain "$DOMAIN" --channel "$CHANNEL" \
        --passwords "$BROKER/identities" --journal "$LOGS/$group.journal" \
        --control "$PART/$group.control" "${DEVICE_TIMES[@]}" "$@"
    wait_for 30 "a connection of $group" more_connections "$group" "$before"
}

connections() { grep -c '"event": "connected"' "$LOGS/$1.journal" || true; }
more_connections() { (($(connections "$1") > $2)) || ! tail -n 3 "$LOGS/device-$1.log"; }

# all_connected GROUP COUNT
all_connected() {
    local count
    count=$(journal "$1" '.event == "connected"' | jq -r .device | sort -u | wc -l)
    printf '%s of %s connected\n' "$count" "$2"
    ((count == $2))
}

device_stop() { stop "device-$1" TERM; }
device_crash() { crash "device-$1"; }
# device_say GROUP VERB IDENTITY [ARGUMENT]: returns when it has been obeyed
device_say() {
    local group=$1 before
    shift
    before=$(journal "$group" '.event == "control"' | wc -l)
    # shellcheck disable=SC2016 # expanded by the other shell
    timeout 5 bash -c 'printf "%s\n" "$1" >"$2"' say "$*" "$PART/$group.control"
    wait_for 30 "device $group to obey '$*'" obeyed "$group" "$before"
}
obeyed() { (($(journal "$1" '.event == "control"' | wc -l) > $2)); }

# journal GROUP [JQ-CONDITION]: matching lines; an unfinished last line is left out
journal() { jq -Rc "fromjson? | select(${2:-true})" "$LOGS/$1.journal"; }
journal_count() { journal "$@" | wc -l; }

# journal_has GROUP CONDITION [COUNT]: for wait_for
journal_has() {
    local count
    count=$(journal_count "$1" "$2")
    printf '%s of %s lines where %s\n' "$count" "${3:-1}" "$2"
    ((count >= ${3:-1}))
}

# embedded_start IDENTITY OPTION...: a microcontroller (device/embedded.py), a group of its own name
embedded_start() {
    local identity=$1 before
    shift
    : >>"$LOGS/$identity.journal"
    before=$(connections "$identity")
    spawn "device-$identity" "$PYTHON_HOME/bin/python" "$HERE/device/embedded.py" \
        --broker "127.0.0.1:$BROKER_PORT" --domain "$DOMAIN" --channel "$CHANNEL" \
        --passwords "$BROKER/identities" --journal "$LOGS/$identity.journal" \
        --identity "$identity" --alive-interval 1 "$@"
    wait_for 30 "a connection of $identity" more_connections "$identity" "$before"
}

# registry_start: answers requests for modules as the proxy does: the last part of the name is that of
# one in wasm/. Other names wait for registry_send.
registry_start() {
    # shellcheck disable=SC2016 # expanded by the other shell
    spawn registry bash -c '
        mosquitto_sub -h 127.0.0.1 -p "$1" -u "$2" -P "$3" -q 1 -t "m/+/c/+/registry/proplet" -F "%t %p" |
            while read -r topic request; do
                printf "%s %s\n" "$topic" "$request"
                module=$4/$(jq -r ".app_name | split(\"/\") | last" <<<"$request")
                [[ -e $module ]] || continue
                mosquitto_pub -h 127.0.0.1 -p "$1" -u "$2" -P "$3" -q 1 -t "${topic%proplet}server" -m "$(jq -c \
                    --rawfile data "$module" "{app_name, chunk_idx: 0, total_chunks: 1, data: \$data}" <<<"$request")"
            done' registry "$BROKER_PORT" "$OBSERVER" "$(secret_of "$OBSERVER")" "$WORK/wasm"
    wait_for 60 "the registry to listen" registry_listens
}
registry_listens() {
    publish registry/proplet '{"app_name":"probe"}'
    grep -q probe "$LOGS/registry.log"
}
# registry_send NAME MODULE: on $CHANNEL
registry_send() {
    publish registry/server "$(jq -nc --arg name "$1" --arg data "$(wasm "$2")" \
        '{app_name: $name, chunk_idx: 0, total_chunks: 1, data: $data}')"
}
