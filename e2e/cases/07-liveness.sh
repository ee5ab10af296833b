#!/usr/bin/env bash
# Heartbeats, last wills, and last wills of others.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start quiet mcu
add_proplet heart quiet
add_proplet chip mcu
device_start one --identity quiet
device_start two --identity mcu --last-will
wait_proplet heart Running
wait_proplet chip Running
expect_eq "alive" true "$(proplet heart .status.alive)"
condition_matches proplets heart Ready '^True ' || fail "condition Ready of a running Proplet"

# No heartbeats: Offline; heartbeats again: Running.
device_say one mute quiet
wait_proplet heart Offline
expect_eq "alive" false "$(proplet heart .status.alive)"
condition_matches proplets heart Ready '^False ' || fail "condition Ready of an Offline Proplet"

# A last will that comes late is no sign of life.
publish control/proplet/alive '{"proplet_id":"quiet","status":"offline","namespace":"x"}'
publish control/proplet/alive '{"proplet_id":"quiet","namespace":"x"}'
# real time: nothing may follow, and only time shows that
observe_for 2
expect_eq "phase after a late last will" Offline "$(proplet heart .status.phase)"
device_say one unmute quiet
wait_proplet heart Running

# Wills of managers, strangers and other channels change nothing.
before=$(objects proplets | jq -c '[.items[] | [.metadata.name, .status.phase, .status.conditions]]')
publish control/proplet/alive '{"status":"offline","proplet_id":"propeller-manager"}'
publish control/proplet/alive '{"channel_id":"chan-1","proplet_id":"propeller-operator","status":"offline"}'
publish control/proplet/alive '{"status":"offline","proplet_id":"propeller-controller"}'
publish control/proplet/alive '{"status":"offline","proplet_id":"heart"}'
publish control/proplet/alive 'offline'
CHANNEL=elsewhere publish control/proplet/alive '{"status":"offline","proplet_id":"quiet"}'
# real time: nothing may follow, and only time shows that
observe_for 2
after=$(objects proplets | jq -c '[.items[] | [.metadata.name, .status.phase, .status.conditions]]')
expect_eq "Proplets after foreign last wills" "$before" "$after"

# Its own will counts at once: with a threshold that would take an hour.
controller_stop
controller_start --last-seen-threshold 1h
wait_proplet chip Running
device_crash two
wait_proplet chip Offline
expect_eq "the one that lives" Running "$(proplet heart .status.phase)"
device_start two --identity mcu --last-will
wait_proplet chip Running

# A Proplet may have a time of its own; the others of its channel keep the hour.
kn patch proplet heart --type=merge -p '{"spec":{"external":{"heartbeatTimeout":"5s"}}}' >/dev/null
device_say two mute mcu
device_say one mute quiet
wait_proplet heart Offline
expect_eq "the one with the hour" Running "$(proplet chip .status.phase)"
device_say one unmute quiet
device_say two unmute mcu
wait_proplet heart Running

# A restart of the controller turns nobody Offline.
expect_eq "times that the living one went Offline" 2 "$(event_count heart Offline)"

# Nor does a broker that is away for twice the threshold: nobody could have been heard.
controller_stop
controller_start
wait_proplet heart Running
crash broker
# real time: the outage must last longer than the last-seen threshold of this controller
observe_for 6
expect_eq "the living one while nobody can be heard" Running "$(proplet heart .status.phase)"
expect_eq "times that it went Offline" 2 "$(event_count heart Offline)"
