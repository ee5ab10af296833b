# shellcheck shell=bash
# Federated learning: devices that train wasm/train.wat, and what became of a job.

# federated_world DEVICES [CONTROLLER-OPTION...]: broker, controller with coordinator, a server for
# the module, and Proplets worker-1 ... of device-1 ..., each device in a group of its own name.
federated_world() {
    local count=$1 devices=() device
    shift
    mapfile -t devices < <(seq -f 'device-%g' "$count")
    world_start_with_coordinator "${devices[@]}" -- "$@"
    module_server
    proplet_json worker-NUMBER device-NUMBER | add_numbered "$count"
    for device in "${devices[@]}"; do
        trainer_start "$device"
    done
    wait_for 60 "all Proplets to run" phase_count_is proplets Running "$count"
}

# world_start_with_coordinator DEVICE... [-- CONTROLLER-OPTION...]: broker, and controller with coordinator
world_start_with_coordinator() {
    local devices=()
    while (($#)) && [[ $1 != -- ]]; do
        devices+=("$1")
        shift
    done
    broker_prepare "${devices[@]}"
    broker_start
    controller_prepare
    COORDINATOR_PORT=$(free_port)
    COORDINATOR_URL=http://127.0.0.1:$COORDINATOR_PORT
    local address=127.0.0.1
    if operator_in_pods; then
        # Only the leader serves, and a Service does not know who that is.
        # shellcheck disable=SC2034 # operator.sh reads it
        OPERATOR_REPLICAS=1 address=0.0.0.0
        coordinator_service
    fi
    CONTROLLER_OPTIONS+=(
        --coordinator-bind-address "$address:$COORDINATOR_PORT" --coordinator-url "$COORDINATOR_URL")
    CONTROLLER_OPTIONS+=("${@:2}")
    controller_start
    wait_for 60 "the coordinator to serve" coordinator_serves nobody
}

# The pods' coordinator at one address, also for this machine.
coordinator_service() {
    jq -n --arg app "$OPERATOR" --argjson port "$COORDINATOR_PORT" '
        { apiVersion: "v1", kind: "Service", metadata: { name: "propeller-coordinator" },
          spec: { selector: { "app.kubernetes.io/name": $app }, ports: [{ port: $port }] } }' |
        ko replace --force -f - >/dev/null
    COORDINATOR_URL=http://$(ko get service propeller-coordinator -o 'jsonpath={.spec.clusterIP}'):$COORDINATOR_PORT
}

# trainer_start IDENTITY [OPTION...]
trainer_start() { device_start "$1" --identity "$1" --external-runtime "${@:2}"; }

module_server() {
    local port module
    port=$(free_port)
    mkdir -p "$PART/modules"
    for module in train scalar; do
        wasm "$module" | base64 -d >"$PART/modules/$module.wasm"
    done
    spawn modules "$PYTHON_HOME/bin/python" -m http.server --bind 127.0.0.1 \
        --directory "$PART/modules" "$port"
    MODULE_URL=http://127.0.0.1:$port/train.wasm
    wait_for 30 "the server of the module" curl -sSf -o /dev/null "$MODULE_URL"
}

# federated_json NAME PARTICIPANTS K ROUNDS [JSON merged into the spec]
federated_json() {
    jq -n --arg api "$API" --arg name "$1" --argjson n "$2" --argjson k "$3" --argjson total "$4" \
        --argjson more "${5:-{\}}" --arg url "$MODULE_URL" '
        { apiVersion: $api, kind: "FederatedJob", metadata: { name: $name },
          spec: ({ experimentId: "e2e", taskWasmImage: $url, kOfN: $k,
                   participants: [range(1; $n + 1) | { propletId: "worker-\(.)" }],
                   rounds: { total: $total }, timeoutSeconds: 300, historyLimit: 100 } + $more) }'
}
add_federated() { federated_json "$@" | create; }

federated() { object federatedjobs "$1" | jq -r "${2:-.}"; }
training_round() { object trainingrounds "$1" | jq -r "${2:-.}"; }
wait_federated() { wait_for "${3:-240}" "FederatedJob $1 to be $2" field_is federatedjobs "$1" .status.phase "$2"; }
# A controller that was killed serves again when it leads.
coordinator_serves() { # coordinator_serves JOB-UID
    local status
    status=$(http_status GET "/j/$1/models/1") || true
    printf 'status %s\n' "$status"
    [[ $status == 200 || $status == 404 ]]
}

# federated_verify JOB [OPTION...]: every model, recomputed with NumPy
federated_verify() {
    local uid
    uid=$(federated "$1" .metadata.uid)
    wait_for 60 "the coordinator to serve" coordinator_serves "$uid"
    objects trainingrounds >"$PART/rounds.json"
    objects tasks >"$PART/tasks.json"
    "$PYTHON_HOME/bin/python" "$HERE/federated/verify.py" "$PART/rounds.json" "$PART/tasks.json" \
        "$uid" "$COORDINATOR_URL" "${@:2}"
}

# http_status METHOD PATH [BODY]: of the coordinator
http_status() {
    curl -sS -o /dev/null -w '%{http_code}' -X "$1" ${3+-d "$3"} "$COORDINATOR_URL$2"
}
