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

# objects: "KIND NAMESPACE NAME FINALIZER..." a line, of the kinds that are there
objects() {
    local namespace
    for namespace in "${SCOPE[@]}"; do
        set_where "$namespace"
        # shellcheck disable=SC2016 # a template of kubectl
        kube get "$KINDS_THERE" "${WHERE[@]}" --ignore-not-found --output go-template='{{range .items}}{{.kind}} {{.metadata.namespace}} {{.metadata.name}}{{range .metadata.finalizers}} {{.}}{{end}}
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

# Whoever else has a finalizer there is left to do its work.
release() {
    local kind namespace name finalizer
    local -a all others
    while read -r kind namespace name all; do
        others=()
        for finalizer in $all; do
            [[ $finalizer =~ $OUR_FINALIZERS ]] || others+=("\"$finalizer\"")
        done
        kube --namespace "$namespace" patch "${kind,,}.$GROUP" "$name" --type=merge --output name \
            --patch "{\"metadata\":{\"finalizers\":[$(IFS=,; echo "${others[*]}")]}}" >/dev/null || continue
        say "  finalizer taken off: $kind '$namespace/$name'${others:+, left: ${others[*]}}"
    done < <(objects)
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
    wait_until "$RELEASE_SECONDS" no_object && return
    say "not released by the controller within $RELEASE_SECONDS s"
    release
    wait_until "$DEPLOY_SECONDS" no_object || die "these stay, with finalizers of others: $(objects)"
}

# What was made for Proplets and Tasks goes with them, by the garbage collector.
no_children() {
    [[ -z $(kube get deployments,statefulsets,jobs,configmaps,secrets --all-namespaces --output name \
        --selector app.kubernetes.io/managed-by=propeller) ]]
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
    documents 'WebhookConfiguration ' | kube delete --ignore-not-found -f - 2>/dev/null | sed 's/^/  /' || true
    remove_objects
    wait_until "$RELEASE_SECONDS" no_children || say "left to the garbage collector: what was made for Proplets and Tasks"
    say "programs"
    documents '^Deployment ' | kube delete --ignore-not-found --cascade=foreground --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    say "rights"
    documents -v '^CustomResourceDefinition |^Namespace |^Deployment ' | kube delete --ignore-not-found -f - | sed 's/^/  /'
    documents '^Namespace ' | kube delete --ignore-not-found --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    if kinds_in_use; then
        say "the kinds stay: other namespaces have objects of them"
    else
        documents '^CustomResourceDefinition ' | kube delete --ignore-not-found --timeout="${DEPLOY_SECONDS}s" -f - | sed 's/^/  /'
    fi
    say "nothing is left of the overlay '$OVERLAY'"
}

main
