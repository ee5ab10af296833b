#!/usr/bin/env bash
# build.sh html|man: the site in build/docs/html, or the manual pages in build/docs/man.
#
# The reference pages are generated from crds/, the programs in build/bin, the table of reasons, the
# documents of the plug-in, the table of the chart and the metrics in the sources, beside a copy of what git knows of
# docs/. A warning of Sphinx, such as a link that leads nowhere, is an error.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
[[ ${1:-} == html || ${1:-} == man ]] || { echo "build.sh: '${1:-}' is neither html nor man" >&2; exit 2; }

e2e/setup.sh docs
SOURCE=build/docs/source
rm -rf "$SOURCE" "build/docs/$1"
mkdir -p "$SOURCE"
(cd docs && git ls-files -z | xargs -0 cp --parents --target-directory="../$SOURCE")
python=$DOCS_HOME/bin/python
"$python" -B docs/tools/api.py crds "$SOURCE/reference/api"
"$python" -B docs/tools/commands.py build/bin "$SOURCE/reference/commands"
"$python" -B docs/tools/reasons.py common/api/reasons.def "$SOURCE/reference/reasons.md"
"$python" -B docs/tools/documents.py plugin/documents.yaml "$SOURCE/reference/plugin-output.md"
"$python" -B docs/tools/values.py config/chart/chart.yaml "$SOURCE/reference/values.md"
"$python" -B docs/tools/metrics.py "$SOURCE/reference/metrics.md" common controller certs webhook standalone
VERSION=${VERSION:-$(git describe --always --dirty 2>/dev/null || true)} \
    "$python" -m sphinx --fail-on-warning --nitpicky --quiet --fresh-env -b "$1" -d build/docs/doctrees "$SOURCE" "build/docs/$1"
# Sphinx begins each section with a space that mandoc calls a mistake. Lines of long words cannot be adjusted.
[[ $1 != man ]] || sed -i -e '/^\.SH/{n;/^\.sp$/d}' -e '/^\.TH/a .ad l' build/docs/man/*.[18]
echo "docs: build/docs/$1"
