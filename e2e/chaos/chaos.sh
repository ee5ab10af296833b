# shellcheck shell=bash disable=SC2034 # some of it is used by the library
# A run of chaos: three controllers, broker, API server, 50 devices, a stream of Tasks, and faults by
# seed (plan.py). README.md says what is checked. After lib.sh and case_begin:
#
#   chaos_run SEED DURATION [PLAN-OPTION...]

# shellcheck source=e2e/chaos/inject.sh
source "$HERE/chaos/inject.sh"

# A slow machine must not look like a leader that stands still, and a pause must be longer than that.
CHAOS_TIMES=(--leader-elect-lease-duration 6s --leader-elect-renew-deadline 4s
    --leader-elect-retry-period 500ms --last-seen-threshold 4s --start-confirm-timeout 5s)
CHAOS_REPLICAS=(a b c)
# Light devices behind two links of the network, which can be cut, and real ones with a link of their own.
CHAOS_NORTH=25
CHAOS_SOUTH=22
CHAOS_REAL=3
CHAOS_TASKS_EACH=2
CHAOS_PATIENCE=${CHAOS_PATIENCE:-180} # for what shows no progress; not a measure

declare -A CHAOS_TARGET=() # fault number -> replica
declare -A CHAOS_LED=()    # fault number -> whether its replica was found to lead
declare -A CHAOS_DOWN=()   # replica -> number of the fault that killed it
declare -A CHAOS_COORDINATOR=() # replica -> where it listens for updates
declare -A CHAOS_ENDS=()   # number of a fault that has begun -> "DUE-MS KIND ARGUMENT..." of its end

chaos_note() { # chaos_note FILE JQ-OPTION... : a line of LOGS/FILE.jsonl with the time
    local file=$1
    shift
    jq -nc --arg now "$(date +%s.%N)" '{time: ($now | tonumber)} + $ARGS.named | del(.now)' "$@" >>"$LOGS/$file.jsonl"
}

# ---- the world ----

chaos_run() {
    local seed=$1 duration=$2
    shift 2
    "$PYTHON_HOME/bin/python" "$HERE/chaos/plan.py" --seed "$seed" --duration "$duration" "$@" faults >"$LOGS/faults.plan"
    "$PYTHON_HOME/bin/python" "$HERE/chaos/plan.py" --seed "$seed" --duration "$duration" "$@" tasks >"$LOGS/tasks.plan"
    say "chaos: seed $seed, $duration s, $(grep -c ' begin ' "$LOGS/faults.plan") faults, $(wc -l <"$LOGS/tasks.plan") Tasks"
    say "chaos: again with: make chaos SEED=$seed DURATION=$duration${CHAOS_FAULTS:+ FAULTS=$CHAOS_FAULTS}${CHAOS_TASKS:+ TASKS=$CHAOS_TASKS}"
    chaos_world
    chaos_stream
    chaos_faults
    chaos_heal
    chaos_drain
    chaos_verdict
}

chaos_world() {
    mapfile -t devices < <(seq -f 'device-%g' $((CHAOS_NORTH + CHAOS_SOUTH + CHAOS_REAL)))
    broker_prepare "${devices[@]}"
    # Who connected and published, in the broker's own order.
    printf '\nlog_type all\n' >>"$BROKER/mosquitto.conf"
    chaos_broker_start
    chaos_record
    controller_prepare
    inject_prepare
    chaos_network
    oci_start
    base64 -d <"$WORK/wasm/nap" >"$PART/nap.wasm"
    oci_push chaos/nap 1 "$PART/nap.wasm"
    chaos_controllers
    proplet_json worker-NUMBER device-NUMBER \
        "$(jq -nc --argjson tasks $CHAOS_TASKS_EACH '{spec: {external: {maxTasks: $tasks}}}')" |
        add_numbered ${#devices[@]}
    CHANNEL=chan-2 add_proplet elsewhere nobody
    chaos_devices
    wait_for 120 "all Proplets to run" phase_count_is proplets Running ${#devices[@]}
}

chaos_broker_start() {
    spawn broker mosquitto -c "$BROKER/mosquitto.conf"
    wait_for 60 "the broker to answer" broker_answers
}

# What the oracle reads, also of the time while the recorder has no connection. A marker may go by
# either channel.
chaos_record() {
    local base="m/$DOMAIN/c/$CHANNEL/control"
    spawn wire mosquitto_sub -h 127.0.0.1 -p "$BROKER_PORT" -u "$OBSERVER" -P "$(secret_of "$OBSERVER")" \
        -i recorder -q 1 -c -F '%U %t %p' -t "$base/manager/start" -t "$base/proplet/results" \
        -t "m/$DOMAIN/c/+/control/controller/marker" -t "m/$DOMAIN/c/$CHANNEL/probe"
    wait_for 30 "the recorder" wire_answers
}

# link NAME HOST:PORT: sets LINK_PORT[NAME]
declare -A LINK_PORT=()
CHAOS_LINKS=()
link() {
    LINK_PORT[$1]=$(free_port)
    CHAOS_LINKS+=("$1=${LINK_PORT[$1]}:$2")
}

chaos_network() {
    local letter group
    for letter in "${CHAOS_REPLICAS[@]}"; do
        link "$letter-api" "127.0.0.1:$APISERVER_PORT"
        link "$letter-broker" "127.0.0.1:$BROKER_PORT"
    done
    for group in north south real; do
        link "$group" "127.0.0.1:$BROKER_PORT"
    done
    mkfifo "$PART/links.control"
    spawn links "$PYTHON_HOME/bin/python" -B "$HERE/proxy/links.py" --control "$PART/links.control" \
        --journal "$LOGS/links.jsonl" --certificate "$CLUSTER/apiserver.crt" --key "$CLUSTER/apiserver.key" \
        --authority "$CLUSTER/ca.crt" "${CHAOS_LINKS[@]}"
    wait_for 30 "the network" links_have '.event == "listening"' 1
}

links_have() {
    local count
    count=$(jq -Rc "fromjson? | select($1)" "$LOGS/links.jsonl" | wc -l)
    printf '%s of %s lines where %s\n' "$count" "$2" "$1"
    ((count >= $2))
}

# links_say VERB NAMES [ARGUMENT...]: returns when it has been obeyed
links_say() {
    local before
    before=$(jq -Rc 'fromjson? | select(.event == "control")' "$LOGS/links.jsonl" | wc -l)
    # shellcheck disable=SC2016 # expanded by the other shell
    timeout 30 bash -c 'printf "%s\n" "$1" >"$2"' say "$*" "$PART/links.control"
    wait_for 30 "the network to obey '$*'" links_have '.event == "control"' $((before + 1))
}

# links_of SUFFIX: a-SUFFIX,b-SUFFIX,c-SUFFIX
links_of() {
    local names
    printf -v names ",%s-$1" "${CHAOS_REPLICAS[@]}"
    printf '%s\n' "${names:1}"
}

chaos_controllers() {
    local letter token
    if has_standalone; then
        token=$(standalone_token)
    else
        token=$(k create token propeller-controller --namespace "$SYSTEM_NS" --duration 24h)
    fi
    for letter in "${CHAOS_REPLICAS[@]}"; do
        kubeconfig "$PART/$letter.kubeconfig" "$CLUSTER/ca.crt" "token: $token" \
            "https://127.0.0.1:${LINK_PORT[$letter-api]}"
        # For a process whose clock is a day behind, no certificate of this run is valid yet.
        sed -i 's/certificate-authority-data: [^}]*/insecure-skip-tls-verify: true/' "$PART/$letter.kubeconfig"
        CHAOS_COORDINATOR[$letter]=127.0.0.1:$(free_port)
        chaos_replica_start "$letter"
    done
    wait_for 90 "one of them to lead" one_serves "${CHAOS_REPLICAS[@]}"
}

chaos_replica_start() {
    local CONTROLLER_BIN=$PART/controller-$1
    : >"$WORK/controller-was-started"
    replica_start "$1" "${CHAOS_TIMES[@]}" --kubeconfig "$PART/$1.kubeconfig" \
        --coordinator-bind-address "${CHAOS_COORDINATOR[$1]}" \
        --coordinator-url "http://${CHAOS_COORDINATOR[$1]}" \
        --mqtt-address "tcp://127.0.0.1:${LINK_PORT[$1-broker]}" \
        --module-registries "http://127.0.0.1:$OCI_PORT" --module-cache-dir "$PART/modules-$1"
    chaos_note replicas --arg event started --arg replica "$1"
}

# One process for each link; QoS 1, since a device that asks for QoS 2 in a clean session is told of
# results that the broker has thrown away when their connection ended in between.
chaos_devices() {
    local group coordinators
    printf -v coordinators ',%s' "${CHAOS_COORDINATOR[@]}"
    coordinators=${coordinators:1}
    seq -f 'device-%g' "$CHAOS_NORTH" >"$PART/north"
    seq -f 'device-%g' $((CHAOS_NORTH + 1)) $((CHAOS_NORTH + CHAOS_SOUTH)) >"$PART/south"
    seq -f 'device-%g' $((CHAOS_NORTH + CHAOS_SOUTH + 1)) ${#devices[@]} >"$PART/real"
    for group in north south real; do
        local scripted=(--scripted)
        [[ $group != real ]] || scripted=()
        BROKER_PORT=${LINK_PORT[$group]} device_start "$group" --identity-file "$PART/$group" \
            --qos 1 --alive-interval 1.5 --metrics-interval 30 --coordinators "$coordinators" "${scripted[@]}"
    done
    spawn hostile "$PYTHON_HOME/bin/python" "$HERE/device/hostile.py" --broker "127.0.0.1:$BROKER_PORT" \
        --domain "$DOMAIN" --channel "$CHANNEL" --elsewhere chan-2 --user "$OBSERVER" --per-start 3 \
        --no-large --passwords "$BROKER/identities" --journal "$LOGS/hostile.jsonl"
    for group in north south real; do
        wait_for 60 "the devices of $group" all_connected "$group" "$(wc -l <"$PART/$group")"
    done
}

chaos_stream() {
    CHAOS_BEGIN=$(now_ms)
    spawn stream "$PYTHON_HOME/bin/python" -B "$HERE/chaos/stream.py" --socket "$CLUSTER/api" \
        --namespace "$NS" --plan "$LOGS/tasks.plan" --module "$WORK/wasm/nap" \
        --reference "127.0.0.1:$OCI_PORT/chaos/nap:1" --journal "$LOGS/stream.jsonl"
}

# ---- faults ----

# A replica that ended by itself is started again, as by a kubelet.
chaos_supervise() {
    local letter status
    for letter in "${CHAOS_REPLICAS[@]}"; do
        [[ -z ${CHAOS_DOWN[$letter]:-} ]] || continue
        is_gone "replica-$letter" || continue
        status=$(cat "$PART/replica-$letter.exit" 2>/dev/null || printf '%s\n' -1)
        chaos_note replicas --arg event ended --arg replica "$letter" --argjson status "$status"
        chaos_replica_start "$letter"
    done
}

# As wait_for, while replicas that end are started again; that must not happen in a subshell. On a slow machine much
# takes long, so it fails only if what COMMAND prints does not change for CHAOS_PATIENCE seconds.
chaos_wait() { # WHAT COMMAND...
    local what=$1 deadline seen last=
    shift
    deadline=$(($(now_ms) + CHAOS_PATIENCE * 1000))
    while
        chaos_supervise
        ! seen=$("$@" 2>"$PART/wait.errors")
    do
        if [[ -n $seen && $seen != "$last" ]]; then
            deadline=$(($(now_ms) + CHAOS_PATIENCE * 1000)) last=$seen
        elif (($(now_ms) >= deadline)); then
            printf 'no progress in %s s: %s; last seen: %s\n' "$CHAOS_PATIENCE" "$what" "$last $(<"$PART/wait.errors")" >&2
            return 1
        fi
        sleep "$POLL_SLOW"
    done
}

# Everything of the plan, each fault for as long as planned. What begins late, because nobody led or
# the machine is slow, puts off all that has not begun.
chaos_faults() {
    local at number step kind arguments due line
    local -A length=()
    local -a begins=()
    while read -r at number step kind arguments; do
        at=$((10#${at/./} * 100))
        case $step in
        begin) begins+=("$at $number $kind $arguments") length[$number]=-$at ;;
        end) length[$number]=$((at + length[$number])) ;;
        esac
    done <"$LOGS/faults.plan"
    for line in "${begins[@]}"; do
        read -r at number kind arguments <<<"$line"
        due=$((CHAOS_BEGIN + at))
        until clock_reached "$due"; do
            chaos_go_on
        done
        chaos_end_due # before another one of the same part begins
        while ((CHAOS_OVERDUE)); do
            chaos_go_on
        done
        # shellcheck disable=SC2086 # words
        fault_begin "$number" "$kind" $arguments
        CHAOS_BEGIN=$(($(now_ms) - at))
        CHAOS_ENDS[$number]="$((CHAOS_BEGIN + at + length[$number])) $kind $arguments"
        chaos_tell begin "$number" "$kind" "$arguments"
    done
    while ((${#CHAOS_ENDS[@]})); do
        chaos_go_on
    done
}

chaos_tell() { # STEP NUMBER KIND ARGUMENTS
    local target=${CHAOS_TARGET[$2]:-}
    printf '%6s s  %-5s %2s %s\n' "$((($(now_ms) - CHAOS_BEGIN) / 1000))" "$1" "$2" \
        "$3${4:+ $4}${target:+ (replica $target)}"
    chaos_note timeline --arg step "$1" --argjson number "$2" --arg kind "$3" \
        --arg target "$target" --argjson led "${CHAOS_LED[$2]:-false}"
}

# Ends the faults whose time is over. CHAOS_OVERDUE: how many of them cannot end yet.
chaos_end_due() {
    local number due kind arguments
    CHAOS_OVERDUE=0
    for number in "${!CHAOS_ENDS[@]}"; do
        read -r due kind arguments <<<"${CHAOS_ENDS[$number]}"
        clock_reached "$due" || continue
        # shellcheck disable=SC2086 # words
        if ! clock_reached $((due + CHAOS_PATIENCE * 1000)) && ! fault_has_met "$number" "$kind" $arguments; then
            CHAOS_OVERDUE=$((CHAOS_OVERDUE + 1))
            continue
        fi
        unset "CHAOS_ENDS[$number]"
        # shellcheck disable=SC2086 # words
        fault_end "$number" "$kind" $arguments
        chaos_tell end "$number" "$kind" "$arguments"
        unset "CHAOS_TARGET[$number]"
    done
}

# What goes on while the next fault waits.
chaos_go_on() {
    chaos_supervise
    chaos_end_due
    sleep "$POLL_SLOW"
}

# choose leader|standby NUMBER: CHAOS_TARGET[NUMBER], one that runs and is not in another fault
chaos_choose() {
    local role=$1 number=$2 letter other leader candidates deadline
    deadline=$(($(now_ms) + CHAOS_PATIENCE * 1000))
    while
        candidates=()
        for other in "${CHAOS_REPLICAS[@]}"; do
            [[ " ${CHAOS_TARGET[*]} " == *" $other "* ]] || candidates+=("$other")
        done
        leader=$(leader_of "${candidates[@]}") || leader=
        letter=$leader
        if [[ $role == standby ]]; then
            letter=
            for other in "${candidates[@]}"; do
                [[ $other == "$leader" ]] || letter=$other
            done
        fi
        [[ -z $letter ]]
    do
        # Leadership passes from one to another, or each is in a fault that ends.
        (($(now_ms) < deadline)) || fail "fault $number: no $role within $CHAOS_PATIENCE s"
        chaos_go_on
    done
    CHAOS_TARGET[$number]=$letter
    [[ $letter != "$leader" ]] || CHAOS_LED[$number]=true
}

chaos_kill_replica() { # NUMBER LETTER
    crash "replica-$2"
    CHAOS_DOWN[$2]=$1
    chaos_note replicas --arg event killed --arg replica "$2"
}

fault_begin() {
    local number=$1 kind=$2
    shift 2
    case $kind in
    kill-leader | pause-leader | cut-controller-* | *-then-leader | step-leader-clock) chaos_choose leader "$number" ;;
    kill-standby | pause-standby) chaos_choose standby "$number" ;;
    esac
    local letter=${CHAOS_TARGET[$number]:-}
    case $kind in
    kill-leader | kill-standby) chaos_kill_replica "$number" "$letter" ;;
    pause-leader | pause-standby) replica_signal "$letter" STOP ;;
    kill-broker) killing broker crash broker ;;
    kill-registry) crash oci ;;
    kill-apiserver | kill-apiserver-then-leader) killing apiserver in_cluster crash apiserver ;;
    cut-controller-broker) links_say "$1" "$letter-broker" ;;
    cut-controller-apiserver) links_say "$1" "$letter-api" ;;
    cut-devices-broker) links_say "$1" "$2" ;;
    reset-connections) links_say reset '*' ;;
    slow-apiserver) links_say slow "$(links_of api)" "$1" ;;
    slow-broker) links_say slow "$(links_of broker),north,south" "$1" ;;
    too-many-requests | server-errors) links_say errors "$(links_of api)" "$1" "$2" ;;
    lost-answers) links_say lose "$(links_of api)" "$1" ;;
    missing-rights) inject_missing_rights "$1" ;;
    delete-federatedjob) inject_job "$number" ;;
    retained-messages) inject_retained ;;
    huge-messages) publish_huge_everywhere device-1 ;;
    step-leader-clock) inject_clock_step "$letter" "$1" ;;
    close-proplets | kill-switch | reclaim) inject_close "$kind" "$@" ;;
    *) fail "no fault of kind '$kind'" ;;
    esac
}

# Whether a fault may end: what it is meant for has come, which other faults may put off.
fault_has_met() { # NUMBER KIND ARGUMENT...
    case $2 in
    delete-federatedjob) inject_job_runs "$1" >/dev/null ;;
    close-proplets | kill-switch) (($(inject_closed_count "${@: -1}"))) ;;
    reclaim) inject_is_reclaimed "${@:3}" ;;
    esac
}

fault_end() {
    local number=$1 kind=$2
    shift 2
    local letter=${CHAOS_TARGET[$number]:-}
    case $kind in
    kill-leader | kill-standby)
        unset "CHAOS_DOWN[$letter]"
        chaos_replica_start "$letter"
        ;;
    pause-leader | pause-standby) replica_signal "$letter" CONT ;;
    kill-broker) chaos_broker_start ;;
    kill-registry) oci_serve ;;
    kill-apiserver) in_cluster cluster_apiserver ;;
    kill-apiserver-then-leader)
        chaos_kill_replica "$number" "$letter"
        in_cluster cluster_apiserver
        unset "CHAOS_DOWN[$letter]"
        chaos_replica_start "$letter"
        ;;
    cut-controller-broker) links_say heal "$letter-broker" "$1" ;;
    cut-controller-apiserver) links_say heal "$letter-api" "$1" ;;
    cut-devices-broker) links_say heal "$2" "$1" ;;
    slow-apiserver) links_say heal "$(links_of api)" slow ;;
    slow-broker) links_say heal "$(links_of broker),north,south" slow ;;
    too-many-requests | server-errors | lost-answers) links_say heal "$(links_of api)" errors ;;
    missing-rights) inject_rights "$number" ;;
    delete-federatedjob) inject_job_deletion "$number" ;;
    # A controller that connects again subscribes again, and the broker sends it the retained messages.
    retained-messages) links_say reset "$(links_of broker)" ;;
    huge-messages) chaos_memory ;;
    step-leader-clock) inject_clock_back "$number" "$letter" ;;
    close-proplets | kill-switch | reclaim) inject_open "$number" "$kind" "$@" ;;
    esac
}

# ---- the end ----

chaos_heal() {
    links_say heal '*'
    chaos_wait "the API server" api /readyz
    chaos_wait "one controller to lead" one_serves "${CHAOS_REPLICAS[@]}"
}

chaos_drain() {
    chaos_wait "the stream of Tasks to end" stream_is_done
    chaos_wait "all Tasks to end, and deleted ones to be gone" chaos_is_quiet
    chaos_wait "deleted jobs to be gone" chaos_none_left federatedjobs trainingrounds
}
stream_is_done() {
    grep -q '"event": "done"' "$LOGS/stream.jsonl" || ! tail -n 2 "$LOGS/stream.jsonl" "$LOGS/stream.log"
}
# chaos_tasks: "NAME PHASE" of each Task. The objects of 2,000 Tasks are 11 MB, for which a busy API server needs a minute.
chaos_tasks() {
    api "/apis/$API/namespaces/$NS/tasks?includeObject=None" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' |
        jq -r '([.columnDefinitions[].name] | index("Phase")) as $phase | .rows[]? | "\(.cells[0]) \(.cells[$phase] // "pending")"'
}
# All have ended, and there is none that was deleted, or belongs to a job.
chaos_is_quiet() {
    local waiting
    jq -r 'select(.event == "deleted") | .name' "$LOGS/stream.jsonl" >"$PART/deleted"
    inject_give_back >/dev/null || return 1
    waiting=$(chaos_tasks | awk '
        FILENAME != "-" { deleted[$1]; next }
        $2 !~ /^(completed|failed|skipped)$/ || $1 in deleted || $1 !~ /^task-/ { if (count++ < 5) names = names " " $1 }
        END { print count + 0 " wait:" names }' "$PART/deleted" -) || return 1
    printf '%s\n' "$waiting"
    [[ $waiting == "0 wait"* ]]
}

chaos_none_left() { # KIND...
    local kind count
    for kind in "$@"; do
        count=$(api "/apis/$API/namespaces/$NS/$kind?limit=1" |
            jq '(.items | length) + (.metadata.remainingItemCount // 0)') || return 1
        printf '%s %s are left\n' "$count" "$kind"
        ((count == 0)) || return 1
    done
}

chaos_no_checkpoints() {
    local count
    count=$(api "/api/v1/namespaces/$NS/configmaps?labelSelector=${API%/*}/model-owner" | jq '.items | length') || return 1
    printf '%s ConfigMaps are left\n' "$count"
    ((count == 0))
}

# The most memory that each replica ever had.
chaos_memory() {
    local letter process
    for letter in "${CHAOS_REPLICAS[@]}"; do
        process=$(pgrep -P "$(pid_of "replica-$letter")") || continue # killed
        chaos_note replicas --arg event memory --arg replica "$letter" --argjson kib \
            "$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$process/status")"
    done
}

# What there is is kept and deleted, the controllers are stopped, and everything is compared.
chaos_verdict() {
    local letter status=0
    api "/apis/$API/namespaces/$NS/tasks" --max-time "$CHAOS_PATIENCE" >"$LOGS/tasks.json"
    objects proplets >"$LOGS/proplets.json"
    kn delete tasks,proplets --all --wait=false >/dev/null
    chaos_wait "all objects to be gone" chaos_none_left tasks proplets
    chaos_wait "checkpoints to be gone" chaos_no_checkpoints
    chaos_memory
    for letter in "${CHAOS_REPLICAS[@]}"; do
        replica_signal "$letter" TERM
        wait_for 60 "replica $letter to end" test -e "$PART/replica-$letter.exit"
        chaos_note replicas --arg event stopped --arg replica "$letter" \
            --argjson status "$(<"$PART/replica-$letter.exit")"
    done
    stop wire
    "$PYTHON_HOME/bin/python" -B "$HERE/chaos/judge.py" "$LOGS" --client "$CONTROLLER_USER" || status=$?
    ((status == 0)) || fail "what chaos found is above"
}
