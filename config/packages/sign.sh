#!/usr/bin/env bash
# sign.sh FOLDER KEY: signs the sums, the chart and the provenance of the release in FOLDER with cosign, and the image
# IMAGE (NAME@sha256:...) in its registry if one is named. `make sign KEY=cosign.key` calls it.
#
# KEY is a file of `cosign generate-key-pair`, whose password is in COSIGN_PASSWORD, or the address of a service that keeps
# keys. Nothing is sent to a transparency log.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
FOLDER=${1:?a folder of a release is needed} KEY=${2:?a key is needed: make sign KEY=cosign.key}
die() {
    printf 'sign: %s\n' "$*" >&2
    exit 1
}
[[ -z ${IMAGE:-} || $IMAGE == *@sha256:* ]] || die "IMAGE is '$IMAGE', it must end with its digest in the registry"
(cd "$FOLDER" && sha256sum --quiet --check --strict SHA256SUMS) || die "$FOLDER has other files than its SHA256SUMS"
if [[ -n ${IMAGE:-} ]] && ! grep -q "\"${IMAGE##*sha256:}\"" "$FOLDER/provenance.json"; then
    die "IMAGE is '$IMAGE', the release in $FOLDER has another image"
fi
e2e/setup.sh cosign
cosign() { "$CONTROL_PLANE_BIN/cosign" "$@" --yes --key "$KEY" --tlog-upload=false; }

for file in "$FOLDER/SHA256SUMS" "$FOLDER/provenance.json" "$FOLDER"/propeller-*.tgz; do
    cosign sign-blob --output-signature "$file.sig" "$file" >/dev/null
    echo "sign: $file.sig"
done
[[ -n ${IMAGE:-} ]] || exit 0
cosign sign --recursive "$IMAGE"
python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["predicate"], sys.stdout)' "$FOLDER/provenance.json" |
    cosign attest --type slsaprovenance1 --predicate - "$IMAGE"
echo "sign: $IMAGE"
