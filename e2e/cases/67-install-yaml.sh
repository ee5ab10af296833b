#!/usr/bin/env bash
# install.yaml on a control plane: one call installs all of it, again it changes nothing, and with another image it
# is an upgrade that keeps settings, results and the caBundle; the file for one namespace has no rights beyond it.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
ks() { k --namespace "$SYSTEM_NS" "$@"; }
digest() { printf 'registry.example.com/propeller@sha256:%064d' "$1"; }
write() { IMAGE=$(digest "$1") "$ROOT/config/deploy/install-yaml.sh" "$PART/$1" >/dev/null; }
install() { k apply --server-side --validate=strict -f "$PART/$1/${2:-install.yaml}" >/dev/null; }
images() { ks get deployments -o json | jq -r '[.items[].spec.template.spec.containers[].image] | unique | join(" ")'; }
generations() { ks get deployments -o json | jq -c '[.items[] | [.metadata.name, .metadata.generation]]'; }
bundle() { k get validatingwebhookconfiguration "$WEBHOOK" -o json | jq -r '.webhooks[0].clientConfig.caBundle // ""'; }
setting() {
    ks get deployment propeller-controller -o json |
        jq -r '.spec.template.spec.containers[0].env[]? | select(.name == "PROPELLER_MQTT_ADDRESS").value'
}
write 1
write 2

# ---- one call, and a controller with the rights of its account works ----
install 1
expect_eq "the image" "$(digest 1)" "$(images)"
k wait --for=condition=Established --timeout=60s "crd/proplets.$GROUP" "crd/tasks.$GROUP" >/dev/null
identity_kubeconfig "$PART/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
HEALTH_PORT=$(free_port)
CONTROLLER_OPTIONS=(--kubeconfig "$PART/controller.kubeconfig" --health-probe-bind-address "127.0.0.1:$HEALTH_PORT"
    --metrics-bind-address 0 --use-service-account-credentials "${CONTROLLER_TIMES[@]}")
controller_start
has_bundle() { [[ -n $(bundle) ]]; }
wait_for 60 "the controller to write the caBundle" has_bundle
# No pod of the webhook runs here, and without one no object is taken.
k delete mutatingwebhookconfiguration,validatingwebhookconfiguration "$WEBHOOK" >/dev/null
DOMAIN=domain CHANNEL=channel
add_proplet outside device-1
task_json kept "$ADDITION" '[10, 32]' | create
kn patch task kept --subresource=status --type=merge -p '{"status": {"phase": "completed", "results": "42"}}' >/dev/null
has_finalizer() { kn get proplet outside -o json | jq -e '.metadata.finalizers | length == 1'; }
wait_for 30 "the controller to take the Proplet over" has_finalizer

# ---- again: what is gone comes back, and nothing else changes ----
install 1
wait_for 60 "the controller to write the caBundle again" has_bundle
before=$(generations) ca=$(bundle)
install 1
expect_eq "what another call changes" "$before" "$(generations)"
expect_eq "the caBundle after another call" "$ca" "$(bundle)"
ks set env deployment/propeller-controller PROPELLER_MQTT_ADDRESS=mqtts://broker.example.com:8883 >/dev/null

# ---- another image ----
install 2
expect_eq "the image after the upgrade" "$(digest 2)" "$(images)"
expect_eq "a setting after the upgrade" mqtts://broker.example.com:8883 "$(setting)"
expect_eq "the caBundle after the upgrade" "$ca" "$(bundle)"
expect_eq "the result after the upgrade" "completed 42" "$(kn get task kept -o 'jsonpath={.status.phase} {.status.results}')"
ready() {
    pods_play app.kubernetes.io/part-of=propeller
    ks get deployments -o json | jq -ec 'all(.items[].status; .readyReplicas == .replicas and .updatedReplicas == .replicas)'
}
wait_for 300 "the pods of the new image to be ready" ready

# ---- for one namespace ----
k create --dry-run=client -o json -f "$PART/1/install-namespaced.yaml" >"$PART/namespaced.json"
expect_eq "rights of all namespaces" "" "$(jq -r 'if .kind == "List" then .items[] else . end
    | select(.kind == "ClusterRoleBinding") | .metadata.name' "$PART/namespaced.json")"
install 1 install-namespaced.yaml
expect_eq "the namespace that it watches" default "$(ks get configmaps -o json |
    jq -r '[.items[].data.PROPELLER_NAMESPACE // empty] | unique | join(" ")')"

# ---- mistakes ----
expect_failure "an image without a digest" "IMAGE is 'registry.example.com/propeller@sha256:1'" \
    env IMAGE=registry.example.com/propeller@sha256:1 "$ROOT/config/deploy/install-yaml.sh" "$PART/3"
expect_failure "the file of another image over what another field manager owns" 'conflict' \
    k apply --server-side --field-manager=other -f "$PART/2/install.yaml"
