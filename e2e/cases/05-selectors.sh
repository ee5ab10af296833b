#!/usr/bin/env bash
# Every part of propletSelector, preferredPropletType and cordoning, alone and combined.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

world_start d1 d2 d3 d4

# worker NAME IDENTITY TYPE CAPABILITIES LABELS
worker() {
    add_proplet "$1" "$2" "$(jq -nc --arg type "$3" --argjson caps "$4" --argjson labels "$5" '
        {metadata: {labels: $labels}, spec: {external: {deviceType: $type, capabilities: $caps}}}')"
}
worker gateway-1 d1 gateway '["wasm","gpu"]' '{"site":"lab","rack":"1"}'
worker gateway-2 d2 gateway '["wasm"]' '{"site":"lab","rack":"2"}'
worker sensor-1 d3 sensor '["wasm","gpu"]' '{"site":"field","rack":"1"}'
worker sensor-2 d4 sensor '["wasm","camera"]' '{"site":"lab","rack":"1"}'
device_start devices --identity d1 --identity d2 --identity d3 --identity d4
wait_for 30 "all Proplets to run" phase_count_is proplets Running 4

# Three Tasks a row, so that round-robin cannot hit the right one by chance.
number=0
while read -r expected spec; do
    number=$((number + 1))
    task_json "row-$number-NUMBER" "$ADDITION" '[10, 32]' "{\"spec\": {$spec}}" | add_numbered 3
    for copy in 1 2 3; do
        name=row-$number-$copy
        if [[ $expected == none ]]; then
            wait_condition tasks "$name" Scheduled '^False NoCandidates .*[0-9]'
            expect_eq "phase of $name" pending "$(task "$name" '.status.phase // "pending"')"
        else
            wait_task "$name" completed
            expect_match "Proplet for $spec" "^($expected)$" "$(task "$name" .status.assignedProplet)"
        fi
    done
done <<'TABLE'
gateway-1 "propletSelector":{"propletId":"gateway-1"}
sensor-1 "propletSelector":{"matchLabels":{"site":"field"}}
gateway-2 "propletSelector":{"matchLabels":{"site":"lab","rack":"2"}}
gateway-1|gateway-2 "propletSelector":{"matchDeviceTypes":["gateway"]}
gateway-1|sensor-1 "propletSelector":{"matchCapabilities":["gpu"]}
gateway-1|sensor-1 "propletSelector":{"matchCapabilities":["gpu","wasm"]}
gateway-1 "propletSelector":{"matchDeviceTypes":["gateway"],"matchCapabilities":["gpu"]}
sensor-2 "propletSelector":{"matchDeviceTypes":["gateway","sensor"],"matchCapabilities":["camera"]}
sensor-1 "propletSelector":{"matchDeviceTypes":["sensor"],"matchCapabilities":["wasm","gpu"],"matchLabels":{"rack":"1"}},"preferredPropletType":"external"
sensor-2 "propletSelector":{"propletId":"sensor-2","matchDeviceTypes":["sensor"],"matchCapabilities":["camera"],"matchLabels":{"site":"lab"}}
gateway-1|gateway-2|sensor-1|sensor-2 "preferredPropletType":"external"
gateway-1|gateway-2|sensor-1|sensor-2 "preferredPropletType":"any"
none "preferredPropletType":"k8s"
none "propletSelector":{"propletId":"gateway-1","matchLabels":{"site":"field"}}
none "propletSelector":{"matchCapabilities":["gpu","camera"]}
none "propletSelector":{"matchDeviceTypes":["Gateway"]}
TABLE

# Cordoned: out of the choice, and back.
kn patch proplet sensor-1 --type=merge -p '{"spec":{"unschedulable":true}}' >/dev/null
add_task cordoned "$ADDITION" '[10, 32]' '{"spec":{"propletSelector":{"matchLabels":{"site":"field"}}}}'
wait_condition tasks cordoned Scheduled '^False NoCandidates '
kn patch proplet sensor-1 --type=merge -p '{"spec":{"unschedulable":false}}' >/dev/null
wait_task cordoned completed
