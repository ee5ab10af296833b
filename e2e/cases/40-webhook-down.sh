#!/usr/bin/env bash
# Without an answer of the webhook running Tasks finish and deletions complete; only new and changed
# specs are refused, until it answers again.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "asks a webhook"
# A Task that was there before the webhook: its finalizer is the controller's to add.
add_task early "$(wasm sleep)" '[-1]' "$(task_on worker)"
webhook_prepare
webhook_certificate
webhook_start
webhook_register "$WEBHOOK_CA"
world_start d
add_proplet worker d '{"spec": {"external": {"maxTasks": 20}}}'
device_start device --identity d
wait_proplet worker Running

has_finalizer() { [[ $(task "$1" '.metadata.finalizers // [] | length') == 1 ]]; }
wait_task early running
has_finalizer early || fail "the controller added no finalizer"
device_say device hold d # ends when it is told to
add_task long "$(wasm sleep)" '[1]' "$(task_on worker)"
add_task endless "$(wasm sleep)" '[-1]' "$(task_on worker)"
has_finalizer long || fail "the webhook added no finalizer"
wait_task long running
wait_task endless running

crash webhook
# ---- it is down ----
answer=$(task_json new "$ADDITION" '[10, 32]' | kn create -f - 2>&1) && fail "a new Task was taken"
expect_match "the refusal of a new Task" 'failed calling webhook "mutate.task.propeller.abstractmachines.fr"' "$answer"
expect_failure "a changed spec" 'failed calling webhook' kn patch task long --type=merge -p '{"spec": {"priority": 1}}'
expect_failure "a changed Proplet" 'failed calling webhook' kn patch proplet worker --type=merge -p '{"spec": {"unschedulable": true}}'
# Metadata is nobody's business: labels, and the finalizers that the controller adds and takes off.
kn label task long 'example.com/seen=yes' >/dev/null
kn patch task long --type=json -p '[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/f"},
    {"op": "remove", "path": "/metadata/finalizers/1"}]' >/dev/null
device_say device release d
wait_task long completed
expect_eq "result" 1 "$(task long .status.results)"
for name in endless long early; do
    kn delete task "$name" --wait=false >/dev/null
done
for name in endless long early; do
    wait_task_gone "$name"
done

# ---- it answers again ----
webhook_start
wait_for 30 "the API server to ask the webhook again" webhook_is_asked
add_task new "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task new completed
kn patch proplet worker --type=merge -p '{"spec": {"unschedulable": true}}' >/dev/null

# ---- it hangs, which costs each change of a phase its time-out and nothing else ----
kn patch proplet worker --type=merge -p '{"spec": {"unschedulable": false}}' >/dev/null
add_task slow "$(wasm sleep)" '[-1]' "$(task_on worker)"
wait_task slow running
kill -STOP "$(pid_of webhook)"
expect_failure "a new Task while the webhook hangs" 'failed calling webhook.*deadline exceeded' \
    kn create -f - <<<"$(task_json another "$ADDITION" '[]')"
kn delete task slow --wait=false >/dev/null
wait_task_gone slow
kill -CONT "$(pid_of webhook)"
