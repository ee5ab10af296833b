#!/usr/bin/env bash
# Removes an installation and every object of its kinds, and leaves nothing: `make undeploy`.
#
# In this order: webhook configurations and objects (propeller-controller --uninstall), while the controller is there to
# clean up after them; then the programs, and when they have ended their rights; the kinds.
set -euo pipefail
# shellcheck source=config/deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Three quarters of it are longer than the controller waits for a device (--stop-timeout).
RELEASE_SECONDS=${RELEASE_SECONDS:-60}

# scope: where the overlay has rights: ALL, or the namespaces of its Roles
readonly ALL='*'
scope() {
    if has '^ClusterRole propeller-caches$'; then
        printf '%s\n' "$ALL"
    else
        documents '^Role propeller-caches$' | sed -n 's/^  namespace: //p'
    fi
}

# The controller's program does it, as in a pod (config/uninstall), in the cluster of KUBECTL: that may be a program with
# a kubeconfig or a context of its own. Without any kubeconfig both use the account of their pod.
remove_objects() {
    local config
    local -a scope=()
    [[ ${SCOPE[0]} == "$ALL" ]] || scope=("${SCOPE[@]/#/--namespace=}")
    config=$(kube config view --raw --minify --flatten) || config=
    [[ -z $config ]] || scope+=(--kubeconfig=/dev/fd/3)
    env --unset=PROPELLER_NAMESPACE --unset=WATCH_NAMESPACE \
        "$TOP/build/bin/propeller-controller" --uninstall --uninstall-timeout="${RELEASE_SECONDS}s" \
        --webhook-namespace="$SYSTEM" --log-format=text "${scope[@]}" 2>&1 3<<<"$config" | sed -u 's/^/  /'
}

# others_in NAMESPACE: what works there or keeps data, and is neither of the overlay nor made by the operator
others_in() {
    kube --namespace "$1" get persistentvolumeclaims,deployments,statefulsets,daemonsets,cronjobs --output name \
        --selector 'app.kubernetes.io/part-of!=propeller,app.kubernetes.io/managed-by!=propeller'
}
# A namespace takes along whatever is in it: a broker, say, with the results that it holds.
refuse_others() {
    local namespace found
    [[ ${FORCE:-} != 1 ]] || return 0
    for namespace in $(documents '^Namespace ' | sed -n 's/^  name: //p'); do
        found=$(others_in "$namespace") || die "the namespace '$namespace' cannot be looked at"
        [[ -z $found ]] || die "the namespace '$namespace' would go with $(xargs <<<"$found"): remove these first, or FORCE=1"
    done
}

# What is applied beside an overlay: config/flowcontrol, rbac/job-result-secrets, rbac/module-pull-secrets,
# rbac/namespaced. The accounts go,
# so nobody has these rights any more, wherever they are.
remove_extras() {
    local namespace name found
    kube delete flowschemas,prioritylevelconfigurations --selector "$OURS" | sed '/^No resources/d; s/^/  /'
    found=$(our_bindings)
    while read -r namespace name; do
        [[ -z $name ]] || remove_rights "$namespace" "$name" | sed 's/^/  /'
    done <<<"$found"
}

# set_foreign: FOREIGN, the pattern of what is of kinds that the cluster does not have (any more): cert-manager's, say,
# when that was removed before. kubectl would end over them.
set_foreign() {
    local served kind
    FOREIGN='^None '
    served=$(kube api-resources --no-headers | awk '{ print $NF }') || return 0
    while read -r kind; do
        grep -qx "$kind" <<<"$served" || FOREIGN+="|^$kind "
    done < <(sed -n 's/^kind: //p' "$MANIFESTS" | sort -u)
}

# Without an answer of the API server it is not known, so that the kinds stay.
kinds_in_use() {
    local kind left
    for kind in "${KINDS[@]}"; do
        there crd "$kind.$GROUP" || continue
        left=$(kube get "$kind.$GROUP" --all-namespaces --ignore-not-found --output name) && [[ -z $left ]] || return 0
    done
    return 1
}

main() {
    local -a SCOPE
    render
    mapfile -t SCOPE < <(scope)
    ((${#SCOPE[@]})) || die "the overlay '$OVERLAY' has the rights of a controller nowhere: whose objects are meant?"
    refuse_others
    set_foreign
    say "objects"
    remove_objects || die "the objects stay, and with them programs, rights and kinds"
    say "programs"
    documents '^Deployment ' | kube delete --ignore-not-found --cascade=foreground --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    say "rights"
    documents -v "^CustomResourceDefinition |^Namespace |^Deployment |$FOREIGN" | kube delete --ignore-not-found -f - | sed 's/^/  /'
    remove_extras
    documents '^Namespace ' | kube delete --ignore-not-found --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    if kinds_in_use; then
        say "the kinds stay: other namespaces have objects of them"
    else
        documents '^CustomResourceDefinition ' | kube delete --ignore-not-found --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    fi
    say "nothing is left of the overlay '$OVERLAY'"
}

main
