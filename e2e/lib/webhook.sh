# shellcheck shell=bash
# propeller-webhook, registered in the API server by config/webhook's own configurations. The Service
# alone is another, which leads the API server to this machine: an ExternalName, or with nodes one whose
# endpoint is told by hand. It still asks for the name of the Service in the certificate.

WEBHOOK_BIN=${WEBHOOK_BIN:-$ROOT/build/bin/propeller-webhook}
WEBHOOK=propeller-webhook
# Where its Service is; empty: in the case's namespace. Where the controller is to look after the
# certificates it must be the one in which it has the rights.
WEBHOOK_NS=

# webhook_prepare [NAME]: ports and folders; webhook_start may then be called again and again. With
# several replicas the functions below are about the one that was named last.
webhook_prepare() {
    WEBHOOK_NAME=${1:-webhook}
    WEBHOOK_NS=${WEBHOOK_NS:-$NS}
    [[ -e $PART/$WEBHOOK_NAME.ports ]] ||
        printf '%s\n' "$(free_port)" "$(free_port)" "$(free_port)" >"$PART/$WEBHOOK_NAME.ports"
    { read -r WEBHOOK_PORT && read -r WEBHOOK_HEALTH_PORT && read -r WEBHOOK_METRICS_PORT; } \
        <"$PART/$WEBHOOK_NAME.ports"
    WEBHOOK_CERTS=$PART/$WEBHOOK_NAME.certs
    WEBHOOK_CA=$PART/webhook-ca/ca.crt
    mkdir -p "$WEBHOOK_CERTS"
}

# webhook_start [OPTION...]: returns when it serves
webhook_start() {
    webhook_spawn "$@"
    wait_for 30 "the webhook to be ready" webhook_ready
}
webhook_spawn() {
    spawn "$WEBHOOK_NAME" "$WEBHOOK_BIN" --enable-vmafx --port "$WEBHOOK_PORT" --cert-dir "$WEBHOOK_CERTS" \
        --health-probe-bind-address "127.0.0.1:$WEBHOOK_HEALTH_PORT" \
        --metrics-bind-address "127.0.0.1:$WEBHOOK_METRICS_PORT" "$@"
}

webhook_ready() {
    is_running "$WEBHOOK_NAME" || {
        printf "it has ended; last line: %s\n" "$(tail -n 1 "$LOGS/$WEBHOOK_NAME.log")"
        return 1
    }
    curl -sS --max-time 5 "http://127.0.0.1:$WEBHOOK_HEALTH_PORT/readyz?verbose"
    curl -sSf -o /dev/null --max-time 5 "http://127.0.0.1:$WEBHOOK_HEALTH_PORT/readyz"
}

# The certificate that a new connection gets: its serial number.
webhook_serial() {
    openssl s_client -connect "127.0.0.1:$WEBHOOK_PORT" </dev/null 2>/dev/null |
        openssl x509 -noout -serial | cut -d= -f2
}
webhook_serves() {
    local serial
    serial=$(webhook_serial) || return 1
    printf '%s instead of %s\n' "$serial" "$1"
    [[ $serial == "$1" ]]
}

# webhook_load NAME: reviews on 8 connections until webhook_load_end NAME, every other one new for each
LOAD_PATH=/validate-propeller-propeller-abstractmachines-fr-v1-task
webhook_load() {
    spawn "$1" "$ROOT/build/plain/bench/load" --ca "$WEBHOOK_CA" --connections 8 --fresh-every 2 \
        --url "https://$WEBHOOK.$WEBHOOK_NS.svc:$WEBHOOK_PORT$LOAD_PATH" \
        --resolve "$WEBHOOK.$WEBHOOK_NS.svc:$WEBHOOK_PORT:127.0.0.1" --until "$PART/$1.enough" \
        --rate 200 --body "$ROOT/webhook/tests/reviews/validate-task/file-addition.request.json"
    wait_for 30 "the load to have begun" webhook_has_answered 100
}
webhook_has_answered() {
    local count
    count=$(curl -sSf --max-time 5 "http://127.0.0.1:$WEBHOOK_METRICS_PORT/metrics" |
        sed -n 's/^propeller_webhook_reviews_total.* //p' | awk '{ sum += $1 } END { print sum + 0 }')
    printf '%s answers\n' "$count"
    ((count >= $1))
}
# Fails if a request failed; prints how many there were.
webhook_load_end() {
    : >"$PART/$1.enough"
    wait_for 60 "the load to end" is_gone "$1"
    grep -q '^failed=0$' "$LOGS/$1.log" || fail "requests failed: $(tail -n 8 "$LOGS/$1.log")"
    sed -n 's/^requests=//p' "$LOGS/$1.log"
}

# webhook_certificate [OPTION...]: a pair for the Service, by propeller-certgen; replicas have one
# authority. A name that the present certificate does not have makes it make another one.
webhook_certificate() {
    mkdir -p "${WEBHOOK_CA%/*}"
    "$ROOT/build/bin/propeller-certgen" --cert-dir "$WEBHOOK_CERTS" --ca-dir "${WEBHOOK_CA%/*}" \
        --webhook-namespace "$WEBHOOK_NS" "$@"
}

# webhook_mount [DELAY]: the Secret that the controller makes, mounted into this replica from now on
webhook_mount() {
    spawn "$WEBHOOK_NAME-kubelet" "$HERE/webhook/kubelet.sh" "$CLUSTER/admin.kubeconfig" "$WEBHOOK_NS" \
        "$WEBHOOK-cert" "$WEBHOOK_CERTS" "${1:-0}"
}

# webhook_configurations [CA-FILE]: config/webhook's with the entries of config/vmafx, for this case's namespace and port
webhook_configurations() {
    {
        k create --dry-run=client -o json -f "$ROOT/config/webhook/mutating.yaml"
        k patch --local --type=json --patch-file "$ROOT/config/vmafx/validating.yaml" -o json \
            -f "$ROOT/config/webhook/validating.yaml"
    } |
        jq --arg ns "$NS" --arg service "$WEBHOOK_NS" --argjson port "$WEBHOOK_PORT" \
            --arg ca "${1:+$(base64 -w0 "$1")}" '
            .webhooks[] |= (
                .clientConfig.service += { namespace: $service, port: $port }
                | .clientConfig += (if $ca == "" then {} else { caBundle: $ca } end)
                | .namespaceSelector.matchLabels["kubernetes.io/metadata.name"] = $ns)'
}

# webhook_register [CA-FILE]: without a file the controller is to put the caBundle in
webhook_register() {
    : >"$PART/webhook-registered"
    webhook_service
    webhook_configurations "$@" | k apply --server-side --force-conflicts -f - >/dev/null
    [[ -z ${1:-} ]] || wait_for 30 "the API server to ask the webhook" webhook_is_asked
}

webhook_service() {
    if ! has_node; then
        k --namespace "$WEBHOOK_NS" create service externalname "$WEBHOOK" --external-name localhost \
            --tcp "$WEBHOOK_PORT" >/dev/null
        return
    fi
    jq -n --arg name "$WEBHOOK" --arg address "$NODE_MACHINE" --argjson port "$WEBHOOK_PORT" '
        { apiVersion: "v1", kind: "Service", metadata: { name: $name }, spec: { ports: [{ port: $port }] } },
        { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4",
          metadata: { name: $name, labels: { "kubernetes.io/service-name": $name } },
          ports: [{ port: $port }], endpoints: [{ addresses: [$address] }] }' |
        k --namespace "$WEBHOOK_NS" create -f - >/dev/null
}

webhook_unregister() {
    [[ -e $PART/webhook-registered ]] || return 0
    rm "$PART/webhook-registered"
    k delete mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" >/dev/null
    k --namespace "$WEBHOOK_NS" delete --ignore-not-found service/"$WEBHOOK" endpointslice/"$WEBHOOK" secret/"$WEBHOOK"-{ca,cert} >/dev/null
    [[ ! -e $PART/webhook-in-pods ]] ||
        k delete --ignore-not-found -f "$ROOT"/config/webhook/deployment.yaml -f "$ROOT"/config/webhook/networkpolicy.yaml \
            -f "$ROOT"/config/webhook/poddisruptionbudget.yaml >/dev/null
}

# Only the webhook knows that there is no minute 60, and only it adds the finalizer.
webhook_probe() {
    task_json probe "$ADDITION" '[]' '{"spec": {"schedule": "'"$1"' * * * *"}}' |
        kn create --dry-run=server -o json -f - 2>&1
}
webhook_is_asked() {
    local said
    said=$(webhook_probe 60)
    printf '%s\n' "$said"
    [[ $said == *"minute '60'"* ]] || return 1
    said=$(webhook_probe 0)
    printf '%s\n' "$said"
    [[ $said == *'"finalizers"'* ]]
}
