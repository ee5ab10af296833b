#!/usr/bin/env bash
# No candidate: the Task waits, says why, and is woken by whatever helps.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d1 d2
FIELD='{"spec":{"propletSelector":{"matchLabels":{"site":"field"}}}}'
GPU='{"spec":{"propletSelector":{"matchCapabilities":["gpu"]}}}'

waits() { # waits NAME REASON-PATTERN
    wait_condition tasks "$1" Scheduled "^False $2"
    expect_eq "phase of $1" pending "$(task "$1" '.status.phase // "pending"')"
}

# Nobody at all.
add_task nobody "$ADDITION" '[10, 32]'
add_task pinned "$ADDITION" '[10, 32]' "$(task_on later)"
waits nobody 'NoProplet .+'
waits pinned 'NoProplet .+'

# A Proplet that is never heard of is no candidate either.
add_proplet worker d1
waits nobody "NoCandidates Proplet 'worker' has sent no heartbeat yet: client id 'd1' on channel "

# Its first heartbeat wakes the Task.
device_start first --identity d1
wait_task nobody completed

# The wrong labels, the wrong capabilities.
add_task by-label "$ADDITION" '[10, 32]' "$FIELD"
add_task by-capability "$ADDITION" '[10, 32]' "$GPU"
waits by-label 'NoCandidates .*it lacks label site=field'
waits by-capability 'NoCandidates .*it lacks capability gpu'

# A mistyped client id: the Proplet names the devices that its channel has instead.
add_proplet mistyped d3
add_task on-mistyped "$ADDITION" '[10, 32]' "$(task_on mistyped)"
waits on-mistyped "PropletOffline Proplet 'mistyped' has sent no heartbeat yet: client id 'd3' on channel "
device_start second --identity d2
wait_condition proplets mistyped Ready "^False WaitingForHeartbeat .*'d3'.*other client ids on this channel: 'd2'"

# Who waits for ten seconds has an Event with the remedy.
remedy() { # remedy TASK PATTERN: of its Events
    kn get events.events.k8s.io -o json | jq -r --arg task "$1" '.items[] | select(.regarding.name == $task) | "\(.type) \(.reason) \(.note)"' |
        grep -E "$2"
}
wait_for 60 "the Event of a Task without its Proplet" remedy pinned '^Warning NoProplet .*Create a Proplet'
wait_for 60 "the Event of a Task without its label" remedy by-label '^Warning NoCandidates .*Compare the labels'

# A changed label and a changed spec wake them; a new Proplet wakes the pinned one.
kn label proplet worker site=field >/dev/null
wait_task by-label completed
kn patch proplet worker --type=merge -p '{"spec":{"external":{"capabilities":["gpu"]}}}' >/dev/null
wait_task by-capability completed
add_proplet later d2
wait_task pinned completed
expect_eq "assignedProplet of the pinned one" later "$(task pinned .status.assignedProplet)"
