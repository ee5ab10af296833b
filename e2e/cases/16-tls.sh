#!/usr/bin/env bash
# Broker with TLS: the certificate is checked, and everything works through it.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

broker_prepare d
authority "$BROKER/ca" broker-ca
authority "$BROKER/other-ca" other-ca
# tls_listener NAME SAN: prints its port
tls_listener() {
    local port
    port=$(free_port)
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$BROKER/$1.key" \
        -subj "/CN=$1" -out "$BROKER/$1.csr" 2>/dev/null
    openssl x509 -req -in "$BROKER/$1.csr" -CA "$BROKER/ca.crt" -CAkey "$BROKER/ca.key" -CAcreateserial \
        -days 30 -out "$BROKER/$1.crt" -extfile <(printf 'subjectAltName=%s\n' "$2") 2>/dev/null
    printf 'listener %s %s\ncertfile %s\nkeyfile %s\n' "$port" "$(has_node || printf 127.0.0.1)" \
        "$BROKER/$1.crt" "$BROKER/$1.key" >>"$BROKER/mosquitto.conf"
    printf '%s\n' "$port"
}
# A process reaches it by its name, a pod by the address of this machine.
BROKER_HOST=$(operator_in_pods && printf '%s' "$NODE_MACHINE" || printf localhost)
BROKER_TLS_PORT=$(tls_listener tls "DNS:localhost${NODE_MACHINE:+,IP:$NODE_MACHINE}")
OTHER_NAME_PORT=$(tls_listener other-name DNS:broker.example)
broker_start
controller_prepare

# An authority that did not sign, and a name that the certificate does not bear.
controller_spawn --mqtt-address "mqtts://$BROKER_HOST:$BROKER_TLS_PORT" --mqtt-ca-file "$BROKER/other-ca.crt"
wait_for 30 "readyz to speak of the certificate" readyz_says '[Cc]ertificate|TLS'
controller_stop
controller_spawn --mqtt-address "mqtts://$BROKER_HOST:$OTHER_NAME_PORT" --mqtt-ca-file "$BROKER/ca.crt"
wait_for 30 "readyz to speak of the certificate" readyz_says 'mismatch'
controller_stop

controller_start --mqtt-address "mqtts://$BROKER_HOST:$BROKER_TLS_PORT" --mqtt-ca-file "$BROKER/ca.crt"
add_proplet worker d
device_start device --identity d --broker "localhost:$BROKER_TLS_PORT" --tls-ca "$BROKER/ca.crt"
wait_proplet worker Running
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed
expect_eq "result over TLS" 42 "$(task sum .status.results)"
