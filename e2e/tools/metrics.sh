#!/usr/bin/env bash
# metrics.sh: the alerts, the dashboards and the metrics of the demo, with promtool and Prometheus (make metrics-test).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
e2e/setup.sh promtool dashboards
python3 -B e2e/tools/alerts.py "$PROMTOOL"
KEEP=1 e2e/demo.sh >build/e2e/metrics.output 2>&1 || { cat build/e2e/metrics.output; exit 1; }
trap 'e2e/demo.sh stop >/dev/null' EXIT
# shellcheck source=/dev/null # made by the demo
source build/e2e/demo.env
"$DASHBOARDS_HOME/bin/python" -B e2e/tools/dashboards.py "$PROMTOOL" "$PROMETHEUS" "$METRICS"
