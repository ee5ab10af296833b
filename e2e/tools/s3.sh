#!/usr/bin/env bash
# The S3 model store against a real server (rclone serve s3, which verifies signatures): s3.sh PROGRAM
# PROGRAM: controller/tests/test_model_store_s3
set -euo pipefail

# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

program=${1:?usage: s3.sh PROGRAM}
[[ -x $PYTHON_HOME/bin/rclone ]] || "$HERE/setup.sh" run
work_begin
part_begin s3
s3_start

status=0
output=$(PROPELLER_TEST_S3="$S3_ENDPOINT $S3_REGION $S3_BUCKET $S3_ACCESS_KEY $(secret_of s3)" \
    CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-60} "$program" 2>&1) || status=$?
echo "$output"
if [[ -n ${TEST_TALLY:-} ]]; then
    [[ $output =~ Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+) ]] || exit 1
    bad=$((BASH_REMATCH[2] + BASH_REMATCH[3]))
    echo "s3 $((BASH_REMATCH[1] - bad)) $bad" >>"$TEST_TALLY"
fi
exit "$status"
