#!/usr/bin/env bash
# The API server takes crds/optional and the samples of ScheduledMachine as they are, and refuses by the schema alone
# what a ScheduledMachine may not say.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

case_needs_own_cluster
case_needs_kubernetes "applies a CRD of another project"

SAMPLES=$ROOT/config/samples/scheduled-machines

k apply -f "$ROOT/crds/optional/scheduledmachine.yaml" >/dev/null
k wait --for=condition=Established --timeout=60s crd/scheduledmachines.5spot.finos.org >/dev/null

# ---- samples, and defaults ----

kn apply --validate=strict -f "$SAMPLES" >/dev/null
kn get sm batch-tainted -o json | jq -c '.spec | [.priority, .killSwitch, .nodeDrainTimeout, .schedule.enabled]' >"$WORK/defaults"
expect_eq "defaults of the spec" '[50,false,"5m",true]' "$(cat "$WORK/defaults")"
kn get sm >"$WORK/columns"
expect_match "columns" 'NAME +PHASE +INSCHEDULE +ENABLED +SCHEDULE DAYS' "$(head -1 "$WORK/columns")"

# ---- what is refused ----

refused() { # refused FILTER PATTERN: the sample with a change
    local said
    if said=$(kn create --dry-run=client -o json -f "$SAMPLES/tainted.yaml" | jq ".metadata.name = \"changed\" | $1" |
        kn create --dry-run=server -f - 2>&1); then
        fail "not refused: $1"
    fi
    expect_match "refusal of $1" "$2" "$said"
}
refused '.spec.nodeTaints[0].key = "node.kubernetes.io/x"' 'the prefix of the key is reserved'
refused '.spec.nodeTaints[1] = .spec.nodeTaints[0]' 'key and effect must be unique together'
refused '.spec.nodeTaints[0].effect = "Never"' 'Unsupported value: "Never"'
refused '.spec.bootstrapSpec.apiVersion = "infrastructure.cluster.x-k8s.io/v1beta1"' 'spec.bootstrapSpec.apiVersion'
refused '.spec.infrastructureSpec.apiVersion = "apps/v1"' 'spec.infrastructureSpec.apiVersion'
refused '.spec.clusterName = "-x"' 'spec.clusterName'
refused '.spec.nodeDrainTimeout = "25h"' 'spec.nodeDrainTimeout'
refused '.spec.gracefulShutdownTimeout = "5 minutes"' 'spec.gracefulShutdownTimeout'
refused '.spec.schedule.daysOfWeek = ["monday"]' 'spec.schedule.daysOfWeek'
refused '.spec.schedule.hoursOfDay = ["9-25"]' 'spec.schedule.hoursOfDay'
refused '.spec.killIfCommands = [""]' 'spec.killIfCommands'
refused '.spec.priority = 256' 'spec.priority'
