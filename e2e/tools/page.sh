#!/usr/bin/env bash
# page.sh: the fleet page of the demo in Chromium (make page-test): of propeller-standalone, then for a token of one
# namespace, which needs a control plane. Screenshots are in build/e2e/page.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
e2e/setup.sh page
mkdir -p build/e2e/page
cp e2e/page/* "$PAGE_HOME/"

# world [CLUSTER=1]: a demo that stays, in place of the one before
world() {
    env KEEP=1 "$@" e2e/demo.sh >build/e2e/page/demo.output 2>&1 || { cat build/e2e/page/demo.output; exit 1; }
    trap 'e2e/demo.sh stop >/dev/null' EXIT
    # shellcheck source=/dev/null # made by the demo
    source build/e2e/demo.env
}

world
propeller-standalone add-user --data-dir "$DATA" --name looker --role view |
    sed -n 's/^ *token: *//p' | tr -d "\"'" >build/e2e/page/token
node "$PAGE_HOME/page_test.mjs" "$PAGE" build/e2e/page/token "$DATA/users" build/e2e/page
rm build/e2e/page/token
world CLUSTER=1
node "$PAGE_HOME/namespace_test.mjs" "$PAGE"
