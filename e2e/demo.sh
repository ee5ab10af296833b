#!/usr/bin/env bash
# A Task computed on a device, from nothing: on propeller-standalone, or with CLUSTER=1 on a real control
# plane. `demo.sh modules` takes its module, signed, from a registry. `demo.sh stop` ends one that was kept with KEEP=1; `demo.sh down` ends its propeller-standalone alone, and
# `demo.sh up` starts that again.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

KEPT=$ROOT/build/e2e/demo.kept
KEPT_ENV=$ROOT/build/e2e/demo.env # what a shell needs to talk to it
SAMPLES=$ROOT/config/samples
NS=default
DEVICE_TIMES=(--alive-interval 10)
CONTROLLER_TIMES=()
MODULE=acme/add

step() { printf '\n==> %s\n' "$*"; }

# Prints a kubectl command as a user would type it, and runs it.
show() {
    printf '\n$ kubectl %s\n' "$*"
    k "$@"
}

sample() { k patch --local --type=merge --patch={} -f "$1" -o json | jq -r "$2"; }

stop_kept() {
    [[ -e $KEPT ]] || die "no demo is running"
    WORK=$(<"$KEPT")
    work_clear
    rm -f "$KEPT" "$KEPT_ENV"
    say "the demo has ended"
}

# serve_kept down|up: the server of a demo that was kept, with the options that it had
serve_kept() {
    local command
    [[ -e $KEPT ]] || die "no demo is running"
    WORK=$(<"$KEPT")
    PIDS=$WORK/demo/pids LOGS=$ROOT/build/e2e/demo
    if [[ $1 == down ]]; then
        cp "/proc/$(pid_of standalone)/cmdline" "$WORK/server.command"
        stop_process standalone TERM
    else
        mapfile -d "" -t command <"$WORK/server.command"
        spawn standalone "${command[@]}"
    fi
}

# $identity and its account at the broker.
bring_up_broker() {
    DOMAIN=$(sample "$SAMPLES/proplet-external.yaml" .spec.connectionConfig.domainId)
    CHANNEL=$(sample "$SAMPLES/proplet-external.yaml" .spec.connectionConfig.channelId)
    identity=$(sample "$SAMPLES/proplet-external.yaml" .spec.connectionConfig.clientId)
    step "Broker: mosquitto with passwords and ACLs (config/mosquitto)"
    broker_prepare "$identity"
    broker_start
    say "listens on 127.0.0.1:$BROKER_PORT; accounts: $CONTROLLER_USER, $identity, $OBSERVER"
}

bring_up_standalone() {
    part_begin cluster
    CLUSTER=$PART
    standalone_prepare >"$WORK/init.output"
    part_begin demo
    bring_up_broker
    step "propeller-standalone: API server, store, admission and controller in one process"
    controller_prepare
    [[ -z $from_registry ]] || bring_up_registry
    standalone_start "${CONTROLLER_OPTIONS[@]}"
    cluster_proxy
    wait_for 30 "the controller to be ready" curl -sSf -o /dev/null "http://127.0.0.1:$HEALTH_PORT/readyz"
    say "serves https://127.0.0.1:$APISERVER_PORT, takes $(awk '$1 == "VmRSS:" { printf "%.1f", $2 / 1024 }' \
        "/proc/$(pid_of standalone)/status") MiB; everything it keeps is in one folder"
}

bring_up_registry() {
    step "A registry, in which '$MODULE' has one module that is signed and one that is not"
    oci_start
    openssl ecparam -name prime256v1 -genkey -noout -out "$PART/cosign.key"
    openssl ec -in "$PART/cosign.key" -pubout -out "$PART/cosign.pub" 2>"$PART/openssl.log"
    base64 -d <<<"$ADDITION" >"$PART/add.wasm"
    padded_module 1000 >"$PART/unsigned.wasm"
    oci_push "$MODULE" 1 "$PART/add.wasm"
    oci_push "$MODULE" unsigned "$PART/unsigned.wasm"
    oci_sign "$MODULE" 1 "$PART/cosign.key"
    CONTROLLER_OPTIONS+=(--module-registries "http://127.0.0.1:$OCI_PORT" --module-cache-dir "$PART/modules"
        --module-public-keys "$PART/cosign.pub")
    say "listens on 127.0.0.1:$OCI_PORT; the controller takes only what the key in $PART/cosign.pub signed"
}

bring_up_cluster() {
    step "Control plane: etcd, kube-apiserver $KUBERNETES_VERSION, kube-controller-manager"
    cluster_start >"$WORK/cluster.output" 2>&1 || {
        cat "$WORK/cluster.output" >&2
        die "the control plane did not start; logs: $ROOT/build/e2e/cluster"
    }
    say "answers at $(k config view -o 'jsonpath={.clusters[0].cluster.server}'); the five CRDs are installed"
    part_begin demo

    bring_up_broker

    step "The controller"
    controller_prepare
    controller_start
    say "is ready: http://127.0.0.1:$HEALTH_PORT/readyz"

    step "The webhook: config/webhook registered (failurePolicy: Fail); the controller makes its certificate"
    WEBHOOK_NS=$SYSTEM_NS
    webhook_prepare
    webhook_register
    webhook_mount
    webhook_start
    wait_for 30 "the API server to ask the webhook" webhook_is_asked
    say "serves https://localhost:$WEBHOOK_PORT; is ready: http://127.0.0.1:$WEBHOOK_HEALTH_PORT/readyz"
}

bring_up_device() {
    local proplet
    proplet=$(sample "$SAMPLES/proplet-external.yaml" .metadata.name)
    step "A Proplet named '$proplet', whose device calls itself '$identity'"
    show apply -f config/samples/proplet-external.yaml
    wait_for 30 "the controller to see it" field_is proplets "$proplet" '.status.phase // ""' Initializing
    show get proplets

    step "The device '$identity', with a WebAssembly runtime, connects to the broker"
    device_start device --identity "$identity"
    wait_proplet "$proplet" Running
    show get proplets
}

# expect_answer TASK
expect_answer() {
    answer=$(k get task "$1" -o 'jsonpath={.status.results}')
    printf '\n$ kubectl get task %s -o jsonpath={.status.results}\n%s\n' "$1" "$answer"
    expect_eq "the answer" 42 "$answer"
}

run_from_registry() {
    local tag
    for tag in 1 unsigned; do
        step "A Task by imageUrl: main(10, 32) of 127.0.0.1:$OCI_PORT/$MODULE:$tag"
        k patch --local --type=merge --patch={} -f "$SAMPLES/task-module.yaml" -o json |
            jq --arg name "module-$tag" --arg url "127.0.0.1:$OCI_PORT/$MODULE:$tag" '
                .metadata.name = $name | .spec.imageUrl = $url | del(.spec.imagePullSecrets)' >"$PART/$tag.json"
        show apply -f "$PART/$tag.json"
    done
    wait_task module-1 completed
    wait_task module-unsigned failed
    step "What the cluster says"
    show get tasks
    show get task module-1 -o 'jsonpath={.status.module}'
    say ""
    show get task module-unsigned -o 'jsonpath={.status.reason}: {.status.error}'
    say ""
    expect_eq "the reason" ModuleUnsigned "$(k get task module-unsigned -o 'jsonpath={.status.reason}')"
    expect_answer module-1
}

run_the_sample() {
    local proplet task
    proplet=$(sample "$SAMPLES/proplet-external.yaml" .metadata.name)
    task=$(sample "$SAMPLES/task-addition.yaml" .metadata.name)
    step "A Task for '$proplet': main(10, 32) of a module that adds"
    show apply -f config/samples/task-addition.yaml
    say ""
    say "What it has that the manifest does not say:"
    show get task "$task" -o 'jsonpath={.metadata.finalizers} priority {.spec.priority}, {.spec.kind}, {.spec.preferredPropletType} Proplet'
    say ""
    wait_task "$task" completed

    step "What the cluster says"
    show get proplets,tasks -o wide
    show describe task "$task" | sed '/^  File:/s/\(.\{60\}\).*/\1.../'
    show get events --sort-by=.metadata.creationTimestamp
    step "What the device did"
    jq -r '"\(.event)\t\(.task // "")\t\(.results // "")"' "$LOGS/device.journal"

    expect_answer "$task"
}

# A sample, the change to it that is applied, and what is wrong with it.
BAD='
task-addition|.spec.priority = 101|a priority above 100
task-addition|.spec.file = "f0VMRgIBAQAAAAAA"|a file that is no WebAssembly
task-addition|.spec.dependsOn = ["addition"]|a Task that waits for itself
task-addition|.spec.schedule = "60 * * * *"|a minute that never comes
task-addition|.spec += {schedule: "@daily", timezone: "Mars/Olympus"}|a place without a time zone
proplet-external|.spec.connectionConfig.clientKey = "not-to-be-seen"|a device with two keys
propellerjob|.spec.tasks[0].dependsOn = ["last"]|tasks in a circle
federatedjob|.spec.kOfN = 5|five of three participants
'

show_what_is_refused() {
    local file filter what said
    step "Manifests that are refused, and what kubectl apply says"
    while IFS='|' read -r file filter what; do
        said=$(sample "$SAMPLES/$file.yaml" "$filter" | k apply -f - 2>&1) && fail "$what: accepted"
        expect_match "$what" 'is invalid' "$said"
        [[ $said != *not-to-be-seen* ]] || fail "the key is in the message: $said"
        printf '\n%s:\n' "$what"
        fold -s -w 96 <<<"$said" | sed 's/^/    /'
    done < <(grep . <<<"$BAD")
}

how_to_talk_to_it() {
    printf '%s\n' "$WORK" >"$KEPT"
    trap - EXIT
    cat >"$KEPT_ENV" <<TEXT
export KUBECONFIG=$CLUSTER/admin.kubeconfig
export PATH=$(dirname "$KUBECTL"):$ROOT/build/bin:\$PATH
export HEALTH=http://127.0.0.1:$HEALTH_PORT METRICS=http://127.0.0.1:$METRICS_PORT/metrics DATA=$CLUSTER/data
export PAGE=http://127.0.0.1:$PAGE_PORT
TEXT
    cat <<TEXT

It keeps running. To talk to it:

    source ${KEPT_ENV#"$ROOT/"}
    kubectl get tasks --watch
    kubectl delete task addition && kubectl apply -f config/samples/task-addition.yaml
    curl \$HEALTH/readyz?verbose
    curl \$METRICS
    mosquitto_sub -p $BROKER_PORT -u $OBSERVER -P $(secret_of "$OBSERVER") -t '#' -v

Logs: $LOGS. To end it: e2e/demo.sh stop
TEXT
}

main() {
    local keep="" answer="" identity="" from_registry="" started=$SECONDS ready
    case ${1:-} in
    stop)
        stop_kept
        return
        ;;
    down | up)
        serve_kept "$1"
        return
        ;;
    modules)
        CLUSTER=
        from_registry=yes
        ;;
    esac
    [[ ${KEEP:-} != 1 ]] || keep=keep
    [[ ! -e $KEPT ]] || stop_kept
    if [[ ${CLUSTER:-} == 1 ]]; then
        "$HERE/setup.sh" build run
    else
        export E2E_CLUSTER=standalone
        "$HERE/setup.sh" build device
    fi
    make -C "$ROOT" --no-print-directory -j"$(nproc)" all
    ready=$SECONDS
    cd "$ROOT"
    work_begin $keep
    if has_standalone; then bring_up_standalone; else bring_up_cluster; fi
    bring_up_device
    if [[ -n $from_registry ]]; then
        run_from_registry
    else
        run_the_sample
        show_what_is_refused
    fi
    if [[ -n $keep ]]; then
        how_to_talk_to_it
    else
        if has_standalone; then
            stop standalone TERM
        else
            controller_stop
            webhook_unregister
            stop webhook
        fi
        work_clear
        say ""
        say "everything has ended again; to keep it running: make demo${from_registry:+-modules} KEEP=1"
    fi
    printf 'demo: 10 + 32 = %s, computed on %s (%s s, of which %s s set-up and build)\n' "$answer" \
        "$identity" $((SECONDS - started)) $((ready - started))
}

main "$@"
