# shellcheck shell=bash disable=SC2034,SC2100 # used by those who source it; a name with a hyphen is no sum
# A real control plane: etcd, kube-apiserver, kube-controller-manager, RBAC on, audit log.
# E2E_CLUSTER=local adds a node to it (cluster/local.sh), standalone has none of it (cluster/standalone.sh). With kind (cluster/kind.sh) or existing, of which
# E2E_KUBECONFIG is the kubeconfig, there is another one, and what needs to kill parts of it or to read its
# audit log says that it does not apply.

ETCD_OPTIONS=(--unsafe-no-fsync --quota-backend-bytes 4294967296 --log-level warn)
# Garbage collection, namespaces, roles put together of others, and what makes pods; there is no
# scheduler and no kubelet, so pods stay as they are unless a case speaks for them (workloads.sh, kubelet.sh).
MANAGER_CONTROLLERS=garbage-collector-controller,namespace-controller,serviceaccount-controller,clusterrole-aggregation-controller
MANAGER_CONTROLLERS+=,job-controller,deployment-controller,replicaset-controller,statefulset-controller,resourcequota-controller
GROUP=propeller.propeller.abstractmachines.fr
API=$GROUP/v1
SYSTEM_NS=propeller-system
USELESS_TOKEN=token-without-rights

# Its parts are processes of this run; or it is kind's, with the same powers over it.
owns_cluster() { [[ -z ${E2E_KUBECONFIG:-} ]] && ! has_kind && ! has_standalone; }

cluster_is_ours() { owns_cluster || has_standalone || { has_kind && operator_in_pods; }; }

# cluster_check: whether E2E_CLUSTER and E2E_OPERATOR are something that can be had
cluster_check() {
    [[ -z ${E2E_KUBECONFIG:-} ]] || : "${E2E_CLUSTER:=existing}"
    case ${E2E_CLUSTER:=control-plane} in
    control-plane | local | kind | standalone) [[ -z ${E2E_KUBECONFIG:-} ]] || die "E2E_KUBECONFIG is for E2E_CLUSTER=existing" ;;
    existing) [[ -r ${E2E_KUBECONFIG:-} ]] || die "E2E_CLUSTER=existing needs E2E_KUBECONFIG, a file" ;;
    *) die "E2E_CLUSTER is '$E2E_CLUSTER', it must be control-plane, local, kind, standalone or existing" ;;
    esac
    if has_node; then : "${E2E_OPERATOR:=pods}"; fi
    if has_standalone; then : "${E2E_OPERATOR:=embedded}"; fi
    case ${E2E_OPERATOR:=process} in
    process) ;;
    pods) has_node || die "E2E_OPERATOR=pods needs E2E_CLUSTER=local or kind" ;;
    embedded) has_standalone || die "E2E_OPERATOR=embedded needs E2E_CLUSTER=standalone" ;;
    *) die "E2E_OPERATOR is '$E2E_OPERATOR', it must be pods, process or embedded" ;;
    esac
    export E2E_CLUSTER E2E_OPERATOR
}

# cluster_start [PART]: several of them, each of another name, do not disturb each other
cluster_start() {
    part_begin "${1:-cluster}"
    CLUSTER=$PART
    export CLUSTER
    if owns_cluster; then
        ! has_local_node || node_network
        cluster_keys
        cluster_ports
        cluster_kubeconfigs
        ! has_local_node || node_keys
        cluster_etcd
        cluster_apiserver
        wait_for 120 "the API server" apiserver_ready
        cluster_manager
    elif has_standalone; then
        standalone_cluster
    else
        ! has_kind || kind_take
        cp "$E2E_KUBECONFIG" "$CLUSTER/admin.kubeconfig"
        cp "$E2E_KUBECONFIG" "$CLUSTER/controller.kubeconfig"
    fi
    cluster_proxy
    cluster_prepare
    ! owns_cluster ||
        identity_kubeconfig "$CLUSTER/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
    ! has_local_node || node_start
    ! has_node || node_images
}

# What the cases need from a cluster that run.sh started.
cluster_join() {
    [[ -d ${CLUSTER:-} ]] || die "no cluster: start me as e2e/run.sh $(basename "$0" .sh)"
    ! has_node || node_variables
    [[ -e $CLUSTER/ports ]] || return 0
    # shellcheck source=/dev/null
    source "$CLUSTER/ports"
    ! has_standalone || standalone_options
}

in_cluster() { # in_cluster COMMAND...: with the cluster's pids and logs instead of the case's
    local PIDS=$CLUSTER/pids LOGS=$ROOT/build/e2e/${CLUSTER##*/}
    "$@"
}

# ---- keys and kubeconfigs ----

certificate() {
    local name=$1 subject=$2 san=${3:-DNS:client}
    (
        cd "$CLUSTER" || exit
        openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$name.key" \
            -subj "$subject" -out "$name.csr"
        openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
            -out "$name.crt" -extfile <(printf '%s\n' "subjectAltName=$san" \
            extendedKeyUsage=serverAuth,clientAuth)
    ) 2>>"$CLUSTER/openssl.log"
}

authority() { # authority FILE NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
        -subj "/CN=$2" -keyout "$1.key" -out "$1.crt" 2>>"$CLUSTER/openssl.log"
}

cluster_keys() {
    authority "$CLUSTER/ca" e2e-ca
    authority "$CLUSTER/other-ca" e2e-other-ca # signs nothing here: for kubeconfigs that must fail
    certificate apiserver /CN=kube-apiserver "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc${NODE_MACHINE:+,IP:$NODE_MACHINE,IP:${NODE_SERVICES%0/24}1}"
    certificate admin /O=system:masters/CN=admin
    certificate manager /CN=system:kube-controller-manager
    openssl genrsa -out "$CLUSTER/sa.key" 2048 2>>"$CLUSTER/openssl.log"
    openssl rsa -in "$CLUSTER/sa.key" -pubout -out "$CLUSTER/sa.pub" 2>>"$CLUSTER/openssl.log"
    printf '%s,nobody-special,1\n' "$USELESS_TOKEN" >"$CLUSTER/tokens.csv"
}

cluster_ports() {
    ETCD_PORT=$(free_port)
    ETCD_PEER_PORT=$(free_port)
    APISERVER_PORT=$(free_port)
    MANAGER_PORT=$(free_port)
    printf '%s=%s\n' ETCD_PORT "$ETCD_PORT" ETCD_PEER_PORT "$ETCD_PEER_PORT" \
        APISERVER_PORT "$APISERVER_PORT" MANAGER_PORT "$MANAGER_PORT" >"$CLUSTER/ports"
}

# kubeconfig FILE CA-FILE USER-FIELDS [SERVER]
kubeconfig() {
    local server=${4:-${APISERVER_URL:-https://127.0.0.1:$APISERVER_PORT}}
    cat >"$1" <<YAML
apiVersion: v1
kind: Config
current-context: e2e
contexts: [{name: e2e, context: {cluster: e2e, user: e2e, namespace: $SYSTEM_NS}}]
clusters: [{name: e2e, cluster: {server: "$server", certificate-authority-data: $(base64 -w0 "$2")}}]
users: [{name: e2e, user: {$3}}]
YAML
    chmod 600 "$1"
}

with_certificate() {
    printf 'client-certificate-data: %s, client-key-data: %s' \
        "$(base64 -w0 "$CLUSTER/$1.crt")" "$(base64 -w0 "$CLUSTER/$1.key")"
}

cluster_kubeconfigs() {
    SYSTEM_NS=default kubeconfig "$CLUSTER/admin.kubeconfig" "$CLUSTER/ca.crt" "$(with_certificate admin)"
    kubeconfig "$CLUSTER/manager.kubeconfig" "$CLUSTER/ca.crt" "$(with_certificate manager)"
}

# identity_kubeconfig FILE NAMESPACE ACCOUNT: as a pod of this ServiceAccount would speak
identity_kubeconfig() {
    local SYSTEM_NS=$2 token
    token=$(k create token "$3" --namespace "$2" --duration 24h)
    kubeconfig "$1" "$CLUSTER/ca.crt" "token: $token"
}

# ---- daemons; each can be crashed and started again by the cases ----

cluster_etcd() {
    local client=http://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$ETCD_PEER_PORT
    spawn etcd "$CONTROL_PLANE_BIN/etcd" --name e2e --data-dir "$CLUSTER/etcd" \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "e2e=$peer" "${ETCD_OPTIONS[@]}"
}

cluster_apiserver() {
    local -a for_node=()
    if has_standalone; then
        standalone_alone
        return
    fi
    ! has_local_node || for_node=(--bind-address 0.0.0.0 --authorization-mode Node --allow-privileged=true
        --advertise-address "$NODE_MACHINE" --endpoint-reconciler-type lease
        --service-cluster-ip-range "$NODE_SERVICES"
        --kubelet-certificate-authority "$CLUSTER/ca.crt"
        --kubelet-client-certificate "$CLUSTER/apiserver-kubelet.crt"
        --kubelet-client-key "$CLUSTER/apiserver-kubelet.key"
        --kubelet-preferred-address-types InternalIP)
    date +%s.%N >>"$CLUSTER/apiserver-starts"
    # Left alone it begins a new audit log after 100 MB, as 10,000 Tasks make: what is counted from a mark would be lost.
    spawn apiserver "$CONTROL_PLANE_BIN/kube-apiserver" --bind-address 127.0.0.1 \
        --secure-port "$APISERVER_PORT" --etcd-servers "http://127.0.0.1:$ETCD_PORT" \
        --advertise-address 127.0.0.1 --endpoint-reconciler-type none \
        --service-cluster-ip-range 10.96.0.0/16 --authorization-mode RBAC --anonymous-auth=false \
        --client-ca-file "$CLUSTER/ca.crt" --token-auth-file "$CLUSTER/tokens.csv" \
        --tls-cert-file "$CLUSTER/apiserver.crt" --tls-private-key-file "$CLUSTER/apiserver.key" \
        --service-account-issuer https://kubernetes.default.svc.cluster.local \
        --service-account-key-file "$CLUSTER/sa.pub" \
        --service-account-signing-key-file "$CLUSTER/sa.key" \
        --audit-policy-file "$HERE/manifests/audit-policy.yaml" \
        --audit-log-path "$CLUSTER/audit.log" --audit-log-maxsize 65536 "${for_node[@]}"
}

cluster_manager() {
    spawn manager "$CONTROL_PLANE_BIN/kube-controller-manager" --leader-elect=false \
        --kubeconfig "$CLUSTER/manager.kubeconfig" --use-service-account-credentials=true \
        --bind-address 127.0.0.1 --secure-port "$MANAGER_PORT" \
        --root-ca-file "$CLUSTER/ca.crt" --service-account-private-key-file "$CLUSTER/sa.key" \
        --controllers "$(has_local_node && printf '*' || printf '%s' "$MANAGER_CONTROLLERS")" --kube-api-qps 500 --kube-api-burst 1000
}

# Killed and started again by the cases, wherever it runs.
apiserver_crash() { if has_kind; then kind_apiserver_crash; else in_cluster crash apiserver; fi; }
apiserver_begin() {
    if has_kind; then
        kind_apiserver_begin
    elif has_standalone; then
        standalone_begin
    else
        in_cluster cluster_apiserver
    fi
}

# apiserver_back: until it serves again, also pods on all nodes
apiserver_back() {
    apiserver_serves
    ! has_kind || kind_services_back
}
# One that could not begin within its own 30 s, on a busy machine, ends: it is started again, as by a kubelet.
apiserver_serves() { wait_for 300 "the API server" apiserver_answers; }
apiserver_answers() {
    ! owns_cluster || in_cluster is_running apiserver || in_cluster cluster_apiserver
    api /readyz
}

# A socket that answers without TLS and log-in: polls cost a curl instead of a kubectl.
cluster_proxy() {
    spawn proxy "$KUBECTL" --kubeconfig "$CLUSTER/admin.kubeconfig" proxy --unix-socket "$CLUSTER/api"
    wait_for 30 "the API proxy" api /readyz
}

apiserver_ready() {
    curl -sSf --max-time 5 --cacert "$CLUSTER/ca.crt" --cert "$CLUSTER/admin.crt" \
        --key "$CLUSTER/admin.key" "https://127.0.0.1:$APISERVER_PORT/readyz"
}

# ---- use ----

k() { "$KUBECTL" --kubeconfig "$CLUSTER/admin.kubeconfig" "$@"; }
kn() { k --namespace "$NS" "$@"; }
PLUGIN=${PLUGIN:-$ROOT/build/bin/kubectl-propeller}
p() { KUBECONFIG=$CLUSTER/admin.kubeconfig "$PLUGIN" "$@" --namespace "$NS"; }

# api PATH [CURL-OPTION...]: GET as administrator
api() {
    local path=$1
    shift
    curl -sSf --max-time 20 --unix-socket "$CLUSTER/api" "http://localhost$path" "$@"
}

# The kinds of the core: without the flag, kubectl wait reads the folders below, too.
crds_established() { k wait --for=condition=Established --timeout=60s --recursive=false -f "$ROOT/crds/" >/dev/null; }
cluster_prepare() {
    ! has_standalone || return 0 # it knows its kinds and has no RBAC
    k apply --server-side -f "$ROOT/crds/"
    crds_established
    k apply --server-side -f "$ROOT/rbac/base/" -f "$ROOT/rbac/cluster/"
}

# ---- audit log ----

# The names of the controller's identities begin so; standalone knows one, that of its kubeconfig.
audit_identities_prefix() { if has_standalone; then printf 'standalone:'; else printf 'system:serviceaccount:%s:' "$SYSTEM_NS"; fi; }

audit_mark() {
    cluster_is_ours || die "the audit log of an existing cluster cannot be read"
    wc -l <"$CLUSTER/audit.log"
}

# audit_writes MARK [JQ-CONDITION]: requests of the controller's identities that change something since MARK
audit_writes() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | jq -c --arg ns "${NS:-}" '
        select((.user.username | startswith("'"$(audit_identities_prefix)"'"))
            and (.verb | IN("create", "update", "patch", "delete", "deletecollection"))
            and .objectRef.resource != "leases" and .objectRef.namespace == $ns)
        | select('"${2:-true}"')
        | [.verb, .objectRef.resource, .objectRef.subresource // "", .objectRef.name // "",
           .responseStatus.code]'
}

# audit_requests MARK: "VERB RESOURCE NAME" of all requests of the controller's identities about this
# case's namespace since MARK, watches apart
audit_requests() {
    tail -n "+$(($1 + 1))" "$CLUSTER/audit.log" | jq -r --arg ns "${NS:-}" '
        select((.user.username | startswith("'"$(audit_identities_prefix)"'"))
            and .verb != "watch" and .objectRef.resource != "leases" and .objectRef.namespace == $ns)
        | "\(.verb) \(.objectRef.resource) \(.objectRef.name // "")"'
}

# audit_identities [--complete] CLUSTER...: what the identities of rbac/ did since these were started
audit_identities() {
    local CLUSTER
    local -a options=()
    [[ $1 != --complete ]] || {
        options=("$1")
        shift
    }
    for CLUSTER in "$@"; do
        k get clusterroles,clusterrolebindings,roles,rolebindings --all-namespaces --output json \
            >"$CLUSTER/rbac.json"
    done
    "$PYTHON_HOME/bin/python" "$HERE/tools/audit.py" --namespace "$SYSTEM_NS" --also 'e2e-.*' \
        "${options[@]}" "$@"
}
