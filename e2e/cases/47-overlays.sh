#!/usr/bin/env bash
# Every overlay builds, is taken by an API server as a whole, and its parts fit each other and the programs;
# its pods are admitted where Pod Security is restricted; the other manifests of config/ are taken, too.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
stand_in_kinds
apply_all() { k apply --server-side --validate=strict --warnings-as-errors -f "$1" "${@:2}"; }
build_overlay() { k kustomize "$ROOT/config/$1" >"$PART/$2.yaml" || fail "$1 cannot be built"; }
# The kinds must be there before a client can tell what an object is.
as_json() { k create --dry-run=client --output json -f "$1" | jq -s '{ items: map(if .kind == "List" then .items[] else . end) }'; }
fits() { "$PYTHON_HOME/bin/python" -B "$HERE/tools/manifests.py" --programs "$ROOT/build/bin"; }

k apply --server-side -f "$ROOT/crds/" -f "$ROOT/crds/vmafx/" -f "$ROOT/crds/optional/" >/dev/null
k wait --for=condition=Established --timeout=60s -f "$ROOT/crds/" >/dev/null
k create namespace "$SYSTEM_NS" >/dev/null
k label namespace "$SYSTEM_NS" pod-security.kubernetes.io/{enforce,warn}=restricted >/dev/null

for folder in "$ROOT"/config/overlays/*/; do
    name=$(basename "$folder")
    build_overlay "overlays/$name" "$name"
    as_json "$PART/$name.yaml" >"$PART/$name.json"
    found=$(fits <"$PART/$name.json") || fail "overlay '$name': $found"
    said=$(apply_all "$PART/$name.yaml" --dry-run=server 2>&1) || fail "overlay '$name', as a dry run: $said"
    said=$(apply_all "$PART/$name.yaml" 2>&1) || fail "overlay '$name': $said"
    # The same again changes nothing: no field is written in two ways.
    said=$(k diff --server-side --field-manager=kubectl -f "$PART/$name.yaml" 2>&1) || fail "overlay '$name' differs from itself: $said"
    wanted=$(jq '[.items[] | select(.kind == "Deployment") | .spec.replicas] | add' "$PART/$name.json")
    pods_are() { (($(k --namespace "$SYSTEM_NS" get pods --output name | tee /dev/stderr | wc -l) == wanted)); }
    wait_for 60 "all pods of overlay '$name' to be admitted" pods_are
    jq '{ apiVersion: "v1", kind: "List", items: (.items | map(select(.kind | IN("Namespace", "CustomResourceDefinition") | not))) }' \
        "$PART/$name.json" | k delete --wait=false --ignore-not-found -f - >/dev/null
    pods_gone() { [[ -z $(k --namespace "$SYSTEM_NS" get pods,configmaps,services --selector app.kubernetes.io/part-of=propeller --output name | tee /dev/stderr) ]]; }
    wait_for 60 "overlay '$name' to be gone" pods_gone
done

documented() { "$PYTHON_HOME/bin/python" -B "$HERE/tools/manifests.py" --rights "$ROOT/docs/explanation/security.md"; }
build_overlay uninstall uninstall
as_json "$PART/uninstall.yaml" | jq -s '{ items: map(.items[]) | unique_by([.kind, .metadata.namespace, .metadata.name]) }' \
    "$PART/vmafx.json" "$PART/scheduled-machines.json" "$PART/modules.json" "$PART/kueue.json" - >"$PART/all.json"
found=$(documented <"$PART/all.json") || fail "the rights in docs/explanation/security.md: $found"

expect_eq "overlays with a word of ScheduledMachines" scheduled-machines.yaml \
    "$(cd "$PART" && grep -lE '5spot|scheduled-?machine|cluster\.x-k8s\.io' ./*.yaml | sed 's,^\./,,' | paste -sd ' ')"
kinds() { jq -r '.items[].kind' "$PART/$1.json" | sort | uniq -c | sort -rn | tr -s ' \n' ' '; }
expect_eq "cluster-wide rights with single namespaces" "propeller-admin propeller-edit propeller-view" \
    "$(jq -r '[.items[] | select(.kind == "ClusterRole" or .kind == "ClusterRoleBinding") | .metadata.name] | sort | join(" ")' "$PART/namespaced.json")"
expect_eq "webhook configurations with cert-manager, told where their caBundle comes from" "2" \
    "$(jq '[.items[] | select(.kind | endswith("WebhookConfiguration")) | select(.metadata.annotations["cert-manager.io/inject-ca-from"])] | length' "$PART/cert-manager.json")"
say "overlay default:$(kinds default)"

# ---- the checks bite ----
broken() { # broken FILTER FINDING
    expect_failure "an overlay with $1" "$2" fits < <(jq "$1" "$PART/default.json")
}
deployment='(.items[] | select(.kind == "Deployment" and .metadata.name == "propeller-controller"))'
broken "$deployment.spec.template.metadata.labels = {}" 'its selector does not select its pods'
broken "$deployment.spec.template.spec.serviceAccountName = \"other\"" "ServiceAccount 'other' is not there"
broken "$deployment.spec.template.spec.containers[0].args += [\"--wrong\"]" 'refuses its flags'
broken 'del(.items[] | select(.kind == "PodDisruptionBudget" and .metadata.name == "propeller-webhook") | .spec.unhealthyPodEvictionPolicy)' \
    'pods that are not ready keep their node from being drained'
broken 'del(.items[] | select(.kind == "Namespace") | .metadata.labels)' 'Pod Security is not enforced'
expect_failure "a right that nobody wrote down" "security.md does not say of proplet-controller: .*'nodes', 'get'" documented < \
    <(jq '(.items[] | select(.kind == "ClusterRole" and .metadata.name == "propeller-proplet-controller") | .rules)
        += [{"resources": ["nodes"], "verbs": ["get"]}]' "$PART/default.json")
broken '.items += [.items[0]]' 'there 2 times'
broken '(.items[] | select(.kind == "Service") | .spec.ports[0].targetPort) = "other"' "port 'other' is none of"

# ---- and what is beside the overlays ----
for folder in flowcontrol broker uninstall; do
    build_overlay "$folder" "$folder"
    said=$(apply_all "$PART/$folder.yaml" --dry-run=server 2>&1) || fail "config/$folder: $said"
done
