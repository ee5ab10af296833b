#!/usr/bin/env bash
# Two replicas whose certificates change again and again, one after the other, while both are asked:
# no request fails, new connections have the new one.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"
ROTATIONS=4
REPLICAS="webhook-a webhook-b"

for replica in $REPLICAS; do
    webhook_prepare "$replica"
    webhook_certificate
    webhook_start
    webhook_load "load-$replica"
done
for ((i = 0; i < ROTATIONS; i++)); do
    for replica in $REPLICAS; do
        webhook_prepare "$replica"
        webhook_certificate --webhook-extra-name "rotation-$i.example"
        serial=$(openssl x509 -noout -serial -in "$WEBHOOK_CERTS/tls.crt" | cut -d= -f2)
        wait_for 30 "$replica to serve its new certificate" webhook_serves "$serial"
    done
done
for replica in $REPLICAS; do
    printf '%s reviews of %s\n' "$(webhook_load_end "load-$replica")" "$replica"
    webhook_prepare "$replica"
    stop "$replica"
done
