#!/usr/bin/env bash
# Broker with TLS: the certificate is checked, and everything works through it.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_process "the broker's certificate is for localhost"
broker_prepare d
authority "$BROKER/ca" broker-ca
authority "$BROKER/other-ca" other-ca
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$BROKER/tls.key" \
    -subj /CN=localhost -out "$BROKER/tls.csr" 2>/dev/null
openssl x509 -req -in "$BROKER/tls.csr" -CA "$BROKER/ca.crt" -CAkey "$BROKER/ca.key" -CAcreateserial \
    -days 30 -out "$BROKER/tls.crt" -extfile <(printf 'subjectAltName=DNS:localhost\n') 2>/dev/null
BROKER_TLS_PORT=$(free_port)
printf 'listener %s 127.0.0.1\ncertfile %s\nkeyfile %s\n' "$BROKER_TLS_PORT" \
    "$BROKER/tls.crt" "$BROKER/tls.key" >>"$BROKER/mosquitto.conf"
broker_start
controller_prepare

# An authority that did not sign, and a name that the certificate does not bear.
controller_spawn --mqtt-address "mqtts://localhost:$BROKER_TLS_PORT" --mqtt-ca-file "$BROKER/other-ca.crt"
wait_for 30 "readyz to speak of the certificate" readyz_says '[Cc]ertificate|TLS'
controller_stop
controller_spawn --mqtt-address "mqtts://127.0.0.1:$BROKER_TLS_PORT" --mqtt-ca-file "$BROKER/ca.crt"
wait_for 30 "readyz to speak of the certificate" readyz_says 'mismatch'
controller_stop

controller_start --mqtt-address "mqtts://localhost:$BROKER_TLS_PORT" --mqtt-ca-file "$BROKER/ca.crt"
add_proplet worker d
device_start device --identity d --broker "localhost:$BROKER_TLS_PORT" --tls-ca "$BROKER/ca.crt"
wait_proplet worker Running
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed
expect_eq "result over TLS" 42 "$(task sum .status.results)"
