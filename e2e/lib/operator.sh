# shellcheck shell=bash
# E2E_OPERATOR=pods: the controller of the cases is not a process of this machine but pods of the cluster,
# with the account of the pod, in the namespace of rbac/. What the cases say stays the same:
#
#   controller_start    a Deployment of three replicas; all are ready, and one of them leads
#   readyz, metrics     those of the pod that leads
#   crash controller    its processes killed without a chance to say anything, and no others started
#   replica_start a     a pod of that name which is not started again, so that its exit status can be read
#   LOGS/<pod>.log      what each of them says
#
# Devices, broker and proxies stay on the machine, which pods reach at NODE_MACHINE.

OPERATOR=propeller-controller
OPERATOR_IMAGE=localhost/propeller:e2e
OPERATOR_LABEL=app.kubernetes.io/name=$OPERATOR
OPERATOR_KEYS=/etc/propeller/mqtt

operator_in_pods() { [[ ${E2E_OPERATOR:-} == pods ]]; }

# For cases that look at what only a process of this machine has.
case_needs_process() { # case_needs_process WHY
    operator_in_pods || return 0
    say "needs the operator as a process: $1" >"$PART/not-applicable"
    exit 0
}
case_needs_pods() {
    operator_in_pods && return
    say "needs the operator in pods: E2E_CLUSTER=local or kind" >"$PART/not-applicable"
    exit 0
}

# The image that `make image` makes, once a run; each node gets it.
operator_image() {
    make -C "$ROOT" --no-print-directory image IMAGE="$OPERATOR_IMAGE" IMAGE_OUT="$WORK/image"
}

ko() { k --namespace "$SYSTEM_NS" "$@"; }
operator_pods() { # those that are not going
    api "/api/v1/namespaces/$SYSTEM_NS/pods?labelSelector=$OPERATOR_LABEL" |
        jq -c '.items[] | select(.metadata.deletionTimestamp == null)'
}

# evict NAMESPACE POD: as a drain does; "201" where the budget allows it, "429 WHY" where it does not
evict() {
    local answer
    answer=$(jq -nc --arg ns "$1" --arg pod "$2" '{apiVersion: "policy/v1", kind: "Eviction", metadata: {name: $pod, namespace: $ns}}' |
        curl -sS --max-time 20 --unix-socket "$CLUSTER/api" -H 'Content-Type: application/json' --data-binary @- \
            "http://localhost/api/v1/namespaces/$1/pods/$2/eviction")
    jq -r 'if .status == "Success" then "201" else "\(.code) \(.message)" end' <<<"$answer"
}

# operator_arguments OPTION...: as pods need them, one a line
operator_arguments() {
    while (($#)); do
        case $1 in
        --kubeconfig | --health-probe-bind-address | --metrics-bind-address | --page-bind-address) shift ;;
        --*-file)
            printf '%s\n' "$1" "$OPERATOR_KEYS/${2##*/}"
            shift
            ;;
        *) printf '%s\n' "${1//127.0.0.1/$NODE_MACHINE}" ;;
        esac
        shift
    done
}
# The files that these options name, into a Secret.
operator_keys() {
    local -a files=()
    while (($#)); do
        [[ $1 != --*-file ]] || files+=("--from-file=$2")
        shift
    done
    ko create secret generic "$OPERATOR-keys" "${files[@]}" --dry-run=client --output json | ko apply -f - >/dev/null
}

# operator_deployment OPTION...: that of config/, with these options and OPERATOR_REPLICAS (3) of them
operator_deployment() {
    operator_arguments "$@" | jq -Rsc 'split("\n") | .[:-1]' >"$PART/operator-arguments"
    k create --dry-run=client --output json -f "$ROOT/config/controller/deployment.yaml" |
        jq --arg ns "$SYSTEM_NS" --arg image "$OPERATOR_IMAGE" --arg keys "$OPERATOR-keys" --argjson replicas "${OPERATOR_REPLICAS:-3}" \
            --slurpfile arguments "$PART/operator-arguments" '
            .metadata.namespace = $ns | .spec.replicas = $replicas | .spec.template.spec |= (
                (.volumes[] | select(.name == "mqtt") | .secret.secretName) = $keys
                | .containers[0] |= (.image = $image | .imagePullPolicy = "Never" | .args = $arguments[0]
                    | .readinessProbe.periodSeconds = 1 | del(.envFrom)))'
}

operator_start() { # operator_start [OPTION...]
    local -a options=("${CONTROLLER_OPTIONS[@]}" "$@")
    operator_logs
    operator_keys "${options[@]}"
    operator_deployment "${options[@]}" | ko apply --server-side --force-conflicts -f - >/dev/null
}

operator_is_running() {
    (($(api "/apis/apps/v1/namespaces/$SYSTEM_NS/deployments/$OPERATOR" 2>/dev/null | jq .spec.replicas) > 0))
}

# All replicas are new and ready, and one of them leads.
operator_ready() {
    api "/apis/apps/v1/namespaces/$SYSTEM_NS/deployments/$OPERATOR" | jq -e '
        .metadata.generation as $now | .spec.replicas as $all | .status
        | .observedGeneration == $now and ([.replicas, .updatedReplicas, .readyReplicas] | all(. == $all))' >/dev/null || {
        operator_pods | jq -c '[.metadata.name, (.status.containerStatuses[0] | .state, .ready)]'
        return 1
    }
    readyz | tail -n 1 | grep -q 'passed' || {
        readyz
        return 1
    }
}

# remembered NAME COMMAND...: what it says, and while the API server is away what it said last
remembered() {
    local file=$PART/remembered-$1 said
    shift
    if said=$("$@" 2>/dev/null) && [[ -n $said ]]; then
        printf '%s\n' "$said" | tee "$file"
    elif ! api /readyz >/dev/null 2>&1; then
        cat "$file"
    else
        return 1
    fi
}

# The pod whose name the Lease bears.
operator_leader() { remembered leader lease_pod; }
lease_pod() { lease_holder | sed 's/_[^_]*$//'; }
pod_address() { remembered "address-$1" pod_address_now "$1"; }
pod_address_now() { api "/api/v1/namespaces/$SYSTEM_NS/pods/$1" | jq -er '.status.podIP'; }
# operator_url health|metrics [POD]: of the one that leads, or of this
operator_url() {
    local pod=${2:-} address
    [[ -n $pod ]] || pod=$(operator_leader) || return 1
    address=$(pod_address "$pod") || return 1
    printf 'http://%s:%s\n' "$address" "$([[ $1 == health ]] && printf 8081 || printf 8080)"
}

operator_readyz() { # of one of them, whichever leads
    local address
    address=$(operator_pods | jq -r '.status.podIP // empty' | sed -n 1p) || return 1
    curl -sS --max-time 5 "http://$address:8081/readyz?verbose"
}

# ---- what a process could be told, and pods cannot ----

# pod_process POD: on this machine, where everything of the nodes can be seen
pod_process() {
    local uid process
    uid=$(api "/api/v1/namespaces/$SYSTEM_NS/pods/$1" | jq -r .metadata.uid)
    for process in $(pgrep -x "propeller-contr|propeller-webho"); do
        if grep -qE "pod${uid//-/[-_]}" "/proc/$process/cgroup" 2>/dev/null; then
            printf '%s\n' "$process"
            return
        fi
    done
    return 1
}

# operator_memory: of each pod that is not going, "leader VmRSS 17408" in KiB, and RssAnon the same
operator_memory() {
    local pod leader
    leader=$(operator_leader) || true
    for pod in $(operator_pods | jq -r .metadata.name); do
        awk -v role="$([[ $pod == "$leader" ]] && echo leader || echo standby)" \
            '/^(VmRSS|RssAnon):/ { sub(":", "", $1); print role, $1, $2 }' "/proc/$(pod_process "$pod")/status"
    done
}

operator_going() { [[ -z $(operator_pods) ]]; }
operator_gone() {
    api "/api/v1/namespaces/$SYSTEM_NS/pods?labelSelector=$OPERATOR_LABEL" | jq -e '.items | length == 0'
}

# operator_signal SIGNAL: to all of this cluster, whether its API server answers or not
operator_signal() {
    local process
    for process in $(pgrep -x propeller-contr); do
        ! grep -q "/$NODE_CGROUP/" "/proc/$process/cgroup" 2>/dev/null || kill "-$1" "$process" 2>/dev/null || true
    done
}

# Stopped first, so that no one of them says a last word when they are told to go. Without the API server
# nobody can be told that they shall not come back: the kubelet starts them again.
operator_crash() {
    if ! api /readyz >/dev/null 2>&1; then
        operator_signal KILL
        return
    fi
    operator_signal STOP
    ko scale "deployment/$OPERATOR" --replicas=0 >/dev/null
    wait_for 60 "the pods of the controller to be given up" operator_going
    operator_signal KILL
    ko delete pods --selector "$OPERATOR_LABEL" --grace-period=0 --force >/dev/null 2>&1
}

operator_stop() {
    ko scale "deployment/$OPERATOR" --replicas=0 >/dev/null 2>&1 || return 0
    wait_for 90 "the pods of the controller to end" operator_gone
}

# operator_ended UID...: no process of these pods is left. The API server says so a while earlier of pods that were
# deleted by force: the kubelet may not know yet, and their leader may take the Lease again meanwhile.
operator_ended() {
    local uids
    uids=$(printf '%s\n' "${@//-/[-_]}" | paste -sd '|')
    [[ -z $uids ]] || ! grep -qE "pod($uids)" /proc/[0-9]*/cgroup 2>/dev/null
}

operator_clear() {
    local -a pods
    mapfile -t pods < <(api "/api/v1/namespaces/$SYSTEM_NS/pods?labelSelector=$OPERATOR_LABEL" | jq -r '.items[].metadata.uid')
    ko delete "deployment/$OPERATOR" "secret/$OPERATOR-keys" service/propeller-coordinator --ignore-not-found --wait=false >/dev/null 2>&1
    # Not left to the garbage collector, which after a death of the API server may take its time: they would make
    # pods again, whose controllers would hold the Lease of the next case.
    ko delete replicasets --selector "$OPERATOR_LABEL" --ignore-not-found --wait=false >/dev/null 2>&1
    ko delete pods --selector "part-of=e2e-operator" --grace-period=0 --force --ignore-not-found >/dev/null 2>&1
    ko delete pods --selector "$OPERATOR_LABEL" --grace-period=0 --force --ignore-not-found >/dev/null 2>&1
    wait_for 60 "the pods of the controller to be gone" operator_gone >/dev/null 2>&1
    wait_for 60 "the processes of the controller to end" operator_ended "${pods[@]}" >/dev/null 2>&1
}

# ---- single replicas: pods of their own ----

replica_pod_start() { # replica_pod_start LETTER [OPTION...]
    local letter=$1
    shift
    local -a options=("${CONTROLLER_OPTIONS[@]}" "$@")
    operator_logs
    operator_keys "${options[@]}"
    ko delete pod "replica-$letter" --grace-period=0 --force --ignore-not-found >/dev/null 2>&1
    rm -f "$PART/remembered-address-replica-$letter"
    operator_deployment "${options[@]}" | jq --arg pod "replica-$letter" '
        { apiVersion: "v1", kind: "Pod", # of one that a case stops nobody shall ask whether it lives
          spec: (.spec.template.spec + { restartPolicy: "Never" } | del(.containers[].livenessProbe)),
          metadata: { name: $pod, labels: (.spec.template.metadata.labels + { "part-of": "e2e-operator" }) } }' |
        ko create -f - >/dev/null
}
replica_pod_status() {
    api "/api/v1/namespaces/$SYSTEM_NS/pods/replica-$1" |
        jq -er '.status.containerStatuses[0].state.terminated.exitCode'
}

# ---- what they say ----

operator_logs() {
    [[ ! -e $PIDS/pod-logs ]] || return 0
    spawn pod-logs "$HERE/cluster/follow-logs.sh" "$CLUSTER/api" "$SYSTEM_NS" "$OPERATOR_LABEL" "$LOGS"
}
