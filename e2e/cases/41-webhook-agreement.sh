#!/usr/bin/env bash
# The webhook and the rules of the schemas refuse the same, request by request of its reviews; where
# only one of them can, the files of expectations say so.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"

# ---- schemas that take anything, and the real ones ----

crds_loose() {
    k create --dry-run=client -o json -f "$ROOT/crds" -f "$ROOT/crds/vmafx" |
        jq '.spec.versions[].schema.openAPIV3Schema =
            { type: "object", "x-kubernetes-preserve-unknown-fields": true }' |
        k apply --server-side --force-conflicts -f - >/dev/null
    wait_for 30 "the schemas to take anything" schemas_take_anything
}
crds_strict() {
    k apply --server-side --force-conflicts -f "$ROOT/crds" -f "$ROOT/crds/vmafx" >/dev/null
    wait_for 30 "the schemas to be what they were" schemas_are_strict
}
# Where the webhook is not asked.
nonsense() {
    local kind
    for kind in Task Proplet PropellerJob FederatedJob TrainingRound Enrollment VmafxJob VmafxNode VmafxModelTraining; do
        jq -n --arg api "$API" --arg kind "$kind" \
            '{apiVersion: (if $kind | startswith("Vmafx") then "vmafx.dev/v1" else $api end), kind: $kind,
                metadata: {name: "nonsense"}, spec: {}}' |
            k create --namespace default --dry-run=server -o name -f - 2>&1 || true
    done
}
schemas_take_anything() { ! nonsense | grep 'is invalid'; }
schemas_are_strict() { (($(nonsense | tee /dev/stderr | grep -c 'is invalid') == 9)); }

# Objects that the real schemas would not let go of go before these come back.
agreement_end() {
    local status=$?
    set +e
    webhook_unregister
    crds_loose
    replay clear
    crds_strict
    (exit "$status")
    case_end
}
trap agreement_end EXIT

replay() {
    "$PYTHON_HOME/bin/python" "$HERE/webhook/replay.py" "$@" --socket "$CLUSTER/api" \
        --namespace "$NS" --reviews "$ROOT/webhook/tests/reviews" --state "$PART/versions.json"
}

# Manifests that are in use are taken as they are; ours without a warning.
samples_are_accepted() {
    local said
    said=$(kn apply --dry-run=server --warnings-as-errors -f "$ROOT/config/samples" -f "$ROOT/config/samples/vmafx" 2>&1) ||
        fail "a sample is refused: $said"
    said=$(kn apply --dry-run=server -f "$(samples_of_others)" 2>&1) ||
        fail "a manifest for the Go operator is refused: $said"
}

crds_loose
replay seed
crds_strict
replay check schema
samples_are_accepted

webhook_prepare
webhook_certificate
webhook_start
webhook_register "$WEBHOOK_CA"
replay check both
samples_are_accepted

# ---- what kubectl shows ----

# Refused by the schema, whose messages would have the key, and by the webhook.
key='{"spec": {"connectionConfig": {"clientKey": "planted-key"}}}'
proplet_json p d "$key" >"$PART/two-keys.json"
said=$(kn apply -f "$PART/two-keys.json" 2>&1) && fail "two keys were accepted"
expect_match "two keys" 'exactly one of clientKey and clientKeySecretRef' "$said"
[[ $said != *planted* ]] || fail "the key is in the message: $said"

said=$(task_json alone "$ADDITION" '[10, 32]' '{"spec": {"timezone": "Europe/Paris", "priority": 0}}' | kn create -f - 2>&1)
expect_match "a warning" 'Warning: spec.timezone: ' "$said"
expect_eq "an explicit priority" 0 "$(task alone .spec.priority)"
expect_eq "the finalizer of a new Task" propeller.propeller.abstractmachines.fr/task-finalizer \
    "$(task alone '.metadata.finalizers[0]')"
jq -n --arg api "$API" '{apiVersion: $api, kind: "PropellerJob", metadata: {name: "circle"}, spec: {name: "j",
    tasks: [{name: "a", imageUrl: "i", dependsOn: ["b"]}, {name: "b", imageUrl: "i", dependsOn: ["a"]}]}}' \
    >"$PART/circle.json"
expect_failure "a circle" 'The PropellerJob "circle" is invalid: spec.tasks: .*in a circle: a -> b -> a' \
    kn apply -f "$PART/circle.json"

# A deletion asks nobody: the objects are gone though the webhook would have a word to say.
kn patch task alone --type=merge -p '{"metadata": {"finalizers": null}}' >/dev/null
kn delete task alone >/dev/null

crds_loose
replay check webhook
