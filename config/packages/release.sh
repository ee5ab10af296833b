#!/usr/bin/env bash
# release.sh check            refuses a VERSION that is no release or that CHANGELOG.md does not describe, and sources that
#                             differ from their commit, and a user who is not root if CROSS names an architecture
# release.sh PROGRAMS FOLDER  everything of a release into FOLDER, which is emptied first
#
# `make release` calls it with VERSION, IMAGE, REVISION and SOURCE_DATE_EPOCH, after programs, image and pages are built.
# CROSS names architectures that `make cross` has built. RELEASE_URL is the address that will serve the files; the manifest
# for krew names it. The same sources and packages of Debian give the same files.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export VERSION SOURCE_DATE_EPOCH
die() {
    printf 'release: %s\n' "$*" >&2
    exit 1
}

check() {
    [[ ${VERSION:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] ||
        die "VERSION is '${VERSION:-}', it must be one of Semantic Versioning, such as make release VERSION=0.2.0"
    grep -qE "^## ${VERSION//./\\.} – [0-9]{4}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
        die "CHANGELOG.md has no entry '## $VERSION – YYYY-MM-DD'"
    [[ ${REVISION:-} != *-dirty ]] ||
        die "the sources differ from the commit that the files will name; 'git status' shows where"
    [[ -z ${CROSS:-} ]] || ((EUID == 0)) || die "only root can build for $CROSS; CROSS= makes the files of this machine alone"
}
check
[[ $1 != check ]] || exit 0

PROGRAMS=$1 FOLDER=$2 ARCHITECTURE=$(dpkg --print-architecture)
read -r -a ARCHITECTURES <<<"$ARCHITECTURE ${CROSS:-}"
WORK=build/release.work

# packed FILE FOLDER: with names in order, one time, and no owner
packed() {
    tar --create --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rwX,go=rX --directory "$2" . | gzip --no-name -9 >"$1"
}

programs() { # programs ARCHITECTURE FOLDER
    local tree=$WORK/programs-$1 plugin=$WORK/plugin-$1 program strip
    strip=$(dpkg-architecture --host-arch "$1" --query DEB_HOST_GNU_TYPE 2>/dev/null)-strip
    mkdir -p "$tree/bin" "$plugin"
    for program in propeller-{controller,webhook,certgen,standalone,graph} kubectl-propeller; do
        "$strip" --strip-all -o "$tree/bin/$program" "$2/$program"
    done
    cp plugin/kubectl_complete-propeller "$tree/bin"
    cp -r build/docs/man config/systemd LICENSE CHANGELOG.md "$tree"
    rm "$tree"/systemd/test_*
    packed "$FOLDER/propeller-$VERSION-linux-$1.tar.gz" "$tree"
    cp "$tree/bin/kubectl-propeller" LICENSE "$plugin"
    packed "$FOLDER/kubectl-propeller-$VERSION-linux-$1.tar.gz" "$plugin"
}

krew() { # krew ARCHITECTURE...
    local architecture file
    cat <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: propeller
spec:
  version: v$VERSION
  homepage: ${RELEASE_URL%/}/
  shortDescription: Run and explain WebAssembly work on devices
  description: Runs modules, explains why objects wait, plans, drains, and shows load and history.
  platforms:
END
    for architecture in "$@"; do
        file=kubectl-propeller-$VERSION-linux-$architecture.tar.gz
        cat <<END
    - selector: { matchLabels: { os: linux, arch: $architecture } }
      uri: ${RELEASE_URL%/}/$file
      sha256: $(sha256sum <"$FOLDER/$file" | cut -d' ' -f1)
      bin: kubectl-propeller
END
    done
}

rm -rf "$FOLDER" "$WORK"
mkdir -p "$FOLDER" "$WORK"
config/packages/deb.sh "$PROGRAMS" "$FOLDER" >/dev/null
images=()
for architecture in "${ARCHITECTURES[@]}"; do
    folder=$PROGRAMS image=build/image
    if [[ $architecture != "$ARCHITECTURE" ]]; then
        folder=build/$architecture/bin image=build/$architecture/image
        cp "build/$architecture/release"/*_"$architecture".deb "$FOLDER"
    fi
    programs "$architecture" "$folder"
    images+=("$image/propeller.tar")
    cp "$image/propeller.spdx.json" "$FOLDER/propeller-$VERSION-image-$architecture.spdx.json"
done
lintian --fail-on error,warning "$FOLDER"/*.deb
digest=$(python3 -B config/image/index.py "$FOLDER/propeller-$VERSION-image.tar" "${images[@]}")
config/chart/chart.sh "$WORK/chart" >/dev/null
mkdir "$WORK/packed" && mv "$WORK/chart/propeller" "$WORK/packed"
packed "$FOLDER/propeller-$VERSION.tgz" "$WORK/packed"
export IMAGE=${IMAGE%:*}@$digest
config/deploy/install-yaml.sh "$FOLDER" >/dev/null
python3 -B config/packages/schemas.py crds "$FOLDER/schemas"
cp -r config/metrics/dashboards "$FOLDER"
packed "$FOLDER/propeller-$VERSION-docs.tar.gz" build/docs/html
packed "$FOLDER/propeller-$VERSION-man.tar.gz" build/docs/man
krew "${ARCHITECTURES[@]}" >"$FOLDER/krew-propeller.yaml"
(cd "$FOLDER" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$WORK/SHA256SUMS"
mv "$WORK/SHA256SUMS" "$FOLDER"
python3 -B config/packages/provenance.py "$FOLDER/SHA256SUMS" >"$FOLDER/provenance.json"
printf 'release: %s files in %s, version %s, for %s\n' "$(wc -l <"$FOLDER/SHA256SUMS")" "$FOLDER" "$VERSION" "${ARCHITECTURES[*]}"
