#!/usr/bin/env bash
# A ServiceAccount that is deleted while Tasks run, and comes back: its reconciler goes on with a new
# token, nothing is lost or done twice; people get their rights through the cluster's own roles.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "has ServiceAccounts and roles"
COUNT=40
world_start device-1 device-2 device-3
proplet_json worker-NUMBER device-NUMBER | add_numbered 3
device_start devices --count 3
wait_for 30 "all Proplets to run" phase_count_is proplets Running 3

# Of the revoked token the API server knows after some seconds; the old accounts' uids are gone.
batch() { task_json "$1-NUMBER" "$(wasm nap)" '["20", "NUMBER"]' | add_numbered $COUNT; }
token_refused() {
    controller_log | grep '"token refused, asking for another".*"identity":"task-controller"'
}
batch first
k delete serviceaccount task-controller --namespace "$SYSTEM_NS" >/dev/null
k apply --server-side -f "$ROOT/rbac/base/service-accounts.yaml" >/dev/null
# Until the last token is noticed there is always something to write.
noticed() {
    add_task "probe-$(now_ms)" "$ADDITION" '[1, 2]'
    token_refused
}
wait_for 90 "the revoked token to be refused" noticed
batch second
all=$(objects tasks | jq '.items | length')
wait_for 120 "all Tasks" phase_count_is tasks completed "$all"
twice=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
wrong=$(objects tasks | jq -c '.items[] | select(.status.results != .spec.inputs[1])
    | select(.metadata.name | startswith("probe") | not) | [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"

# A finished Task is deleted by the identity that may.
add_task brief "$ADDITION" '[1, 2]' '{"spec": {"ttlSecondsAfterFinished": 1}}'
wait_task_gone brief 30

# ---- people ----

may() { # may ROLE YES|NO VERB RESOURCE
    local role=$1 expected=$2 answer
    shift 2
    answer=$(kn auth can-i "$@" --as "somebody-$role" 2>/dev/null) || true
    expect_eq "may '$role' $*" "$expected" "$answer"
}
for role in view edit admin; do
    kn create rolebinding "$role" --clusterrole "$role" --user "somebody-$role" >/dev/null
    wait_for 30 "the role '$role' to be aggregated" may "$role" yes list federatedjobs.$GROUP
    may $role yes get trainingrounds.$GROUP --subresource=status
    may $role yes list events.events.k8s.io # which the fleet page reads as the viewer
    may $role no update tasks.$GROUP --subresource=status
done
may view no create tasks.$GROUP
may view yes list enrollments.$GROUP
may edit no create enrollments.$GROUP
may admin yes create enrollments.$GROUP
may edit yes create propellerjobs.$GROUP
may admin yes delete proplets.$GROUP

# ---- what a stolen token of an identity is not enough for ----

as_identity() { # as_identity IDENTITY ARGUMENTS...
    local identity=$1
    shift
    kn --as "system:serviceaccount:$SYSTEM_NS:$identity" "$@"
}
# Nothing is stored: the API server asks its policies about dry runs, too.
tries() { as_identity "$1" create --dry-run=server -f -; }
refused() { # refused POLICY WHAT COMMAND...: with the manifest in stdin, if COMMAND reads one
    local policy=$1 what=$2 answer
    shift 2
    ! answer=$("$@" 2>&1) || fail "$what: allowed"
    expect_match "$what" "ValidatingAdmissionPolicy '$policy'" "$answer"
}
allowed() { # allowed WHAT COMMAND...
    local what=$1 answer
    shift
    answer=$("$@" 2>&1) || fail "$what: $answer"
}
# owned KIND NAME API-VERSION [JSON]: a manifest with a Proplet as its controller, which nobody checks
owned() {
    jq -nc --arg kind "$1" --arg name "$2" --arg version "$3" --argjson more "${4:-{\}}" --arg group "$GROUP" '
        {apiVersion: $version, kind: $kind, metadata: {name: $name, ownerReferences: [{apiVersion: "\($group)/v1",
            kind: "Proplet", name: "alpha", uid: "00000000-0000-0000-0000-000000000001", controller: true}]}} * $more'
}
token_of() { # token_of ACCOUNT: what makes a Secret hold its token
    jq -nc --arg account "$1" '{type: "kubernetes.io/service-account-token",
        metadata: {annotations: {"kubernetes.io/service-account.name": $account}}}'
}
allowed "the key of a Proplet" tries proplet-controller < <(owned Secret alpha-client-key v1)
for name in beta-client-key alpha-client-key2 alpha; do
    refused propeller-client-keys "a Secret '$name' for the Proplet 'alpha'" tries proplet-controller \
        < <(owned Secret "$name" v1)
done
refused propeller-client-keys "a token as the key of a Proplet" tries proplet-controller \
    < <(owned Secret alpha-client-key v1 "$(token_of default)")
refused propeller-client-keys "a key that no Proplet controls" tries proplet-controller \
    < <(owned Secret alpha-client-key v1 '{"metadata": {"ownerReferences": []}}')
# The answer to a patch shows the whole Secret. (kubectl patch would ask for it first.)
kn create secret generic alpha-client-key >/dev/null
refused propeller-client-keys "a patch of somebody's Secret" as_identity proplet-controller \
    apply --server-side --force-conflicts -f - < <(owned Secret alpha-client-key v1)

in_system() { local NS=$SYSTEM_NS; "$@"; }
refused propeller-certificates "a Secret of another name" in_system tries certificate-controller \
    < <(owned Secret mine v1 '{"type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}')
for account in propeller-controller task-controller; do
    in_system kn delete secret propeller-webhook-cert --ignore-not-found >/dev/null
    refused propeller-certificates "a token of '$account' as the webhook's pair" in_system tries certificate-controller \
        < <(owned Secret propeller-webhook-cert v1 "$(token_of $account)")
done

# An entry that concerns nothing, and that the controller leaves alone.
jq -nc '{apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration",
    metadata: {name: "propeller-webhook"}, webhooks: [{name: "spare.example.com", sideEffects: "None",
    admissionReviewVersions: ["v1"], clientConfig: {url: "https://127.0.0.1:1/"}, rules: [{apiGroups: ["spare.example.com"],
    apiVersions: ["v1"], operations: ["CREATE"], resources: ["spares"]}]}]}' | k create -f - >/dev/null
change_webhook() { # change_webhook FIELD VALUE
    as_identity certificate-controller patch --dry-run=server validatingwebhookconfiguration propeller-webhook \
        --type=json --patch '[{"op": "add", "path": "/webhooks/0/'"$1"'", "value": '"$2"'}]'
}
allowed "another caBundle" change_webhook clientConfig/caBundle "\"$(base64 -w0 "$CLUSTER/ca.crt")\""
refused propeller-certificates "another address of the webhook" change_webhook clientConfig/url '"https://127.0.0.1:2/"'
refused propeller-certificates "the webhook asked about Secrets" change_webhook rules/- \
    '{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}'
k delete validatingwebhookconfiguration propeller-webhook >/dev/null

pod_of() { # pod_of JSON: a Deployment whose pods have this, too
    owned Deployment alpha-proplet apps/v1 "$(jq -nc --argjson spec "$1" '{spec: {selector: {matchLabels: {a: "b"}},
        template: {metadata: {labels: {a: "b"}}, spec: ({automountServiceAccountToken: false, containers: [{name: "a",
            image: "a", securityContext: {allowPrivilegeEscalation: false}}]} * $spec)}}}')"
}
allowed "a Deployment as the controllers make it" tries proplet-controller < <(pod_of '{}')
while read -r spec; do
    for identity in proplet-controller task-controller; do
        refused propeller-pods "pods of $identity with $spec" tries "$identity" < <(pod_of "$spec")
    done
done <<'END'
{"serviceAccountName": "admin"}
{"automountServiceAccountToken": true}
{"hostNetwork": true}
{"hostPID": true}
{"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}
{"volumes": [{"name": "a", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}
{"containers": [{"name": "a", "image": "a"}]}
{"initContainers": [{"name": "b", "image": "b", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"add": ["SYS_ADMIN"]}}}]}
END
k label namespace "$NS" "$GROUP/privileged-pods=allowed" >/dev/null
label_is_seen() { tries proplet-controller < <(pod_of '{"hostNetwork": true}') >/dev/null 2>&1; }
wait_for 30 "the label of the namespace to be seen" label_is_seen

add_proplet spare device-9
refused propeller-specs "another spec by proplet-controller" as_identity proplet-controller patch proplet spare \
    --type=merge --patch '{"spec": {"connectionConfig": {"mqttAddress": "tcp://elsewhere:1883"}}}'
add_task spare "$ADDITION" '[1, 2]' "$(task_on spare)"
refused propeller-specs "another spec by task-controller" as_identity task-controller patch task spare --type=merge \
    --patch '{"spec": {"priority": 7}}'
