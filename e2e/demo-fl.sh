#!/usr/bin/env bash
# Federated learning on a real control plane, from nothing: eight devices whose data differ train a
# linear model in WebAssembly, six of them are enough for a round, two are killed on the way and one
# is slow. Every model is recomputed with NumPy.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ROUNDS=${ROUNDS:-20}
NS=default
PLOT=$ROOT/build/e2e/federated-loss.svg

step() { printf '\n==> %s\n' "$*"; }

completed_at_least() {
    local count
    count=$(federated demo '.status.completedRounds // 0')
    printf '%s rounds are complete\n' "$count"
    ((count >= $1))
}

main() {
    local started=$SECONDS
    "$HERE/setup.sh" build run
    make -C "$ROOT" --no-print-directory -j"$(nproc)" all
    cd "$ROOT"
    work_begin
    wasm_build
    step "Control plane, broker, controller with its coordinator, and eight devices"
    cluster_start >"$WORK/cluster.output" 2>&1 || {
        cat "$WORK/cluster.output" >&2
        die "the control plane did not start; logs: $ROOT/build/e2e/cluster"
    }
    part_begin demo-fl
    federated_world 8
    device_stop device-8
    trainer_start device-8 --result-delay 1
    wait_proplet worker-8 Running
    k get proplets

    step "A FederatedJob: $ROUNDS rounds, 6 of 8 updates make a model"
    federated_json demo 8 6 "$ROUNDS" | tee "$PART/job.json" | create
    jq -c .spec "$PART/job.json"
    wait_for 300 "the first rounds" completed_at_least 3
    step "device-2 and device-5 are killed; device-8 answers a second late"
    device_crash device-2
    device_crash device-5
    wait_federated demo Completed 900
    k get federatedjobs,trainingrounds

    step "Every round, recomputed with NumPy from the same updates"
    printf '%5s %7s %12s  %s\n' round updates loss "      w1        w2         b"
    federated_verify demo --table --plot "$PLOT"
    step "What the last round counted"
    k get traininground "round-$ROUNDS-demo" -o json |
        jq -r '.status.participants[] | "\(.propletId)\t\(.status)\(if .updateReceived then "\tcounted" else "" end)"'
    federated_verify demo | grep -q 'loss falls' || fail "the loss does not fall"
    controller_stop
    work_clear
    printf '\ndemo-fl: the model of round %s is what NumPy makes of the same updates; plot: %s (%s s)\n' \
        "$ROUNDS" "${PLOT#"$ROOT/"}" $((SECONDS - started))
}

main "$@"
