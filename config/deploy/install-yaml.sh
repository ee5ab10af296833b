#!/usr/bin/env bash
# install-yaml.sh FOLDER: writes install.yaml and install-namespaced.yaml, two overlays with the image IMAGE by its
# digest: `make install-yaml`. IMAGE without a digest is the one that `make image` made, in IMAGE_OUT.
set -euo pipefail
# shellcheck source=config/deploy/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=e2e/versions.sh
source "$TOP/e2e/versions.sh"

# The pinned kubectl, so that the same sources give the same file everywhere.
"$TOP/e2e/setup.sh" helm
KUBECTL=$CONTROL_PLANE_BIN/kubectl
FOLDER=${1:?a folder is needed}
[[ ${IMAGE:-} == *@* ]] || IMAGE=$(<"${IMAGE_OUT:?IMAGE needs a digest, or IMAGE_OUT}/propeller.digest")
[[ $IMAGE =~ ^[^@]+@sha256:[0-9a-f]{64}$ ]] || die "IMAGE is '$IMAGE', it must end with a tag, or with sha256: and 64 hexadecimal digits"

mkdir -p "$FOLDER"
DEPLOY_OUT=$(cd "$FOLDER" && mktemp -d "$PWD/install.XXXXXX")
trap 'rm -rf "$DEPLOY_OUT"' EXIT
write() { # write FILE OVERLAY
    OVERLAY=$2
    render
    {
        printf '# Propeller %s, overlay %s: kubectl apply --server-side -f %s\n' "${VERSION:-unknown}" "$2" "$1"
        cat "$MANIFESTS"
    } >"$FOLDER/$1.new"
    mv "$FOLDER/$1.new" "$FOLDER/$1"
    say "$FOLDER/$1"
}
write install.yaml default
write install-namespaced.yaml namespaced
