# shellcheck shell=bash disable=SC2016 # sed has dollars of its own
# What users do with kubectl. run.py runs each step (what stands below a line "## NAME") with one version of kubectl
# in two shells, one for each server, and compares what kubectl prints and how it ends. NS is a namespace with nothing
# in it at the beginning, the folder one in which steps leave files for later ones, SAMPLES that of config/samples,
# RECORDS that of what is compared; lib.sh has the rest.

## kinds
kubectl api-resources --api-group "$GROUP"
kubectl api-resources --api-group "$GROUP" -o name
kubectl api-resources --api-group "$GROUP" --namespaced=false
kubectl api-resources --api-group "$GROUP" -o wide
ours='^(NAME|namespaces|configmaps|secrets|serviceaccounts|events|leases) '
plain api-resources 2>&1 | grep -E "$ours" | sed 's/  */ /g' | record 'api-resources'
plain api-resources -o wide 2>&1 | grep -E "$ours" | sed 's/  */ /g' | record 'api-resources -o wide'
plain api-versions 2>&1 | grep -E "^(v1|coordination.k8s.io/v1|events.k8s.io/v1|$GROUP/v1)$" | record 'api-versions'

## explained
for kind in tasks proplets propellerjobs federatedjobs trainingrounds configmap secret namespace serviceaccount lease; do
    kubectl explain "$kind"
done

## explained in depth
kubectl explain task --recursive
kubectl explain proplet.spec --recursive
kubectl explain configmap --recursive
kubectl explain task.spec.priority
kubectl explain task.status.conditions
kubectl explain proplet.spec.connectionConfig.clientKeySecretRef
kubectl explain --api-version="$GROUP/v1" task.spec.schedule
kubectl explain propellerjobs.spec.tasks.dependsOn
kubectl explain secret.data
kubectl explain configmap.metadata.ownerReferences
kubectl explain events.involvedObject
kubectl explain task.spec.none
kubectl explain nothing

## nothing there
kubectl get tasks
kubectl get tasks -o wide
kubectl get tasks -o yaml
kubectl get tasks,proplets -o json
kubectl get tasks -o name
kubectl get task none
kubectl get task none --ignore-not-found
kubectl get task none other
kubectl get nonsense
kubectl get nonsense.example.com
kubectl get "tasks.v2.$GROUP"
kubectl describe task none
kubectl describe tasks
kubectl delete task none
kubectl delete tasks --all
kubectl delete task none --ignore-not-found
kubectl label task none a=b
kubectl patch task none --type=merge -p '{}'
kubectl wait --for=condition=Ready task/none --timeout=3s
kubectl get all
kubectl get pods,services,deployments,jobs
kubectl get pods -o wide
kubectl get pod none

## applied
kubectl apply --dry-run=client -f "$SAMPLES/task-addition.yaml"
kubectl apply --dry-run=server -f "$SAMPLES/task-addition.yaml"
kubectl apply --dry-run=server -f "$SAMPLES/task-addition.yaml" -o yaml
kubectl diff -f "$SAMPLES/task-addition.yaml"
kubectl apply -f "$SAMPLES/task-addition.yaml" -f "$SAMPLES/proplet-external.yaml" -f "$SAMPLES/propellerjob.yaml"
kubectl apply -f "$SAMPLES/task-addition.yaml" -f "$SAMPLES/proplet-external.yaml" -f "$SAMPLES/propellerjob.yaml"
kubectl diff -f "$SAMPLES/task-addition.yaml" -f "$SAMPLES/proplet-external.yaml"
kubectl apply -f "$SAMPLES/federatedjob.yaml" -f "$SAMPLES/traininground.yaml" -f "$SAMPLES/task-schedule.yaml" -o name
kubectl create -f "$SAMPLES/task-addition.yaml"
kubectl apply view-last-applied task addition

## applied again, changed
task 's/10, 32/20, 22/' >changed.yaml
kubectl diff -f changed.yaml
kubectl apply --dry-run=server -f changed.yaml
kubectl apply -f changed.yaml
kubectl get task addition -o 'jsonpath={.spec.inputs} {.metadata.generation}{"\n"}'
task '/propletSelector/,$d' | kubectl diff -f -
task '/propletSelector/,$d' | kubectl apply -f -
kubectl get task addition -o 'jsonpath={.spec.propletSelector}{"\n"}'
kubectl apply -f "$SAMPLES/task-addition.yaml" -o yaml
kubectl apply -f "$SAMPLES/task-addition.yaml" --force
printf '{apiVersion: %s/v1, kind: Task, metadata: {name: addition}, spec: {name: addition, priority: 7}}' "$GROUP" |
    kubectl apply -f - --overwrite=false

## shown
kubectl get tasks
kubectl get tasks -o wide
kubectl get task addition -o yaml
kubectl get task addition -o json
kubectl get task addition -o yaml --show-managed-fields
kubectl get task/addition proplet/gateway
kubectl get tasks,proplets,propellerjobs,federatedjobs,trainingrounds
kubectl get tasks,proplets,propellerjobs,federatedjobs,trainingrounds -o wide --show-labels
kubectl get proplets -L site
kubectl get proplets -l site=lab
kubectl get proplets -l site!=lab
kubectl get proplets -l 'site in (lab, elsewhere)' --no-headers
kubectl get tasks --field-selector metadata.name=addition
kubectl get tasks --field-selector spec.none=addition
kubectl get tasks -l 'a in'
kubectl get tasks --sort-by=.metadata.name
kubectl get tasks --chunk-size=1
kubectl get tasks -A --field-selector "metadata.namespace=$NS"
kubectl get tasks -o 'jsonpath={range .items[*]}{.metadata.name}={.spec.functionName} {end}{"\n"}'
kubectl get tasks -o 'custom-columns=NAME:.metadata.name,FILE:.spec.file,PHASE:.status.phase'
kubectl get tasks -o 'go-template={{range .items}}{{.metadata.name}} {{end}}{{"\n"}}'
kubectl get -f "$SAMPLES/task-addition.yaml"
plain get --raw "/apis/$GROUP/v1/namespaces/$NS/tasks/addition" | jq -S . | record 'get --raw'
kubectl get --raw "/apis/$GROUP/v1/namespaces/$NS/tasks/none"
kubectl get task addition --output-watch-events -o name --watch=false
kubectl get propellers
kubectl get "task.$GROUP/addition" "task.v1.$GROUP/addition"

## one of each
kubectl explain task
kubectl explain proplet.spec.connectionConfig --recursive
kubectl describe task addition
kubectl describe proplet gateway
configmap short '' 'a: b' | kubectl create -f -
editor 's/^  a: b$/  a: edited/'
kubectl edit configmap short
plain describe configmap short | sort | record 'describe configmap' # an older one says it in any order
editor 's/functionName: main/functionName: other/'
kubectl edit task addition
kubectl get task addition -o 'jsonpath={.spec.functionName} {.metadata.generation}{"\n"}'
kubectl apply -f "$SAMPLES/task-addition.yaml"
kubectl label configmap short tier=first
kubectl label task addition tier=first
kubectl label task addition tier=second
kubectl annotate task addition example.com/text='many words: yes'
kubectl get configmap short -o 'jsonpath={.data} {.metadata.labels}{"\n"}'
kubectl label task addition tier-
kubectl annotate task addition example.com/text-
kubectl auth can-i create tasks
kubectl delete configmap short

## described
status task addition '{"phase": "running", "assignedProplet": "gateway", "conditions": [{"type": "Scheduled",
    "status": "True", "reason": "Assigned", "message": "assigned to Proplet", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}'
kubectl create -f - <<YAML
{apiVersion: v1, kind: Event, metadata: {name: addition.1}, type: Normal, reason: Scheduled, message: assigned,
 involvedObject: {apiVersion: $GROUP/v1, kind: Task, name: addition, namespace: $NS,
 uid: $(newest get task addition -o 'jsonpath={.metadata.uid}')}, count: 3, source: {component: tests},
 firstTimestamp: "$(date -u +%FT%TZ)", lastTimestamp: "$(date -u +%FT%TZ)"}
YAML
kubectl describe task addition
kubectl describe tasks
kubectl describe proplet gateway
kubectl describe propellerjobs,federatedjobs
kubectl describe traininground
kubectl describe -l site=lab proplets
kubectl describe task add
kubectl get tasks
kubectl get tasks -o wide
kubectl get events
kubectl get events -o wide
kubectl get events --field-selector involvedObject.name=addition -o name
kubectl get events --sort-by=.metadata.creationTimestamp
kubectl events
kubectl events --for task/addition
kubectl events --types=Warning
kubectl describe event addition.1
kubectl patch task addition --type=merge -p '{"spec": {"inputs": [1]}}'
status task addition '{"phase": "completed"}'
status task addition '{"phase": "pending"}'
kubectl patch task addition --type=merge -p '{"status": {"phase": "running"}}'

## what is built in
kubectl create configmap settings --from-literal=a=b --from-literal=c=d
kubectl create configmap settings --from-literal=a=b
kubectl create configmap settings --from-literal=a=b --dry-run=server -o yaml
kubectl create configmap other --from-literal=a=b --dry-run=server
kubectl create secret generic key --from-literal=clientKey=abc
kubectl create secret tls pair --cert=/dev/null --key=/dev/null
kubectl create serviceaccount account
kubectl create namespace "$NS-more"
kubectl create namespace "$NS-more"
kubectl create namespace Wrong_Name
kubectl get configmaps,secrets,serviceaccounts --field-selector metadata.name!=kube-root-ca.crt
kubectl get configmaps,secrets -o wide --field-selector metadata.name!=kube-root-ca.crt
kubectl get configmap settings -o yaml
kubectl get secret key -o json
kubectl get namespace "$NS-more"
kubectl get namespace "$NS-more" -o yaml
plain describe configmap settings | sort | record 'describe configmap' # an older one says it in any order
kubectl describe secret key
kubectl describe serviceaccount account
kubectl describe namespace "$NS-more"
configmap patched '' '' | kubectl apply -f -
kubectl patch configmap patched -p '{"data": {"x": "y"}}'
kubectl patch configmap patched -p '{"data": {"x": "y"}}'
kubectl patch configmap patched --type=json -p '[{"op": "remove", "path": "/data/none"}]'
kubectl get leases
kubectl create -f - <<YAML
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lease}, spec: {holderIdentity: me, leaseDurationSeconds: 15}}
YAML
kubectl get leases
kubectl describe lease lease
kubectl delete namespace "$NS-more" --timeout=120s
kubectl get namespace "$NS-more"

## refused
task 's/functionName: main/priorty: 1/' | kubectl apply -f -
task 's/functionName: main/priorty: 1/' | kubectl apply -f - --dry-run=server
task 's/functionName: main/priorty: 1/' | kubectl apply -f - --validate=false --dry-run=server
task 's/functionName: main/priorty: 1/' | kubectl create -f - --validate=warn --dry-run=server
task 's/functionName: main/priority: high/' | kubectl apply -f -
task 's/functionName: main/priority: 500/' | kubectl apply -f -
task 's/functionName: main/schedule: "60 * * * *"/' | kubectl apply -f -
task 's/name: addition/name: Not_A_Name/' | kubectl apply -f -
task 's/^  name: addition/  name: fresh/; s/functionName: main/priority: 500/' | kubectl create -f -
task 's/kind: Task/kind: Tusk/' | kubectl apply -f -
task 's/fr\/v1/fr\/v2/' | kubectl apply -f -
task '/^spec:/,$d' | kubectl apply -f -
task '/^  name: addition/d' | kubectl apply -f -
kubectl patch task addition --type=merge -p '{"spec": {"inputs": [1]}}'
kubectl patch task addition --type=merge -p '{"spec": {"priority": 101}}'
kubectl patch task addition --type=json -p '[{"op": "replace", "path": "/spec/none/deep", "value": 1}]'
kubectl patch task addition --type=json -p '[{"op": "test", "path": "/spec/name", "value": "other"}]'
kubectl patch task addition --type=merge -p '{'
kubectl patch task addition -p '{"spec": {"priority": 3}}'
kubectl apply -n nowhere -f "$SAMPLES/task-addition.yaml"
kubectl get tasks -n nowhere
kubectl scale task addition --replicas=2
kubectl rollout status task/addition
kubectl logs addition
kubectl create deployment d --image=i --dry-run=server

## edited
kubectl edit configmap none
editor 's/^  a: b$/  a: edited/'
kubectl edit configmap settings
editor 's/^  a: edited$/  a: edited/'
kubectl edit configmap settings
editor 's/^  a: edited$/  a: edited again/'
kubectl edit configmap settings -o json
editor '/^  a: /d'
kubectl edit configmap settings --save-config
kubectl get configmap settings -o 'jsonpath={.data} {.metadata.annotations}{"\n"}'
editor 's/functionName: main/functionName: other/'
kubectl edit task addition
kubectl get task addition -o 'jsonpath={.spec.functionName} {.metadata.generation}{"\n"}'

## edited wrongly
editor 's/functionName: other/functionName: [1]/'
kubectl edit task addition
record 'in the editor' <edited
editor 's/functionName: .*/priority: 500/'
kubectl edit task addition
record 'in the editor' <edited
editor 's/name: gateway/name: elsewhere/'
kubectl edit proplet gateway
record 'in the editor' <edited
editor 's/^spec:/spoc:/'
kubectl edit proplet gateway
record 'in the editor' <edited

## edited as it was applied, set
editor 's/functionName: main/functionName: applied/'
kubectl apply edit-last-applied task addition
kubectl apply view-last-applied task addition -o json
kubectl apply set-last-applied -f "$SAMPLES/task-addition.yaml"
kubectl apply set-last-applied -f "$SAMPLES/task-addition.yaml" --create-annotation
kubectl replace -f "$SAMPLES/task-addition.yaml"
task 's/^  name: addition/  name: none/' | kubectl replace -f -
kubectl get configmap settings -o yaml | sed 's/resourceVersion: .*/resourceVersion: "1"/' | kubectl replace -f -
kubectl replace --force -f "$SAMPLES/task-addition.yaml" --timeout=60s
kubectl set env task/addition A=B

## labels and annotations
kubectl label task addition tier=first
kubectl label task addition tier=first
kubectl label task addition tier=second
kubectl label task addition tier=second --overwrite
kubectl label task addition tier=third --overwrite --dry-run=server
kubectl label task addition tier=third --overwrite --dry-run=client
kubectl label task addition --list
kubectl label tasks --all everywhere=yes
kubectl label tasks -l everywhere=yes everywhere-
kubectl label task addition none-
kubectl label task addition 'bad label=x'
kubectl label task addition "a=$(printf 'x%.0s' {1..64})"
kubectl label task addition a=b --resource-version=1
kubectl label proplet,task -l site=lab more=less
kubectl get tasks,proplets --show-labels
kubectl annotate task addition example.com/text='many words: yes'
kubectl annotate task addition example.com/text=other
kubectl annotate task addition example.com/text=other --overwrite -o yaml
kubectl annotate task addition example.com/text- --dry-run=server
kubectl annotate task addition example.com/text-
kubectl annotate -f "$SAMPLES/task-addition.yaml" a=b c=d
kubectl annotate configmap settings a=b
kubectl label namespace "$NS" team=edge
kubectl label secret key team=edge --overwrite -o name

## by the server
kubectl apply --server-side -f "$SAMPLES/task-broadcast.yaml"
kubectl apply --server-side -f "$SAMPLES/task-broadcast.yaml"
kubectl apply --server-side --dry-run=server -f "$SAMPLES/task-broadcast.yaml" -o yaml --show-managed-fields
kubectl apply --server-side --field-manager=other -f "$SAMPLES/task-broadcast.yaml"
sed 's/broadcast: .*/&\n  priority: 9/; s/functionName: .*/functionName: other/' "$SAMPLES/task-broadcast.yaml" >other.yaml
kubectl apply --server-side --field-manager=other -f other.yaml
kubectl diff --server-side --field-manager=other -f other.yaml
kubectl diff --server-side --force-conflicts --field-manager=other -f other.yaml
kubectl apply --server-side --field-manager=other --force-conflicts -f other.yaml
kubectl get -f other.yaml -o yaml --show-managed-fields
kubectl apply --server-side -f "$SAMPLES/task-broadcast.yaml"
kubectl apply --server-side -f "$SAMPLES/task-addition.yaml"
kubectl apply --server-side --force-conflicts -f "$SAMPLES/task-addition.yaml"
kubectl get task addition -o yaml --show-managed-fields
kubectl apply -f "$SAMPLES/task-addition.yaml"
configmap merged '' 'a: b, c: d' | kubectl apply --server-side -f -
configmap merged '' 'a: b' | kubectl apply --server-side --field-manager=two -f -
configmap merged '' 'a: z' | kubectl apply --server-side --field-manager=two -f -
configmap merged '' 'c: d' | kubectl apply --server-side -f - -o yaml --show-managed-fields
configmap merged '' 'c: [1]' | kubectl apply --server-side -f -
task 's/functionName: main/priorty: 1/' | kubectl apply --server-side -f -
task 's/functionName: main/priority: 500/' | kubectl apply --server-side -f -

## after the client, by the server
server_after_client() { # NAME: what is on the standard input, both ways and back
    cat >"$1.yaml"
    kubectl apply -f "$1.yaml"
    kubectl apply --server-side --dry-run=server -f "$1.yaml"
    kubectl diff --server-side -f "$1.yaml"
    kubectl apply --server-side -f "$1.yaml"
    kubectl get -f "$1.yaml" -o yaml --show-managed-fields
    kubectl apply --server-side -f "$1.yaml"
    kubectl apply -f "$1.yaml"
    kubectl get -f "$1.yaml" -o yaml --show-managed-fields
    kubectl apply --server-side --field-manager=other -f "$1.yaml"
    kubectl apply --server-side -f "$1.yaml" -o yaml --show-managed-fields
}
configmap moved 'a: b' 'c: d' | server_after_client built-in
task 's/^  name: addition/  name: moved/' | server_after_client custom
sed 's/^  name: gateway/  name: moved/' "$SAMPLES/proplet-external.yaml" | server_after_client device
for other in moved-1 moved-2; do # what others changed meanwhile
    configmap $other 'a: b' 'c: d' >$other.yaml
    kubectl apply -f $other.yaml
    kubectl patch configmap $other -p '{"data": {"c": "other"}}'
    kubectl label configmap $other a=other --overwrite
done
kubectl apply --server-side -f moved-1.yaml
kubectl get -f moved-1.yaml -o yaml --show-managed-fields
kubectl apply --server-side --force-conflicts -f moved-2.yaml
kubectl apply --server-side -f moved-2.yaml -o yaml --show-managed-fields

## pruned
configmap one 'prune: "1"' 'a: b' >one.yaml
configmap two 'prune: "1"' 'a: b' >two.yaml
kubectl apply -l prune=1 -f one.yaml -f two.yaml
kubectl apply --prune --dry-run=server -l prune=1 -f one.yaml
kubectl apply --prune -l prune=1 --prune-whitelist core/v1/ConfigMap -f one.yaml
kubectl apply --prune -l prune=1 --prune-allowlist core/v1/ConfigMap -f one.yaml
kubectl get configmaps -l prune=1
mkdir -p folder
cp one.yaml folder/
printf 'resources: [one.yaml]\nnamePrefix: pre-\nlabels: [{pairs: {kustomized: "yes"}}]\n' >folder/kustomization.yaml
kubectl apply -k folder
kubectl diff -k folder
kubectl delete -k folder

## watched
watching tasks
appears '^addition'
kubectl label task addition seen=yes
kubectl annotate task addition seen=yes
task 's/^  name: addition/  name: watched/' | kubectl apply -f -
appears '^watched'
status task watched '{"phase": "scheduled", "assignedProplet": "gateway"}'
appears '^watched +scheduled'
kubectl delete task watched --wait=false
kubectl patch task watched --type=merge -p '{"metadata": {"finalizers": null}}'
task 's/^  name: addition/  name: final/' | kubectl apply -f -
appears '^final'
watched

## watched by objects
watching task final --output-watch-events -o 'jsonpath={.type} {.object.metadata.name} {.object.metadata.labels}{"\n"}'
appears 'ADDED'
kubectl label task final seen=yes
appears 'MODIFIED.*seen'
kubectl annotate task final seen=yes
kubectl label task final seen=again --overwrite
appears 'MODIFIED.*again'
kubectl patch task final --type=merge -p '{"metadata": {"finalizers": null}}'
kubectl delete task final
appears 'DELETED'
watched
watching configmaps -l watched=yes --watch-only --output-watch-events
until grep -q began seen; do # it says nothing when it begins
    configmap began 'watched: "yes"' "n: \"$SECONDS$RANDOM\"" | newest apply -f - >/dev/null
done
configmap seen-1 'watched: "yes"' 'a: b' | kubectl create -f -
appears 'ADDED +seen-1'
kubectl patch configmap seen-1 -p '{"data": {"a": "c"}}'
appears 'MODIFIED +seen-1'
kubectl label configmap seen-1 watched-
appears 'DELETED +seen-1'
kill "$WATCH"
grep seen-1 seen | record 'a watch by label'
kubectl get configmaps -l watched=yes -w --request-timeout=2s
kubectl get task none -w

## waited for
kubectl wait --for=condition=Ready proplet/gateway --timeout=3s
status proplet gateway '{"conditions": [{"type": "Ready", "status": "True", "reason": "Alive", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}'
kubectl wait --for=condition=Ready proplet/gateway --timeout=60s
kubectl wait --for=condition=Ready=True proplets --all --timeout=60s
kubectl wait --for=condition=Ready=False proplet -l site=lab --timeout=3s
kubectl wait --for=jsonpath='{.spec.type}'=external proplet/gateway --timeout=60s
kubectl wait --for=jsonpath='{.spec.type}'=k8s proplet/gateway --timeout=3s
kubectl wait --for=condition=Ready proplet/none --timeout=3s
waiting --for=condition=Done task/addition
status task addition '{"conditions": [{"type": "Done", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}'
waited
waiting --for=delete configmap/merged
kubectl delete configmap merged
waited
kubectl wait --for=delete configmap/merged --timeout=60s
kubectl wait --for=create configmap/settings --timeout=60s

## deleted with what they own
owned() { # OWNER CASCADE
    newest create configmap "$1" >/dev/null
    newest create -f - >/dev/null <<YAML
{apiVersion: v1, kind: ConfigMap, metadata: {name: of-$1, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: $1,
 uid: $(newest get configmap "$1" -o 'jsonpath={.metadata.uid}'), blockOwnerDeletion: true}]}}
YAML
    kubectl delete configmap "$1" --cascade="$2" --timeout=60s
}
owned fore foreground
kubectl get configmap of-fore
owned back background
kubectl wait --for=delete configmap/of-back --timeout=60s
kubectl get configmap of-back
owned orphaned orphan
kubectl get configmap of-orphaned -o 'jsonpath={.metadata.ownerReferences}{"\n"}'
owned old true
kubectl delete configmap of-orphaned --cascade=sideways
kubectl delete configmap of-orphaned --dry-run=server
kubectl delete configmap of-orphaned --dry-run=client
kubectl delete configmap of-orphaned -o name

## deleted
kubectl delete task addition --wait=false
kubectl get task addition -o 'jsonpath={.metadata.finalizers} {.metadata.deletionGracePeriodSeconds}{"\n"}'
kubectl label task addition dying=yes
kubectl delete task addition --timeout=3s
kubectl patch task addition --type=merge -p '{"metadata": {"finalizers": ["example.com/new"]}}'
kubectl patch task addition --type=merge -p '{"metadata": {"finalizers": []}}'
kubectl get task addition
kubectl delete proplet gateway --grace-period=0 --force --wait=false
kubectl delete -f "$SAMPLES/federatedjob.yaml" -f "$SAMPLES/traininground.yaml" --wait=false
kubectl delete configmap -l prune=1 --now
kubectl delete configmaps --all --wait=false
kubectl delete configmap,secret settings key
kubectl delete -f one.yaml -f two.yaml --ignore-not-found
plain delete --raw "/api/v1/namespaces/$NS/serviceaccounts/account" | jq -S . | record 'delete --raw'
kubectl delete nonsense x
kubectl delete events --all

## who may
kubectl auth can-i create tasks
kubectl auth can-i '*' '*'
kubectl auth can-i get tasks/status
kubectl auth can-i list nonsense
kubectl get tasks --token=wrong --kubeconfig=/dev/null -s "$(newest config view --minify -o 'jsonpath={.clusters[0].cluster.server}')" --insecure-skip-tls-verify
kubectl get --raw /nothing
kubectl get --raw /healthz
kubectl get --raw /readyz
kubectl get --raw /livez/ping
kubectl cluster-info
