#!/usr/bin/env bash
# The disk under propeller-standalone is full: writes are refused in clear words, everything can be read, the
# process lives, also through kill -9; when there is room again all goes on without hands, and nothing is lost.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin
case_needs_no_node "has a server of its own"
unshare --mount true 2>/dev/null || {
    say "needs a mount of its own, which this machine does not allow" >"$PART/not-applicable"
    exit 0
}

# ---- the API under writers ----

mkdir "$PART/small"
said=$(unshare --mount python3 -B "$HERE/standalone/full.py" "$ROOT/build/bin/propeller-standalone" "$PART/small" \
    --seed "$RANDOM" 2>&1) || fail "$said"
say "measured: $said"

# ---- the whole program: a result that arrives while it cannot be written ----

# On a small disk that only the server sees.
own_server
standalone_prepare
broker_prepare device-1
broker_start
controller_prepare
mv "$CLUSTER/data" "$CLUSTER/made"
mkdir "$CLUSTER/data"
# shellcheck disable=SC2016 # expanded by the other shell
spawn standalone unshare --mount bash -euc 'mount -t tmpfs -o size=16m tmpfs "$1/data"; cp -a "$1/made/." "$1/data"
    exec "${@:2}"' server "$CLUSTER" "$STANDALONE_BIN" serve "${STANDALONE_OPTIONS[@]}" "${CONTROLLER_OPTIONS[@]}"
wait_for 60 "the server" standalone_ready standalone
wait_for 60 "its controller" curl -sSf -o /dev/null "http://127.0.0.1:$HEALTH_PORT/readyz"
spawn standalone-proxy "$KUBECTL" --kubeconfig "$CLUSTER/admin.kubeconfig" proxy --unix-socket "$CLUSTER/api"
wait_for 30 "the API proxy" api /readyz
pid=$(pid_of standalone)
disk=/proc/$pid/root$CLUSTER/data

k create namespace "$NS" >/dev/null
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running
device_say device hold device-1
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_task sum running
kn create configmap before --from-literal=a=b >/dev/null

# disk_is_full: nothing can be written any more, whatever the controller gave back meanwhile
disk_is_full() {
    local code
    dd if=/dev/zero bs=4096 oflag=append conv=notrunc of="$disk/filler" status=none 2>/dev/null || true
    code=$(curl -sS -D "$PART/headers" -o "$PART/refusal" -w '%{http_code}' --unix-socket "$CLUSTER/api" -H 'Content-Type: application/json' \
        -d '{"metadata": {"generateName": "probe-"}}' "http://localhost/api/v1/namespaces/$NS/configmaps")
    printf 'answer %s\n' "$code"
    [[ $code == 503 ]]
}
wait_for 60 "the disk to be full" disk_is_full
expect_eq "what a writer is told" "Status Failure ServiceUnavailable 503" \
    "$(jq -r '"\(.kind) \(.status) \(.reason) \(.code)"' "$PART/refusal")"
expect_match "in words" "no space left on the disk" "$(jq -r .message "$PART/refusal")"
expect_eq "whether clients are to wait in silence" 0 "$(grep -ci '^Retry-After' "$PART/headers")"
started=$SECONDS
said=$(kn create configmap other --from-literal=a=b 2>&1) && fail "kubectl wrote on a full disk"
expect_match "what kubectl says" 'failed to create configmap: .*no space left on the disk' "$said"
printf 'measured: kubectl says so after %s s\n' $((SECONDS - started))

device_say device release device-1
refused_to_controller() { grep 'no space left on the disk' "$LOGS/standalone.log"; }
wait_for 60 "the controller to hear of it" refused_to_controller
expect_eq "the Task" running "$(task sum .status.phase)"
expect_eq "what was there" b "$(kn get configmap before -o 'jsonpath={.data.a}')"
expect_match "a list" 'worker' "$(kn get proplets)"
curl -sSf -o /dev/null "http://127.0.0.1:$HEALTH_PORT/healthz" || fail "the process does not call itself alive"

rm "$disk/filler"
wait_task sum completed 120
expect_eq "result" 42 "$(task sum .status.results)"
expect_eq "starts that the device saw" 1 "$(journal_count device '.event == "start"')"
add_task more "$ADDITION" '[20, 3]' "$(task_on worker)"
wait_task more completed
expect_eq "process" "$pid" "$(pid_of standalone)"
is_running standalone || fail "the process has ended"
stop standalone TERM
