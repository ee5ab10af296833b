#!/usr/bin/env bash
# release-test.sh [STAGE...]: makes a release of the newest version in CHANGELOG.md in build/release-test, and tests it.
# `make release-test` calls it. Needs root.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
FOLDER=build/release-test
VERSION=$(sed -nE 's/^## ([0-9.]+) – .*/\1/p' CHANGELOG.md | head -n 1)
STAGES=(install apt systemd cross sign repeat)
(($#)) || set -- "${STAGES[@]}"
for stage in "$@"; do
    [[ " ${STAGES[*]} " == *" $stage "* ]] || {
        echo "release-test: '$stage' is none of: ${STAGES[*]}" >&2
        exit 2
    }
done
e2e/setup.sh release-test
make --no-print-directory release VERSION="$VERSION" RELEASE_OUT=$FOLDER
for stage in "$@"; do
    case $stage in
    cross)
        VERSION=$VERSION config/packages/cross.sh test arm64
        config/packages/install-test.sh $FOLDER arm64
        ;;
    *) "config/packages/$stage-test.sh" $FOLDER ;;
    esac
done
echo "release-test: passed, version $VERSION, stages $*"
