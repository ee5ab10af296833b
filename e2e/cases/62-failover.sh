#!/usr/bin/env bash
# The leader stands still for longer than its lease, of three replicas and then of two: another one
# takes over, the former one says nothing more to the broker when it goes on, and ends.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_apart "has replicas"
COUNT=${CRASH_TASKS:-80}
crash_controllers() {
    local letter
    # a slow machine must not look like a leader that stands still
    for letter in a b c; do
        replica_start "$letter" --leader-elect-lease-duration 12s --leader-elect-renew-deadline 10s
    done
    wait_for 60 "one of them to lead" one_serves a b c
}
crash_world 4 4

# What the broker took from whom: a connection of the same name ends the one before, so whatever
# comes after the line of a connection comes over that one.
connections=1
expect_connections() {
    expect_eq "connections of the controllers ($1)" "$connections" "$(broker_connections | wc -l)"
}

# pause_leader OTHERS...: the leader stands still until another one has taken over its work
pause_leader() {
    local former successor
    batch "$#"
    former=$(leader_of "$@")
    local -a others=()
    for letter in "$@"; do [[ $letter == "$former" ]] || others+=("$letter"); done
    expect_connections "before the leader stands still"
    replica_signal "$former" STOP
    wait_for 90 "another one to lead" one_serves "${others[@]}"
    successor=$(leader_of "${others[@]}")
    connections=$((connections + 1))
    wait_for "$CRASH_SECONDS" "the load to end" ended_at_least "$CRASH_COUNT"
    batch "$#-more"
    replica_signal "$former" CONT
    wait_for 60 "the former leader to end" replica_ended "$former" 1
    wait_for 30 "the former leader to say why" replica_said "$former" '"leadership ended: another process'
    expect_connections "after the former leader went on"
    expect_eq "leader" "$successor" "$(leader_of "${others[@]}")"
    rest=("${others[@]}")
}

CRASH_COUNT=0
# batch NAME: some of it has ended, most of it has not
batch() {
    task_json "$1-NUMBER" "$(wasm nap)" '["50", "NUMBER"]' "$CRASH_PROFILE" | add_numbered "$COUNT"
    wait_for "$CRASH_SECONDS" "some of a batch to end" ended_at_least $((CRASH_COUNT + COUNT / 10))
    CRASH_COUNT=$((CRASH_COUNT + COUNT))
}

rest=(a b c)
pause_leader "${rest[@]}"
pause_leader "${rest[@]}"
crash_verdict --max-crossings $((COUNT / 10))

# The last one, stopped in order, gives its lease back.
replica_signal "${rest[0]}" TERM
wait_for 30 "the last one to end" replica_ended "${rest[0]}" 0
expect_eq "holder of the lease" "" "$(lease_holder)"
