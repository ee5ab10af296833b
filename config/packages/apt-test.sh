#!/usr/bin/env bash
# apt-test.sh FOLDER: makes an apt repository of the packages in FOLDER with a new key, and reads it with an apt that
# knows nothing else. A package and an index that were changed are refused.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
FOLDER=${1:?a folder of packages is needed}
WORK=$PWD/build/apt-test
# shellcheck source=config/packages/test-lib.sh
source config/packages/test-lib.sh

rm -rf "$WORK"
mkdir -p "$WORK"/{etc/apt.conf.d,etc/preferences.d,lib/lists/partial,cache/archives/partial,download}
# The path of a socket of GnuPG is short.
GNUPGHOME=$(mktemp -d)
export GNUPGHOME
trap 'gpgconf --kill all; rm -rf "$GNUPGHOME"' EXIT
gpg --batch --quiet --passphrase '' --quick-generate-key "Test of a repository" ed25519 sign never 2>"$WORK/log"
KEY=$(gpg --batch --list-keys --with-colons | sed -n 's/^[a-z]*:::::::::\([0-9A-F]*\):$/\1/p' | head -n 1)
passes "the repository is made" config/packages/apt-repo.sh "$FOLDER" "$WORK/repository" "$KEY"

echo "deb [signed-by=$WORK/repository/propeller.gpg] file:$WORK/repository stable main" >"$WORK/etc/sources.list"
: >"$WORK/status"
with_apt() {
    (cd "$WORK/download" && "$@" -o Dir::Etc="$WORK/etc" -o Dir::State="$WORK/lib" -o Dir::State::status="$WORK/status" \
        -o Dir::Cache="$WORK/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Update::Error-Mode=any)
}
update() { # without what it has read before
    rm -rf "$WORK"/lib/lists
    mkdir -p "$WORK/lib/lists/partial"
    with_apt apt-get update
}
download() { with_apt apt-get download propeller-standalone; }
package=$(compgen -G "$WORK/repository/pool/propeller-standalone_*_$(dpkg --print-architecture).deb")

passes "apt accepts it" update
passes "apt gets a package" download
rm -f "$WORK"/download/*
change "$package"
passes "a changed package is refused" not download
sed -i 's/^Version: .*/Version: 9/' "$WORK"/repository/dists/stable/main/binary-*/Packages
rm "$WORK"/repository/dists/stable/main/binary-*/Packages.gz
passes "a changed index is refused" not update
sed -i 's/^Label: .*/Label: Other/' "$WORK/repository/dists/stable/InRelease"
passes "a changed signature is refused" not update
all_passed
