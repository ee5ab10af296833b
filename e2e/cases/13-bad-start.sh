#!/usr/bin/env bash
# Bad start-up input: one clear line each; what can heal is retried and said in readyz.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "takes kinds and rights away"
case_needs_process "it is started with mistakes, and its exit status read"
broker_prepare d
controller_prepare

token=$(sed -n 's/.*token: \([^}]*\)}.*/\1/p' "$CLUSTER/controller.kubeconfig")

# ---- refused at once ----

# refused EXIT-CODE PATTERN OPTION...: ends with that code and exactly one line on stderr
refused() {
    local code=$1 pattern=$2 status=0
    shift 2
    timeout 20 "$CONTROLLER_BIN" "$@" >"$PART/out" 2>"$PART/err" || status=$?
    expect_match "exit code with $*" "^$code$" $status
    expect_eq "lines on stderr with $* ($(<"$PART/err"))" 1 "$(wc -l <"$PART/err")"
    expect_match "message with $*" "$pattern" "$(<"$PART/err")"
}

refused 2 'no-such-flag' --no-such-flag
refused 2 'stop-timeout' --stop-timeout soon
refused 2 'stop-timeout' --stop-timeout -3s
refused 2 'stop-timeout' --stop-timeout
refused 2 'mqtt-qos' --mqtt-qos 7
refused 2 'scheduler' --scheduler dice
refused 2 'mqtt-address' --kubeconfig "$CLUSTER/controller.kubeconfig" --mqtt-address http://127.0.0.1:1
PROPELLER_STOP_TIMEOUT=soon refused 2 'stop-timeout|STOP_TIMEOUT'

printf 'apiVersion: v1\nclusters: [' >"$PART/broken"
refused '[12]' 'absent' --kubeconfig "$PART/absent"
refused '[12]' 'broken' --kubeconfig "$PART/broken"
refused '[12]' "$PART" --kubeconfig "$PART"

# ---- retried, and said ----

# says PATTERN: readyz, and one line of the log, say it, and the process lives on
says() {
    wait_for 30 "readyz to say '$1'" readyz_says "failed: .*$1"
    is_running controller || fail "the controller ended instead of trying again"
    wait_for 30 "a line of the log that says '$1'" grep -E "$1" "$LOGS/controller.log"
}
fresh_log() {
    cat "$LOGS/controller.log" >>"$LOGS/controller.earlier.log" 2>/dev/null || true
    rm -f "$LOGS/controller.log"
}
controller_with() { # controller_with KUBECONFIG [OPTION...]
    local kubeconfig=$1
    shift
    fresh_log
    controller_spawn --kubeconfig "$kubeconfig" "$@"
}

kubeconfig "$PART/wrong-ca" "$CLUSTER/other-ca.crt" "token: $token"
controller_with "$PART/wrong-ca"
says 'certificate'
controller_stop

kubeconfig "$PART/bad-token" "$CLUSTER/ca.crt" "token: not-a-token"
controller_with "$PART/bad-token"
says 'Unauthorized'
controller_stop

kubeconfig "$PART/no-rights" "$CLUSTER/ca.crt" "token: $USELESS_TOKEN"
controller_with "$PART/no-rights"
says 'cannot list'
controller_stop

kubeconfig "$PART/nobody-there" "$CLUSTER/ca.crt" "token: $token" "https://127.0.0.1:$(free_port)"
controller_with "$PART/nobody-there"
says 'connect to'
controller_stop

controller_with "$CLUSTER/controller.kubeconfig" --client-key-file "$PART/absent"
says "$PART/absent"
controller_stop

# Secrets stay out of what it says.
for file in "$LOGS"/controller*.log; do
    ! grep -qF -e not-a-token -e "$token" -e "$(secret_of "$CONTROLLER_USER")" "$file" ||
        fail "a secret stands in $file"
done

# ---- retried, said, and healed ----

in_cluster crash apiserver
controller_with "$CLUSTER/controller.kubeconfig"
says 'connect to'
in_cluster cluster_apiserver
apiserver_back
says "127.0.0.1:$BROKER_PORT.*(refused|reset)"
broker_start
wait_for 60 "the controller to be ready" controller_ready
controller_stop

k delete -f "$ROOT/crds/" --wait=true >/dev/null
controller_with "$CLUSTER/controller.kubeconfig"
says 'CRD installed'
cluster_prepare >/dev/null
wait_for 60 "the controller to be ready" controller_ready
controller_stop

# A wrong password; the file is read again at every attempt.
printf 'wrong\n' >"$PART/controller.key"
controller_with "$CLUSTER/controller.kubeconfig"
says 'not authorised'
secret_of "$CONTROLLER_USER" >"$PART/controller.key"
wait_for 60 "the controller to be ready" controller_ready
