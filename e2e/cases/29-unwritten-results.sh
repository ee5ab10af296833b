#!/usr/bin/env bash
# Results arrive that cannot be written, and the controller dies: the broker delivers them again.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "the API server is away while the controller listens"
COUNT=12
crash_world 3 4
controller_stop
# It shall go on listening for as long as the API server is away, and not ask again for what waits.
CONTROLLER_OPTIONS+=(--leader-elect-lease-duration 120s --leader-elect-renew-deadline 110s
    --start-confirm-timeout 5m)
controller_start
device_say devices hold '*'
crash_load $COUNT 5
wait_for 60 "all Tasks to run" phase_count_is tasks running $COUNT

killing apiserver apiserver_crash
device_say devices release '*'
wait_for 60 "the broker to have every result" journal_has devices '.event == "acknowledged"' $COUNT
# It reads no further than it can write.
results_heard() {
    local heard
    heard=$(metrics | awk '$1 == "propeller_mqtt_messages_total{kind=\"results\"}" { print $2 }')
    printf '%s results\n' "$heard"
    ((heard >= 1))
}
wait_for 60 "the controller to have heard a result" results_heard
killing controller crash controller
apiserver_begin
apiserver_back
wait_for 60 "all Tasks to run as before" phase_count_is tasks running $COUNT

# Nobody waits two minutes for the dead one.
k delete lease propeller-controller --namespace "$SYSTEM_NS" >/dev/null
controller_start
crash_verdict
expect_eq "starts that devices saw" $COUNT "$(journal_count devices '.event == "start"')"
