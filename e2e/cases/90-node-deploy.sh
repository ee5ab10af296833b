#!/usr/bin/env bash
# On nodes whose pods really run: `make deploy` with the image of `make image`. The webhook answers through
# its Service, a Task runs on a device; the certificate and the webhook's pods are taken away and come back;
# new settings are rolled out while Tasks are made; `make undeploy` stops what runs and leaves nothing.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_pods
case_uninstalls

ks() { k --namespace "$SYSTEM_NS" "$@"; }
make_it() {
    KUBECONFIG=$CLUSTER/admin.kubeconfig make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_OUT="$PART/deploy" \
        OVERLAY="$PART/overlay" IMAGE="$OPERATOR_IMAGE" DEPLOY_SECONDS=600 RELEASE_SECONDS=120 "$@" 2>&1
}
# overlay SETTING...: the default one, with a broker on this machine
overlay() {
    mkdir -p "$PART/overlay"
    {
        printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - %s\n' \
            "$(realpath --relative-to="$PART/overlay" "$ROOT/config/overlays/default")"
        printf 'configMapGenerator:\n  - name: propeller-settings\n    namespace: %s\n    behavior: merge\n    literals:\n' "$SYSTEM_NS"
        printf '      - PROPELLER_%s\n' "MQTT_ADDRESS=tcp://$NODE_MACHINE:$BROKER_PORT" \
            CLIENT_KEY_FILE=/etc/propeller/mqtt/client-key "$@"
    } >"$PART/overlay/kustomization.yaml"
}

broker_prepare device-1
broker_start
ks create secret generic propeller-mqtt --from-literal=client-key="$(secret_of "$CONTROLLER_USER")" >/dev/null
overlay
make_it deploy >"$LOGS/deploy.log" || fail "make deploy: $(<"$LOGS/deploy.log")"
expect_match "what it says" 'broker +tcp://.*propeller-controller +3/3.*propeller-webhook +2/2' "$(tr '\n' ' ' <"$LOGS/deploy.log")"

# ---- it works ----
wait_for 60 "the API server to ask the webhook" webhook_is_asked
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running 60
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed 60
expect_eq "result" 42 "$(task sum .status.results)"

# ---- without its certificate and its pods ----
pods_of_webhook() { ks get pods --selector app.kubernetes.io/name=propeller-webhook --output name | sort; }
before=$(pods_of_webhook)
ks delete secret propeller-webhook-cert >/dev/null
# shellcheck disable=SC2086 # one word each
ks delete --wait=false $before >/dev/null
others_ready() {
    local ready
    ready=$(ks get pods --selector app.kubernetes.io/name=propeller-webhook -o json |
        jq -r '.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True")) | "pod/" + .metadata.name')
    printf '%s\n' "$ready"
    [[ -n $ready ]] && ! grep -qxF -f <(printf '%s\n' "$before") <<<"$ready"
}
wait_for 300 "other pods of the webhook" others_ready
wait_for 120 "the API server to ask them" webhook_is_asked

# ---- new settings, under load ----
task_json "load-NUMBER" "$(wasm nap)" '["50", "NUMBER"]' "$(task_on worker)" | add_numbered 20
overlay LOG_LEVEL=debug
make_it deploy >"$LOGS/deploy-again.log" || fail "make deploy: $(<"$LOGS/deploy-again.log")"
task_json "after-NUMBER" "$(wasm nap)" '["1", "NUMBER"]' "$(task_on worker)" | add_numbered 5
wait_for 180 "all Tasks" phase_count_is tasks completed 26
twice=$(journal device '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"

# ---- away again ----
add_task endless "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task endless running 60
make_it undeploy >"$LOGS/undeploy.log" || fail "make undeploy: $(<"$LOGS/undeploy.log")"
! grep 'finalizer removed' "$LOGS/undeploy.log" || fail "the controller did not release its objects"
wait_for 30 "the device to have been told to stop" journal_has device '.event == "stopped"'
left=$(k get crd,clusterroles,clusterrolebindings,namespaces,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies \
    --output name | grep propeller || true)
expect_eq "what is left" "" "$left"
