#!/usr/bin/env bash
# Tasks that wait for Tasks: diamond, failure branches, fan-out, chain, a circle that is healed.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

FAN=${GRAPH_FAN:-200}
CHAIN=${GRAPH_CHAIN:-50}
world_start device-1 device-2 device-3
proplet_json worker-NUMBER device-NUMBER | add_numbered 3
device_start devices --count 3
wait_for 30 "all Proplets to run" phase_count_is proplets Running 3

# after [RUN-IF] TASK...: JSON for add_task
after() {
    local run_if=success
    [[ $1 != success && $1 != failure ]] || { run_if=$1; shift; }
    jq -nc --arg run "$run_if" '{spec: {dependsOn: $ARGS.positional, runIf: $run}}' --args "$@"
}
add_sum() { add_task "$1" "$ADDITION" '["1", "2"]' "${2:-{\}}"; }

# A diamond, the last one first: what is missing is said, and healed when it appears.
add_sum bottom "$(after left right)"
wait_condition tasks bottom Scheduled "^False DependencyMissing there is no Task 'right'"
add_sum left "$(after top)"
add_sum right "$(after top)"
add_sum top
wait_task bottom completed
order=$(journal devices '.event == "start"' | jq -r .task)
expect_eq "first of the diamond" "$(task top .metadata.uid)" "$(head -n 1 <<<"$order")"
expect_eq "last of the diamond" "$(task bottom .metadata.uid)" "$(tail -n 1 <<<"$order")"

# A failure skips what waits for success, runs what waits for failure, and goes on as skips.
add_task broken "$(wasm trap)" '[]'
add_sum cured "$(after failure broken)"
add_sum useless "$(after success broken)"
add_sum behind "$(after useless)"
add_sum unneeded "$(after failure useless)"
wait_task cured completed
for skipped in useless behind unneeded; do wait_task $skipped skipped; done
expect_match "why it was skipped" "^False RunIfNotMet runIf is success, and Task 'useless' was skipped" \
    "$(condition tasks behind Scheduled)"
wait_for 30 "an Event" has_event useless "^Normal Skipped "

# A circle is said by each of its members and healed by an edit.
add_sum a "$(after b)"
add_sum b "$(after a)"
wait_condition tasks a Scheduled "^False DependencyCycle .* a -> b -> a"
wait_condition tasks b Scheduled "^False DependencyCycle .* b -> a -> b"
kn patch task a --type merge -p '{"spec": {"dependsOn": null}}' >/dev/null
wait_task b completed

add_sum source
task_json fan-NUMBER "$ADDITION" '["1", "2"]' "$(after source)" | add_numbered "$FAN"
add_sum chain-0
for ((i = 1; i <= CHAIN; i++)); do
    task_json "chain-$i" "$ADDITION" '["1", "2"]' "$(after "chain-$((i - 1))")"
done | create
wait_task "chain-$CHAIN" completed 300
wait_for 300 "the fan-out" phase_count_is tasks completed $((7 + 1 + FAN + 1 + CHAIN))

twice=$(journal devices '.event == "start"' | jq -r .task | sort | uniq -d)
expect_eq "ids started more than once" "" "$twice"
started=$(journal devices '.event == "start"' | jq -r .task)
for ((i = 0; i <= CHAIN; i++)); do task "chain-$i" .metadata.uid; done >"$PART/chain"
expect_eq "order of the chain" "$(<"$PART/chain")" "$(grep -Fxf "$PART/chain" <<<"$started")"
