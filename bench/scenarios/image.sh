#!/usr/bin/env bash
# The image: its layers as they are transferred.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

LAYER_MB=12

main() {
    local number=0 size
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    make -C "$ROOT" --no-print-directory image IMAGE_OUT="$PART/image"
    mkdir "$PART/layout"
    tar -xf "$PART/image/propeller.tar" -C "$PART/layout"
    while read -r size; do
        figure "layer $((++number)), compressed (MB)" "$(ratio "$size" 1000000)" "<= $LAYER_MB"
    done < <(jq -r '.manifests[0].digest | sub(":"; "/")' "$PART/layout/index.json" |
        xargs -I DIGEST jq '.layers[].size' "$PART/layout/blobs/DIGEST")
}

main "$@"
