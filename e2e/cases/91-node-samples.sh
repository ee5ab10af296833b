#!/usr/bin/env bash
# On real nodes, installed by `make deploy`: samples of every kind through the webhook behind its Service, Tasks
# on a device, in the pod of a Proplet and as a Job; `make undeploy`, with all of that still there, leaves nothing,
# no pod either.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
case_uninstalls
export KUBECONFIG=$CLUSTER/admin.kubeconfig DEPLOY_OUT=$PART/deploy
make_it() {
    make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_SECONDS=300 OVERLAY="$PART/overlay" \
        IMAGE="$OPERATOR_IMAGE" "$@"
}
broker_prepare device-1 device-2
broker_start
mkdir -p "$PART/overlay"
cat >"$PART/overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - $(realpath --relative-to="$(realpath "$PART/overlay")" "$ROOT/config/overlays/default")
configMapGenerator:
  - name: propeller-settings
    namespace: propeller-system
    behavior: merge
    literals:
      - PROPELLER_MQTT_ADDRESS=tcp://$NODE_MACHINE:$BROKER_PORT
      - PROPELLER_CLIENT_KEY_FILE=/etc/propeller/mqtt/client-key
      - PROPELLER_LAST_SEEN_THRESHOLD=5s # pods are heard every second then
YAML
operator_logs
ko create secret generic propeller-mqtt --from-literal=client-key="$(secret_of "$CONTROLLER_USER")" >/dev/null
make_it deploy >"$LOGS/deploy.log" 2>&1 || fail "make deploy: $(tail -n 20 "$LOGS/deploy.log")"
expect_match "what it says" 'propeller-controller +3/3.*propeller-webhook +2/2' "$(tr '\n' ' ' <"$LOGS/deploy.log")"
WEBHOOK_NS=$SYSTEM_NS
wait_for 60 "the API server to ask the webhook" webhook_is_asked
wait_for 60 "the leader to be ready" readyz_says passed

# ---- on a device, in the pod of a Proplet, as a Job ----
kn create secret generic keys --from-literal=clientKey="$(secret_of device-2)" >/dev/null
add_proplet worker device-1
device_start device --identity device-1
add_proplet alpha device-2 "$(k8s_json localhost/proplet:1 | jq -c \
    --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" '.spec.connectionConfig.mqttAddress = $broker')"
wait_proplet worker Running 60
wait_condition proplets alpha Connected '^True Heartbeat' 180
add_task on-device "$ADDITION" '[10, 32]' "$(task_on worker)"
add_task in-pod "$ADDITION" '[10, 32]' "$(task_on alpha)"
add_image_task as-job alpha "$(jq -nc --arg file "$ADDITION" '{spec: {imageUrl: "localhost/proplet:1", file: $file,
    functionName: "main", inputs: [10, 32], cliArgs: ["job"]}}')"
for name in on-device in-pod as-job; do
    wait_task "$name" completed 120
    expect_eq "result of $name" 42 "$(task "$name" .status.results)"
done

# ---- samples of every kind ----
kn apply -f "$ROOT/config/samples" >/dev/null
kinds=$(kn get tasks,proplets,propellerjobs,federatedjobs,trainingrounds -o json | jq -r '.items[].kind' | sort -u | tr '\n' ' ')
expect_eq "kinds" "FederatedJob PropellerJob Proplet Task TrainingRound " "$kinds"
# What the API server would refuse of what the samples become.
samples_look_right() {
    local wrong
    wrong=$(kn get tasks,proplets -o json | jq -r '.items[] | [.status.reason // "", (.status.conditions[]? | .reason)] as $told
        | select($told | any(. == ("WorkloadInvalid", "Refused"))) | .metadata.name')
    printf 'refused by the API server: %s\n' "${wrong:-none}"
    [[ -z $wrong ]] && kn get jobs -o json | jq -e 'any(.items[]; .metadata.name == "addition-as-job-job")' >/dev/null
}
wait_for 120 "the Job of a sample" samples_look_right
expect_failure "a sample with a mistake" "minute '60' must be between 0 and 59" \
    kn patch task "$(kn get tasks -o json | jq -r '[.items[] | select(.spec.schedule)][0].metadata.name')" --type=merge -p '{"spec":{"schedule":"60 * * * *"}}'
add_task endless "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task endless running 60

# ---- nothing is left ----
memory=$(operator_memory | grep VmRSS | sort | tr '\n' ' ')
make_it undeploy >"$LOGS/undeploy.log" 2>&1 || fail "make undeploy: $(tail -n 20 "$LOGS/undeploy.log")"
left=$(k get crd,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings --output name |
    grep propeller || true)
expect_eq "left in the cluster" "" "$left"
expect_eq "the namespace" "" "$(k get namespace "$SYSTEM_NS" --ignore-not-found --output name)"
children() {
    local left
    left=$(kn get deployments,statefulsets,jobs,pods,secrets,configmaps --selector app.kubernetes.io/managed-by=propeller --output name)
    printf '%s\n' "$left"
    [[ -z $left ]]
}
wait_for 120 "what was made for them to be gone" children
printf 'measured: memory of the controllers at the end: %s\n' "$memory"
