#!/usr/bin/env bash
# What healthz and readyz say of a leader and of a standby: with everything there, without the broker,
# without the API server and after the renew deadline, and while it stops.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "has replicas"
broker_prepare device-1
broker_start
controller_prepare
# The standby takes nothing over in this case.
for letter in a b; do
    replica_start "$letter" --leader-elect-lease-duration 600s --leader-elect-renew-deadline 4s
    [[ $letter == b ]] || wait_for 60 "the first one to lead" one_serves a
done
wait_for 60 "the second one to be ready" replica_ready b
leader=a standby=b

probe() { curl -sS --max-time 10 -w '%{http_code}' "$(replica_url "$1" health)/$2"; }
# says LETTER STATUS CHECK...: readyz has this status, and these checks failed, and no others
says() {
    local letter=$1 status=$2 said failed
    shift 2
    said=$(probe "$letter" 'readyz?verbose') || return 1
    printf '%s\n' "$said"
    failed=$(sed -n 's/^\[-\]\([a-z]*\) .*/\1/p' <<<"$said" | paste -sd ' ')
    [[ ${said: -3} == "$status" && $failed == "$*" ]]
}
expect_alive() { # a kubelet must not restart it for what it cannot help
    local letter
    for letter in "$leader" "$standby"; do
        expect_eq "healthz of '$letter' $1" "$(printf 'ok\n200')" "$(probe "$letter" healthz)"
    done
}

wait_for 30 "the leader to be content" says "$leader" 200
wait_for 30 "the standby to be content" says "$standby" 200
expect_alive "with everything there"

crash broker
wait_for 30 "the leader to miss the broker" says "$leader" 503 mqtt
wait_for 30 "the standby not to care" says "$standby" 200
expect_alive "without the broker"
broker_start
wait_for 60 "the leader to be content again" says "$leader" 200

apiserver_crash
wait_for 90 "the leader to miss everything" says "$leader" 503 caches lease mqtt
wait_for 60 "the standby to miss the API server" says "$standby" 503 caches lease
expect_alive "without the API server"
apiserver_begin
apiserver_back
wait_for 90 "the leader to be content once more" says "$leader" 200
wait_for 90 "the standby to be content once more" says "$standby" 200

# A start that waits for the broker keeps it from ending at once.
add_proplet worker device-1
device_start device --identity device-1
wait_proplet worker Running
add_task first "$ADDITION" '[1, 2]' "$(task_on worker)"
wait_task first completed # from now on a start waits for nothing
mark=$(audit_mark)
kill -STOP "$(pid_of broker)"
add_task sum "$ADDITION" '[10, 32]' "$(task_on worker)"
wait_for 60 "a start to be under way" start_was_read "$mark"
replica_signal "$leader" TERM
wait_for 30 "it to say that it stops" says "$leader" 503 process
expect_alive "while it stops"
wait_for 30 "the standby not to care" says "$standby" 200
kill -CONT "$(pid_of broker)"
wait_for 60 "it to end" replica_ended "$leader" 0
wait_for 60 "the other one to lead" one_serves "$standby"
wait_task sum completed
replica_signal "$standby" TERM
wait_for 60 "it to end, too" replica_ended "$standby" 0
