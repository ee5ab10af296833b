# shellcheck shell=bash
# Killing parts of a running world, and asking the oracle (oracle/README.md) what became of its Tasks.
#
#   crash_world 5 4                        five devices that run four Tasks each at a time
#   crash_load 200                         Tasks of one second
#   after_ended 50 killing controller controller_crash_restart
#   oracle_judge                           all of them ended, and the oracle finds nothing

CRASH_SECONDS=${CRASH_SECONDS:-300} # patience for a whole load, not a measure
# A Task's profile tells the device to speak once a second, so that silence is noticed soon.
CRASH_PROFILE='{"spec":{"monitoringProfile":{"enabled":true,"interval":"1s"}}}'

# own_clock PROGRAM NAME: $PART/NAME is the program with a wall clock of its own, which set_clock steps
own_clock() {
    [[ -e $PART/wall_clock.so ]] || "${CC:-cc}" -shared -fPIC -O2 -o "$PART/wall_clock.so" "$HERE/chaos/wall_clock.c"
    printf 0 >"$PART/$2.clock"
    printf '#!/bin/sh\nLD_PRELOAD=%s WALL_CLOCK=%s exec %s "$@"\n' "$PART/wall_clock.so" "$PART/$2.clock" "$1" >"$PART/$2"
    chmod +x "$PART/$2"
}
# Writes without truncating: the process has mapped the file.
set_clock() { printf '%s' "$2" 1<>"$PART/$1.clock"; } # NAME +|-|0

# Cases with several replicas start theirs instead.
crash_controllers() { controller_start; }

# crash_world DEVICES TASKS-EACH: broker with recorder, controller, devices in one group
crash_world() {
    local devices
    mapfile -t devices < <(seq -f 'device-%g' "$1")
    broker_prepare "${devices[@]}"
    broker_start
    broker_record
    controller_prepare
    CONTROLLER_OPTIONS+=(--start-confirm-timeout 5s)
    crash_controllers
    proplet_json worker-NUMBER device-NUMBER \
        "$(jq -nc --argjson tasks "$2" '{spec: {external: {maxTasks: $tasks}}}')" | add_numbered "$1"
    device_start devices --count "$1"
    wait_for 60 "all Proplets to run" phase_count_is proplets Running "$1"
}

# crash_load COUNT [NAPS]: each answers with its own number
crash_load() {
    task_json load-NUMBER "$(wasm nap)" "[\"${2:-50}\", \"NUMBER\"]" "$CRASH_PROFILE" | add_numbered "$1"
}

ended_at_least() {
    local count
    count=$(objects tasks | jq '[.items[] | select(.status.phase | IN("completed", "failed"))] | length') || return 1
    printf '%s of %s ended\n' "$count" "$1"
    ((count >= $1))
}

all_ended() { ended_at_least "$(objects tasks | jq '.items | length')"; }

# after_ended COUNT COMMAND...: in the middle of the load, whatever the machine's pace
after_ended() {
    local count=$1
    shift
    wait_for "$CRASH_SECONDS" "$count Tasks to end" ended_at_least "$count"
    "$@"
}

# killing WHAT COMMAND...: writes down for the oracle when WHAT was dead, and no more than that
killing() {
    local what=$1 begin
    shift
    begin=$(date +%s.%N)
    "$@"
    printf '{"what":"%s","begin":%s,"end":%s}\n' "$what" "$begin" "$(date +%s.%N)" >>"$LOGS/faults.jsonl"
}

kill_controller() {
    killing controller crash controller
    controller_start
}
kill_broker() {
    killing broker crash broker
    broker_start
}
kill_device() { # kill_device GROUP OPTION...: killed and started again
    killing "$1" device_crash "$1"
    device_start "$@"
}
kill_apiserver() {
    killing apiserver apiserver_crash
    apiserver_begin
    apiserver_back
    wait_for 60 "the controller to go on" controller_goes_on
}
# Where the API server is away for longer than four durations of the lease, which takes no more than a
# slow machine, the controller ends, and is started again as by a kubelet.
controller_goes_on() {
    if is_gone controller; then
        tail -n 5 "$LOGS/controller.log" | grep 'leadership ended: the lease could not be renewed' || return 1
        controller_spawn
    fi
    controller_ready
}

# start_was_read MARK: since audit_mark a worker has read what a start sends; for wait_for
start_was_read() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | grep '"verb":"get"' |
        grep -E "\"$(audit_identities_prefix)(task-)?controller\""
}

# oracle_judge [OPTION...]: counts go to the output, as measured
oracle_judge() {
    local journals=() file verdict status=0
    for file in "$LOGS"/*.journal; do
        journals+=(--journal "$file")
    done
    : >>"$LOGS/faults.jsonl"
    objects tasks >"$LOGS/tasks.json"
    objects proplets >"$LOGS/proplets.json"
    verdict=$("$PYTHON_HOME/bin/python" "$HERE/oracle/oracle.py" --tasks "$LOGS/tasks.json" \
        --proplets "$LOGS/proplets.json" --faults "$LOGS/faults.jsonl" --wire "$LOGS/wire.log" \
        "${journals[@]}" "$@") || status=$?
    ((status == 0)) || fail "the oracle's verdict: $verdict"
    printf 'measured: %s\n' "$(tail -n 1 <<<"$verdict")"
    sed -n 's/^oracle: //p' <<<"$verdict" >"$LOGS/verdict.json"
}
oracle_count() { jq --arg name "$1" '.[$name] // 0' "$LOGS/verdict.json"; }

# crash_verdict [OPTION...]: every Task ended with its own number
crash_verdict() {
    local wrong
    wait_for "$CRASH_SECONDS" "all Tasks to end" all_ended
    wrong=$(objects tasks | jq -c '.items[] | select(.status.results != "\(.spec.inputs[1])") |
        [.metadata.name, .status.phase, .status.results, .status.error]')
    expect_eq "Tasks without their own answer" "" "$wrong"
    oracle_judge "$@"
}
