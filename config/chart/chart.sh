#!/usr/bin/env bash
# chart.sh [FOLDER]  makes the Helm chart, build/release/propeller-VERSION.tgz, or in that folder
# chart.sh test      compares the one in build/release with the overlays and with install.yaml
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
e2e/setup.sh helm
KUBECTL=$CONTROL_PLANE_BIN/kubectl
HELM=$CONTROL_PLANE_BIN/helm
OUTPUT=build/release

if [[ ${1:-} == test ]]; then
    IMAGE=registry.example.com:5000/propeller@sha256:$(printf '%064d' 7) config/deploy/install-yaml.sh "$OUTPUT/test" >/dev/null
    e2e/setup.sh helm4
    for program in helm helm4; do
        python3 -B config/chart/test_chart.py --helm "$CONTROL_PLANE_BIN/$program" --kubectl "$KUBECTL" \
            --install "$OUTPUT/test" "$OUTPUT/propeller"
    done
    exit
fi
OUTPUT=${1:-$OUTPUT}
mkdir -p "$OUTPUT"
flags=()
for program in propeller-controller propeller-webhook; do
    "build/bin/$program" --help >"$OUTPUT/$program.help"
    flags+=(--flags "$program=$OUTPUT/$program.help")
done
python3 -B config/chart/build.py --kubectl "$KUBECTL" --version "${VERSION:-$(git describe --tags --always 2>/dev/null || echo unknown)}" \
    "${flags[@]}" "$OUTPUT"
rm -f "$OUTPUT"/*.help
"$HELM" package --destination "$OUTPUT" "$OUTPUT/propeller"
