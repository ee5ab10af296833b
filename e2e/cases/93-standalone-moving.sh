#!/usr/bin/env bash
# From propeller-standalone to a real cluster and back: the same objects, the same bytes, finalizers of users among
# them, and what cannot go along is told; what has finished is not run again; backups.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_no_node "has servers of its own"
case_needs_kubernetes "moves to it and back"

# k and kn mean the cluster, s and sn the standalone server of the folder $SERVER.
SERVER=$PART/first
THEIR_PORT=${APISERVER_PORT:-}
of_server() {
    local CLUSTER=$SERVER E2E_CLUSTER=standalone
    "$@"
}
s() { of_server k "$@"; }
sn() { of_server kn "$@"; }
server_prepare() {
    mkdir -p "$SERVER"
    of_server standalone_prepare
    APISERVER_PORT=$THEIR_PORT
}
moves() { # moves COMMAND [OPTION...]: export, import, backup of $SERVER
    local command=$1
    shift
    "$STANDALONE_BIN" "$command" --data-dir "$SERVER/data" "$@"
}

server_prepare
of_server standalone_start --controller=false
s create namespace "$NS" >/dev/null

# ---- what there is to move: every sample, and what a careless writer of YAML would spoil ----

sn apply -f "$ROOT/config/samples/" >/dev/null
printf 'first\n  second\n\nthird' >"$PART/lines"
printf '\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x80\xa8 end\t\r\n \n' >"$PART/signs"
head -c 100000 /dev/urandom >"$PART/bytes"
sn create configmap tricky --from-literal=on=on --from-literal=number=1e3 --from-literal=hex=0x1f \
    --from-literal=null='~' --from-literal=empty= --from-literal=colon='a: b #c' --from-literal=time=12:30:45 \
    --from-file="$PART/lines" --from-file="$PART/signs" --from-file="$PART/bytes" >/dev/null
sn create secret generic gateway-key --from-literal=clientKey="$(secret_of device-1)" --from-file="$PART/bytes" >/dev/null
sn label configmap tricky on=off n=0x1f >/dev/null
sn annotate configmap tricky 'example.com/text=- a: |' >/dev/null
sn create -f - >/dev/null <<YAML
{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/held]}}
YAML
sn patch task addition --type=json -p '[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/held"}]' >/dev/null
# owned_by_tricky COMMAND: 'held', as a user says it there; an owner has another uid on each server
owned_by_tricky() {
    local uid
    uid=$("$1" get configmap tricky -o 'jsonpath={.metadata.uid}')
    "$1" patch configmap held --type=merge -p '{"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "tricky", "uid": "'"$uid"'"}]}}' >/dev/null
}
owned_by_tricky sn

# ---- an export and a backup; units prove that both show one revision while others write ----

moves export --namespace "$NS" -o "$PART/first.yaml" 2>"$PART/said"
expect_match "an owner that does not go along" '1 without the owners that they had' "$(<"$PART/said")"
moves backup --to "$PART/backup.db" >/dev/null
expect_eq "an export of what did not change" "" "$(moves export --namespace "$NS" 2>/dev/null | diff - "$PART/first.yaml")"

# ---- to the cluster ----

KINDS=secrets,configmaps,proplets,federatedjobs,propellerjobs,trainingrounds,tasks
# comparable: less what a server or controller sets, and the owner that is told
comparable() {
    jq -S --arg own "$GROUP/" '[.items[] | select(.metadata.name != "kube-root-ca.crt")
        | del(.status, .metadata.uid, .metadata.resourceVersion, .metadata.generation, .metadata.creationTimestamp,
            .metadata.managedFields, .metadata.ownerReferences,
            (.metadata.finalizers[]? | select(startswith($own))),
            .metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"])
        | if .metadata.finalizers == [] then del(.metadata.finalizers) else . end
        | if .metadata.annotations == {} then del(.metadata.annotations) else . end]
        | sort_by(.kind, .metadata.name)'
}
k delete namespace "$NS" --timeout=60s >/dev/null # made again by what is applied
k apply -f "$PART/first.yaml" >"$PART/applied"
expect_eq "objects that were not created" "" "$(grep -v ' created$' "$PART/applied" || true)"
kn get "$KINDS" -o json | comparable >"$PART/theirs.json"
sn get "$KINDS" -o json | comparable >"$PART/ours.json"
expect_le "objects" 28 "$(jq length "$PART/ours.json")"
expect_eq "objects that differ" "" "$(diff "$PART/ours.json" "$PART/theirs.json")"
expect_eq "finalizers of a user" '["example.com/held"]' \
    "$(kn get configmap held -o 'jsonpath={.metadata.finalizers}')"
expect_match "his finalizer beside ours" '"example.com/held"' "$(kn get task addition -o 'jsonpath={.metadata.finalizers}')"
expect_eq "owners, which that server does not know" "" "$(kn get configmap held -o 'jsonpath={.metadata.ownerReferences}')"
expect_eq "applied again" "" "$(k apply -f "$PART/first.yaml" | grep -v ' unchanged$' || true)"
k apply --server-side --force-conflicts -f "$PART/first.yaml" >/dev/null
expect_eq "generations that an apply by the server raised" "" \
    "$(kn get "$KINDS" -o json | jq -r '.items[] | select((.metadata.generation // 1) != 1) | .metadata.name')"

# ---- and back, into another folder: byte for byte ----

owned_by_tricky kn
k get namespace "$NS" -o yaml >"$PART/theirs.yaml"
printf -- '---\n' >>"$PART/theirs.yaml"
kn get "$KINDS" -o yaml >>"$PART/theirs.yaml"
FIRST=$SERVER
SERVER=$PART/second
server_prepare
count=$(($(jq length "$PART/ours.json") + 1))
expect_eq "imported" "created $count, unchanged 0, refused 0" "$(moves import -f "$PART/theirs.yaml" 2>"$PART/said")"
expect_match "an owner that does not come along" '1 without the owners that they had' "$(<"$PART/said")"
moves export --namespace "$NS" -o "$PART/second.yaml"
cmp "$PART/first.yaml" "$PART/second.yaml" || fail "there and back is not the same: $(diff "$PART/first.yaml" "$PART/second.yaml" | head -n 20)"
expect_eq "imported again" "created 0, unchanged $count, refused 0" "$(moves import -f - <"$PART/theirs.yaml")"

# ---- what has finished, into a server whose controller runs ----

SERVER=$FIRST
sn patch task addition --subresource=status --type=merge -p '{"status": {"phase": "completed", "results": "42"}}' >/dev/null
sn patch propellerjob diamond --subresource=status --type=merge -p '{"status": {"phase": "Completed"}}' >/dev/null
sn delete traininground round-1-digits >/dev/null # the FederatedJob makes one of that name
expect_eq "finished ones" 0 "$(moves export --namespace "$NS" 2>"$PART/said" | grep -cE '^  name: (addition|diamond)$' || true)"
expect_match "finished ones" 'left out: 2 finished' "$(<"$PART/said")"
moves export --namespace "$NS" --status -o "$PART/finished.yaml"

# Neither is run: by the time the controller has said why the others wait, it has seen these, too.
stop standalone TERM
SERVER=$PART/third
server_prepare
of_server standalone_start --health-probe-bind-address "127.0.0.1:$(free_port)" \
    --metrics-bind-address "127.0.0.1:$(free_port)" --page-bind-address 0
expect_match "imported while it runs" '^created [0-9]+, unchanged 0, refused 0$' "$(moves import -f "$PART/finished.yaml")"
waits() { [[ -n $(sn get task "$1" -o 'jsonpath={.status.conditions[?(@.type=="Scheduled")].reason}') ]]; }
for task in first pipeline-fetch; do wait_for 60 "the controller to look at $task" waits "$task"; done
expect_match "a finished Task, never tried" '^completed 42 0?$' "$(sn get task addition -o 'jsonpath={.status.phase} {.status.results} {.status.attempt}')"
expect_eq "nothing is left of the import" "" "$(sn get task addition -o 'jsonpath={.spec.suspend}{.metadata.annotations}')"
expect_eq "a finished job" Completed "$(sn get propellerjob diamond -o 'jsonpath={.status.phase}')"
expect_eq "Tasks of a finished job" "" "$(sn get tasks -o name | grep /diamond- || true)"
expect_eq "children of a running job are not exported" "" \
    "$(moves export 2>"$PART/said" | grep -E '^  name: pipeline-' || true)"
expect_match "children" 'left out: [0-9]+ made by controllers' "$(<"$PART/said")"
expect_match "imported again" '^created 0, unchanged [0-9]+, refused 0$' "$(moves import -f "$PART/finished.yaml")"
said=$(sed 's/priority: 50/priority: 500/' "$PART/first.yaml" | moves import -f - 2>&1) && fail "accepted"
expect_match "what is refused" 'refused: stdin: document [0-9]+, line [0-9]+: Task .*: spec.priority: Invalid value: 500' "$said"
stop standalone TERM

# ---- a backup in the place of a store ----

SERVER=$PART/fourth
server_prepare
mv "$PART/backup.db" "$SERVER/data/propeller.db"
expect_eq "what a backup has" "" "$(moves export --namespace "$NS" 2>/dev/null | diff - "$PART/first.yaml")"
of_server standalone_start --controller=false
expect_eq "what a restored server has" "$(jq length "$PART/ours.json")" "$(sn get "$KINDS" -o name | wc -l)"
stop standalone TERM
