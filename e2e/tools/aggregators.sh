#!/usr/bin/env bash
# Holds the aggregators of federated learning against NumPy: aggregators.sh PROGRAM COUNT SEED
# SEED: a number, or random. PROGRAM: bench/aggregate.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"

program=${1:?usage: aggregators.sh PROGRAM COUNT SEED}
seed=$3
[[ $seed != random ]] || seed=$SRANDOM
[[ -x $PYTHON_HOME/bin/python ]] || "$HERE/setup.sh" run
exec "$PYTHON_HOME/bin/python" -B "$HERE/../controller/tests/compare/aggregators.py" --program "$program" \
    --count "$2" --seed "$seed"
