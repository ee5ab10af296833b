#!/usr/bin/env bash
# Two controllers, and the one that leads is killed in the middle of 30 Proplets of type k8s, twice:
# each gets one Deployment, made once and never changed, and no pod is started a second time.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_kubernetes "has pods"

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
creates=$(audit_writes "$mark" '.objectRef.resource == "deployments" and .verb == "create"')
made_twice=$(jq -r 'select(.[4] == 201) | .[3]' <<<"$creates" | sort | uniq -d)
expect_eq "Deployments that were made twice" "" "$made_twice"
# A leader that dies while it asks leaves a request that nobody heard the answer of, and whose line may
# say anything, though it was obeyed: at most one for each of its two workers.
unheard=$(jq -c 'select(.[4] | IN(201, 409) | not)' <<<"$creates")
expect_le "requests that nobody heard the answer of: $unheard" "$(grep -c . <<<"$unheard" || true)" $((2 * 2))
asked_for=$(jq -r 'select(.[4] != 409 and .[3] != "") | .[3]' <<<"$creates" | sort -u | wc -l)
expect_eq "Deployments that were asked for" "$COUNT" "$asked_for"
expect_eq "Deployments that were changed" 0 \
    "$(audit_writes "$mark" '.objectRef.resource == "deployments" and .verb != "create"' | wc -l)"
