#!/usr/bin/env bash
# propeller-standalone with the stock kubectl: a Task is computed, and everything is there again after kill -9. Case 95
# compares what kubectl does with what it does on a cluster.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
own_server
standalone_prepare
broker_prepare device-1
broker_start
controller_prepare
serve() {
    standalone_start "${CONTROLLER_OPTIONS[@]}"
    wait_for 60 "its controller" curl -sSf -o /dev/null "http://127.0.0.1:$HEALTH_PORT/readyz"
}
expect_failure "ScheduledMachines, which need Nodes" 'enable-scheduled-machines is not for serve' \
    "$ROOT/build/bin/propeller-standalone" serve --data-dir "$WORK/none" --enable-scheduled-machines
expect_failure "quota of Kueue, which is not there" 'enable-kueue: propeller-standalone serves no kueue.x-k8s.io' \
    "$ROOT/build/bin/propeller-standalone" serve --data-dir "$WORK/none" --enable-kueue
serve
spawn standalone-proxy "$KUBECTL" --kubeconfig "$CLUSTER/admin.kubeconfig" proxy --unix-socket "$CLUSTER/api"
wait_for 30 "the API proxy" api /readyz

k create namespace "$NS" >/dev/null
expect_eq "namespace" Active "$(k get namespace "$NS" -o 'jsonpath={.status.phase}')"
device_start device --identity device-1
add_proplet worker device-1
wait_proplet worker Running
kn wait --for=condition=Ready proplet/worker --timeout=60s >/dev/null
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum completed
expect_eq "result" 42 "$(kn get task sum -o 'jsonpath={.status.results}')"
expect_match "described" 'the result is in status.results' "$(kn describe task sum)"

# Killed in the middle: what was acknowledged is there, the device is found again.
for i in $(seq 20); do kn create configmap "c$i" --from-literal="n=$i" >/dev/null; done
crash standalone
serve
expect_eq "after kill -9" 20 "$(kn get configmaps -o name | wc -l)"
wait_proplet worker Running
add_task again "$ADDITION" '[20, 3]' "$(task_on worker)"
wait_task again completed
expect_eq "result" 23 "$(kn get task again -o 'jsonpath={.status.results}')"

# A wall clock that is a day behind all certificates, is then set, and is a day ahead at the next start.
own_clock "$STANDALONE_BIN" standalone-with-clock
STANDALONE_BIN=$PART/standalone-with-clock
computes() { # NAME
    add_task "$1" "$ADDITION" '[1, 2]' "$(task_on worker)"
    wait_task "$1" completed
    expect_eq "result" 3 "$(kn get task "$1" -o 'jsonpath={.status.results}')"
}
stop standalone TERM
set_clock standalone-with-clock -
serve
computes behind
set_clock standalone-with-clock 0
computes right
stop standalone TERM
set_clock standalone-with-clock +
serve
computes ahead
expect_match "Events of before" Completed "$(kn get events --field-selector involvedObject.name=sum -o 'jsonpath={.items[*].reason}')"
set_clock standalone-with-clock 0

# Owners take their dependents with them, a namespace everything.
kn create configmap owner >/dev/null
uid=$(kn get configmap owner -o 'jsonpath={.metadata.uid}')
jq -n --arg uid "$uid" '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "dependent", ownerReferences: [
    {apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: $uid, blockOwnerDeletion: true}]}}' | create
kn delete configmap owner --cascade=foreground --timeout=60s >/dev/null
expect_eq "dependents" "" "$(kn get configmap dependent --ignore-not-found -o name)"
k delete namespace "$NS" --timeout=120s >/dev/null
expect_eq "what was in the namespace" 0 "$(k get tasks,proplets --all-namespaces -o json | jq '.items | length')"

# Who has no token stays outside, who may only look changes nothing.
expect_eq "without a token" 401 "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$CLUSTER/data/ca/ca.crt" \
    "https://127.0.0.1:$APISERVER_PORT/api/v1/secrets")"
"$STANDALONE_BIN" add-user "${STANDALONE_OPTIONS[@]}" --name looker --role view >"$PART/looker.kubeconfig"
looker() { "$KUBECTL" --kubeconfig "$PART/looker.kubeconfig" "$@"; }
said=$(looker get secrets -A 2>&1) && fail "sees Secrets"
expect_match "a view" 'User "looker" cannot list resource "secrets"' "$said"
looker get tasks -A >/dev/null
expect_eq "may" no "$(looker auth can-i create tasks || true)"
# Who is removed is locked out at once.
sed -i '/^looker /d' "$CLUSTER/data/users"
said=$(looker get tasks -A 2>&1) && fail "is still let in"
expect_match "removed" 'Unauthorized|provide credentials' "$said"

# A store that lost acknowledged writes goes on, and says so.
k create configmap lost >/dev/null
crash standalone
rm "$CLUSTER/data/propeller.db-wal"
serve
expect_match "its health" 'it had lost writes' "$(curl -sSf "http://127.0.0.1:$HEALTH_PORT/readyz?verbose")"
expect_match "its Event" 'the store: it had lost writes: it was at version [0-9]*, [0-9]* was acknowledged' \
    "$(k get events -n default --field-selector reason=WritesLost -o 'jsonpath={.items[*].message}')"
stop standalone TERM

# A command line that is wrong is told as everywhere.
status=0
said=$("$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" --adress x 2>&1) || status=$?
expect_eq "a wrong flag" 2 "$status"
expect_match "a wrong flag" "unknown flag '--adress'" "$said"
