#!/usr/bin/env bash
# deb.sh PROGRAMS OUTPUT: the Debian packages of the programs in the folder PROGRAMS, with the manual pages of `make man`.
# `make deb` calls it with VERSION and SOURCE_DATE_EPOCH.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PROGRAMS=$1 OUTPUT=$2 ARCHITECTURE=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:?}
WORK=build/deb/$ARCHITECTURE
TREE=$WORK/propeller

# v0.1.0-12-g1234567-dirty is 0.1.0+12.g1234567.dirty, which apt takes to be newer than 0.1.0 and older than 0.1.1.
version=$(sed -E 's/^v//; s/-/+/; s/-/./g' <<<"${VERSION:?}")
[[ $version == [0-9]*.* ]] || version=0+$version

rm -rf "$WORK"
mkdir -p "$TREE/bin" "$TREE/completions" "$OUTPUT"
cp -r debian config/systemd/propeller-backup.sh build/docs/man "$TREE"
for file in service default sysusers; do
    cp "config/systemd/propeller-standalone.$file" "$TREE/debian"
done
for file in service timer; do
    cp "config/systemd/propeller-backup.$file" "$TREE/debian/propeller-standalone.propeller-backup.$file"
done
cp "$PROGRAMS"/propeller-{controller,webhook,certgen,standalone,graph} "$PROGRAMS/kubectl-propeller" \
    plugin/kubectl_complete-propeller "$TREE/bin"
for program in propeller-{controller,webhook,certgen,standalone,graph} kubectl-propeller; do
    completion=--completion
    [[ $program != kubectl-propeller ]] || completion=completion
    "$PROGRAMS/$program" $completion bash >"$TREE/completions/$program"
    "$PROGRAMS/$program" $completion zsh >"$TREE/completions/_$program"
    "$PROGRAMS/$program" $completion fish >"$TREE/completions/$program.fish"
done
chmod -R u+rwX,go=rX "$TREE"
{
    printf 'propeller (%s) unstable; urgency=medium\n\n  * CHANGELOG.md of the sources lists the changes.\n\n' "$version"
    printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' debian/control)" "$(LC_ALL=C date -uR -d "@$SOURCE_DATE_EPOCH")"
} >"$TREE/debian/changelog"

# Nothing is compiled, so the compilers of build-essential need not be there.
(cd "$TREE" && DEB_BUILD_OPTIONS="noautodbgsym nocheck" dpkg-buildpackage --build=any --no-check-builddeps \
    --unsigned-changes --unsigned-buildinfo) >"$WORK/log" 2>&1 || {
    tail -n 30 "$WORK/log" >&2
    exit 1
}
rm -f "$OUTPUT"/{propeller-standalone,propeller-operator,kubectl-propeller}_*_"$ARCHITECTURE".deb
mv "$WORK"/*.deb "$OUTPUT"
printf 'deb: %s\n' "$OUTPUT"/*_"${version}_$ARCHITECTURE".deb
