#!/usr/bin/env bash
# kubectl.sh KUBECTL KUBECONFIG NAMESPACE FOLDER: does 60 things with kubectl in an empty namespace, and prints for each its
# exit status, the objects that it prints as JSON, and all objects that are there afterwards; without uids, times and
# versions, which differ between servers. What kubectl says besides is in FOLDER/said.
set -uo pipefail

# shellcheck disable=SC2034,SC2016 # the commands below use it
KUBECTL=$1 KUBECONFIG=$2 NS=$3 GROUP=propeller.propeller.abstractmachines.fr
S=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../config/samples" && pwd)
KINDS=configmaps,secrets,serviceaccounts,leases,tasks,proplets,propellerjobs,federatedjobs,trainingrounds,enrollments
mkdir -p "$4"
cd "$4" || exit 1
export KUBECONFIG HOME=$PWD KUBECTL_EXTERNAL_DIFF="diff -u -N"

kubectl() { "$KUBECTL" --namespace "$NS" "$@"; }
task() { sed "$1" "$S/task-addition.yaml"; }
configmap() { printf '{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s}}, data: {%s}}\n' "$@"; }
dependent() { # dependent OWNER: a ConfigMap of-OWNER that this one owns
    printf '{apiVersion: v1, kind: ConfigMap, metadata: {name: of-%s, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s, blockOwnerDeletion: true}]}}' \
        "$1" "$1" "$(kubectl get configmap "$1" -o 'jsonpath={.metadata.uid}')"
}
comparable() {
    jq -cS --arg ns "$NS" '(.items // [.])[] | select(.metadata.name | . != "kube-root-ca.crt" and . != "default")
        | del(.metadata.resourceVersion, .metadata.selfLink) | walk(if type == "object" then
            with_entries(if (.key | test("^(uid|time|creationTimestamp|deletionTimestamp)$")) and (.value | type) == "string"
                then .value = "set" else . end) else . end)
        | if .metadata.managedFields then .metadata.managedFields |= sort_by(tojson) else . end
        | walk(if type == "string" then split($ns) | join("NS") else . end)'
}

while read -r line; do
    status=0
    eval "$line" >printed 2>>said || status=$?
    printf '==== %s\nexit %s\n' "$line" "$status"
    cat printed >>said
    ! jq -e .kind printed >/dev/null 2>&1 || comparable <printed
    kubectl get "$KINDS" -o json | comparable
done <<'STEPS'
kubectl api-resources --api-group "$GROUP"
kubectl explain task.spec
kubectl explain configmap.data
kubectl get tasks
kubectl get task none
kubectl get nonsense
kubectl apply --dry-run=server -o json -f "$S/task-addition.yaml"
kubectl diff -f "$S/task-addition.yaml"
kubectl apply -f "$S/task-addition.yaml" -f "$S/proplet-external.yaml" -f "$S/propellerjob.yaml"
kubectl apply -f "$S/task-addition.yaml" -f "$S/proplet-external.yaml" -f "$S/propellerjob.yaml"
kubectl diff -f "$S/task-addition.yaml"
kubectl apply -f "$S/federatedjob.yaml" -f "$S/traininground.yaml" -f "$S/enrollment.yaml" -f "$S/enrollment-automatic.yaml"
kubectl create -f "$S/task-addition.yaml"
task 's/10, 32/20, 22/' | kubectl diff -f -
task 's/10, 32/20, 22/' | kubectl apply -f -
kubectl get task addition -o json
kubectl get tasks,proplets -o wide --show-labels
kubectl describe task addition
kubectl get proplets -l site=lab -o json
kubectl get tasks --field-selector metadata.name=addition -o name
kubectl get tasks -l 'a in'
task 's/functionName: main/priorty: 1/' | kubectl apply -f -
task 's/functionName: main/priority: 500/' | kubectl apply -f -
task 's/^  name: addition/  name: Not_A_Name/' | kubectl apply -f -
task 's/kind: Task/kind: Tusk/' | kubectl apply -f -
kubectl apply -n nowhere -f "$S/task-addition.yaml"
kubectl create configmap settings --from-literal=a=b
kubectl create secret generic key --from-literal=clientKey=secret
kubectl create serviceaccount account
kubectl create configmap settings --from-literal=a=b
kubectl patch configmap settings -p '{"data": {"c": "d"}}'
kubectl patch task addition --type=merge -p '{"spec": {"priority": 7}}'
kubectl patch task addition --type=json -p '[{"op": "test", "path": "/spec/name", "value": "other"}]'
kubectl patch task addition -p '{"spec": {"priority": 3}}'
KUBE_EDITOR="sed -i s/a:.b/a:\ edited/" kubectl edit configmap settings
kubectl get configmap settings -o json | sed 's/"resourceVersion": ".*"/"resourceVersion": "1"/' | kubectl replace -f -
kubectl replace -f "$S/task-addition.yaml"
kubectl label task addition tier=first
kubectl label task addition tier=second
kubectl label task addition tier=second --overwrite
kubectl label task addition 'bad label=x'
kubectl annotate task addition example.com/text='many words: yes'
kubectl apply --server-side -f "$S/task-broadcast.yaml"
sed 's/functionName: .*/functionName: other/' "$S/task-broadcast.yaml" | kubectl apply --server-side --field-manager=other -f -
sed 's/functionName: .*/functionName: other/' "$S/task-broadcast.yaml" | kubectl apply --server-side --field-manager=other --force-conflicts -f -
kubectl apply --server-side --force-conflicts -f "$S/task-addition.yaml"
configmap merged '' 'a: b, c: d' | kubectl apply --server-side -f -
configmap merged '' 'a: b' | kubectl apply --server-side --field-manager=two -f -
configmap merged '' 'c: d' | kubectl apply --server-side -f -
configmap pruned 'prune: "1"' 'a: b' | kubectl apply -l prune=1 -f -
kubectl wait --for=condition=Ready proplet/gateway --timeout=1s
kubectl get configmaps -w --request-timeout=1s
dependent settings | kubectl create -f -
kubectl delete configmap settings --cascade=foreground --timeout=60s
dependent merged | kubectl create -f - && kubectl delete configmap merged --cascade=orphan --timeout=60s
kubectl delete task addition --wait=false
kubectl patch task addition --type=merge -p '{"metadata": {"finalizers": null}}'
kubectl delete secret,serviceaccount key account none
kubectl delete configmaps --all --wait=true
kubectl auth can-i create tasks
STEPS
