#!/usr/bin/env bash
# `make deploy` on a cluster with objects of an earlier installation, again, and with pods that do not come
# up; `make undeploy` with the controller, without it, and with finalizers of others: nothing is left.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
ks() { k --namespace "$SYSTEM_NS" "$@"; }
make_it() { # make_it TARGET [VARIABLE=VALUE...]
    make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_SECONDS=600 RELEASE_SECONDS=300 IMAGE=localhost/propeller:v1 "$@" 2>&1
}
export KUBECONFIG=$CLUSTER/admin.kubeconfig DEPLOY_OUT=$PART/deploy

background_output() { cat "$LOGS/$1.log"; }
ended() {
    [[ -z ${2:-} ]] || pods_play "$2"
    tail -n 3 "$LOGS/$1.log"
    [[ -e $PART/$1.exit ]]
}

# ---- objects that are there before ----
k apply --server-side -f "$ROOT/crds/" >/dev/null
k wait --recursive=false --for=condition=Established --timeout=60s -f "$ROOT/crds/" >/dev/null
old_objects() {
    add_proplet outside d
    add_proplet inside pod "$(k8s_json registry.example.com/proplet:v1)"
    add_task waiting "$ADDITION" '[10, 32]' "$(task_on outside)"
    kn create -f "$ROOT/config/samples/federatedjob-robust.yaml" -f "$ROOT/config/samples/propellerjob-parallel.yaml" >/dev/null
}
DOMAIN=domain CHANNEL=channel
old_objects
uid=$(task waiting .metadata.uid)

# ---- deploy ----
in_background deploy make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_SECONDS=600 \
    IMAGE=localhost/propeller:v1 deploy
account_there() { ks get serviceaccount propeller-controller --output name; }
wait_for 60 "the ServiceAccount of the controller" account_there
# What the pods of the controller would do; the kubelet is played.
identity_kubeconfig "$PART/controller.kubeconfig" "$SYSTEM_NS" propeller-controller
HEALTH_PORT=$(free_port)
CONTROLLER_OPTIONS=(--kubeconfig "$PART/controller.kubeconfig" --health-probe-bind-address "127.0.0.1:$HEALTH_PORT"
    --metrics-bind-address 0 --use-service-account-credentials "${CONTROLLER_TIMES[@]}")
unset KUBECONFIG
controller_start
wait_for 600 "make deploy to end" ended deploy app.kubernetes.io/part-of=propeller
expect_eq "exit status of make deploy" 0 "$(<"$PART/deploy.exit")"
expect_match "what it says" 'image +localhost/propeller:v1.*broker +none.*namespaces all.*propeller-controller +3/3.*propeller-webhook +2/2' \
    "$(tr '\n' ' ' <"$LOGS/deploy.log")"
expect_eq "the Task of before" "$uid" "$(task waiting .metadata.uid)"
has_finalizers() { [[ $(kn get proplets -o json | jq -c '[.items[].metadata.finalizers | length]' | tee /dev/stderr) == "[1,1]" ]]; }
wait_for 30 "the controller to take the objects over" has_finalizers
wait_made deployments inside-proplet .spec.replicas 1

# ---- the same again, another image that does not come up, mistakes ----
export KUBECONFIG=$CLUSTER/admin.kubeconfig
generations() { ks get deployments -o json | jq -c '[.items[] | [.metadata.name, .metadata.generation]]'; }
before=$(generations)
make_it deploy >/dev/null || fail "make deploy fails where everything is there"
expect_eq "what the second make deploy changed" "$before" "$(generations)"
said=$(make_it deploy IMAGE=localhost/propeller:v2 DEPLOY_SECONDS=5) && fail "make deploy does not notice that pods do not come up"
expect_match "what it says then" "the Deployment 'propeller-controller' is not ready" "$said"
expect_failure "an overlay that is not there" "OVERLAY is 'other', it must be one of cert-manager coordinator default" make_it deploy OVERLAY=other
expect_failure "an image without a tag" "IMAGE is 'propeller', it must end with a tag or a digest" make_it deploy IMAGE=propeller
expect_failure "no kubectl" "KUBECTL is '/none', which is not there" make_it deploy KUBECTL=/none

# ---- undeploy, with the controller ----
k apply -k "$ROOT/config/flowcontrol" >/dev/null
kn apply -f "$ROOT/rbac/job-result-secrets" >/dev/null
nothing_is_left() {
    local left
    left=$(k get crd,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas,prioritylevelconfigurations --output name |
        grep propeller) && fail "left: $left"
    left=$(k get namespace "$SYSTEM_NS" --ignore-not-found --output name)
    expect_eq "the namespace" "" "$left"
    left=$(kn get deployments,secrets,configmaps,jobs --selector app.kubernetes.io/managed-by=propeller --output name)
    expect_eq "children" "" "$left"
    left=$(kn get roles,rolebindings --output name)
    expect_eq "rights in the namespace" "" "$left"
}
# KUBECTL may be a program with a kubeconfig of its own, and what a shell has set for the controller is not meant.
cat >"$PART/own-kubectl" <<END
#!/bin/sh
KUBECONFIG=$CLUSTER/admin.kubeconfig exec "$KUBECTL" "\$@"
END
chmod +x "$PART/own-kubectl"
PROPELLER_NAMESPACE=kube-public KUBECONFIG=$PART/no.kubeconfig \
    make_it undeploy KUBECTL="$PART/own-kubectl" >"$LOGS/undeploy.log" || fail "make undeploy: $(<"$LOGS/undeploy.log")"
! grep 'finalizer removed' "$LOGS/undeploy.log" || fail "the controller was there, and did not release its objects"
nothing_is_left
make_it undeploy >/dev/null || fail "make undeploy fails where nothing is"
k apply --server-side -f "$ROOT/rbac/base/00-namespace.yaml" >/dev/null # cert-manager was removed before
make_it undeploy OVERLAY=cert-manager >/dev/null || fail "make undeploy fails where cert-manager is not"
nothing_is_left
crash controller

# ---- without it, and with a finalizer of somebody else ----
k apply --server-side -f "$ROOT/crds/" >/dev/null
k wait --recursive=false --for=condition=Established --timeout=60s -f "$ROOT/crds/" >/dev/null
old_objects
kn patch proplet outside --type=merge -p "{\"metadata\": {\"finalizers\": [\"$GROUP/finalizer\"]}}" >/dev/null
kn patch task waiting --type=merge -p "{\"metadata\": {\"finalizers\": [\"$GROUP/task-finalizer\", \"example.com/other\"]}}" >/dev/null
said=$(make_it undeploy RELEASE_SECONDS=2 DEPLOY_SECONDS=2) && fail "make undeploy takes no notice of a finalizer of others"
expect_match "whose finalizers it took off" "finalizer removed: Proplet '$NS/outside'" "$said"
expect_match "whose it left" "finalizer removed: Task '$NS/waiting', left: example.com/other.*objects are left after 2 s: 1, such as Task '$NS/waiting' with finalizers of others: example.com/other" \
    "$(tr '\n' ' ' <<<"$said")"
expect_eq "finalizers of the Task" example.com/other "$(task waiting '.metadata.finalizers | join(" ")')"
# Again; a Task that somebody makes in the meantime goes, too.
in_background again make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_SECONDS=600 RELEASE_SECONDS=600 undeploy
waits_for_one() { background_output again | tail -n 5 && background_output again | grep -F 'objects left: 1'; }
wait_for 120 "make undeploy to wait for the Task" waits_for_one
add_task tardy "$ADDITION" '[10, 32]'
tardy_gone() { ! task tardy .metadata.uid 2>&1; }
wait_for 120 "the Task that came later to be gone" tardy_gone
kn patch task waiting --type=merge -p '{"metadata": {"finalizers": null}}' >/dev/null
wait_for 600 "make undeploy to end" ended again
expect_eq "exit status of make undeploy: $(tail -n 3 "$LOGS/again.log")" 0 "$(<"$PART/again.exit")"
nothing_is_left
expect_failure "an overlay without rights" "has the rights of a controller nowhere" make_it undeploy OVERLAY="$ROOT/config/flowcontrol"

# ---- single namespaces: objects of others stay, and the kinds with them ----
k apply --server-side -f "$ROOT/crds/" >/dev/null
k wait --recursive=false --for=condition=Established --timeout=60s -f "$ROOT/crds/" >/dev/null
add_task theirs "$ADDITION" '[10, 32]'
task_json ours "$ADDITION" '[10, 32]' | k --namespace default create -f - >/dev/null
deploy_overlay() { # deploy_overlay OVERLAY: with the kubelet played
    local name=deploy-${1##*/}
    in_background "$name" make -C "$ROOT" --no-print-directory KUBECTL="$KUBECTL" DEPLOY_SECONDS=600 OVERLAY="$1" \
        IMAGE=localhost/propeller:v1 deploy
    wait_for 600 "make deploy to end" ended "$name" app.kubernetes.io/part-of=propeller
    expect_eq "exit status of make deploy: $(tail -n 3 "$LOGS/$name.log")" 0 "$(<"$PART/$name.exit")"
}
# bindings: in how many namespaces beside the system's there are how many
bindings() {
    k get roles,rolebindings --all-namespaces --selector app.kubernetes.io/part-of=propeller -o json |
        jq -r --arg system "$SYSTEM_NS" '[.items[] | select(.metadata.namespace != $system)] | group_by(.metadata.namespace)
            | map("\(.[0].metadata.namespace) \(length)") | join(", ")'
}
deploy_overlay namespaced
# By hand, as docs/explanation/security.md has it; and an installation in a namespace of its own, which is none of ours.
rights_by_hand() { k apply --namespace "$NS" -f "$ROOT/rbac/namespaced/identities.yaml" >/dev/null; }
rights_by_hand
k create namespace "$NS-theirs" >/dev/null
sed "s/propeller-system/$NS-home/" "$ROOT/rbac/namespaced/identities.yaml" | k apply --namespace "$NS-theirs" -f - >/dev/null
expect_eq "rights in single namespaces" "default 16, $NS 16, $NS-theirs 16" "$(bindings)"
for name in propeller-webhook-ca propeller-webhook-cert somebodys; do # two as the controller makes them
    ks create secret tls "$name" --cert="$CLUSTER/admin.crt" --key="$CLUSTER/admin.key" >/dev/null
    ks label secret "$name" app.kubernetes.io/part-of=propeller >/dev/null
done
deploy_overlay default
expect_eq "rights in single namespaces, with rights in all" "$NS-theirs 16" "$(bindings)"
rights_by_hand
own_overlay() { # own_overlay NAME: of the one for single namespaces, with what is in stdin
    mkdir "$PART/$1"
    {
        printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n'
        printf '  - %s\n' "$(realpath --relative-to="$PART/$1" "$ROOT/config/overlays/namespaced")"
        cat
    } >"$PART/$1/kustomization.yaml"
}
own_overlay watching <<END
configMapGenerator:
  - name: propeller-settings
    namespace: $SYSTEM_NS
    behavior: merge
    literals:
      - PROPELLER_NAMESPACE=default,$NS
END
deploy_overlay "$PART/watching"
expect_match "what make deploy says of the other overlay" 'not of this overlay: .*"propeller-webhook" deleted' \
    "$(tr '\n' ' ' <"$LOGS/deploy-watching.log")"
expect_eq "what is left of it" "clusterrole.rbac.authorization.k8s.io/propeller-admin clusterrole.rbac.authorization.k8s.io/propeller-edit clusterrole.rbac.authorization.k8s.io/propeller-view deployment.apps/propeller-controller secret/somebodys service/propeller-controller-metrics" \
    "$(ks get clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,deployments,services,clusterroles,secrets \
        --selector app.kubernetes.io/part-of=propeller --output name | sort | xargs)"
! ks get serviceaccount propeller-webhook --output name 2>/dev/null || fail "the webhook's account is left"
expect_eq "rights in the namespaces that are watched" "default 16, $NS 16, $NS-theirs 16" "$(bindings)"
deploy_overlay namespaced
expect_eq "rights where the overlay does not watch any more" "default 16, $NS-theirs 16" "$(bindings)"
rights_by_hand
cat >"$PART/kubectl" <<END
#!/bin/sh
case "\$*" in "get rolebindings"*) echo refused >&2; exit 1 ;; esac
exec "$KUBECTL" "\$@"
END
chmod +x "$PART/kubectl"
expect_failure "rights that cannot be looked at" refused make_it deploy OVERLAY=namespaced KUBECTL="$PART/kubectl"
make_it deploy OVERLAY=namespaced >/dev/null || fail "make deploy fails after one that did not come to its end"
expect_eq "rights after another one" "default 16, $NS-theirs 16" "$(bindings)"
rights_by_hand
ks create deployment broker --image=registry.example.com/broker:1 >/dev/null
expect_failure "what others have in the namespace" \
    "the namespace '$SYSTEM_NS' would go with deployment.apps/broker: remove these first, or FORCE=1" make_it undeploy OVERLAY=namespaced
expect_eq "a Task after that" ours "$(k --namespace default get tasks -o json | jq -r '.items[].metadata.name')"
ks delete deployment broker >/dev/null
said=$(make_it undeploy OVERLAY=namespaced) || fail "make undeploy for single namespaces: $said"
expect_eq "rights in single namespaces" "$NS-theirs 16" "$(bindings)"
expect_match "what it says of the kinds" 'the kinds stay: other namespaces have objects of them' "$said"
expect_eq "Tasks that are left" "$NS/theirs" "$(k get tasks --all-namespaces -o json | jq -r '.items[].metadata | "\(.namespace)/\(.name)"')"
unset KUBECONFIG
