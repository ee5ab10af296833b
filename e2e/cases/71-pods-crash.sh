#!/usr/bin/env bash
# Two controllers, and the one that leads is killed in the middle of 30 Proplets of type k8s, twice:
# each gets one Deployment, written once, and no pod is started a second time.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster # reads the audit log
case_needs_no_node
COUNT=30
broker_prepare device-1
broker_start
controller_prepare
kn create secret generic keys --from-literal=clientKey=unused >/dev/null
mark=$(audit_mark)
replica_start a
replica_start b
wait_for 30 "a leader" leader_of a b >/dev/null

deployments() { api "/apis/apps/v1/namespaces/$NS/deployments"; }
made_count() { deployments | jq '.items | length'; }
made_at_least() {
    local count
    count=$(made_count)
    printf '%s of %s Deployments\n' "$count" "$1"
    ((count >= $1))
}
kill_leader() {
    local leader
    wait_for 30 "a leader" leader_of a b >/dev/null
    leader=$(leader_of a b)
    crash "replica-$leader"
    replica_start "$leader"
}

proplet_json proplet-NUMBER device-NUMBER "$(k8s_json reg/proplet:1)" | add_numbered "$COUNT"
wait_for 60 "the first Deployments" made_at_least 3
kill_leader
wait_for 60 "more Deployments" made_at_least 10
kill_leader
wait_for 120 "all Deployments" made_at_least "$COUNT"
all_have_pods() {
    local pods
    pods=$(api "/api/v1/namespaces/$NS/pods" | jq '.items | length')
    printf '%s pods\n' "$pods"
    ((pods == COUNT))
}
wait_for 60 "a pod each" all_have_pods
for ((number = 1; number <= COUNT; number++)); do
    wait_condition proplets "proplet-$number" Ready '^False PodsNotReady' 60
done

expect_eq "Deployments" "$COUNT" "$(made_count)"
expect_eq "generations" "[1]" "$(deployments | jq -c '[.items[].metadata.generation] | unique')"
expect_eq "Deployments that were made" "$COUNT" \
    "$(audit_writes "$mark" '.objectRef.resource == "deployments" and .verb == "create" and .responseStatus.code == 201' | wc -l)"
expect_eq "Deployments that were changed" 0 \
    "$(audit_writes "$mark" '.objectRef.resource == "deployments" and .verb == "patch"' | wc -l)"
