#!/usr/bin/env bash
# The cases on a real node, with the operator in pods: E2E_CLUSTER=local, where the machine allows it (root,
# namespaces, cgroup v1). Elsewhere it says that it does not apply, which is no failure.
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ ${1:-} == --obstacle ]]; then # says it and nothing else; fails where there is none
    node_obstacle
    exit
fi
if obstacle=$(node_obstacle); then
    printf 'nodes: n/a on this machine: %s\n' "$obstacle"
    [[ -z ${TEST_TALLY:-} ]] || printf 'nodes:n/a 0 0\n' >>"$TEST_TALLY"
    exit 0
fi
(($#)) || set -- 80 82 84 85 86
E2E_CLUSTER=local exec "$HERE/run.sh" "$@"
