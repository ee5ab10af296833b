#!/usr/bin/env bash
# Two replicas with the usual times: how long nobody acts after a SIGTERM and after a kill -9 of the leader,
# until another one leads and until the next start is on a device; and what a standby costs beside the leader.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

TIMES=${BENCH_FAILOVERS:-20}
# A Lease of 15 s, and 2 s.
VOLUNTARY_MS=2000 CRASH_MS=17000
declare -A slowest=()

process_of() { pgrep -P "$(pid_of "replica-$1")"; }
status_of() { awk -v field="$2:" '$1 == field { print $2 }' "/proc/$(process_of "$1")/status"; }
other_of() { [[ $1 == a ]] && printf 'b\n' || printf 'a\n'; }

memory_of() { # memory_of WHAT LETTER OBJECTS: 2 KiB for each of these are allowed
    figure "$1: VmRSS (KiB)" "$(status_of "$2" VmRSS)" "<= $(((16 << 10) + 2 * $3))"
    figure "$1: RssAnon (KiB)" "$(status_of "$2" RssAnon)" "<= $(((5 << 10) + 2 * $3))"
    figure "$1: VmHWM (KiB)" "$(status_of "$2" VmHWM)"
}
memory_of_both() { # memory_of_both WHEN OBJECTS
    local leader standby
    leader=$(leader_of a b)
    standby=$(other_of "$leader")
    memory_of "leader, $1" "$leader" "$2"
    memory_of "standby, $1" "$standby" "$2"
    figure "standby over leader, $1: RssAnon" \
        "$(ratio "$(status_of "$standby" RssAnon)" "$(status_of "$leader" RssAnon)")"
}

# When the last line `leading` was written, in ms; lines before FROM do not count.
led_at() { # led_at LETTER FROM
    local ts
    ts=$(tail -n "+$(($2 + 1))" "$LOGS/replica-$1.log" | jq -rR 'fromjson? | select(.msg == "leading") | .ts')
    [[ -n $ts ]] && date -d "$ts" +%s%3N
}
started_at() { journal devices '.event == "start" and .task == "'"$1"'"' | jq -s '.[0].time * 1000 | floor'; }

# took WHAT MS: one of many, whose median and spread the table has; the budget is for all of them
took() {
    figure "$1 (ms)" "$2"
    (($2 <= ${slowest[$1]:-0})) || slowest[$1]=$2
}
fail_over() { # fail_over WHAT SIGNAL EXIT NUMBER
    local leader next lines begin name uid
    leader=$(leader_of a b)
    next=$(other_of "$leader")
    lines=$(wc -l <"$LOGS/replica-$next.log")
    name=$(printf '%s-%s' "${2,,}" "$4")
    begin=$(now_ms)
    kill "-$2" "$(process_of "$leader")" # not the shell around it, which tells how it ended
    add_task "$name" "$ADDITION" '[1, 2]'
    wait_for 120 "another one to lead" led_at "$next" "$lines" >/dev/null
    wait_task "$name" completed 120
    uid=$(task "$name" .metadata.uid)
    took "$1: until another one leads" $(($(led_at "$next" "$lines") - begin))
    took "$1: until the next start is on its device" $(($(started_at "$uid") - begin))
    wait_for 60 "the former leader to end" replica_ended "$leader" "$3"
    replica_start "$leader"
    wait_for 60 "'$leader' to be ready" replica_ready "$leader"
}

fail_over_often() { # fail_over_often WHAT SIGNAL EXIT BUDGET
    local number until
    for ((number = 1; number <= TIMES; number++)); do
        fail_over "$1" "$2" "$3" "$number"
    done
    for until in "another one leads" "the next start is on its device"; do
        figure "$1: until $until, the slowest of $TIMES (ms)" "${slowest["$1: until $until"]}" "<= $4"
    done
}

main() {
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    broker_prepare device-1
    broker_start
    controller_prepare
    replica_start a
    replica_start b
    wait_for 60 "one of them to lead" one_serves a b
    add_proplet worker device-1
    device_start devices --identity device-1
    wait_proplet worker Running
    observe_for 20 # the last of what a start brings
    memory_of_both "nothing to do" 1
    fail_over_often SIGTERM TERM 0 $VOLUNTARY_MS
    fail_over_often "kill -9" KILL 137 $CRASH_MS
    tasks_py many 650 >/dev/null
    wait_for 600 "650 Tasks to be completed" phase_count_is tasks completed $((650 + 2 * TIMES))
    observe_for 40 # idle connections are closed after ten seconds, at the next of its ticks
    memory_of_both "650 Tasks ended" $((650 + 2 * TIMES))
    replica_signal a TERM
    replica_signal b TERM
}

main "$@"
