#!/usr/bin/env bash
# config/broker as it is, made as its own comment says: a broker in the cluster, with TLS under the name of its
# Service and its data in a volume. The operator of `make deploy`, a pod of the sample for it and a device outside
# run Tasks over it; a result that waits there outlives the broker's pod; removed is it only when asked for.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
case_uninstalls
HOST=mosquitto.propeller-system.svc
VOLUME=$NS-broker
make_it() {
    KUBECONFIG=$CLUSTER/admin.kubeconfig make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_OUT="$PART/deploy" \
        OVERLAY="$PART/overlay" IMAGE="$OPERATOR_IMAGE" DEPLOY_SECONDS=300 RELEASE_SECONDS=120 "$@" 2>&1
}
broker_is_up() { ko rollout status deployment/mosquitto --timeout=1s; }

# ---- what a cluster has: the image, a volume; and the address, for the device, which has no names of Services ----
image docker.io/library/eclipse-mosquitto:2.0 fill_mosquitto /usr/sbin/mosquitto
node=$(nodes | tail -n 1)
folder=$(has_kind && printf '/var/%s' "$VOLUME" || printf '%s/volume' "$PART")
on_node "$node" mkdir -p "$folder"
k apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $VOLUME}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  claimRef: {namespace: $SYSTEM_NS, name: mosquitto}
  local: {path: $folder}
  nodeAffinity:
    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$node]}]}]}
YAML
k create --dry-run=client -o json -f "$ROOT/config/broker/mosquitto.yaml" | jq 'if .kind == "List" then .items[] else . end
    | select(.kind == "Service")' | k apply -f - >/dev/null
address=$(ko get service mosquitto -o json | jq -r .spec.clusterIP)

# ---- as config/broker/kustomization.yaml says ----
broker_prepare device-tls device-1
authority "$BROKER/ca" broker-ca
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$BROKER/tls.key" -subj "/CN=$HOST" \
    -out "$BROKER/tls.csr" 2>/dev/null
openssl x509 -req -in "$BROKER/tls.csr" -CA "$BROKER/ca.crt" -CAkey "$BROKER/ca.key" -CAcreateserial -days 30 \
    -out "$BROKER/tls.crt" -extfile <(printf 'subjectAltName=DNS:%s,IP:%s\n' "$HOST" "$address") 2>/dev/null
ko create secret generic mosquitto --from-file="$BROKER/passwords" --from-file="$BROKER/tls.crt" \
    --from-file="$BROKER/tls.key" >/dev/null
ko create secret generic propeller-mqtt --from-literal=client-key="$(secret_of "$CONTROLLER_USER")" \
    --from-file="$BROKER/ca.crt" >/dev/null
k apply -k "$ROOT/config/broker" >/dev/null
wait_for 120 "the broker in the cluster" broker_is_up

# A node of E2E_CLUSTER=local has no DNS.
aliases=$(has_kind || jq -nc --arg ip "$address" --arg host "$HOST" '[{ip: $ip, hostnames: [$host]}]')
mkdir -p "$PART/overlay"
cat >"$PART/overlay/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - $(realpath --relative-to="$PART/overlay" "$ROOT/config/overlays/default")
patches:
  - target: {kind: Deployment, name: propeller-controller}
    patch: '[{"op": "add", "path": "/spec/template/spec/hostAliases", "value": ${aliases:-[]}}]'
configMapGenerator:
  - name: propeller-settings
    namespace: propeller-system
    behavior: merge
    literals:
      - PROPELLER_MQTT_ADDRESS=mqtts://$HOST:8883
      - PROPELLER_MQTT_CA_FILE=/etc/propeller/mqtt/ca.crt
      - PROPELLER_CLIENT_KEY_FILE=/etc/propeller/mqtt/client-key
      - PROPELLER_ALLOW_POD_TEMPLATE=true
      - PROPELLER_LAST_SEEN_THRESHOLD=5s
YAML
operator_logs
make_it deploy >"$LOGS/deploy.log" || fail "make deploy: $(tail -n 20 "$LOGS/deploy.log")"
wait_for 60 "the leader to be ready" readyz_says passed

# ---- a pod as the sample for it, and a device outside of the cluster ----
kn create configmap broker-ca --from-file="$BROKER/ca.crt" >/dev/null
kn create secret generic edge-key --from-literal=clientKey="$(secret_of device-tls)" >/dev/null
kn create --dry-run=client -o json -f "$ROOT/config/samples/proplet-k8s-tls.yaml" | jq --argjson aliases "${aliases:-[]}" '
    .spec.k8s.image = "localhost/proplet:1" | .spec.k8s.podTemplate.spec.hostAliases = $aliases' | create
CHANNEL=device-1 add_proplet worker device-1
device_start device --identity device-1 --channel '{id}' --broker "$address:8883" --tls-ca "$BROKER/ca.crt"
wait_condition proplets in-cluster-tls Connected '^True Heartbeat' 180
wait_proplet worker Running 60
for proplet in in-cluster-tls worker; do
    add_task "on-$proplet" "$ADDITION" '[10, 32]' "$(task_on "$proplet")"
    wait_task "on-$proplet" completed 60
    expect_eq "result on $proplet" 42 "$(task "on-$proplet" .status.results)"
done

# ---- a result waits for a controller that is away, and the broker's pod is killed meanwhile ----
device_say device hold device-1
add_task waits "$ADDITION" '[20, 3]' "$(task_on worker)"
wait_task waits running 60
ko scale "deployment/$OPERATOR" --replicas=0 >/dev/null
wait_for 90 "the pods of the controller to end" operator_gone
device_say device release device-1
wait_for 60 "the broker to have the result" journal_has device ".event == \"acknowledged\" and .task == \"$(task waits .metadata.uid)\""
pod=$(ko get pods --selector app.kubernetes.io/name=mosquitto --output name)
ko delete "$pod" --grace-period=0 --force >/dev/null 2>&1
another_broker() {
    local now
    now=$(ko get pods --selector app.kubernetes.io/name=mosquitto --output name)
    printf '%s\n' "$now"
    [[ -n $now && $now != "$pod" ]] && broker_is_up
}
wait_for 180 "another pod of the broker" another_broker
ko scale "deployment/$OPERATOR" --replicas=3 >/dev/null
wait_task waits completed 180
expect_eq "its result, attempt, and how often it was computed" "23 1 1" \
    "$(task waits '"\(.status.results) \(.status.attempt)"') $(journal_count device ".event == \"computed\" and .task == \"$(task waits .metadata.uid)\"")"

# ---- away again: not while the broker works there, unless that is wanted ----
expect_failure "make undeploy beside a broker" mosquitto make_it undeploy
make_it undeploy FORCE=1 >"$LOGS/undeploy.log" || fail "make undeploy: $(tail -n 20 "$LOGS/undeploy.log")"
expect_eq "the namespace" "" "$(k get namespace "$SYSTEM_NS" --ignore-not-found --output name)"
k delete persistentvolume "$VOLUME" >/dev/null
on_node "$node" rm -rf "$folder"
