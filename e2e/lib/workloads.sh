# shellcheck shell=bash
# What the controller makes in the cluster, and a stand-in for the kubelet where there is none.

# made KIND NAME [JQ]: kind as in the API's paths: deployments, statefulsets, pods, secrets, ...
made_path() {
    case $1 in
    deployments | statefulsets | replicasets) printf '/apis/apps/v1/namespaces/%s/%s' "$NS" "$1" ;;
    jobs) printf '/apis/batch/v1/namespaces/%s/%s' "$NS" "$1" ;;
    *) printf '/api/v1/namespaces/%s/%s' "$NS" "$1" ;;
    esac
}
made() { api "$(made_path "$1")/$2" | jq -r "${3:-.}"; }
made_is() { # made_is KIND NAME JQ EXPECTED: for wait_for
    local seen
    seen=$(made "$1" "$2" "$3" 2>&1) && [[ $seen == "$4" ]] && return
    printf "%s of %s '%s' is '%s', not '%s'\n" "$3" "$1" "$2" "$seen" "$4"
    return 1
}
wait_made() { wait_for "${5:-30}" "$1 $2" made_is "$1" "$2" "$3" "$4"; }
made_gone() {
    local code
    code=$(api "$(made_path "$1")/$2" -o /dev/null -w '%{http_code}' 2>/dev/null || true)
    printf 'answer %s for %s %s\n' "$code" "$1" "$2"
    [[ $code == 404 ]]
}
wait_made_gone() { wait_for "${3:-30}" "$1 $2 to be gone" made_gone "$1" "$2"; }

# pods_of PROPLET: names of those that are not going
pods_of() {
    api "/api/v1/namespaces/$NS/pods?labelSelector=propeller.absmach.fr/proplet=$1" |
        jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .metadata.name'
}
pod_count_is() { # pod_count_is PROPLET COUNT
    local pods
    mapfile -t pods < <(pods_of "$1")
    printf '%s pods of %s, not %s\n' "${#pods[@]}" "$1" "$2"
    ((${#pods[@]} == $2))
}

# pod_say POD JSON: its status, as its kubelet would tell it
pod_say() { kn patch pod "$1" --subresource=status --type=merge -p "{\"status\":$2}" >/dev/null; }
# pods_run PROPLET COUNT: so many come, and all of them become ready
pods_run() {
    local pod
    wait_for 30 "$2 pods of $1" pod_count_is "$1" "$2"
    for pod in $(pods_of "$1"); do
        pod_say "$pod" '{"phase":"Running","conditions":[{"type":"PodScheduled","status":"True"},
            {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}'
    done
}

# namespace_ends TASK: nothing can be made in the namespace any more, and what is in it stays; then the Task,
# which was suspended, goes on and is told so. namespace_goes: what is in it goes. Needs the cluster's manager.
namespace_ends() {
    kill -STOP "$(in_cluster pid_of manager)"
    k delete namespace "$NS" --wait=false >/dev/null
    kn patch task "$1" --type=merge -p '{"spec":{"suspend":false}}' >/dev/null
    wait_condition tasks "$1" Started '^False NamespaceTerminating ' 60
    expect_eq "phase and reason of $1" "scheduled NamespaceTerminating" "$(task "$1" '"\(.status.phase) \(.status.reason)"')"
}
namespace_goes() {
    kill -CONT "$(in_cluster pid_of manager)"
    wait_for 180 "the namespace to be gone" namespace_gone
}
namespace_gone() {
    local seen
    seen=$(k get namespace "$NS" --ignore-not-found -o json | jq -c '[.status.conditions[]? | select(.status == "True") | .message]')
    printf '%s\n' "$seen"
    [[ -z $seen ]]
}

# k8s_json IMAGE [JSON merged into spec.k8s]: for proplet_json; the key is in the Secret "keys"
k8s_json() {
    jq -nc --arg image "$1" --argjson more "${2:-{\}}" '
        { spec: { type: "k8s", external: null, k8s: ({ image: $image } + $more),
                  connectionConfig: { clientKeySecretRef: { name: "keys", key: "clientKey" } } } }'
}
