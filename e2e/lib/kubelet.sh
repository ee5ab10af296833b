# shellcheck shell=bash
# A control plane without nodes: cases write the status of pods as a kubelet would.
#
#   kubelet_runs "$(pod_of_task sum)"                its container has started
#   kubelet_ended "$(pod_of_task sum)" 0 '42'        exit code, termination message

# pods_where SELECTOR: names, those that are being deleted left out
pods_where() {
    api "/api/v1/namespaces/$NS/pods" --get --data-urlencode "labelSelector=$1" |
        jq -r '.items[] | select(.metadata.deletionTimestamp == null) | .metadata.name'
}

has_pod() {
    local names
    names=$(pods_where "$1") || return 1
    printf '%s\n' "pods of $1: $names"
    [[ -n $names ]]
}

# pod_of_task NAME [ATTEMPT]: waits until it is there
pod_of_task() {
    local selector="$GROUP/task=$1,$GROUP/attempt=${2:-1}"
    wait_for 30 "a pod of Task $1, attempt ${2:-1}" has_pod "$selector" >&2
    pods_where "$selector" | sed -n 1p
}

# container_status STATE-JSON [READY]
container_status() {
    jq -nc --argjson state "$1" --argjson ready "${2:-false}" '
        [{ name: "task", image: "image", imageID: "", restartCount: 0, ready: $ready, started: $ready,
           state: $state }]'
}

kubelet_runs() {
    pod_say "$1" "$(jq -nc --argjson list "$(container_status '{"running":{}}' true)" \
        '{phase: "Running", containerStatuses: $list,
          conditions: [{type: "Ready", status: "True", lastTransitionTime: (now | todate)},
                       {type: "PodScheduled", status: "True"}]}')"
}

# kubelet_ended POD EXIT-CODE [MESSAGE] [REASON]
kubelet_ended() {
    local state phase=Failed reason=${4:-Error}
    (($2 != 0)) || phase=Succeeded reason=Completed
    state=$(jq -nc --argjson code "$2" --arg message "${3:-}" --arg reason "$reason" '
        {terminated: {exitCode: $code, message: $message, reason: $reason,
                      startedAt: (now | todate), finishedAt: (now | todate)}}')
    pod_say "$1" "$(jq -nc --arg phase "$phase" --argjson list "$(container_status "$state")" \
        '{phase: $phase, containerStatuses: $list}')"
}

# kubelet_waits POD REASON MESSAGE
kubelet_waits() {
    local state
    state=$(jq -nc --arg reason "$2" --arg message "$3" '{waiting: {reason: $reason, message: $message}}')
    pod_say "$1" "$(jq -nc --argjson list "$(container_status "$state")" \
        '{phase: "Pending", containerStatuses: $list}')"
}

# kubelet_evicted POD: taken away by somebody who drains its node
kubelet_evicted() {
    pod_say "$1" "$(jq -nc --argjson list "$(container_status \
        '{"terminated":{"exitCode":143,"reason":"Error"}}')" '
        {phase: "Failed", containerStatuses: $list,
         conditions: [{type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI",
                       message: "Eviction API: evicting"}]}')"
}

# add_cluster_proplet NAME [JSON]: of type k8s; its pod is said to be ready, and it becomes Running
add_cluster_proplet() {
    proplet_json "$1" "$1" "$(k8s_json registry.example/proplet:1)" |
        jq --argjson more "${2:-{\}}" 'del(.spec.external) * $more' | create
    pods_run "$1" 1
    wait_proplet "$1" Running
}

# add_image_task NAME PROPLET [JSON merged into the object]
add_image_task() {
    jq -n --arg api "$API" --arg name "$1" --arg id "$2" --argjson more "${3:-{\}}" '
        { apiVersion: $api, kind: "Task", metadata: { name: $name },
          spec: { name: $name, imageUrl: "registry.example/run:1",
                  propletSelector: { propletId: $id } } } * $more' | create
}
