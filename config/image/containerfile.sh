#!/usr/bin/env bash
# Builds config/image/Containerfile for real and holds it against the image of `make image`: the same names, modes,
# owners and links, user, entrypoint and environment; the programs run in it. `make containerfile` calls it.
#
# Needs root, buildah, and mmdebstrap, which makes the base image from the package sources of this machine. Everything
# is in the folder that is given.
#   containerfile.sh FOLDER VERSION ARCHIVE SBOM
set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
FOLDER=$1 VERSION=$2 ARCHIVE=$3 SBOM=$4
die() {
    printf 'containerfile: %s\n' "$*" >&2
    exit 1
}
for program in buildah mmdebstrap; do
    command -v "$program" >/dev/null || die "'$program' is missing (apt-get install buildah mmdebstrap)"
done
((EUID == 0)) || die "only root can build without a daemon"

rm -rf "$FOLDER"
mkdir -p "$FOLDER"
builder() { buildah --root "$FOLDER/storage" --runroot "$FOLDER/run" --storage-driver vfs "$@"; }

make_base() {
    local container suite
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # In a mount namespace of its own: interrupted, it would leave /proc and /sys mounted in there.
    unshare --mount mmdebstrap --quiet --variant=minbase "$suite" "$FOLDER/base.tar"
    container=$(builder from scratch)
    builder add --quiet "$container" "$FOLDER/base.tar" / >/dev/null
    builder commit --quiet "$container" localhost/base:latest >/dev/null
}
make_base
builder bud --isolation chroot --build-arg BASE=localhost/base:latest --build-arg VERSION="$VERSION" \
    --file "$TOP/config/image/Containerfile" --tag localhost/propeller:built "$TOP" >"$FOLDER/build.log" 2>&1 ||
    die "it cannot be built: $(tail -n 5 "$FOLDER/build.log")"

mkdir "$FOLDER/made"
python3 -B "$TOP/config/image/verify.py" "$ARCHIVE" "$SBOM" "$FOLDER/made"
built=$(builder mount "$(builder from localhost/propeller:built)")
names() { (cd "$1" && find . -mindepth 1 -printf '%p %y %m %U:%G %l\n' | LC_ALL=C sort); }
diff <(names "$FOLDER/made") <(names "$built") ||
    die "it has other files than the image of 'make image' (a package of another version may bring some: apt-get upgrade)"
settings=$(builder inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Env}}' localhost/propeller:built)
[[ $settings == '65532:65532 [/usr/bin/propeller-controller] [PATH=/usr/bin GLIBC_TUNABLES=glibc.malloc.tcache_count=0]' ]] || die "its settings are: $settings"
for program in "$built"/usr/bin/*; do
    program=${program##*/}
    said=$(env -i "$(command -v chroot)" --userspec=65532:65532 "$built" "/usr/bin/$program" --version)
    [[ $said == "$program $VERSION" ]] || die "$program says that it is '$said'"
done
diff --recursive --brief --no-dereference "$FOLDER/made" "$built" >"$FOLDER/differing" || true
printf 'containerfile: %s names as in the image of make image, %s files with other bytes, as packages of other versions have: %s\n' \
    "$(names "$built" | wc -l)" "$(wc -l <"$FOLDER/differing")" "$FOLDER/differing"
