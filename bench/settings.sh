# shellcheck shell=bash
# The variables of the benchmark, looked at before anything is built or measured: a scenario would find out
# about a wrong one after an hour, or measure something else. Needs `die`.

BENCH_NUMBERS=(REPEATS JOBS PASSING OPENS_AFTER DEVICES LARGE SAMPLES TASKS VIEWERS PROPLETS MODULES MODULE_KIB BURST RELIST FEW MANY FAILOVERS
    INGEST_PROPLETS INGEST_SECONDS IDLE_SECONDS MACHINES NODES SETTLE_SECONDS STEADY_SECONDS STANDALONE_SECONDS WEBHOOK_SECONDS)
BENCH_LISTS=(THROUGHPUT RATES SIZES)
BENCH_GROWING=(OBJECTS STANDALONE) # each number adds to what is there
BENCH_COMMANDS=(PEER PEER_WEBHOOK)
BENCH_OTHERS=(PEER_PATH WHO FIGURES)

settings_check() {
    local name
    for name in "${BENCH_NUMBERS[@]}"; do
        setting_matches "$name" '[1-9][0-9]{0,6}' "a number of at least 1"
    done
    for name in "${BENCH_LISTS[@]}"; do
        setting_matches "$name" ' *[1-9][0-9]{0,6}( +[1-9][0-9]{0,6})* *' "numbers of at least 1 with blanks between them"
    done
    for name in "${BENCH_GROWING[@]}"; do
        setting_grows "$name"
    done
    for name in "${BENCH_COMMANDS[@]}"; do
        setting_is_command "$name"
    done
    settings_known
}

# An empty one is as good as none.
setting_matches() { # setting_matches NAME PATTERN WHAT
    local variable=BENCH_$1
    local value=${!variable:-}
    [[ -z $value || $value =~ ^($2)$ ]] || die "$variable is '$value', must be $3"
}

setting_grows() {
    local variable=BENCH_$1 number last=-1
    local value=${!variable:-}
    setting_matches "$1" ' *(0|[1-9][0-9]{0,6})( +[1-9][0-9]{0,6})* *' "growing numbers with blanks between them"
    for number in $value; do
        ((number > last)) || die "$variable is '$value', must be growing numbers with blanks between them"
        last=$number
    done
}

setting_is_command() {
    local variable=BENCH_$1
    local -a words
    read -ra words <<<"${!variable:-}"
    ((${#words[@]} == 0)) || type -P "${words[0]}" >/dev/null ||
        die "$variable begins with '${words[0]}', must begin with a program that can be run"
}

# A name with a slip of the pen would leave the default in force.
settings_known() {
    local name known
    known=" ${BENCH_NUMBERS[*]} ${BENCH_LISTS[*]} ${BENCH_GROWING[*]} ${BENCH_COMMANDS[*]} ${BENCH_OTHERS[*]} "
    for name in $(compgen -e BENCH_); do
        [[ $known == *" ${name#BENCH_} "* ]] ||
            die "$name is no variable of the benchmark; docs/contributing/benchmarks.md lists them"
    done
}
