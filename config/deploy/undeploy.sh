#!/usr/bin/env bash
# Removes an installation and every object of its kinds, and leaves nothing: `make undeploy`.
#
# In this order: nobody is asked about changes any more (webhook configurations); objects are deleted while
# the controller is there to clean up after them; what it does not release in time loses its finalizers,
# and that is said; then the programs, and when they have ended their rights; the kinds.
set -euo pipefail
# shellcheck source=config/deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Longer than the controller waits for a device (--stop-timeout).
RELEASE_SECONDS=${RELEASE_SECONDS:-60}
readonly OUR_FINALIZERS="^$GROUP/"

# scope: where the overlay has rights: ALL, or the namespaces of its Roles
readonly ALL='*'
scope() {
    if has '^ClusterRole propeller-caches$'; then
        printf '%s\n' "$ALL"
    else
        documents '^Role propeller-caches$' | sed -n 's/^  namespace: //p'
    fi
}
# set_where NAMESPACE: the options of kubectl for it
set_where() {
    WHERE=(--all-namespaces)
    [[ $1 == "$ALL" ]] || WHERE=(--namespace "$1")
}

# objects: "KIND NAMESPACE NAME DELETED FINALIZER..." a line, of the kinds that are there; DELETED is - where it is not
objects() {
    local namespace
    for namespace in "${SCOPE[@]}"; do
        set_where "$namespace"
        # shellcheck disable=SC2016 # a template of kubectl
        kube get "$KINDS_THERE" "${WHERE[@]}" --ignore-not-found --output go-template='{{range .items}}{{.kind}} {{.metadata.namespace}} {{.metadata.name}} {{or .metadata.deletionTimestamp "-"}}{{range .metadata.finalizers}} {{.}}{{end}}
{{end}}' || return 1
    done
}
# Without an answer of the API server it is not known.
no_object() {
    local left
    left=$(objects) && [[ -z $left ]]
}

delete_objects() {
    local kind namespace
    for kind in "${PRESENT[@]}"; do
        for namespace in "${SCOPE[@]}"; do
            set_where "$namespace"
            kube delete "$kind.$GROUP" --all "${WHERE[@]}" --wait=false | sed 's/^/  /'
        done
    done
}

# objects_gone: somebody may make one still (a CronJob, whoever puts a repository into the cluster): it goes, too
objects_gone() {
    local left
    left=$(objects) || return 1
    [[ -n $left ]] || return 0
    ! awk '$4 == "-" { found = 1 } END { exit !found }' <<<"$left" || delete_objects
    return 1
}

# Whoever else has a finalizer there is left to do its work.
release() {
    local kind namespace name deleted all finalizer ours
    local -a others
    while read -r kind namespace name deleted all; do
        others=() ours=
        for finalizer in $all; do
            if [[ $finalizer =~ $OUR_FINALIZERS ]]; then ours=yes; else others+=("\"$finalizer\""); fi
        done
        [[ -n $ours && $deleted != - ]] || continue
        kube --namespace "$namespace" patch "${kind,,}.$GROUP" "$name" --type=merge --output name \
            --patch "{\"metadata\":{\"finalizers\":[$(IFS=,; echo "${others[*]}")]}}" >/dev/null || continue
        say "  finalizer taken off: $kind '$namespace/$name'${others:+, left: ${others[*]}}"
    done < <(objects)
}

released() {
    objects_gone && return
    release
    return 1
}

remove_objects() {
    local kind
    PRESENT=()
    for kind in "${KINDS[@]}"; do
        ! there crd "$kind.$GROUP" || PRESENT+=("$kind")
    done
    ((${#PRESENT[@]})) || return 0
    KINDS_THERE=$(IFS=,; echo "${PRESENT[*]/%/.$GROUP}")
    no_object && return
    say "objects"
    delete_objects
    wait_until "$RELEASE_SECONDS" objects_gone && return
    say "not released by the controller within $RELEASE_SECONDS s"
    wait_until "$DEPLOY_SECONDS" released || die "these stay, with finalizers of others: $(objects)"
}

# What was made for Proplets and Tasks goes with them, by the garbage collector.
no_children() {
    local namespace left
    for namespace in "${SCOPE[@]}"; do
        set_where "$namespace"
        left=$(kube get deployments,statefulsets,jobs,configmaps,secrets "${WHERE[@]}" --output name \
            --selector app.kubernetes.io/managed-by=propeller) || return 1
        [[ -z $left ]] || return 1
    done
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

# What is applied beside an overlay: config/flowcontrol, rbac/job-result-secrets, rbac/namespaced. The accounts go,
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

kinds_in_use() {
    local -a SCOPE=("$ALL")
    ((${#PRESENT[@]})) && ! no_object
}

main() {
    local -a PRESENT=() SCOPE
    render
    mapfile -t SCOPE < <(scope)
    ((${#SCOPE[@]})) || die "the overlay '$OVERLAY' has the rights of a controller nowhere: whose objects are meant?"
    refuse_others
    set_foreign
    documents 'WebhookConfiguration ' | kube delete --ignore-not-found -f - 2>/dev/null | sed 's/^/  /' || true
    remove_objects
    wait_until "$RELEASE_SECONDS" no_children || say "left to the garbage collector: what was made for Proplets and Tasks"
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
