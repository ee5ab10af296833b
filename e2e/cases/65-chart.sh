#!/usr/bin/env bash
# The Helm chart on a control plane: an upgrade adds fields to the CRDs and keeps objects, results and the caBundle;
# rollback, uninstall and a new install lose nothing; an installation by kustomize can be taken over.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

own_cluster
"$ROOT/config/chart/chart.sh" "$PART/release" >/dev/null
CHART=$PART/release/propeller
OLDER=$PART/older/propeller
h() { "$CONTROL_PLANE_BIN/helm" --kubeconfig "$CLUSTER/admin.kubeconfig" --namespace "$SYSTEM_NS" "$@"; }
TASK_CRD=tasks.$GROUP
has_field() { k get crd "$TASK_CRD" -o json | jq '.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties | has("lostAttemptsLimit")'; }
bundle() { k get validatingwebhookconfiguration "$WEBHOOK" -o json | jq -r '.webhooks[0].clientConfig.caBundle // ""'; }
checksum() { k --namespace "$SYSTEM_NS" get deployment propeller-controller -o json | jq -r '.spec.template.metadata.annotations["checksum/settings"]'; }
result() { kn get task kept -o 'jsonpath={.status.phase} {.status.results}'; }

# A chart before a field was there.
mkdir -p "${OLDER%/*}"
cp -r "$CHART" "$OLDER"
"$PYTHON_HOME/bin/python" - "$OLDER/templates/customresourcedefinition-${TASK_CRD//./-}.yaml" <<'END'
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
text = re.sub(r"^( +)lostAttemptsLimit:\n(?:\1 +.*\n)+", "", text, flags=re.MULTILINE)
text = re.sub(r"\[?self\.spec\.\?lostAttemptsLimit, |\[?oldSelf\.spec\.\?lostAttemptsLimit, ", "", text)
open(sys.argv[1], "w", encoding="utf-8").write(text)
END
h install propeller "$OLDER" --create-namespace --set webhook.enabled=false >/dev/null
k wait --for=condition=Established --timeout=60s "crd/$TASK_CRD" >/dev/null
expect_eq "the field in the older chart" false "$(has_field)"
task_json kept "$ADDITION" '[10, 32]' | create
kn patch task kept --subresource=status --type=merge -p '{"status": {"phase": "completed", "results": "42"}}' >/dev/null

h upgrade propeller "$CHART" --reset-values >/dev/null
expect_eq "the field after the upgrade" true "$(has_field)"
expect_eq "the result after the upgrade" "completed 42" "$(result)"

# What the leader writes: it is no field of the chart.
for kind in mutatingwebhookconfiguration validatingwebhookconfiguration; do
    k patch "$kind" "$WEBHOOK" --type=json -p "[{\"op\": \"add\", \"path\": \"/webhooks/0/clientConfig/caBundle\", \"value\": \"$(base64 -w0 "$CLUSTER/ca.crt")\"}]" >/dev/null
done
before=$(checksum)
h upgrade propeller "$CHART" --reset-values --set settings.log-level=debug >/dev/null
expect_eq "the caBundle after an upgrade" "$(base64 -w0 "$CLUSTER/ca.crt")" "$(bundle)"
expect_eq "a changed setting makes new pods" true "$([[ $(checksum) != "$before" ]] && echo true)"
h rollback propeller >/dev/null
expect_eq "the settings after a rollback" "$before" "$(checksum)"
expect_eq "the caBundle after a rollback" "$(base64 -w0 "$CLUSTER/ca.crt")" "$(bundle)"

h uninstall propeller >/dev/null 2>&1
expect_eq "what an uninstall leaves" "" "$(k --namespace "$SYSTEM_NS" get deployments,serviceaccounts,roles -l app.kubernetes.io/part-of=propeller -o name)"
expect_eq "the result after an uninstall" "completed 42" "$(result)"
h install propeller "$CHART" --set webhook.enabled=false >/dev/null
expect_eq "the result after a new install" "completed 42" "$(result)"
h uninstall propeller >/dev/null 2>&1

k apply --server-side --force-conflicts -k "$ROOT/config/overlays/default" >/dev/null
h install propeller "$CHART" --take-ownership >/dev/null
expect_eq "who owns it now" propeller "$(k --namespace "$SYSTEM_NS" get deployment propeller-controller -o json |
    jq -r '.metadata.annotations["meta.helm.sh/release-name"]')"
expect_eq "the result after the take-over" "completed 42" "$(result)"
