# shellcheck shell=bash disable=SC2034 # used by those who source it
# Proplets and Tasks: made, read, waited for.

ADDITION=AGFzbQEAAAABBwFgAn9/AX8DAgEABwgBBG1haW4AAAoJAQcAIAAgAWoL

# wasm NAME: base64 of wasm/NAME.wat
wasm() { cat "$WORK/wasm/$1"; }
wasm_build() {
    mkdir -p "$WORK/wasm"
    "$PYTHON_HOME/bin/python" "$HERE/wasm/build.py" "$WORK/wasm" "$HERE"/wasm/*.wat
}

# The folder of manifests that were written for the Go operator; without them our own.
samples_of_others() {
    local folder=${E2E_FIXTURES:-$ROOT/../shared/fixtures}/go-operator
    [[ -d $folder ]] || folder=$ROOT/config/samples
    printf '%s\n' "$folder"
}

# proplet_json NAME CLIENT-ID [JSON merged into the object]
proplet_json() {
    jq -n --arg api "$API" --arg name "$1" --arg client "$2" --arg domain "$DOMAIN" \
        --arg channel "$CHANNEL" --arg broker "tcp://127.0.0.1:${BROKER_PORT:-1883}" \
        --argjson more "${3:-{\}}" '
        { apiVersion: $api, kind: "Proplet", metadata: { name: $name },
          spec: { type: "external", external: {},
                  connectionConfig: { mqttAddress: $broker, domainId: $domain,
                                      channelId: $channel, clientId: $client,
                                      clientKeySecretRef: { name: "unused", key: "key" } } } }
        * $more'
}

# task_json NAME WASM-BASE64 INPUTS-JSON [JSON merged into the object]
task_json() {
    jq -n --arg api "$API" --arg name "$1" --arg file "$2" --argjson inputs "$3" \
        --argjson more "${4:-{\}}" '
        { apiVersion: $api, kind: "Task", metadata: { name: $name },
          spec: { name: $name, functionName: "main", file: $file, inputs: $inputs } } * $more'
}

# task_on PROPLET: JSON for task_json that pins it there
task_on() { jq -nc --arg id "$1" '{spec: {propletSelector: {propletId: $id}}}'; }

create() { kn create -f - >/dev/null; }
add_proplet() { proplet_json "$@" | create; }
add_task() { task_json "$@" | create; }

# add_numbered KIND COUNT PREFIX...: documents from stdin where NUMBER is replaced by 1..COUNT
add_numbered() {
    local count=$1 document number
    document=$(cat)
    for ((number = 1; number <= count; number++)); do
        printf '%s\n' "${document//NUMBER/$number}"
    done | jq -c . | create
}

objects() { api "/apis/$API/namespaces/$NS/$1"; }
object() { api "/apis/$API/namespaces/$NS/$1/$2"; }
task() { object tasks "$1" | jq -r "${2:-.}"; }
proplet() { object proplets "$1" | jq -r "${2:-.}"; }

# condition KIND NAME TYPE: "STATUS REASON MESSAGE"
condition() {
    object "$1" "$2" | jq -r --arg type "$3" '
        .status.conditions[]? | select(.type == $type) | "\(.status) \(.reason) \(.message)"'
}

# equals JQ EXPECTED KIND NAME: prints what it saw when it differs
field_is() {
    local seen
    seen=$(object "$1" "$2" | jq -r "$3") || return 1
    [[ $seen == "$4" ]] && return 0
    printf "%s of %s is '%s'; " "$3" "$2" "$seen"
    object "$1" "$2" | jq -c .status
    return 1
}
condition_matches() {
    local seen
    seen=$(condition "$1" "$2" "$3")
    printf '%s\n' "$seen"
    [[ $seen =~ $4 ]]
}
object_gone() {
    local code
    code=$(api "/apis/$API/namespaces/$NS/$1/$2" -o /dev/null -w '%{http_code}' 2>/dev/null || true)
    printf 'answer %s for %s %s\n' "$code" "$1" "$2"
    [[ $code == 404 ]]
}

wait_task() { wait_for "${3:-30}" "Task $1 to be $2" field_is tasks "$1" '.status.phase // "pending"' "$2"; }
wait_proplet() { wait_for "${3:-30}" "Proplet $1 to be $2" field_is proplets "$1" .status.phase "$2"; }
wait_task_gone() { wait_for "${2:-30}" "Task $1 to be gone" object_gone tasks "$1"; }

# wait_condition KIND NAME TYPE PATTERN [SECONDS]
wait_condition() {
    wait_for "${5:-30}" "condition $3 of $2 to match '$4'" condition_matches "$1" "$2" "$3" "$4"
}

# phase_count KIND PHASE: how many
phase_count() {
    objects "$1" | jq --arg phase "$2" '[.items[] | select((.status.phase // "pending") == $phase)] | length'
}
phase_count_is() {
    local count
    count=$(phase_count "$1" "$2") || return 1
    printf '%s of %s %s are %s\n' "$count" "$3" "$1" "$2"
    ((count == $3))
}

# phase_none KIND: there is none
phase_none() {
    local count
    count=$(objects "$1" | jq '.items | length') || return 1
    printf '%s %s are left\n' "$count" "$1"
    ((count == 0))
}

# events NAME: "TYPE REASON MESSAGE" a line
events() {
    api "/api/v1/namespaces/$NS/events?fieldSelector=involvedObject.name=$1" |
        jq -r '.items[] | "\(.type) \(.reason) \(.message)"'
}
# event_count NAME REASON: occurrences, those of a series included
event_count() {
    api "/api/v1/namespaces/$NS/events?fieldSelector=involvedObject.name=$1,reason=$2" |
        jq '[.items[] | .series.count // .count // 1] | map(if . < 1 then 1 else . end) | add // 0'
}
has_event() {
    events "$1" | grep -E "$2" || ! events "$1"
}
