#!/usr/bin/env bash
# The two policies of ScheduledMachines, rule by rule, as the API server evaluates them: a user lends no right that he
# does not have, and the account of the controller changes of a Node what it must, and nothing else.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies policies, which propeller-standalone does not have"

machines_install "${CLUSTER_API_VERSIONS[-1]}"

# ---- users ----

user=$NS-user
right() { # right RESOURCE: the user may create it
    k create role "$(tr . - <<<"$1")" --namespace "$NS" --verb create --resource "$1" --dry-run=client -o yaml | kn apply -f - >/dev/null
    k create rolebinding "$(tr . - <<<"$1")" --namespace "$NS" --role "$(tr . - <<<"$1")" --user "$user" --dry-run=client -o yaml |
        kn apply -f - >/dev/null
}
kn create role machines --verb create,get,update,patch --resource scheduledmachines.5spot.finos.org >/dev/null
kn create rolebinding machines --role machines --user "$user" >/dev/null
kn create --dry-run=client -o json -f "$ROOT/config/samples/scheduled-machines/basic.yaml" >"$PART/sample.json"

create_dry() { k --as "$user" --namespace "$NS" create --dry-run=server -f "$PART/sample.json" 2>&1; }
# The API server knows policies and rights a moment later.
says() { # says PATTERN: the attempt is refused with these words
    local said
    if said=$(create_dry); then
        return 1
    fi
    printf '%s\n' "$said"
    grep -qE "$1" <<<"$said"
}
wait_for 30 "the right to create machines to be asked for" says 'requires the right to create machines in this namespace'
right machines.cluster.x-k8s.io
wait_for 30 "the right to the bootstrap kind to be asked for" says 'requires the right to create the kind of bootstrapSpec'
right k0sworkerconfigs.bootstrap.cluster.x-k8s.io
wait_for 30 "the right to the infrastructure kind to be asked for" says 'requires the right to create the kind of infrastructureSpec'
right remotemachines.infrastructure.cluster.x-k8s.io
wait_for 30 "the user to be allowed" create_dry
k --as "$user" --namespace "$NS" create -f "$PART/sample.json" >/dev/null
changed() { k --as "$user" --namespace "$NS" patch sm business-hours --type=merge --patch "$1" 2>&1; }
expect_failure "a kind that he may not create" 'the kind of infrastructureSpec' \
    changed '{"spec": {"infrastructureSpec": {"kind": "RemoteProxy"}}}'
kn delete rolebinding machines-cluster-x-k8s-io >/dev/null
refused_now() { ! changed '{"spec": {"priority": 7}}' >/dev/null; }
wait_for 30 "a change of the spec without rights to be refused" refused_now
changed '{"metadata": {"labels": {"a": "b"}}}' >/dev/null || fail "a change of labels needs no right to create machines"

# ---- our patches of Nodes ----

ours=system:serviceaccount:$SYSTEM_NS:scheduledmachine-controller
jq -n --arg name "$NS-n" '{apiVersion: "v1", kind: "Node", metadata: {name: $name, labels: {theirs: "a"}, annotations: {theirs: "a"}}}' |
    k create -f - >/dev/null
# Not by kubectl, which gets the Node first: this account may not.
patch_node() {
    curl -sS --fail-with-body --unix-socket "$CLUSTER/api" -X PATCH -H 'Content-Type: application/merge-patch+json' \
        -H "Impersonate-User: $ours" --data "$1" "http://localhost/api/v1/nodes/$NS-n" 2>&1
}
bad_node() { expect_failure "$1" "$2" patch_node "$3"; }
policy_holds() {
    local said
    ! said=$(patch_node '{"metadata": {"labels": {"theirs": "b"}}}') || return 1
    printf '%s\n' "$said"
    grep -q 'propeller-scheduledmachine-nodes' <<<"$said"
}
wait_for 30 "the policy of Nodes to be in force" policy_holds
bad_node "another label" 'only labels of 5spot.finos.org may change' '{"metadata": {"labels": {"theirs": "b"}}}'
bad_node "a label more" 'only labels of 5spot.finos.org may change' '{"metadata": {"labels": {"more": "b"}}}'
bad_node "a label less" 'only labels of 5spot.finos.org may change' '{"metadata": {"labels": {"theirs": null}}}'
bad_node "another annotation" 'only annotations of 5spot.finos.org may change' '{"metadata": {"annotations": {"theirs": "b"}}}'
bad_node "an annotation less" 'only annotations of 5spot.finos.org may change' '{"metadata": {"annotations": {"theirs": null}}}'
bad_node "a finalizer" 'finalizers and owners may not change' '{"metadata": {"finalizers": ["example.com/a"]}}'
bad_node "an owner" 'finalizers and owners may not change' \
    '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]}}'
bad_node "a providerID" 'only taints and unschedulable of the spec may change' '{"spec": {"providerID": "test://n"}}'
bad_node "a range of addresses" 'only taints and unschedulable of the spec may change' \
    '{"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}}'
patch_node '{"spec": {"unschedulable": true, "taints": [{"key": "a", "effect": "NoSchedule"}]}, "metadata": {
    "labels": {"5spot.finos.org/reclaim-agent": "enabled"}, "annotations": {"5spot.finos.org/cordoned": "true"}}}' >/dev/null ||
    fail "what the controller does was refused"
patch_node '{"spec": {"unschedulable": null, "taints": null}, "metadata": {
    "labels": {"5spot.finos.org/reclaim-agent": null}, "annotations": {"5spot.finos.org/cordoned": null}}}' >/dev/null ||
    fail "what the controller takes back was refused"
k label node "$NS-n" theirs=b --overwrite >/dev/null || fail "another account is not restricted"
k delete node "$NS-n" >/dev/null
kn delete sm --all >/dev/null
machines_uninstall
