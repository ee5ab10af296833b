# shellcheck shell=bash
# Folders, processes, waiting. Sourced by lib.sh.
#
# WORK holds everything a run needs and is removed at its end; every process is a group of its own
# with a file WORK/<part>/pids/<name>, so that whoever ends the run can end them all.

POLL=${POLL:-0.1}
POLL_SLOW=0.5
STOP_SECONDS=60

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# test_failure WHAT WHY: a few lines for the end of `make test`, which names the file in TEST_FAILURES
test_failure() {
    [[ -z ${TEST_FAILURES:-} ]] || printf '%s:\n%s\n' "$1" "$(cut -c1-200 <<<"$2" | sed 's/^/    /')" >>"$TEST_FAILURES"
}

now_ms() { date +%s%3N; }

# A part is a set of processes that start and end together: the cluster, one case, the demo.
part_begin() {
    PART=$WORK/$1
    PIDS=$PART/pids
    LOGS=$ROOT/build/e2e/$1
    rm -rf "$LOGS"
    mkdir -p "$PIDS" "$LOGS"
}

# work_begin [keep]: with keep, what it starts survives it, unless it fails
work_begin() {
    # Short: etcd and the API proxy have sockets below it.
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/propeller-e2e.XXXXXX")
    export WORK
    ports_begin
    OWNER=$BASHPID
    trap work_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    [[ ${1:-} != keep ]] || return 0
    # Should this shell be killed without a chance to clean up, somebody else does it.
    # shellcheck disable=SC2016 # expanded by the other shell
    setsid bash -c 'tail --pid="$1" -f /dev/null; source "$2/lib.sh"; WORK=$3; work_clear' \
        watchdog "$OWNER" "$HERE" "$WORK" >/dev/null 2>&1 </dev/null &
    WATCHDOG=$!
    disown
}

# Ports below those that the kernel gives to clients and above those of unit tests (common/tests/process.c). Each run
# has a block of them, whichever folder it runs in: it holds the lock of its block, as do the processes that it starts.
PORTS_FROM=16000
PORTS_TO=31999
PORTS_EACH=1000
ports_begin() {
    local lock
    for ((FIRST_PORT = PORTS_FROM; FIRST_PORT < PORTS_TO; FIRST_PORT += PORTS_EACH)); do
        # What another user made cannot be opened.
        { exec {lock}>"/tmp/propeller-ports-$FIRST_PORT.lock"; } 2>/dev/null || continue
        if flock --nonblock "$lock"; then
            export FIRST_PORT
            return
        fi
        exec {lock}>&-
    done
    die "all blocks of ports from $PORTS_FROM to $PORTS_TO are in use (locks: /tmp/propeller-ports-*.lock)"
}

# A port of this run's block that it has not used before, and on which nothing listens.
free_port() {
    local port i first=$RANDOM # where the search begins, since most of the first ones are used
    for ((i = 0; i < PORTS_EACH; i++)); do
        port=$((FIRST_PORT + (first + i) % PORTS_EACH))
        if mkdir "$WORK/.port-$port" 2>/dev/null && ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s\n' "$port"
            return
        fi
    done
    die "no port from $FIRST_PORT to $((FIRST_PORT + PORTS_EACH - 1)) is free"
}

work_end() {
    local status=$?
    trap - EXIT
    [[ $BASHPID == "$OWNER" ]] || exit "$status"
    work_clear
    [[ -z ${WATCHDOG:-} ]] || kill_group KILL "$WATCHDOG"
    exit "$status"
}

work_clear() {
    local file
    [[ -d $WORK ]] || return 0
    for file in "$WORK"/*/pids/*; do
        [[ -e $file ]] && signal_noted KILL "$file"
    done
    [[ ! -e $WORK/kind-is-ours ]] || kind_down
    for file in "$WORK"/*/node-number; do
        [[ -e $file ]] && CLUSTER=${file%/*} node_clear
    done
    rm -rf "$WORK"
}

# ---- processes ----

kill_group() {
    kill "-$1" -- "-$2" 2>/dev/null || kill "-$1" "$2" 2>/dev/null || true
}

# The number of a process that has ended is given to another one, on a busy machine within minutes: a
# file of PIDS has the time beside it at which the process began.
began_at() { { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null || true; } | cut -d' ' -f20; }
note_process() { printf '%s %s\n' "$2" "$(began_at "$2")" >"$1"; } # note_process FILE PID

# signal_noted SIGNAL FILE: to its group, or to what is left of that, and to nobody else
signal_noted() {
    local pid began now
    read -r pid began <"$2" || return 0
    now=$(began_at "$pid")
    if [[ -z $now ]]; then
        kill "-$1" -- "-$pid" 2>/dev/null || true # who is left keeps the number of the group in use
    elif [[ $now == "$began" ]]; then
        kill_group "$1" "$pid"
    fi
}

# spawn NAME COMMAND...: in the background, as a process group, its output in LOGS/NAME.log
spawn() {
    local name=$1
    shift
    setsid "$@" >>"$LOGS/$name.log" 2>&1 </dev/null &
    note_process "$PIDS/$name" $!
    disown $!
}

# Of the name "controller", which may be pods: the one that leads; it runs while somebody wants it to.
is_in_pods() { [[ $1 == controller ]] && operator_in_pods; }

pid_of() {
    if is_in_pods "$1"; then
        pod_process "$(operator_leader)"
    else
        cut -d' ' -f1 "$PIDS/$1"
    fi
}

# A process whose first thread has ended may have others that still hold its sockets.
is_running() {
    local pid began
    if is_in_pods "$1"; then
        operator_is_running
        return
    fi
    read -r pid began 2>/dev/null <"$PIDS/$1" || return 1
    [[ -n $began && $(began_at "$pid") == "$began" ]] || return 1
    ps -L -o stat= -p "$pid" 2>/dev/null | grep -q '^[^ZX]'
}
is_gone() { ! is_running "$1"; }

# stop NAME [SIGNAL]: waits until it has ended; fails if it had to be killed
stop() {
    local name=$1 signal=${2:-TERM}
    if is_in_pods "$name"; then
        if [[ $signal == KILL ]]; then operator_crash; else operator_stop; fi
    elif [[ $name == controller ]] && operator_embedded; then
        standalone_disembed "$signal"
    else
        stop_process "$name" "$signal"
    fi
}
stop_process() { # NAME SIGNAL
    local name=$1 signal=$2 status=0
    [[ -e $PIDS/$name ]] || return 0
    signal_noted "$signal" "$PIDS/$name"
    wait_for "$STOP_SECONDS" "$name to end" is_gone "$name" || status=1
    signal_noted KILL "$PIDS/$name"
    rm -f "${PIDS:?}/$name"
    return "$status"
}
crash() { stop "$1" KILL; }

# ---- waiting ----

# wait_for SECONDS WHAT COMMAND...: until it succeeds; on time-out says what it printed last
wait_for() {
    local seconds=$1 what=$2 deadline seen poll=$POLL
    shift 2
    deadline=$(($(now_ms) + seconds * 1000))
    while ! seen=$("$@" 2>&1); do
        if (($(now_ms) >= deadline)); then
            printf 'not within %s s: %s; last seen: %s\n' "$seconds" "$what" "${seen:-nothing}" >&2
            return 1
        fi
        sleep "$poll"
        ((deadline - $(now_ms) < seconds * 1000 - 10000)) && poll=$POLL_SLOW
    done
    return 0
}

# A span that must pass because it is what is measured, not because something is hoped for.
clock_reached() { (($(now_ms) >= $1)); }
observe_for() { wait_for $(($1 + 5)) "the end of the observation" clock_reached $(($(now_ms) + $1 * 1000)); }
