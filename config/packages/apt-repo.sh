#!/usr/bin/env bash
# apt-repo.sh FOLDER OUTPUT KEY: a repository for apt with the packages of FOLDER, signed by the GnuPG key KEY.
set -euo pipefail

FOLDER=${1:?a folder of packages is needed} OUTPUT=${2:?a folder for the repository is needed}
KEY=${3:?a GnuPG key is needed, by its fingerprint or address: make apt-repo KEY=...}
SUITE=stable
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date +%s)}

rm -rf "$OUTPUT"
mkdir -p "$OUTPUT/pool" "$OUTPUT/dists/$SUITE"
cp "$FOLDER"/*.deb "$OUTPUT/pool"
cd "$OUTPUT"
architectures=$(for deb in pool/*.deb; do dpkg-deb --field "$deb" Architecture; done | LC_ALL=C sort -u | paste -sd' ')
for architecture in $architectures; do
    mkdir -p "dists/$SUITE/main/binary-$architecture"
    dpkg-scanpackages --multiversion --arch "$architecture" pool >"dists/$SUITE/main/binary-$architecture/Packages" 2>/dev/null
    gzip --no-name --keep "dists/$SUITE/main/binary-$architecture/Packages"
done
cd "dists/$SUITE"
{
    printf 'Origin: Propeller\nLabel: Propeller\nSuite: %s\nCodename: %s\nArchitectures: %s\nComponents: main\n' \
        $SUITE $SUITE "$architectures"
    printf 'Date: %s\nSHA256:\n' "$(LC_ALL=C date -uR -d "@$SOURCE_DATE_EPOCH")"
    find main -type f -printf '%P\n' | LC_ALL=C sort | while read -r file; do
        printf ' %s %s main/%s\n' "$(sha256sum <"main/$file" | cut -d' ' -f1)" "$(stat -c %s "main/$file")" "$file"
    done
} >Release
gpg --batch --yes --local-user "$KEY" --clearsign --output InRelease Release
gpg --batch --yes --local-user "$KEY" --armor --detach-sign --output Release.gpg Release
gpg --batch --export "$KEY" >"../../propeller.gpg"
printf 'apt-repo: %s, architectures %s\n' "$OUTPUT" "$architectures"
