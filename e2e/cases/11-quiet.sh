#!/usr/bin/env bash
# 100 heartbeating devices and nothing to do: no write beyond the refresh budget.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
SECONDS_QUIET=${QUIET_SECONDS:-20}
REFRESH=60 # --status-refresh-interval, the default
COUNT=100
mapfile -t identities < <(printf 'device-%s\n' $(seq $COUNT))
broker_prepare "${identities[@]}"
broker_start
controller_prepare
# A device that a busy machine does not let speak for some seconds is not away.
CONTROLLER_OPTIONS+=(--last-seen-threshold 30s)
controller_start
proplet_json worker-NUMBER device-NUMBER | add_numbered $COUNT
device_start devices --count $COUNT
wait_for 60 "all Proplets to run" phase_count_is proplets Running $COUNT

# Events are written behind the statuses.
all_told() {
    local count
    count=$(api "/apis/events.k8s.io/v1/namespaces/$NS/events" |
        jq '[.items[] | select(.reason == "Online")] | length')
    printf '%s events\n' "$count"
    ((count >= COUNT))
}
wait_for 60 "an event for each of them" all_told

# Metadata and first metrics follow within one refresh; what counts is what comes after.
quiet_writes() { audit_writes "$1" | sort | uniq -c | sort -rn; }
mark=$(audit_mark)
# real time: writes per second are what is measured
observe_for "$SECONDS_QUIET"
writes=$(audit_writes "$mark")
budget=$((SECONDS_QUIET / REFRESH + 1))
foreign=$(jq -c 'select(.[1] != "proplets" or .[2] != "status")' <<<"$writes")
expect_eq "writes that are no refresh of a Proplet" "" "$foreign"
busiest=$(jq -r '.[3]' <<<"$writes" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')
expect_le "writes to one Proplet in $SECONDS_QUIET s" "${busiest:-0}" $budget
expect_eq "running Proplets" $COUNT "$(phase_count proplets Running)"
printf 'measured: %s writes in %s s for %s devices at a heartbeat a second (budget %s); VmRSS %s KiB, RssAnon %s KiB\n' \
    "$(grep -c . <<<"$writes" || true)" "$SECONDS_QUIET" $COUNT $((budget * COUNT)) "$(memory VmRSS)" "$(memory RssAnon)"

# Without refreshes: nothing at all.
controller_stop
controller_start --status-refresh-interval 1h
settled() {
    local from
    from=$(audit_mark)
    # real time: writes per second are what is measured
    observe_for 3
    [[ -z $(audit_writes "$from") ]] || ! quiet_writes "$from"
}
wait_for 60 "the restart to have settled" settled
mark=$(audit_mark)
# real time: writes per second are what is measured
observe_for $((SECONDS_QUIET < 20 ? SECONDS_QUIET : 20))
expect_eq "writes without refreshes" "" "$(quiet_writes "$mark")"
