#!/usr/bin/env bash
# run.sh [CASE...]: the end-to-end cases (all without arguments; a name or its number is enough)
# against one real control plane. E2E_KUBECONFIG=FILE uses an existing cluster instead,
# CONTROLLER_BIN=FILE a controller built elsewhere.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

chosen_cases() {
    local name file found
    if (($# == 0)); then
        printf '%s\n' "$HERE"/cases/[0-9]*.sh
        return
    fi
    for name in "$@"; do
        found=
        for file in "$HERE"/cases/"$name".sh "$HERE"/cases/"$name"-*.sh; do
            [[ -e $file ]] && found=$file
        done
        [[ -n $found ]] || die "no case '$name' in e2e/cases"
        printf '%s\n' "$found"
    done
}

run_case() {
    local file=$1 name started=$SECONDS log
    name=$(basename "$file" .sh)
    log=$WORK/$name.output
    if bash "$file" >"$log" 2>&1 </dev/null; then
        if [[ -e $WORK/$name/not-applicable ]]; then
            printf '%-28s n/a     %s\n' "$name" "$(<"$WORK/$name/not-applicable")"
            return
        fi
        printf '%-28s ok      %4s s\n' "$name" $((SECONDS - started))
        grep '^measured: ' "$log" | sed 's/^/    /' || true
        passed=$((passed + 1))
        return
    fi
    printf '%-28s FAILED  %4s s\n' "$name" $((SECONDS - started))
    cp "$log" "$ROOT/build/e2e/$name/output.log"
    sed 's/^/    /' "$log" | tail -n 40
    printf '    logs: %s\n' "$ROOT/build/e2e/$name"
    failed=$((failed + 1))
}

# What each identity did in all of it, and whether it was right.
check_identities() {
    local report=$ROOT/build/e2e/identities.txt
    local -a complete=()
    owns_cluster || return 0
    [[ -e $WORK/controller-was-started ]] || return 0
    ((failed > 0 || $1 > 0)) || complete=(--complete)
    if audit_identities "${complete[@]}" >"$report" 2>&1; then
        printf '%-28s ok      %s\n' identities "$(grep -c requests$ "$report") of them; ${report#"$ROOT"/}"
        passed=$((passed + 1))
        return
    fi
    printf '%-28s FAILED\n' identities
    sed 's/^/    /' "$report"
    failed=$((failed + 1))
}

main() {
    local file started=$SECONDS
    local -a cases
    passed=0 failed=0
    mapfile -t cases < <(chosen_cases "$@")
    ((${#cases[@]})) || exit 1
    "$HERE/setup.sh" build run
    [[ $CONTROLLER_BIN != "$ROOT"/* ]] || make -C "$ROOT" --no-print-directory all load
    started=$SECONDS
    work_begin
    wasm_build
    cluster_start >"$WORK/cluster.output" 2>&1 || {
        cat "$WORK/cluster.output" >&2
        die "the control plane did not start; logs: $ROOT/build/e2e/cluster"
    }
    printf 'control plane up in %s s\n' $((SECONDS - started))
    for file in "${cases[@]}"; do
        run_case "$file"
    done
    check_identities $#
    printf 'e2e: %s passed, %s failed\n' "$passed" "$failed"
    [[ -z ${TEST_TALLY:-} ]] || printf 'e2e %s %s\n' "$passed" "$failed" >>"$TEST_TALLY"
    ((failed == 0))
}

main "$@"
