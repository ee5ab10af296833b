#!/usr/bin/env bash
# `helm uninstall` of a chart with crds.keep=false: its hook removes every object while the controller releases them,
# with the rights of its own account, and nothing is left. Without rights, and with a kubeconfig that only a person uses.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
"$ROOT/config/chart/chart.sh" "$PART/release" >/dev/null
CHART=$PART/release/propeller
h() { "$CONTROL_PLANE_BIN/helm" --kubeconfig "$CLUSTER/admin.kubeconfig" --namespace "$SYSTEM_NS" "$@"; }
ks() { k --namespace "$SYSTEM_NS" "$@"; }
k create namespace "$SYSTEM_NS" >/dev/null
k label namespace "$SYSTEM_NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
VALUES=(--set crds.keep=false)

# ---- objects, and a controller that looks after them; without the webhook, whose pods do not run here ----
h install propeller "$CHART" "${VALUES[@]}" --set webhook.enabled=false >/dev/null
k wait --for=condition=Established --timeout=60s "crd/proplets.$GROUP" "crd/tasks.$GROUP" >/dev/null
identity_kubeconfig "$PART/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
HEALTH_PORT=$(free_port)
CONTROLLER_OPTIONS=(--kubeconfig "$PART/controller.kubeconfig" --health-probe-bind-address "127.0.0.1:$HEALTH_PORT"
    --metrics-bind-address 0 --use-service-account-credentials "${CONTROLLER_TIMES[@]}")
controller_start
DOMAIN=domain CHANNEL=channel
add_proplet outside d
add_proplet inside pod "$(k8s_json registry.example.com/proplet:v1)"
add_task waiting "$ADDITION" '[10, 32]' "$(task_on outside)"
kn create -f "$ROOT/config/samples/propellerjob-parallel.yaml" >/dev/null
has_finalizers() { kn get proplets -o json | jq -e 'all(.items[]; .metadata.finalizers | length == 1)'; }
wait_for 60 "the controller to take the Proplets over" has_finalizers
wait_made deployments inside-proplet .spec.replicas 1
h upgrade propeller "$CHART" "${VALUES[@]}" >/dev/null
secrets() { ks get secrets --selector app.kubernetes.io/part-of=propeller -o name | sort | xargs; }
has_secrets() { [[ $(secrets) == "secret/propeller-webhook-ca secret/propeller-webhook-cert" ]]; }
wait_for 60 "the controller to make the Secrets of the webhook" has_secrets
ks create secret generic propeller-mqtt --from-literal=client-key=theirs >/dev/null

# ---- who has no right to it, and a kubeconfig with a plug-in ----
uninstall() { KUBECONFIG=$1 "$CONTROLLER_BIN" --uninstall --log-format text "${@:2}"; }
identity_kubeconfig "$PART/webhook.kubeconfig" "$SYSTEM_NS" propeller-webhook
expect_failure "an account without rights" "mutatingwebhookconfigurations.*cannot delete resource" uninstall "$PART/webhook.kubeconfig"
expect_eq "objects after that" 2 "$(kn get proplets -o name | wc -l)"
k config view --raw --flatten -o json >"$PART/admin.json"
jq '{apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: (.users[0].user | {
    clientCertificateData: (."client-certificate-data" | @base64d), clientKeyData: (."client-key-data" | @base64d)})}' \
    "$PART/admin.json" >"$PART/credential.json"
jq --arg file "$PART/credential.json" '.users[0].user = {exec: {apiVersion: "client.authentication.k8s.io/v1",
    interactiveMode: "Never", command: "cat", args: [$file]}}' "$PART/admin.json" >"$PART/exec.kubeconfig"
said=$(uninstall "$PART/exec.kubeconfig" --namespace kube-public 2>&1) || fail "with an exec plug-in: $said"
expect_eq "objects of other namespaces" 2 "$(kn get proplets -o name | wc -l)"
expect_failure "the controller itself with an exec plug-in" "exec" "$CONTROLLER_BIN" --kubeconfig "$PART/exec.kubeconfig"

# ---- helm uninstall; the pod of its hook is played ----
in_background helm "$CONTROL_PLANE_BIN/helm" --kubeconfig "$CLUSTER/admin.kubeconfig" --namespace "$SYSTEM_NS" uninstall propeller
hook_pod() { ks get pods --selector app.kubernetes.io/name=propeller-uninstall -o name | grep . || { tail -n 3 "$LOGS/helm.log" && false; }; }
wait_for 60 "the pod of the hook" hook_pod
pod=$(hook_pod)
ks get "$pod" -o json | jq -r '.spec.containers[0] | .command[1:][], .args[]' >"$PART/arguments"
mapfile -t arguments <"$PART/arguments"
identity_kubeconfig "$PART/uninstall.kubeconfig" "$SYSTEM_NS" uninstall-controller
started=$SECONDS
KUBECONFIG=$PART/uninstall.kubeconfig "$CONTROLLER_BIN" "${arguments[@]}" >"$LOGS/uninstall.log" 2>&1 ||
    fail "--uninstall: $(<"$LOGS/uninstall.log")"
expect_le "seconds that it took" $((SECONDS - started)) 60
! grep 'finalizer removed' "$LOGS/uninstall.log" || fail "the controller was there, and did not release its objects"
KUBECONFIG=$PART/uninstall.kubeconfig "$CONTROLLER_BIN" "${arguments[@]}" || fail "--uninstall fails where nothing is"
ks patch "$pod" --subresource=status --type=merge -p '{"status": {"phase": "Succeeded"}}' >/dev/null
ended() { tail -n 3 "$LOGS/helm.log" && [[ -e $PART/helm.exit ]]; }
wait_for 120 "helm uninstall to end" ended
expect_eq "exit status of helm uninstall: $(<"$LOGS/helm.log")" 0 "$(<"$PART/helm.exit")"
crash controller

# ---- nothing is left but what is of others, and the Lease ----
gone() {
    local left
    left=$(k get crd,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings --output name |
        grep propeller)
    left+=$(ks get deployments,jobs,roles,rolebindings,services,configmaps,serviceaccounts --selector app.kubernetes.io/part-of=propeller -o name)
    left+=$(kn get deployments,secrets,configmaps,jobs --selector app.kubernetes.io/managed-by=propeller -o name)
    printf '%s\n' "$left"
    [[ -z $left ]]
}
wait_for 60 "all of it to be gone" gone
expect_eq "Secrets" "secret/propeller-mqtt" "$(ks get secrets -o name | grep -v helm)"
