# shellcheck shell=bash
# What comes before each step of steps.sh.

export GROUP=propeller.propeller.abstractmachines.fr

# record WHAT [STATUS]: the standard input is compared, too
record() {
    local number
    printf -v number %03d "$(find "$RECORDS" -name '*.what' | wc -l)"
    cat >"$RECORDS/$number.out"
    printf '%s\n' "${2:-0}" >"$RECORDS/$number.code"
    printf '%s\n' "$1" >"$RECORDS/$number.what"
}
# kubectl: what it prints is compared; `plain` is the same without, `newest` a version that knows --subresource
kubectl() {
    local status=0 me=$BASHPID
    "$KUBECTL" "$@" >"out.$me" 2>"err.$me" || status=$?
    { cat "out.$me" && sed "s/^/stderr: /" "err.$me"; } | record "kubectl $*" "$status"
    cat "out.$me"
    return "$status"
}
plain() { "$KUBECTL" "$@"; }
newest() { "$NEWEST" "$@"; }

# editor SCRIPT: an editor that runs this sed script, and changes nothing when it is asked again; what kubectl has
# said in the file, and what it said that second time, is in the file `edited`
editor() {
    cat >editor <<SH
#!/bin/sh
grep '^#' "\$1" >>edited
[ -e once ] && exit 0
: >once
exec sed -i '$1' "\$1"
SH
    chmod +x editor
    rm -f once edited
    export KUBE_EDITOR=$PWD/editor
}

# watching ARGUMENT...: kubectl get --watch in the background; `appears PATTERN` waits for a line of it, `watched`
# ends and records it
watching() {
    "$KUBECTL" get --watch "$@" >seen 2>&1 &
    WATCH=$!
}
appears() {
    local i
    for ((i = 0; i < 600; i++)); do
        ! grep -qE -- "$1" seen || return 0
        sleep 0.1
    done
    printf 'did not appear: %s\n' "$1" | record "a watch"
}
watched() {
    kill "$WATCH"
    record "a watch" <seen
}

# Times among what is compared would be the same in one diff and not in another one.
cat >differ <<'SH'
#!/bin/sh
sed -i '/^    time: /d' "$1"/* "$2"/*
exec diff -u -N "$1" "$2"
SH
chmod +x differ
PATH=$PWD:$PATH
export KUBECTL_EXTERNAL_DIFF=differ

# waiting ARGUMENT...: kubectl wait in the background, as soon as it watches; `waited` records how it ended
waiting() {
    : >requests # of the one before
    "$KUBECTL" wait -v=6 --timeout=120s "$@" >waited 2>requests &
    WAIT=$!
    until grep -q 'watch=true' requests || ! kill -0 "$WAIT"; do sleep 0.1; done
}
waited() {
    local status=0
    wait "$WAIT" || status=$?
    record "a wait" "$status" <waited
}

# status KIND NAME FIELDS: as the controller sets it
status() { newest patch "$1" "$2" --subresource=status --type=merge -p "{\"status\": $3}" >/dev/null; }
configmap() { printf '{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s}}, data: {%s}}\n' "$@"; }
task() { sed "$1" "$SAMPLES/task-addition.yaml"; }
