# shellcheck shell=bash
# propeller-webhook, registered in the API server by config/webhook's own configurations. The Service
# alone is another: an ExternalName, which leads the API server to this machine. It still asks for
# the name of the Service in the certificate.

WEBHOOK_BIN=${WEBHOOK_BIN:-$ROOT/build/bin/propeller-webhook}
WEBHOOK=propeller-webhook

# webhook_prepare: ports and folders, once; webhook_start may then be called again and again
webhook_prepare() {
    WEBHOOK_PORT=$(free_port)
    WEBHOOK_HEALTH_PORT=$(free_port)
    WEBHOOK_METRICS_PORT=$(free_port)
    WEBHOOK_CERTS=$PART/webhook
    mkdir -p "$WEBHOOK_CERTS"
}

# webhook_start [OPTION...]: returns when it serves
webhook_start() {
    spawn webhook "$WEBHOOK_BIN" --port "$WEBHOOK_PORT" --cert-dir "$WEBHOOK_CERTS" \
        --health-probe-bind-address "127.0.0.1:$WEBHOOK_HEALTH_PORT" \
        --metrics-bind-address "127.0.0.1:$WEBHOOK_METRICS_PORT" "$@"
    wait_for 30 "the webhook to be ready" webhook_ready
}

webhook_ready() {
    is_running webhook || {
        printf "it has ended; last line: %s\n" "$(tail -n 1 "$LOGS/webhook.log")"
        return 1
    }
    curl -sS --max-time 5 "http://127.0.0.1:$WEBHOOK_HEALTH_PORT/readyz?verbose"
    curl -sSf -o /dev/null --max-time 5 "http://127.0.0.1:$WEBHOOK_HEALTH_PORT/readyz"
}

# webhook_certificate: a pair for the Service, signed by the authority of this cluster
webhook_certificate() {
    certificate "$NS-webhook" "/CN=$WEBHOOK" "DNS:$WEBHOOK.$NS.svc"
    mv "$CLUSTER/$NS-webhook.crt" "$WEBHOOK_CERTS/tls.crt"
    mv "$CLUSTER/$NS-webhook.key" "$WEBHOOK_CERTS/tls.key"
}

# webhook_configurations [CA-FILE]: config/webhook's, for this case's namespace and port
webhook_configurations() {
    k create --dry-run=client -o json -f "$ROOT/config/webhook/mutating.yaml" \
        -f "$ROOT/config/webhook/validating.yaml" |
        jq --arg ns "$NS" --argjson port "$WEBHOOK_PORT" --arg ca "${1:+$(base64 -w0 "$1")}" '
            .webhooks[] |= (
                .clientConfig.service += { namespace: $ns, port: $port }
                | .clientConfig += (if $ca == "" then {} else { caBundle: $ca } end)
                | .namespaceSelector.matchLabels["kubernetes.io/metadata.name"] = $ns)'
}

# webhook_register [CA-FILE]: without a file the controller is to put the caBundle in
webhook_register() {
    kn create service externalname "$WEBHOOK" --external-name localhost --tcp "$WEBHOOK_PORT" \
        >/dev/null 2>&1 || kn get service "$WEBHOOK" >/dev/null
    : >"$PART/webhook-registered"
    webhook_configurations "$@" | k apply --server-side --force-conflicts -f - >/dev/null
    [[ -z ${1:-} ]] || wait_for 30 "the API server to ask the webhook" webhook_is_asked
}

webhook_unregister() {
    [[ -e $PART/webhook-registered ]] || return 0
    k delete mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" >/dev/null &&
        rm "$PART/webhook-registered"
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
webhook_is_not_asked() {
    local said
    said=$(webhook_probe 60)
    printf '%s\n' "$said"
    [[ $said == *'"kind": "Task"'* && $said != *'"finalizers"'* ]]
}
