#!/usr/bin/env bash
# repeat-test.sh FOLDER: makes the release in FOLDER again from a clone in another folder, without the cache of the
# compiler. Its files have the same sums.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
FOLDER=${1:?a folder of a release is needed}
WORK=$PWD/build/repeat-test
OTHER=$WORK/elsewhere/with/a/longer/name
# shellcheck source=config/packages/test-lib.sh
source config/packages/test-lib.sh
VERSION=$(compgen -G "$FOLDER/propeller-*-image.tar" | sed 's/.*propeller-\(.*\)-image.tar/\1/')

make_again() { env -u MAKEFLAGS CCACHE_DISABLE=1 nice make -C "$OTHER" --no-print-directory -j"$(nproc)" release VERSION="$VERSION"; }

rm -rf "$WORK"
mkdir -p "$WORK"
git clone --quiet . "$OTHER"
echo "a page that git does not know" >"$OTHER/docs/how-to/stray.md"
echo 'docs/how-to/stray.md' >>"$OTHER/.git/info/exclude"
passes "the release is made in another folder" make_again
passes "all files have the same sums" diff "$FOLDER/SHA256SUMS" "$OTHER/build/release/SHA256SUMS"
passes "the statement of provenance is the same" cmp "$FOLDER/provenance.json" "$OTHER/build/release/provenance.json"
all_passed
