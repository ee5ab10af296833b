#!/usr/bin/env bash
# The schemas alone, without controller and webhook: what the API server takes, refuses and keeps.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

KINDS=(tasks proplets propellerjobs federatedjobs trainingrounds)

FIXED="spec: Forbidden: only suspend, activeDeadlineSeconds, ttlSecondsAfterFinished and priority"

# ---- requests ----

# request METHOD PATH [CONTENT-TYPE]: body from stdin; prints "CODE MESSAGE", keeps the answer
request() {
    curl -sS --max-time 20 --unix-socket "$CLUSTER/api" -X "$1" \
        -H "Content-Type: ${3:-application/json}" --data-binary @- -o "$PART/answer" \
        -w '%{http_code} ' "http://localhost/apis/$API/namespaces/$NS/$2"
    jq -r '.message // ""' "$PART/answer"
}
answer() { jq -r "$1" "$PART/answer"; }

# The least of each kind; the tables change it with jq.
base_of() {
    case $1 in
    tasks) jq -n '{kind: "Task", spec: {name: "t", imageUrl: "registry.example.com/m:1"}}' ;;
    proplets)
        jq -n '{kind: "Proplet", spec: {type: "external", connectionConfig: {
            mqttAddress: "tcp://b:1883", domainId: "d", channelId: "c", clientId: "i",
            clientKey: "planted-key"}}}'
        ;;
    propellerjobs) jq -n '{kind: "PropellerJob", spec: {name: "j", taskRefs: ["a"]}}' ;;
    federatedjobs)
        jq -n '{kind: "FederatedJob", spec: {experimentId: "e", taskWasmImage: "i",
            participants: [{propletId: "a"}, {propletId: "b"}], rounds: {total: 1}}}'
        ;;
    trainingrounds)
        jq -n '{kind: "TrainingRound", spec: {roundId: "r", federatedJobRef: {name: "f"},
            taskWasmImage: "i", participants: ["a", "b"]}}'
        ;;
    esac
}

# object_of KIND NAME FILTER
object_of() {
    base_of "$1" | jq --arg api "$API" --arg name "$2" '.apiVersion = $api | .metadata.name = $name | '"$3"
}

try() { object_of "$1" x "$2" | request POST "$1?dryRun=All&fieldValidation=Strict"; }

accepted() {
    local said
    said=$(try "$1" "$2")
    [[ $said == 201* ]] || fail "$1 with $2: expected to be accepted, got: $said"
}

# refused KIND FILTER PIECE-OF-MESSAGE
refused() {
    local said
    said=$(try "$1" "$2")
    [[ $said == 422* && $said == *"$3"* ]] || fail "$1 with $2: expected 422 and '$3', got: $said"
    [[ $said != *planted* ]] || fail "$1 with $2: the key is in the message: $said"
}

make() { object_of "$1" "$2" "${3:-.}" | request POST "$1" >/dev/null; }

# patch KIND NAME[/status] PATCH [TYPE]: prints "CODE MESSAGE"
patch() { request PATCH "$1/$2${DRY:+?dryRun=All}" "application/${4:-merge}-patch+json" <<<"$3"; }

must_patch() {
    local said
    said=$(patch "$@")
    [[ $said == 200* ]] || fail "patch of $1 $2 with $3: $said"
}
must_not_patch() { # KIND NAME PATCH PIECE-OF-MESSAGE
    local said piece=$4
    # There the rule speaks as the webhook does, of the field and not of the spec.
    ! has_standalone || piece=${piece#"${FIXED%%only*}"}
    said=$(patch "$1" "$2" "$3")
    [[ $said == 422* && $said == *"$piece"* ]] || fail "patch of $1 $2 with $3: expected '$piece', got: $said"
}

# ---- installation ----

# Standalone has the kinds in itself.
has_standalone || said=$(k apply --server-side --dry-run=server --warnings-as-errors -f "$ROOT/crds" 2>&1) || fail "$said"
expect_eq "kinds of the category" 5 "$(k api-resources --categories=propeller -o name | wc -l)"
kn get ptask,pl,pjob,fljob,round >/dev/null

for kind in "${KINDS[@]}"; do
    text=$(k explain "$kind" --recursive)
    expect_match "kubectl explain $kind" 'observedGeneration' "$text"
    for part in "" .spec .status; do
        text=$(k explain "$kind$part")
        [[ $text != *"<no description>"* && $text != *"<empty>"* ]] ||
            fail "kubectl explain $kind$part lacks a description: $text"
    done
done

columns() {
    api "/apis/$API/namespaces/$NS/$1" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' |
        jq -r '[.columnDefinitions[] | .name] | join(", ")'
}
while IFS=: read -r kind expected; do
    expect_eq "columns of $kind" "Name, $expected" "$(columns "$kind")"
done <<'TABLE'
tasks:Phase, Reason, Proplet, Attempt, Start Time, Finish Time, Age, Mode, Preferred Type, Last Run, Next Run
proplets:Type, Phase, Ready, Reason, Available, Tasks, Replicas, Last Seen, Age
propellerjobs:Phase, Reason, Mode, Tasks, Completed, Failed, Age
federatedjobs:Phase, Reason, Rounds, Current Round, Completed Rounds, Age
trainingrounds:Phase, Reason, Job, Updates, Required, Age
TABLE

said=$(kn apply --dry-run=server --validate=strict --warnings-as-errors -f "$ROOT/config/samples" 2>&1) ||
    fail "a sample is refused: $said"

# ---- accepted ----

while IFS=$'\t' read -r kind filter; do
    accepted "$kind" "$filter"
done < <(sed 's/  */\t/' <<'TABLE'
tasks           .
tasks           .status = {}
tasks           .spec.priority = 0
tasks           .spec.priority = 100
tasks           .spec.inputs = [1.5, 9007199254740993, "x", -3]
tasks           .spec.metadata = {a: [1, null, {b: 1.5}]}
tasks           .spec.metadata = "text"
tasks           del(.spec.imageUrl) | .spec.file = "AGFzbQEAAAA="
tasks           .spec.file = "AGFzbQEAAAABBwFgAn9/AX8DAgEABwgBBG1haW4AAAoJAQcAIAAgAWoL"
tasks           .spec.encrypted = true
tasks           .spec += {broadcast: true, propletSelector: {propletId: "", matchLabels: {a: "b"}}}
tasks           .spec.propletSelector = {propletId: "p", matchDeviceTypes: ["x"], matchCapabilities: ["y"]}
tasks           .spec += {isRecurring: true, schedule: "0 * * * *", timezone: "Europe/Paris"}
tasks           .spec += {daemon: true, restartPolicy: "Always"}
tasks           .spec.resourceRequirements = {cpu: "500m", memory: "1Gi", custom: {gpu: 1, kind: "any word"}}
tasks           .spec.resourceRequirements = {cpu: 2, memory: 1048576}
tasks           .spec.monitoringProfile = {enabled: true, interval: "1m0s", historySize: 5}
tasks           .spec.dependsOn = ["a", "b"]
tasks           .spec.env = {A: "b", "odd name": ""}
proplets        .
proplets        .status = {}
proplets        .spec.connectionConfig |= (del(.clientKey) | .clientKeySecretRef = {name: "s", key: "k"})
proplets        .spec.connectionConfig |= (.clientKey = "" | .clientKeySecretRef = {name: "s", key: "k"})
proplets        .spec.connectionConfig.domainId = "<your-domain-id>"
proplets        .spec.connectionConfig.mqttAddress = "tcp://<your-mqtt-broker>:1883"
proplets        .spec.connectionConfig.mqttAddress = "mqtts://b"
proplets        .spec.connectionConfig += {mqttQos: 0, mqttTimeout: "1m0s"}
proplets        .spec += {type: "k8s", k8s: {image: "i", replicas: 0, podTemplate: {spec: {any: 1}}}}
proplets        .spec.resources = {cpu: 1, memory: "128Mi", "example.com/gpu": "1"}
proplets        .spec.external = {deviceType: "t", capabilities: ["a", "a"], dialect: "embedded", maxTasks: 1}
propellerjobs   .
propellerjobs   .spec.tasks = [{name: "a", imageUrl: "i"}, {name: "b", imageUrl: "i", dependsOn: ["a"]}]
propellerjobs   .spec.tasks = [range(1000) | {name: "t\(.)", imageUrl: "i"}]
propellerjobs   .spec.managedBy = "example.com/queue"
federatedjobs   .
federatedjobs   .status = {}
federatedjobs   .spec += {kOfN: 2, timeoutSeconds: 0, hyperparams: {lr: 0.05}, aggregator: {algorithm: "new"}}
trainingrounds  .
trainingrounds  .status = {}
trainingrounds  .spec += {kOfN: 1, hyperparams: [1], aggregator: {config: {mu: 0.1}}}
TABLE
)

# ---- refused ----

while IFS=$'\t' read -r kind piece filter; do
    # A string with a NUL standalone cannot read: 400, whatever field it is.
    [[ $filter != *u0000* ]] || ! has_standalone || continue
    refused "$kind" "$filter" "$piece"
done < <(sed -E 's/ {2,}/\t/g' <<'TABLE'
tasks  spec.name: Required value  del(.spec.name)
tasks  spec.name: Invalid value  .spec.name = ""
tasks  spec.name: Too long  .spec.name = "n" * 254
tasks  one of file and imageUrl is needed  del(.spec.imageUrl)
tasks  one of file and imageUrl is needed  .spec.imageUrl = ""
tasks  an encrypted workload needs imageUrl  .spec |= (del(.imageUrl) | .file = "AGFzbQEAAAA=" | .encrypted = true)
tasks  spec.file: Invalid value  .spec.file = "AAAAAAAAAAA="
tasks  spec.file: Invalid value  .spec.file = "AGFzbQEAAAA"
tasks  spec.file: Invalid value  .spec.file = "AGFzb?EAAAA="
tasks  spec.priority: Invalid value: 101  .spec.priority = 101
tasks  spec.priority: Invalid value: -1  .spec.priority = -1
tasks  spec.kind: Unsupported value  .spec.kind = "other"
tasks  spec.mode: Unsupported value  .spec.mode = "other"
tasks  spec.runIf: Unsupported value  .spec.runIf = "always"
tasks  spec.restartPolicy: Unsupported value  .spec.restartPolicy = "Sometimes"
tasks  spec.preferredPropletType: Unsupported value  .spec.preferredPropletType = "edge"
tasks  spec.propletLostPolicy: Unsupported value  .spec.propletLostPolicy = "wait"
tasks  spec.concurrencyPolicy: Unsupported value  .spec.concurrencyPolicy = "Allow"
tasks  exclude each other  .spec += {broadcast: true, propletSelector: {propletId: "p"}}
tasks  isRecurring needs a schedule  .spec.isRecurring = true
tasks  Always is for daemons only  .spec.restartPolicy = "Always"
tasks  cannot depend on itself  .spec.dependsOn = ["a", "x"]
tasks  spec.dependsOn: Too many  .spec.dependsOn = [range(65) | "t\(.)"]
tasks  spec.env: Too many  .spec.env = ([range(129) | {key: "A\(.)", value: ""}] | from_entries)
tasks  spec.env.A  .spec.env = {A: 1}
tasks  spec.backoffLimit: Invalid value  .spec.backoffLimit = -1
tasks  spec.activeDeadlineSeconds: Invalid value  .spec.activeDeadlineSeconds = 0
tasks  spec.ttlSecondsAfterFinished: Invalid value  .spec.ttlSecondsAfterFinished = 2147483648
tasks  spec.broadcastQuorum: Invalid value  .spec.broadcastQuorum = 0
tasks  spec.monitoringProfile.interval: Invalid value  .spec.monitoringProfile = {interval: "often"}
tasks  spec.resourceRequirements.cpu: Invalid value  .spec.resourceRequirements.cpu = "much"
tasks  spec: Required value  del(.spec)
proplets  spec.type: Required value  del(.spec.type)
proplets  spec.type: Unsupported value  .spec.type = "edge"
proplets  spec.k8s: Required value  .spec.type = "k8s"
proplets  spec.k8s.image: Required value  .spec.k8s = {}
proplets  spec.k8s.image: Invalid value  .spec.k8s.image = ""
proplets  spec.k8s.replicas: Invalid value  .spec.k8s = {image: "i", replicas: 101}
proplets  spec.k8s.logLevel: Unsupported value  .spec.k8s = {image: "i", logLevel: "loud"}
proplets  spec.connectionConfig: Required value  del(.spec.connectionConfig)
proplets  spec.connectionConfig.clientId: Required value  del(.spec.connectionConfig.clientId)
proplets  spec.connectionConfig.clientId: Invalid value  .spec.connectionConfig.clientId = ""
proplets  spec.connectionConfig.clientId: Invalid value  .spec.connectionConfig.clientId = "a/b"
proplets  spec.connectionConfig.channelId: Invalid value  .spec.connectionConfig.channelId = "a+"
proplets  spec.connectionConfig.domainId: Invalid value  .spec.connectionConfig.domainId = "#"
proplets  spec.connectionConfig.domainId: Invalid value  .spec.connectionConfig.domainId = "a\u0000"
proplets  spec.connectionConfig.mqttAddress: Invalid value  .spec.connectionConfig.mqttAddress = "http://b"
proplets  spec.connectionConfig.mqttQos: Invalid value: 3  .spec.connectionConfig.mqttQos = 3
proplets  spec.connectionConfig.mqttTimeout: Invalid value  .spec.connectionConfig.mqttTimeout = "0s"
proplets  spec.connectionConfig.mqttTimeout: Invalid value  .spec.connectionConfig.mqttTimeout = "0"
proplets  spec.connectionConfig.mqttTimeout: Invalid value  .spec.connectionConfig.mqttTimeout = "soon"
proplets  exactly one of clientKey and clientKeySecretRef  del(.spec.connectionConfig.clientKey)
proplets  exactly one of clientKey and clientKeySecretRef  .spec.connectionConfig.clientKeySecretRef = {name: "s", key: "k"}
proplets  clientKeySecretRef.key: Required value  .spec.connectionConfig |= (del(.clientKey) | .clientKeySecretRef = {name: "s"})
proplets  connectionConfig.clientKey  .spec.connectionConfig.clientKey = ["planted-key"]
proplets  connectionConfig.clientKey  .spec.connectionConfig.clientKey = "planted-key" * 500
proplets  spec.external.dialect: Unsupported value  .spec.external.dialect = "zephyr"
proplets  spec.external.maxTasks: Invalid value  .spec.external.maxTasks = 0
proplets  spec.resources.cpu: Invalid value  .spec.resources.cpu = "-1"
propellerjobs  at least one of tasks and taskRefs  del(.spec.taskRefs)
propellerjobs  at least one of tasks and taskRefs  .spec += {tasks: [], taskRefs: []}
propellerjobs  spec.tasks[1]: Duplicate value  .spec.tasks = [{name: "a", imageUrl: "i"}, {name: "a", imageUrl: "j"}]
propellerjobs  spec.tasks: Too many  .spec.tasks = [range(1001) | {name: "t\(.)", imageUrl: "i"}]
propellerjobs  cannot depend on itself  .spec.tasks = [{name: "a", imageUrl: "i", dependsOn: ["a"]}]
propellerjobs  spec.tasks[0].imageUrl: Required value  .spec.tasks = [{name: "a"}]
propellerjobs  more than 1 MiB together  .spec.tasks = [range(2) | {name: "t\(.)", file: ("AGFzb" + "A" * 599995)}]
propellerjobs  spec.executionMode: Unsupported value  .spec.executionMode = "random"
propellerjobs  spec.failurePolicy: Unsupported value  .spec.failurePolicy = "Stop"
propellerjobs  spec.parallelism: Invalid value  .spec.parallelism = 0
federatedjobs  spec.taskWasmImage: Required value  del(.spec.taskWasmImage)
federatedjobs  spec.participants: Invalid value  .spec.participants = []
federatedjobs  spec.participants[1]: Duplicate value  .spec.participants = [range(2) | {propletId: "a"}]
federatedjobs  more than the number of participants  .spec.kOfN = 3
federatedjobs  spec.kOfN: Invalid value  .spec.kOfN = 0
federatedjobs  spec.rounds.total: Invalid value  .spec.rounds.total = 0
federatedjobs  spec.timeoutSeconds: Invalid value  .spec.timeoutSeconds = -1
federatedjobs  spec.lateUpdates: Unsupported value  .spec.lateUpdates = "Keep"
trainingrounds  spec.participants[1]: Duplicate value  .spec.participants = ["a", "a"]
trainingrounds  more than the number of participants  .spec.kOfN = 3
trainingrounds  spec.federatedJobRef.name: Required value  .spec.federatedJobRef = {}
TABLE
)

# ---- defaults and pruning ----

default_of() { # KIND FILTER FIELD EXPECTED
    try "$1" "$2" >/dev/null
    expect_eq "$3 of $1 with $2" "$4" "$(answer "$3 | tojson")"
}
default_of tasks . .spec.priority 50
default_of tasks '.spec.priority = 0' .spec.priority 0
default_of tasks . .spec.kind '"standard"'
default_of tasks . .spec.preferredPropletType '"any"'
default_of tasks . .spec.runIf null
default_of proplets . .spec.connectionConfig.mqttQos null
default_of proplets . .spec.connectionConfig.mqttTimeout '"30s"'
default_of proplets '.spec += {type: "k8s", k8s: {image: "i"}}' .spec.k8s.replicas 1
default_of propellerjobs . .spec.executionMode '"configurable"'
default_of federatedjobs . .spec.timeoutSeconds 600
default_of federatedjobs '.spec.timeoutSeconds = 0' .spec.timeoutSeconds 0
object_of tasks x '.spec += {unknown: 1, metadata: {kept: 1}}' |
    request POST "tasks?dryRun=All&fieldValidation=Ignore" >/dev/null
expect_eq "an unknown field" null "$(answer '.spec.unknown | tojson')"
expect_eq "an unknown field within metadata" 1 "$(answer .spec.metadata.kept)"

# ---- phases ----

PHASES=(pending scheduled running completed failed interrupted skipped)
declare -A NEXT=(
    [absent]="pending scheduled running completed failed skipped"
    [pending]="pending scheduled running completed failed skipped"
    [scheduled]="scheduled running completed failed skipped"
    [running]="running completed failed interrupted"
    [completed]="completed pending"
    [failed]="failed pending"
    [interrupted]="interrupted pending"
    [skipped]="skipped"
)
phase_patch() { jq -nc --arg phase "$1" '{status: {phase: $phase}}'; }

for from in absent "${PHASES[@]}"; do
    make tasks "was-$from"
    [[ $from == interrupted ]] && must_patch tasks "was-$from/status" "$(phase_patch running)"
    [[ $from == absent ]] || must_patch tasks "was-$from/status" "$(phase_patch "$from")"
    for to in "${PHASES[@]}"; do
        if [[ " ${NEXT[$from]} " == *" $to "* ]]; then
            DRY=1 must_patch tasks "was-$from/status" "$(phase_patch "$to")"
        else
            DRY=1 must_not_patch tasks "was-$from/status" "$(phase_patch "$to")" \
                "status.phase: Forbidden: the phase cannot go from ${from/absent/pending} to $to"
        fi
    done
    [[ $from == absent ]] || DRY=1 must_not_patch tasks "was-$from/status" '{"status": null}' \
        "status.phase: Forbidden: a phase that was set cannot be removed"
done
DRY=1 must_not_patch tasks was-pending/status '{"status": {"phase": "done"}}' "Unsupported value"

# ---- what may change while a Task is scheduled or running ----

while read -r change; do
    for phase in scheduled running; do
        DRY=1 must_not_patch tasks "was-$phase" "{\"spec\": {$change}}" "$FIXED"
    done
    for phase in absent completed; do
        DRY=1 must_patch tasks "was-$phase" "{\"spec\": {$change}}"
    done
done <<'TABLE'
"name": "other"
"functionName": "f"
"kind": "federated"
"imageUrl": "other"
"file": "AGFzbQEAAAA="
"cliArgs": ["a"]
"inputs": [1.5]
"env": {"A": "b"}
"propletSelector": {"matchCapabilities": ["c"]}
"preferredPropletType": "k8s"
"resourceRequirements": {"cpu": 1}
"daemon": true
"restartPolicy": "OnFailure"
"broadcast": true
"mode": "train"
"metadata": {"a": 1}
"encrypted": true
"kbsResourcePath": "k"
"dependsOn": ["a"]
"runIf": "failure"
"workflowId": "w"
"jobId": "j"
"schedule": "@hourly"
"timezone": "UTC"
"isRecurring": true, "schedule": "@daily"
"monitoringProfile": {"enabled": true}
"backoffLimit": 1
"propletLostPolicy": "Wait"
"propletLostSeconds": 1
"concurrencyPolicy": "Replace"
"startingDeadlineSeconds": 1
"historyLimit": 1
"broadcastQuorum": 1
"suspend": true, "env": {"A": "b"}
"priority": 1, "dependsOn": ["a"]
TABLE
while read -r change; do
    for phase in scheduled running; do
        DRY=1 must_patch tasks "was-$phase" "{\"spec\": {$change}}"
    done
done <<'TABLE'
"suspend": true
"priority": 0
"activeDeadlineSeconds": 60
"ttlSecondsAfterFinished": 0
"suspend": true, "priority": 1, "activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1
TABLE
DRY=1 must_patch tasks was-running '{"metadata": {"finalizers": ["example.com/a"], "labels": {"a": "b"}}}'

# The largest file: the rules hold, and their cost at run time is not too high.
{ printf AGFzbQEAAAAA; head -c 716788 /dev/zero | tr '\0' +; } >"$PART/file"
base_of tasks | jq --rawfile file "$PART/file" --arg api "$API" \
    '.apiVersion = $api | .metadata.name = "large" | .spec.file = $file
    | .spec.env = ([range(128) | {key: "A\(.)", value: ("v" * 1000)}] | from_entries)' |
    request POST tasks >"$PART/said"
expect_match "a file of 700 KiB" '^201' "$(<"$PART/said")"
for phase in scheduled running; do
    must_patch tasks large/status "$(phase_patch "$phase")"
    must_not_patch tasks large '{"spec": {"file": "AGFzbQEAAAA="}}' "$FIXED"
    must_not_patch tasks large '{"spec": {"suspend": true, "env": {"A0": "b"}}}' "$FIXED"
    must_patch tasks large '{"spec": {"priority": 7}}'
    must_patch tasks large '{"spec": {"priority": 8}}'
done
must_not_patch tasks large/status "$(phase_patch pending)" "the phase cannot go"
must_patch tasks large/status "$(phase_patch completed)"

make proplets fixed
must_not_patch proplets fixed '{"spec": {"type": "k8s", "k8s": {"image": "i"}}}' "spec.type: Forbidden: cannot change"
for field in domainId channelId clientId; do
    must_not_patch proplets fixed "{\"spec\": {\"connectionConfig\": {\"$field\": \"other\"}}}" \
        "spec.connectionConfig.$field: Forbidden: cannot change"
done
make propellerjobs fixed
must_not_patch propellerjobs fixed '{"spec": {"managedBy": "example.com/a"}}' "spec.managedBy: Forbidden: cannot change"
make propellerjobs managed '.spec.managedBy = "example.com/a"'
must_not_patch propellerjobs managed '{"spec": {"managedBy": null}}' "spec.managedBy: Forbidden: cannot change"

# ---- what a status keeps ----

# Byte for byte: jq would print the numbers its own way.
kept() { object tasks 'was-running?pretty=false' | grep -o '"results":.*' | sed 's/^"results"://; s/}}$//'; }
while read -r value; do
    must_patch tasks was-running/status '[{"op": "add", "path": "/status/results", "value": '"$value"'}]' json
    expect_eq "results as stored" "$value" "$(kept)"
done <<'TABLE'
"42"
42
1.5
9007199254740993
null
{"a":[1,null,{"b":9007199254740993}]}
[]
""
TABLE

# As other operators of this group write it.
must_patch tasks was-running/status '{"status": {"phase": "completed", "assignedProplet": "p",
    "createdAt": "2026-11-21T10:00:00Z", "startedAt": "2026-11-21T10:00:00Z", "nextRun": null,
    "finishedAt": "2026-11-21T10:00:01Z", "updatedAt": "2026-11-21T10:00:01Z", "error": "",
    "conditions": [{"type": "Completed", "status": "True", "reason": "r", "message": "m",
                    "lastTransitionTime": "2026-11-21T10:00:00Z"},
                   {"type": "Started", "status": "True", "lastTransitionTime": null}],
    "latestMetrics": {"timestamp": "2026-11-21T10:00:00Z", "cpuMilliPercent": 50000,
                      "memoryMilliPercent": 1, "memoryBytes": 45035996}}}'
must_patch proplets fixed/status '{"status": {"phase": "Running", "alive": true, "taskCount": 0,
    "lastSeen": "2026-11-21T10:00:00Z", "aliveHistory": ["2026-11-21T10:00:00Z"],
    "availableResources": {"cpu": "2", "memory": "4Gi", "custom": {"gpu": "1"}},
    "k8sStatus": {"readyReplicas": 0, "availableReplicas": 0},
    "metadata": {"description": "d", "tags": ["a"], "totalMemoryBytes": 25220448256},
    "latestMetrics": {"cpuMilliPercent": 84763, "memoryBytes": 20828160},
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z"}]}}'
make federatedjobs running
must_patch federatedjobs running/status '{"status": {"phase": "Running", "currentRound": 1,
    "participants": [{"propletId": "a", "status": "Running", "lastUpdate": null}]}}'
make trainingrounds running
must_patch trainingrounds running/status '{"status": {"phase": "Running", "updatesRequired": 2,
    "participants": [{"propletId": "a", "updateReceived": true,
                      "taskRef": {"kind": "Task", "name": "t", "namespace": "n"}}]}}'
must_patch propellerjobs fixed/status '{"status": {"phase": "Completed", "taskCount": 1,
    "conditions": [{"type": "Complete", "status": "True", "observedGeneration": 1, "reason": "r",
                    "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z"}]}}'
