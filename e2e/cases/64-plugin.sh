#!/usr/bin/env bash
# kubectl-propeller: every command against a cluster, as table and as JSON; kubeconfigs that only people have.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

base64 -d <<<"$ADDITION" >"$PART/add.wasm"
base64 -d <<<"$(wasm sleep)" >"$PART/sleep.wasm"
# pj COMMAND...: its JSON, which is a document of plugin/documents.yaml
pj() { p "$@" -o json | is_document; }
is_document() { python3 -B "$ROOT/e2e/tools/plugin_document.py"; }
RUN=(run --wasm "$PART/add.wasm" --input 10 --input 32)

# status N COMMAND...: it ends with this status
status() {
    local wanted=$1 status=0
    shift
    "$@" >"$PART/output" 2>"$PART/errors" || status=$?
    expect_eq "status of $*" "$wanted" "$status"
}
expect_line() { # expect_line FILE PATTERN
    grep -qE "$2" "$PART/$1" || die "$1 has no line '$2': $(cat "$PART/$1")"
}

task_is() { task "$1" "if $2 then \"yes\" else \"no\" end" | grep -q yes; } # task_is NAME JQ-CONDITION

world_start d1 d2

# Without any Proplet.
p "${RUN[@]}" --detach --function add >/dev/null
p run early --wasm "$PART/add.wasm" --function add --input 1 --input 2 --detach >"$PART/output"
expect_line output '^task/early created$'
wait_condition tasks early Scheduled '^False NoProplet'
p why task/early >"$PART/output"
expect_line output '^task/early is pending: NoProplet for '
expect_line output '^What to do: Create a Proplet in this namespace'

# A device that was never heard, and a client id that nobody has.
add_proplet worker d1
add_proplet mistyped d9
wait_condition tasks early Scheduled '^False NoCandidates'
p why task/early >"$PART/output"
expect_line output "^worker +0 +Proplet 'worker' has sent no heartbeat yet: client id 'd1' on channel"
device_start first --identity d1
wait_proplet worker Running
p wait proplet/worker --for ready --timeout 60s >/dev/null
p wait task/early --for complete --timeout 60s >"$PART/output"
expect_line output '^task/early is completed$'
wait_condition proplets mistyped Ready "^False WaitingForHeartbeat"
p why proplet/mistyped >"$PART/output"
expect_line output '^proplet/mistyped is Initializing: WaitingForHeartbeat'

# The result alone is on standard output.
expect_eq "result of run" 42 "$(p "${RUN[@]}" 2>"$PART/errors")"
expect_eq "result of a Task that is removed" 42 "$(p run gone --wasm "$PART/add.wasm" --function add --input 40 --input 2 --rm 2>/dev/null)"
expect_eq "Tasks of the name 'gone'" 0 "$(kn get tasks -o name | grep -c /gone || true)"
expect_eq "phase as JSON" completed "$(pj "${RUN[@]}" 2>/dev/null | jq -r '.status.phase')"

# One that fails: its error, and status 1.
base64 -d <<<"$(wasm trap)" >"$PART/trap.wasm"
status 1 p run bad --wasm "$PART/trap.wasm" --function main
expect_line errors '^DeviceError: '
pj why task/bad | jq -e '.phase == "failed" and (.remedy | length) > 0' >/dev/null

# Labels and capabilities that no Proplet has; places in the line; dry runs write nothing.
status 124 p "${RUN[@]}" -l site=roof --timeout 6s
expect_line errors 'NoCandidates: none of 2 Proplets fits: .*lack label site=roof'
p run gpu --wasm "$PART/add.wasm" --function add --capability gpu --detach >/dev/null
wait_condition tasks gpu Scheduled '^False NoCandidates'
pj why task/gpu |
    jq -e '.reason == "NoCandidates" and .scheduler.reason == "NoCandidates" and (.proplets | length) == 2 and
        ([.proplets[].verdict] | all(. == "lacks capability gpu")) and .rank.waiting >= 2' >/dev/null
before=$(kn get tasks -o name | wc -l)
p "${RUN[@]}" --dry-run server -o json | jq -e '.spec.functionName == "add" and .metadata.creationTimestamp' >/dev/null
p "${RUN[@]}" --dry-run client | kn apply --dry-run=server -f - >/dev/null
p run planned --wasm "$PART/add.wasm" --dry-run client | p plan -f - >"$PART/output"
expect_line output '^task/planned +worker'
p run planned --wasm "$PART/add.wasm" -l site=roof --dry-run client >"$PART/planned.yaml"
sed 's/^spec:/spec:\n  isRecuring: true/' "$PART/planned.yaml" >"$PART/typo.yaml"
status 3 p plan -f "$PART/typo.yaml"
expect_line errors 'isRecuring'
: >"$PART/nothing.yaml"
status 2 p plan -f "$PART/nothing.yaml"
status 1 p plan -f "$PART/planned.yaml" -o json
jq -e '.tasks[0].scheduler.reason == "NoCandidates"' "$PART/output" >/dev/null
is_document <"$PART/output" >/dev/null
expect_eq "Tasks after dry runs" "$before" "$(kn get tasks -o name | wc -l)"

# Dependencies, a schedule, suspension.
kn apply -f - >/dev/null <<YAML
apiVersion: $API
kind: Task
metadata: {name: needs}
spec: {name: needs, file: $ADDITION, dependsOn: [gpu, absent]}
YAML
wait_condition tasks needs Scheduled '^False DependencyMissing'
p why task/needs >"$PART/output"
expect_line output '^  gpu pending: NoCandidates$'
expect_line output '^  absent missing$'
p run nightly --wasm "$PART/add.wasm" --schedule @yearly --timezone Europe/Paris >/dev/null
wait_condition tasks nightly Scheduled '^False WaitingForSchedule'
expect_eq "why a scheduled Task waits" WaitingForSchedule "$(pj why task/nightly | jq -r .reason)"
p suspend task/gpu task/nightly >"$PART/output"
expect_line output '^task/nightly suspended$'
wait_condition tasks gpu Scheduled '^False Suspended'
p resume task/gpu >/dev/null
wait_condition tasks gpu Scheduled '^False NoCandidates'
runs=$(task early '.status.run // 0')
p restart early >/dev/null
pj wait task/early --for complete --timeout 60s | jq -e '.phase == "completed"' >/dev/null
task_is early ".status.run > $runs and .status.phase == \"completed\"" || die "wait took the run before the restart"

# why NAME REASON: the cause and what to do
why() {
    wait_for 30 "the reason of $1" reason_is "$1" "$2"
    p why "task/$1" >"$PART/output"
    expect_line output ": $2"
    expect_line output '^What to do: '
}
reason_is() { [[ $(pj why "task/$1" | jq -r .reason) == "$2" ]]; }

# A circle; a dependency that failed; a back-off; a result that is too large; a cordoned Proplet; one without room.
kn apply -f - >/dev/null <<YAML
apiVersion: $API
kind: Task
metadata: {name: hen}
spec: {name: hen, file: $ADDITION, dependsOn: [egg]}
---
apiVersion: $API
kind: Task
metadata: {name: egg}
spec: {name: egg, file: $ADDITION, dependsOn: [hen]}
---
apiVersion: $API
kind: Task
metadata: {name: after-bad}
spec: {name: after-bad, file: $ADDITION, dependsOn: [bad]}
YAML
why hen DependencyCycle
why after-bad RunIfNotMet
expect_line output '^  bad failed: DeviceError$'
p run again --wasm "$PART/trap.wasm" --function main --retries 3 --detach >/dev/null
why again BackingOff
p suspend task/again >/dev/null
p run large --wasm "$PART/sleep.wasm" --function main --input -1 --detach >/dev/null
wait_task large running
publish_huge "m/$DOMAIN/c/$CHANNEL/control/proplet/results" "\"proplet_id\":\"d1\",\"task_id\":\"$(task large .metadata.uid)\",\"results\""
why large ResultTooLarge
p cordon worker >/dev/null
p run cordoned --wasm "$PART/add.wasm" --input 1 --input 2 --on worker --detach >/dev/null
why cordoned NoCandidates
expect_line output '^worker +[0-9]+ +is cordoned$'
p uncordon worker >/dev/null
wait_task cordoned completed

# What happened, and loads.
pj timeline task/early | jq -e '[.entries[].what] | index("created") == 0 and (map(select(. == "finished")) | length) == 1' >/dev/null
p top proplets --sort-by active >"$PART/output"
expect_line output '^worker +Running +[0-9]'
pj top proplets >/dev/null
pj top tasks -A >/dev/null
status 2 p top pods

# A device has no log here.
status 1 p logs task/early
expect_line errors 'the log of a device is on the device'
status 2 p logs task/early --follow -o json

# A drain waits for what runs, and moves what may move.
device_start second --identity d2
add_proplet other d2
wait_proplet other Running
p cordon other >/dev/null
p run daemon --wasm "$PART/sleep.wasm" --function main --input -1 --dry-run client -o json | jq '.spec.daemon = true' | kn apply -f - >/dev/null
wait_task daemon running
p uncordon other >/dev/null
kn patch proplet worker --type=merge -p '{"spec":{"external":{"maxTasks":1}}}' >/dev/null
p run crowded --wasm "$PART/add.wasm" --function add --on worker --detach >/dev/null
why crowded InsufficientCapacity
expect_line output '^worker +1 +is at maxTasks$'
expect_line output '^It is number [0-9]+ of [0-9]+ Tasks that wait for room'
p suspend task/crowded >/dev/null
status 124 p drain worker --timeout 2s
expect_line errors '^proplet/worker: 1 Task is active$'
expect_line errors 'drain: --timeout: time is over$'
pj run here --wasm "$PART/sleep.wasm" --function main --input -1 --on worker --detach | jq -e '.object == "task/here"' >/dev/null
kn patch proplet worker --type=merge -p '{"spec":{"external":{"maxTasks":2},"unschedulable":false}}' >/dev/null
wait_task here running
status 124 p drain worker --interrupt --timeout 20s
expect_line errors '^task/here stays: no other Proplet that is ready may run it$'
expect_line errors '^task/daemon begins again on another Proplet$'
pj suspend task/here | jq -e '.objects[0] == {"object": "task/here", "namespace": $ns, "result": "suspended"}' --arg ns "$NS" >/dev/null
p drain worker --interrupt --timeout 60s >"$PART/output"
expect_line output '^proplet/worker drained$'
wait_for 60 "the daemon on the other Proplet" task_is daemon '.status.assignedProplet == "other" and .status.phase == "running"'
p drain -l absent=label >/dev/null 2>&1 && die "a drain of nothing succeeds"
status 2 p drain -l ""
p uncordon worker >/dev/null
for metadata in "" "metadata: text"; do
    printf 'apiVersion: %s\nkind: Task\n%s\n' "$API" "$metadata" >"$PART/planned.yaml"
    status 2 p plan -f "$PART/planned.yaml"
    expect_line errors 'document 1: metadata must be an object'
done

# Versions and checks. Not everybody may look at everything.
pj version | jq -e '[.programs[].object] | index("kubectl-propeller") != null and index("API server") != null' >/dev/null
p check --system-namespace "$SYSTEM_NS" -o json >"$PART/output" || true
jq -e '[.checks[] | select(.object == "proplets" and .result == "finding" and (.message | test("mistyped")))] | length == 1' "$PART/output" >/dev/null
is_document <"$PART/output" >/dev/null
pj explain | jq -e '.entries | length > 100' >/dev/null
expect_eq "explain" "reason,reason,condition,condition,alert,metric" "$("$PLUGIN" explain NoProplet Ready PropellerNoLeader \
    propeller_tasks -o json | jq -r '[.entries[].type] | join(",")')"

# Manifests of the newer group of the Go operator: the API server takes all that convert prints.
cat >"$PART/newer.yaml" <<'END'
apiVersion: propeller.propeller.absmach.eu/v1
kind: Proplet
metadata: {name: converted, uid: old, finalizers: [propeller.propeller.absmach.eu/finalizer]}
spec:
  type: external
  external: {deviceType: board, capabilities: [wasm]}
  connectionConfig: {tenantId: t, channelId: c, entityId: e-converted, apiKey: planted-secret, mqttAddress: "tcp://b:1883"}
status: {phase: Running}
---
apiVersion: v1
kind: List
items:
- apiVersion: propeller.propeller.absmach.eu/v1
  kind: Proplet
  metadata: {name: pods}
  spec:
    type: k8s
    k8s: {image: "registry.example/proplet:1", env: {livelinessInterval: 15s, tags: "a,b"}}
    connectionConfig: {tenantId: t, channelId: c, entityId: e-pods, apiKeySecretRef: {name: keys, key: mqtt}, mqttAddress: "tcp://b:1883"}
- apiVersion: propeller.propeller.absmach.eu/v1
  kind: PropellerJob
  metadata: {name: batch}
  spec: {name: batch, tasks: [{name: one, imageUrl: "oci://x/y:1", inputs: [1]}]}
- apiVersion: propeller.propeller.absmach.eu/v1
  kind: Task
  metadata: {name: of-job, ownerReferences: [{apiVersion: propeller.propeller.absmach.eu/v1, kind: PropellerJob, name: batch, uid: u, controller: true}]}
  spec: {name: of-job, imageUrl: "oci://x/y:1"}
END
# The command of the page that saves the objects.
mapfile -t save < <(sed -n "s/^ *kubectl \(get .*\) >old.yaml\$/\1/p" "$ROOT/docs/how-to/take-over.md" | sed "s/\$group/$GROUP/g" | xargs -n 1)
expect_eq "Proplets that the command of the page saves" "$(k get proplets --all-namespaces -o name | wc -l)" "$(k "${save[@]}" | grep -c '^  kind: Proplet$')"
status 0 "$PLUGIN" convert -f "$PART/newer.yaml"
expect_line errors "document 2, item 3: Task 'of-job': metadata.ownerReferences: omitted"
! grep planted-secret "$PART/errors" || die "convert tells a key"
expect_eq "what convert prints" "Proplet Proplet PropellerJob" \
    "$("$PLUGIN" convert -f "$PART/newer.yaml" -o json 2>/dev/null | jq -r '[.items[].kind] | join(" ")')"
kn apply --dry-run=server --validate=strict -f "$PART/output" >/dev/null
expect_eq "variables of the pods" 15 "$("$PLUGIN" convert -f - -o json <"$PART/newer.yaml" 2>/dev/null | jq -r '.items[1].spec.k8s.podTemplate
    .spec.containers[0].env[] | select(.name == "PROPLET_LIVELINESS_INTERVAL").value')"
sed 's/tenantId: t,/&domainId: t,/' "$PART/newer.yaml" >"$PART/both.yaml"
status 2 "$PLUGIN" convert -f "$PART/both.yaml"
expect_line errors "both.yaml': document 1: Proplet 'converted': spec.connectionConfig: has tenantId and domainId"
expect_eq "what convert prints of a file with a mistake" "" "$(<"$PART/output")"
sed 's/inputs: .1./&, halStoragePath: \/data/' "$PART/newer.yaml" >"$PART/lossy.yaml"
status 1 "$PLUGIN" convert -f "$PART/lossy.yaml"
expect_line errors "PropellerJob 'batch': spec.tasks.0..halStoragePath: this operator has no such field"

# Completion: commands, kinds and names.
completed() { KUBECONFIG=$CLUSTER/admin.kubeconfig "$PLUGIN" completion words -- "$@" | grep -v '^:' | paste -sd,; }
expect_eq "commands" uncordon "$(completed unc)"
expect_eq "kinds" tasks/ "$(completed why --namespace "$NS" ta)"
expect_eq "names" tasks/early "$(completed why --namespace "$NS" tasks/ea)"
expect_eq "names of the only kind" worker "$(completed cordon --namespace "$NS" wor)"
expect_eq "choices" json "$(completed why -o js)"
typed() { # typed WORD...: what bash completes, and whether with names of files
    # shellcheck disable=SC2016
    PATH=$ROOT/build/bin:$PATH bash -c 'source <(kubectl-propeller completion bash)
        compopt() { echo "compopt $*"; }
        COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _kubectl_propeller; echo "${COMPREPLY[@]}"' kubectl-propeller "$@"
}
expect_eq "the command convert" convert "$(completed conv)"
expect_eq "completion in bash" explain "$(typed expl)"
expect_eq "files in bash" "compopt -o default" "$(typed plan -f x | head -1)"
expect_eq "files of convert in bash" "compopt -o default" "$(typed convert -f x | head -1)"

# kubectl finds it as its plug-in, and passes flags that stand behind the name; so does an old one, if it is installed.
for kubectl in "$KUBECTL" /usr/bin/kubectl; do
    [[ -x $kubectl ]] || continue
    PATH=$ROOT/build/bin:$PATH "$kubectl" propeller why task/early --namespace "$NS" --kubeconfig "$CLUSTER/admin.kubeconfig" >"$PART/output"
    expect_line output '^task/early is completed$'
done

# Wrong use is 2, a server that refuses or is not there is 3, a closed pipe is nothing.
status 2 p why
status 2 p why pod/x
status 2 "$PLUGIN" frobnicate
status 3 p why task/absent
status 3 "$PLUGIN" why task/x --server https://127.0.0.1:1 --token t
p explain | head -1 >/dev/null

# Two files that are merged, and an exec plug-in that gives the credentials.
jq '{apiVersion, kind, "current-context": ."current-context", contexts, users: []}' \
    < <(k config view --raw -o json) >"$PART/context.json"
k config view --raw --flatten -o json | jq '{apiVersion, kind, clusters, users}' >"$PART/rest.json"
expect_eq "merged files" completed \
    "$(KUBECONFIG=$PART/absent:$PART/context.json:$PART/rest.json "$PLUGIN" why task/early -n "$NS" -o json | jq -r .phase)"
user=$(jq -c '.users[0].user' "$PART/rest.json")
jq -n --argjson user "$user" '{apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential",
    status: ({token: $user.token} + (if $user["client-certificate-data"] then {
        clientCertificateData: ($user["client-certificate-data"] | @base64d),
        clientKeyData: ($user["client-key-data"] | @base64d)} else {} end) | with_entries(select(.value != null)))}' >"$PART/credential.json"
jq --arg file "$PART/credential.json" '.users[0].user = {exec: {apiVersion: "client.authentication.k8s.io/v1",
    interactiveMode: "Never", command: "cat", args: [$file]}}' "$PART/rest.json" >"$PART/exec.json"
expect_eq "credentials of an exec plug-in" completed \
    "$(KUBECONFIG=$PART/context.json:$PART/exec.json "$PLUGIN" why task/early -n "$NS" -o json | jq -r .phase)"

# Another identity: refused where RBAC is.
if ! has_standalone; then
    status 3 p why task/early --as nobody
    expect_line errors 'cannot get resource'
fi

# No key and no value of env is in any output.
kn patch task nightly --type=merge -p '{"spec":{"env":{"PASSWORD":"planted-secret"}}}' >/dev/null
{ p why task/nightly -o json; p timeline task/nightly -o json; p top tasks -o json; } >"$PART/output"
! grep -q planted-secret "$PART/output" || die "a value of env is printed"

# The fleet page, in a browser that notes its address. A server of files stands for a cluster whose leader is a pod, and
# a script for kubectl, which forwards to the page of this controller.
ui() { PATH=$PART/bin:$PATH DISPLAY=:0 "$PLUGIN" ui "$@"; }
program() { # program NAME: its text is on standard input
    mkdir -p "$PART/bin"
    cat >"$PART/bin/$1"
    chmod +x "$PART/bin/$1"
}
answer() { # answer PATH JSON
    mkdir -p "$PART/files/$(dirname "$1")"
    printf '%s\n' "$2" >"$PART/files/$1"
}
leads() { # leads HOLDER TIME
    answer apis/coordination.k8s.io/v1/namespaces/propeller-system/leases/propeller-controller \
        "{\"metadata\": {\"name\": \"propeller-controller\"}, \"spec\": {\"holderIdentity\": \"$1\", \"renewTime\": \"$2\", \"leaseDurationSeconds\": 3600}}"
}
has_page() { # has_page ADDRESS: of the leader
    answer api/v1/namespaces/propeller-system/pods/leader \
        "{\"metadata\": {\"name\": \"leader\"}, \"spec\": {\"containers\": [{\"name\": \"controller\", \"args\": [\"--page-bind-address=$1\"]}]}}"
}
kubectl_says() { program kubectl <<<"#!/bin/sh"$'\n'"echo \$\$ >'$PART/kubectl-pid'; echo \"\$*\" >'$PART/kubectl-arguments'; $1"; }
check_ui() {
    local port page="http://127.0.0.1:$PAGE_PORT" now
    program xdg-open <<<"#!/bin/sh"$'\n'"printf '%s\n' \"\$1\" >'$PART/opened'"

    KUBECONFIG=$CLUSTER/admin.kubeconfig ui --url "$page" -o json >"$PART/output" 2>"$PART/errors"
    jq -e --arg page "$page" '.kind == "Page" and .url == $page' "$PART/output" >/dev/null
    if has_standalone; then # its kubeconfig has a token
        expect_eq "status of a login with the token of the address" 204 "$(jq -nR 'input | sub(".*#token="; "") | {token: .}' "$PART/opened" |
            curl -sS -c "$PART/cookies" -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d @- "$page/login")"
        (curl -sN --max-time 30 -b "$PART/cookies" "$page/api/stream?list=fleet" || true) | grep -m 1 '"kinds":{"proplets":' >/dev/null ||
            fail "the page does not count the fleet"
        ! grep -qF "$(sed 's/.*#token=//' "$PART/opened")" "$PART/output" "$PART/errors" || die "the token is printed"
    fi
    KUBECONFIG=$CLUSTER/admin.kubeconfig ui --url "$page" --no-login 2>"$PART/errors" >/dev/null
    expect_line opened "^$page\$"
    expect_line errors '^Log in with '
    status 2 ui --url file:///etc/passwd
    KUBECONFIG=$CLUSTER/admin.kubeconfig status 3 ui --url http://127.0.0.1:1

    port=$(free_port)
    now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    local cluster=(--server "http://127.0.0.1:$port" --token t)
    answer version '{"gitVersion": "v1.34.0"}'
    spawn files "$PYTHON_HOME/bin/python" -m http.server --bind 127.0.0.1 --directory "$PART/files" "$port"
    wait_for 30 "the server of files" bash -c "exec 3<>/dev/tcp/127.0.0.1/$port"
    status 1 ui "${cluster[@]}"
    expect_line errors "has no Lease 'propeller-controller'"
    leads leader_1 2020-01-01T00:00:00Z
    status 1 ui "${cluster[@]}"
    expect_line errors 'there is no leader'
    leads leader_1 "$now"
    status 1 ui "${cluster[@]}"
    expect_line errors "the leader 'leader' is no pod"
    has_page 0
    status 1 ui "${cluster[@]}"
    expect_line errors 'start the controller with --page-bind-address'
    has_page 127.0.0.1:9000
    status 1 env PATH=/nonexistent "$PLUGIN" ui "${cluster[@]}"
    expect_line errors "program 'kubectl' is not in .PATH"
    kubectl_says 'echo error: not today >&2; exit 1'
    status 3 ui "${cluster[@]}"
    expect_line errors 'kubectl port-forward has ended: error: not today$'
    kubectl_says 'echo dial tcp4 127.0.0.1:9000: connect: connection refused >&2'
    status 1 ui "${cluster[@]}"
    kubectl_says 'exec tail -f /dev/null'
    status 124 ui "${cluster[@]}" --timeout 1s
    kubectl_says "echo 'Forwarding from 127.0.0.1:$PAGE_PORT -> 9000'; exec tail -f /dev/null"
    rm "$PART/opened"
    PATH=$PART/bin:$PATH DISPLAY=:0 "$PLUGIN" ui "${cluster[@]}" --port 8000 >"$PART/address" 2>"$PART/errors" &
    wait_for 30 "the page to be opened" test -s "$PART/opened"
    kill -TERM $!
    status 0 wait $!
    expect_line address "^The fleet page of pod leader is at $page until Ctrl-C\.\$"
    expect_line opened "^$page/#token=t\$"
    expect_line kubectl-arguments "^port-forward --server=http://127.0.0.1:$port --token=t --namespace=propeller-system --address=127.0.0.1 pod/leader 8000:9000\$"
    ! kill -0 "$(<"$PART/kubectl-pid")" 2>/dev/null || die "kubectl goes on"
}
operator_in_pods || check_ui

# Ctrl-C: `run --rm` leaves no Task, and a server that does not answer holds up no command.
interrupted() { # interrupted SECONDS COMMAND...
    local status=0 seconds=$1
    shift
    KUBECONFIG=$CLUSTER/admin.kubeconfig timeout --preserve-status --signal=INT "$seconds" "$PLUGIN" "$@" --namespace "$NS" \
        >"$PART/output" 2>"$PART/errors" || status=$?
    expect_eq "status of $1 after Ctrl-C" 130 "$status"
}
interrupted 3 run stopped --wasm "$PART/add.wasm" --function add --capability none --rm
expect_eq "Tasks of the name 'stopped'" 0 "$(kn get tasks -o name | grep -c /stopped || true)"
silent=$(free_port)
spawn silent "$PYTHON_HOME/bin/python" -c "import socket, signal; server = socket.create_server(('127.0.0.1', $silent)); signal.pause()"
wait_for 30 "the silent server" bash -c "exec 3<>/dev/tcp/127.0.0.1/$silent"
interrupted 2 why task/early --server "http://127.0.0.1:$silent"

# The broker is away: the Task has its Proplet, and its start waits.
crash broker
p run away --wasm "$PART/add.wasm" --input 1 --input 2 --on other --detach >/dev/null
wait_task away scheduled
points_to_broker() { p why task/away | grep '^What to do: Look whether the controller has a connection to the broker'; }
wait_for 30 "the start of 'away' to be missed" points_to_broker
