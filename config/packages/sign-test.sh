#!/usr/bin/env bash
# sign-test.sh FOLDER: signs a copy of the release in FOLDER, and its image in a registry on the loopback address, with a
# new key, by the commands of docs/how-to/verify.md. What they verify is refused with one changed byte.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
FOLDER=${1:?a folder of a release is needed}
WORK=$PWD/build/sign-test
COPY=$WORK/release
# shellcheck source=config/packages/test-lib.sh
source config/packages/test-lib.sh
VERSION=$(compgen -G "$FOLDER/propeller-*-image.tar" | sed 's/.*propeller-\(.*\)-image.tar/\1/')

# commands HEADING: of the fence below this heading of the page, with the names of the test
commands() {
    awk -v heading="## $1" '$0 == heading { below = 1 } /^```/ && below { if (inside) exit; inside = 1; next } inside' \
        docs/how-to/verify.md | sed -e "s|registry\.example\.com|$REGISTRY|g; s|0\.2\.0|$VERSION|g; s|build/release/|$COPY/|g" \
        -e "s|KEY=cosign.key|KEY=$WORK/cosign.key|; /^make release/d"
}
# The registry speaks HTTP.
skopeo() { command skopeo --registries-conf "$WORK/registries.conf" "$@"; }
# follow FOLDER HEADING: runs them there
follow() {
    local text
    text=$(commands "$2")
    [[ -n $text ]] || return 1
    (cd "$1" && bash -euc "make() { command make --no-print-directory RELEASE_OUT=$COPY \"\$@\"; }; $text")
}
verify() { follow "$COPY" "Verify $1"; }

start_registry() {
    REGISTRY=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    cat >"$WORK/registry.yml" <<END
version: 0.1
storage: { filesystem: { rootdirectory: $WORK/registry } }
http: { addr: "$REGISTRY" }
END
    printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$REGISTRY" >"$WORK/registries.conf"
    OTEL_TRACES_EXPORTER=none "$DOCKER_REGISTRY" serve "$WORK/registry.yml" >"$WORK/registry.log" 2>&1 &
    trap 'kill %1' EXIT
    wait_for 30 curl -sf "http://$REGISTRY/v2/" || die "the registry does not answer: $(tail -n 3 "$WORK/registry.log")"
}

# refuses PART FILE: a changed byte in this file
refuses() {
    cp "$COPY/$2" "$WORK/kept"
    change "$COPY/$2"
    passes "a changed byte of $2 is refused" not verify "$1"
    cp "$WORK/kept" "$COPY/$2"
    passes "without the change it verifies" verify "$1"
}

check_files() {
    passes "the sums verify" verify files
    passes "the chart verifies" verify "the chart"
    passes "the sums verify without cosign" verify "without cosign"
    refuses files SHA256SUMS
    refuses "without cosign" SHA256SUMS
    refuses files "propeller-standalone_${VERSION}_$(dpkg --print-architecture).deb"
    refuses files "propeller-$VERSION-image.tar"
    refuses files install.yaml
    refuses files provenance.json
    refuses "the chart" "propeller-$VERSION.tgz"
}

# The same image with a revision of its own takes the place of the signed one, and its digest in install.yaml.
push_another_image() {
    python3 -B config/image/build.py --programs build/plain/bin --output "$WORK/other" \
        --name "$REGISTRY/propeller:other" --version "$VERSION" --revision other
    skopeo copy --quiet --preserve-digests "oci-archive:$WORK/other/propeller.tar" "docker://$REGISTRY/propeller:other"
    sed -i "s|@sha256:[0-9a-f]*|@$(sed 's/.*@//' "$WORK/other/propeller.digest")|" "$COPY/install.yaml"
}
# A layer of the image, as the registry keeps it.
stored_layer() {
    find "$WORK/registry/docker/registry/v2/blobs" -type f -name data -size +1M | LC_ALL=C sort | head -n 1
}

verify_image() {
    rm -f "$COPY/image-of-registry.tar"
    verify "the image"
}
check_image() {
    local layer
    passes "the image verifies" verify_image
    passes "its architectures are amd64 and arm64" has_both
    layer=$(stored_layer)
    cp "$layer" "$WORK/kept"
    change "$layer"
    passes "a changed byte of a layer is refused" not verify_image
    cp "$WORK/kept" "$layer"
    passes "without the change it verifies" verify_image
    passes "another image is pushed" push_another_image
    passes "it is refused" not verify_image
}
has_both() {
    local inside
    inside=$(skopeo inspect --raw "docker://$REGISTRY/propeller:$VERSION" | jq -r '.manifests[].platform.architecture' | paste -sd' ')
    [[ $inside == "amd64 arm64" ]]
}

e2e/setup.sh cosign oci release-test
rm -rf "$WORK"
mkdir -p "$WORK"
cp -r "$FOLDER" "$COPY"
export COSIGN_PASSWORD=of-this-test PATH=$CONTROL_PLANE_BIN:$PATH
export -f skopeo
export WORK
start_registry
passes "a key is made" follow "$WORK" "Make a key"
passes "the release is signed" follow "$PWD" Sign
cp "$WORK/cosign.pub" "$COPY"
check_files
check_image
all_passed
