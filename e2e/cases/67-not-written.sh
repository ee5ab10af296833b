#!/usr/bin/env bash
# One Task whose result the API server cannot store, because somebody's webhook does not answer: the
# results of all others come through, and its own when the webhook is gone, although the controller
# was killed meanwhile.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"
COUNT=40 # more than the broker's window of 20
HOOK=$NS-fails
world_start device-1 device-2
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running

jq -n --arg name "$HOOK" --arg ns "$NS" --arg group "$GROUP" --argjson port "$(free_port)" '{
    apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration",
    metadata: {name: $name},
    webhooks: [{
        name: "fails.example.org", admissionReviewVersions: ["v1"], sideEffects: "None",
        failurePolicy: "Fail", timeoutSeconds: 1, clientConfig: {url: "https://127.0.0.1:\($port)/"},
        namespaceSelector: {matchLabels: {"kubernetes.io/metadata.name": $ns}},
        rules: [{apiGroups: [$group], apiVersions: ["*"], operations: ["UPDATE"], resources: ["tasks/status"]}],
        matchConditions: [{name: "stuck",
            expression: "object.metadata.name == \"stuck\" && object.status.phase == \"completed\""}]}]}' |
    k apply -f - >/dev/null

not_written() { controller_log | grep -c '"reconcile failed, trying again".*failed calling webhook'; }
mail() { metrics | awk -v name="propeller_mail_$1" '$1 == name { print $2 }'; }

add_task stuck "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_for 60 "its result to be refused" not_written
task_json 'other-NUMBER' "$ADDITION" '[1, 2]' "$(task_on worker)" | add_numbered $COUNT
wait_for 120 "the results of all others" phase_count_is tasks completed $COUNT
expect_eq "the stuck one" running "$(task stuck .status.phase)"
held() { [[ $(mail held) == 1 ]]; }
wait_for 30 "its result to be held" held
controller_crash_restart
wait_for 60 "its result to be held by the next process" held
expect_eq "the stuck one" running "$(task stuck .status.phase)"

k delete validatingwebhookconfiguration "$HOOK" >/dev/null
kn label task stuck look=again >/dev/null # instead of waiting for its next turn
wait_task stuck completed 60
expect_eq "its result" 42 "$(task stuck .status.results)"
expect_eq "starts of it" 1 "$(journal_count device ".event == \"start\" and .task == \"$(task stuck .metadata.uid)\"")"
wrong=$(objects tasks | jq -c '.items[] | select(.metadata.name != "stuck" and (.status.results | tostring) != "3") |
    [.metadata.name, .status.results]')
expect_eq "wrong answers" "" "$wrong"
