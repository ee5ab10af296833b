#!/usr/bin/env bash
# What users do wrong in a cluster, all at once on real nodes: an image that does not exist, a ConfigMap of
# somebody else, a quota, Pod Security, a namespace that goes. Each is said in a condition,
# none is tried again and again, and what the user mends goes on by itself.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_pods
k label namespace "$NS" pod-security.kubernetes.io/enforce=restricted >/dev/null
broker_prepare device-1 device-2
broker_start
controller_prepare
controller_start --allow-pod-template "${CONTROLLER_LEASE[@]}"
job() { # job NAME PROPLET [JSON merged into the object]
    add_image_task "$1" "$2" "$(jq -nc --arg file "$ADDITION" --argjson extra "${3:-{\}}" '
        {spec: {imageUrl: "localhost/proplet:1", file: $file, functionName: "main", inputs: [10, 32],
                cliArgs: ["job"]}} * $extra')"
}
in_pod() { # in_pod DEVICE [JSON merged into spec.k8s]
    k8s_json localhost/proplet:1 "${2:-{\}}" | jq -c --arg broker "tcp://$NODE_MACHINE:$BROKER_PORT" \
        '.spec.connectionConfig.mqttAddress = $broker'
}
said() { # said KIND NAME CONDITION REASON
    wait_condition "$1" "$2" "$3" "^False $4 " 120
}
kn create secret generic keys --from-literal=clientKey="$(secret_of device-1)" >/dev/null
add_proplet alpha device-1 "$(in_pod device-1)"
wait_condition proplets alpha Connected '^True Heartbeat' 180

# ---- all of them ----
kn create configmap taken-config --from-literal=mine=yes >/dev/null
job taken alpha
said tasks taken Started NameTaken
job unpulled alpha '{"spec":{"imageUrl":"localhost/nothing:1"}}'
said tasks unpulled Started ImagePullBackOff
add_proplet privileged device-2 "$(in_pod device-2 '{"podTemplate":{"spec":{"securityContext":{"runAsUser":0,"runAsNonRoot":false}}}}')"
said proplets privileged Ready PodSecurity
kn create quota none --hard=count/jobs.batch=100,pods=0 >/dev/null
quota_counts() { kn get quota none -o json | jq -e '.status.hard.pods == "0"' >/dev/null; }
wait_for 30 "the quota to count" quota_counts
job crowded alpha
said tasks crowded Started QuotaExceeded

# ---- and quiet ----
requests() { metrics | awk '/^rest_client_requests_total{.*method="(POST|PATCH|PUT|DELETE)"/ { sum += $2 } END { print sum + 0 }'; }
turns() { metrics | awk '/^controller_runtime_reconcile_total{/ { sum += $2 } END { print sum + 0 }'; }
before=$(requests) turned=$(turns) leader=$(operator_leader)
# real time: requests per second are what is measured
observe_for 20
expect_eq "who counted" "$leader" "$(operator_leader)"
wrote=$(($(requests) - before)) turned=$(($(turns) - turned))
printf 'measured: %s writes (events included, the Lease not) and %s turns in 20 s\n' "$wrote" "$turned"
# There are turns when the kubelet or the Job controller tries again, and hardly a write.
expect_le "writes in 20 s" "$wrote" 40
expect_le "turns in 20 s" "$turned" 80

# ---- mended ----
kn delete quota none >/dev/null
kn delete configmap taken-config >/dev/null
wait_task taken completed 180
expect_eq "result" 42 "$(task taken .status.results)"
wait_task crowded completed 240
wait_task unpulled failed 240
expect_eq "why" ImagePullBackOff "$(task unpulled .status.reason)"
kn patch proplet privileged --type=json -p '[{"op": "remove", "path": "/spec/k8s/podTemplate"}]' >/dev/null
said_ready() { wait_proplet privileged Running 180; }
said_ready

# ---- the namespace goes, with Tasks of each sort in it ----
job late alpha '{"spec":{"cliArgs":["job","--wait"]}}'
wait_task late running 120
if owns_cluster; then # no event: there, none can be stored either
    job tardy alpha '{"spec":{"suspend":true}}'
    wait_condition tasks tardy Scheduled '^False Suspended '
    namespace_ends tardy
    namespace_goes
else
    k delete namespace "$NS" --wait=false >/dev/null
    wait_for 180 "the namespace to be gone" namespace_gone
fi
