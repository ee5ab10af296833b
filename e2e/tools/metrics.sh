#!/usr/bin/env bash
# metrics.sh: the alerts, the dashboards and the metrics of the demo, with promtool and Prometheus (make metrics-test).
# PICTURES=FOLDER: then draws each dashboard into this folder (make dashboard-pictures).
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
pictures=()
if [[ -n ${PICTURES:-} ]]; then
    e2e/setup.sh page
    cp e2e/page/* "$PAGE_HOME/"
    mkdir -p "$PICTURES"
    pictures=(node "$PAGE_HOME/dashboards.mjs" "$PICTURES")
fi
"$DASHBOARDS_HOME/bin/python" -B e2e/tools/dashboards.py "$PROMTOOL" "$PROMETHEUS" "$METRICS" "${pictures[@]}"
