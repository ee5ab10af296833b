# shellcheck shell=bash
# Kueue by its CRDs alone: quota/queue.py writes to Workloads what Kueue would.

KUEUE_CRDS=${E2E_FIXTURES:-$ROOT/../shared/fixtures}/kueue/crds
QUEUE_KINDS=(workloads resourceflavors workloadpriorityclasses)

# For cases that need the CRDs of Kueue, which are not in this repository.
case_needs_kueue() {
    [[ -d $KUEUE_CRDS ]] && return
    say "needs the CRDs of Kueue: E2E_FIXTURES/kueue/crds is not there" >"$PART/not-applicable"
    exit 0
}

# quota_install: CRDs, and rights of ours
quota_install() {
    local kind
    for kind in "${QUEUE_KINDS[@]}"; do
        k apply --server-side --force-conflicts -f "$KUEUE_CRDS/kueue.x-k8s.io_$kind.yaml" >/dev/null
        wait_for 60 "the CRD of $kind" k wait --for=condition=Established --timeout=5s "crd/$kind.kueue.x-k8s.io"
    done
    k apply --server-side -f "$ROOT/rbac/kueue/roles.yaml" -f "$ROOT/config/components/kueue/bindings.yaml" >/dev/null
}

# quota_is JSON: what queue.py admits by; its own --help says more
quota_is() {
    printf '%s' "$1" >"$PART/queue.json.new"
    mv "$PART/queue.json.new" "$PART/queue.json"
}
queue_start() {
    spawn queue python3 -B "$HERE/quota/queue.py" --api "$CLUSTER/api" --namespace "$NS" --script "$PART/queue.json"
}

# flavor NAME LABELS-JSON: a ResourceFlavor of this case
flavor() {
    jq -n --arg name "$1" --argjson labels "$2" '{apiVersion: "kueue.x-k8s.io/v1beta2", kind: "ResourceFlavor",
        metadata: {name: $name}, spec: {nodeLabels: $labels}}' | k apply --server-side -f - >/dev/null
}
priority_class() { # priority_class NAME VALUE
    jq -n --arg name "$1" --argjson value "$2" '{apiVersion: "kueue.x-k8s.io/v1beta2", kind: "WorkloadPriorityClass",
        metadata: {name: $name}, value: $value}' | k apply --server-side -f - >/dev/null
}
workloads() { api "/apis/kueue.x-k8s.io/v1beta2/namespaces/$NS/workloads"; }
# workload_of JOB [FILTER]
workload_of() {
    workloads | jq -r --arg job "$1" ".items[] | select(.metadata.ownerReferences[]? | .name == \$job) | ${2:-.}"
}

nap() { task_json "$1" "$(wasm nap)" "[\"${2:-50}\", \"1\"]" | jq -c .spec; } # nap NAME [TIMES]: the spec of a Task
# job_json NAME QUEUE LABELS-JSON FIELDS-JSON TASK...
job_json() {
    local name=$1 queue=$2 labels=$3 fields=$4
    shift 4
    printf '%s\n' "$@" | jq -cs --arg api "$API" --arg name "$name" --arg queue "$queue" --argjson labels "$labels" \
        --argjson fields "$fields" '
        { apiVersion: $api, kind: "PropellerJob",
          metadata: { name: $name, labels: ({ "kueue.x-k8s.io/queue-name": $queue } + $labels) },
          spec: ({ name: $name, tasks: . } * $fields) }'
}
job() { object propellerjobs "$1" | jq -r "${2:-.}"; }
wait_job() { # wait_job NAME CONDITION [SECONDS]
    kn wait --for "condition=$2" --timeout "${3:-90}s" "propellerjob/$1" >/dev/null || {
        job "$1" .status
        return 1
    }
}
wait_quota() { wait_condition propellerjobs "$1" QuotaReserved "$2" 60; } # wait_quota JOB PATTERN
# workload_says JOB CONDITION: its status, for wait_workload
workload_says() { workload_of "$1" ".status.conditions[]? | select(.type == \"$2\") | .status"; }
workload_is() { [[ $(workload_says "$1" "$2") == "$3" ]]; }
wait_workload() { wait_for 60 "$2 of the Workload of $1 to be $3" workload_is "$@"; } # wait_workload JOB CONDITION STATUS
