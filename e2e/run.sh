#!/usr/bin/env bash
# run.sh [CASE...]: the end-to-end cases (all without arguments; a name or its number is enough)
# against real control planes: E2E_LANES of them (3; 2 with nodes or little memory), each taking the next
# case when it is free with one. E2E_CLUSTER=local adds a node whose pods run, kind are three of them, existing with
# E2E_KUBECONFIG=FILE is somebody's cluster; E2E_OPERATOR=pods|process|embedded says what
# the operator is there.
# CONTROLLER_BIN=FILE is a controller built elsewhere, E2E_SHUFFLE=SEED another order of the cases.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Against hangs only: a multiple of what the longest takes on a busy machine.
export CASE_SECONDS=${CASE_SECONDS:-1500}

# in_order: the cases in stdin as they are, or in the order of a seed, so that it is found out what
# depends on the case before.
in_order() {
    [[ -n ${E2E_SHUFFLE:-} ]] || exec cat
    printf 'cases in the order of E2E_SHUFFLE=%s\n' "$E2E_SHUFFLE" >&2
    awk -v seed="$E2E_SHUFFLE" 'BEGIN { srand(seed) } { printf "%.9f %s\n", rand(), $0 }' | sort -n | cut -d' ' -f2-
}

# Takes the first of those that wait; fails if there is none.
next_case() {
    local file
    exec {lock}>"$WORK/queue.lock"
    flock "$lock"
    read -r file <"$WORK/queue" || return 1
    sed -i 1d "$WORK/queue"
    exec {lock}>&-
    printf '%s\n' "$file"
}

# One line in $WORK/verdicts, and its report at once, since the lanes print to the same place.
run_case() { # FILE
    local file=$1 name started=$SECONDS log verdict=ok status=0
    name=$(basename "$file" .sh)
    log=$WORK/$name.output
    # In the group of its lane, whose end is its own.
    timeout --foreground --kill-after=120 "$CASE_SECONDS" bash "$file" >"$log" 2>&1 </dev/null || status=$?
    ((status == 0)) || verdict=FAILED
    ((status != 124)) || printf 'not ended within %s s (CASE_SECONDS)\n' "$CASE_SECONDS" >>"$log"
    [[ $verdict == FAILED || ! -e $WORK/$name/not-applicable ]] || verdict=n/a
    printf '%s %s\n' "$verdict" "$name" >>"$WORK/verdicts"
    report_case "$verdict" "$name" $((SECONDS - started)) "$log" >"$WORK/$name.report"
    cat "$WORK/$name.report"
}

report_case() { # VERDICT NAME SECONDS LOG
    case $1 in
    n/a) printf '%-28s n/a     %s\n' "$2" "$(<"$WORK/$2/not-applicable")" ;;
    ok)
        printf '%-28s ok      %4s s\n' "$2" "$3"
        grep '^measured: ' "$4" | sed 's/^/    /' || true
        ;;
    FAILED)
        printf '%-28s FAILED  %4s s\n' "$2" "$3"
        cp "$4" "$ROOT/build/e2e/$2/output.log"
        sed 's/^/    /' "$4" | tail -n 40
        printf '    logs: %s; it followed on %s\n' "$ROOT/build/e2e/$2" "$BEFORE"
        test_failure "e2e $2, after $BEFORE" "$(tail -n 12 "$4")"
        ;;
    esac
}

lane() { # PART
    local file started=$SECONDS BEFORE="nothing"
    cluster_start "$1" >"$WORK/$1.output" 2>&1 || {
        cat "$WORK/$1.output" >&2
        die "the control plane did not start; logs: $ROOT/build/e2e/$1"
    }
    printf 'control plane up in %s s\n' $((SECONDS - started))
    while file=$(next_case); do
        run_case "$file"
        BEFORE=$(basename "$file" .sh)
    done
}

# A case waits for most of its time. A control plane with what a case adds takes about 1 GiB.
lanes_here() {
    local free_kib
    free_kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    if has_standalone || { [[ ${E2E_CLUSTER:-control-plane} == control-plane ]] && ((free_kib >= 4 << 20)); }; then
        echo 3
    else
        echo 2
    fi
}

# run_lanes COUNT: fails if one of them could not go on to the end
run_lanes() {
    local i status=0
    local -a pids=()
    mkdir -p "$WORK/lanes/pids"
    for ((i = 1; i <= $1; i++)); do
        set -m # a process group of its own, so that it ends with its case
        lane "cluster-$i" </dev/null &
        set +m
        pids+=($!)
        note_process "$WORK/lanes/pids/$i" $!
    done
    for i in "${pids[@]}"; do
        wait "$i" || status=1
    done
    rm -rf "$WORK/lanes"
    return "$status"
}

count() { grep -c "^$1 " "$WORK/verdicts" || true; }

# check_identities CHOSEN: what each identity did in all of it, and whether it was right; which rights nobody uses
# can only be told where all cases that use one apply, and some speak for the pods that are here
check_identities() {
    local report=$ROOT/build/e2e/identities.txt verdict=ok
    local -a complete=()
    cluster_is_ours && ! has_standalone || return 0
    [[ -e $WORK/controller-was-started ]] || return 0
    (($(count FAILED) > 0 || $1 > 0)) || operator_in_pods || complete=(--complete)
    audit_identities "${complete[@]}" "$WORK"/cluster-*/ >"$report" 2>&1 || verdict=FAILED
    printf '%s identities\n' "$verdict" >>"$WORK/verdicts"
    if [[ $verdict == ok ]]; then
        printf '%-28s ok      %s\n' identities "$(grep -c requests$ "$report") of them; ${report#"$ROOT"/}"
    else
        printf '%-28s FAILED\n' identities
        sed 's/^/    /' "$report"
        test_failure "e2e identities" "$(tail -n 12 "$report")"
    fi
}

# What the pods had at the end of the cases, each with its own.
report_memory() {
    [[ -s $WORK/memory ]] || return 0
    awk '$2 == "VmRSS" { name = $1; size = $3 / 1024; count[name]++; sum[name] += size
             if (size > most[name]) most[name] = size }
         END { for (name in count) printf "memory of the pods, %s: VmRSS %.1f MiB on average, %.1f MiB at most, of %d\n",
             name, sum[name] / count[name], most[name], count[name] }' "$WORK/memory" | sort
}

main() {
    local lanes=${E2E_LANES:-$(lanes_here)} failed
    local -a cases
    [[ ${E2E_SHUFFLE:-0} =~ ^[0-9]+$ ]] || die "E2E_SHUFFLE is '$E2E_SHUFFLE', it must be a number"
    [[ $CASE_SECONDS =~ ^[0-9]+$ ]] || die "CASE_SECONDS is '$CASE_SECONDS', it must be a number"
    [[ $lanes =~ ^[1-9]$ ]] || die "E2E_LANES is '$lanes', it must be from 1 to 9"
    mapfile -t cases < <(chosen_cases "$@")
    ((${#cases[@]})) || exit 1
    cluster_check
    printf 'e2e: E2E_CLUSTER=%s, the operator as %s\n' "$E2E_CLUSTER" "$E2E_OPERATOR"
    if has_standalone; then "$HERE/setup.sh" build device; else "$HERE/setup.sh" build run; fi
    ! has_local_node || "$HERE/setup.sh" node
    ! has_kind || "$HERE/setup.sh" kind
    [[ $CONTROLLER_BIN != "$ROOT"/* ]] || make -C "$ROOT" --no-print-directory all load
    work_begin
    wasm_build
    ! operator_in_pods || operator_image
    : >"$WORK/verdicts"
    printf '%s\n' "${cases[@]}" | in_order >"$WORK/queue"
    # Two controllers in one cluster would look after each other's objects.
    owns_cluster || has_standalone || lanes=1
    ((lanes <= ${#cases[@]})) || lanes=${#cases[@]}
    run_lanes "$lanes" || {
        printf 'FAILED lane\n' >>"$WORK/verdicts"
        test_failure "e2e" "a lane did not go on to the end"
    }
    [[ ! -s $WORK/queue ]] || printf 'FAILED queue: %s cases did not run\n' "$(wc -l <"$WORK/queue")" |
        tee -a "$WORK/verdicts"
    check_identities $#
    report_memory
    failed=$(count FAILED)
    printf 'e2e: %s passed, %s failed\n' "$(count ok)" "$failed"
    [[ -z ${TEST_TALLY:-} ]] || printf 'e2e:%s %s %s\n' "${E2E_CLUSTER:-control-plane}" "$(count ok)" "$failed" >>"$TEST_TALLY"
    ((failed == 0))
}

main "$@"
