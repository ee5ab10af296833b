#!/usr/bin/env bash
# The S3 model store against a real server (rclone serve s3, which verifies signatures): s3.sh PROGRAM
# PROGRAM: controller/tests/test_model_store_s3
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"

readonly START_S=120
readonly REGION=us-east-1 BUCKET=models ACCESS_KEY=AKIDEXAMPLE SECRET_KEY=not-a-secret-of-anybody

program=${1:?usage: s3.sh PROGRAM}
[[ -x $PYTHON_HOME/bin/rclone ]] || "$HERE/setup.sh" run

work=$(mktemp -d)
server=
end() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    wait || true
    rm -rf "$work"
}
trap end EXIT
mkdir -p "$work/data/$BUCKET"

"$PYTHON_HOME/bin/rclone" serve s3 --config /dev/null --auth-key "$ACCESS_KEY,$SECRET_KEY" --addr 127.0.0.1:0 \
    "$work/data" >"$work/log" 2>&1 </dev/null &
server=$!
# ends when the line is there, or the server is not
timeout "$START_S" grep -q -m 1 'Starting s3 server' < <(tail --pid="$server" -n +1 -f "$work/log") || true
address=$(sed -n 's/.*Starting s3 server on \[\(http:[^]]*[0-9]\)\/*\].*/\1/p' "$work/log")
[[ -n $address ]] || {
    cat "$work/log" >&2
    echo "s3: rclone did not start" >&2
    exit 1
}

status=0
output=$(PROPELLER_TEST_S3="$address $REGION $BUCKET $ACCESS_KEY $SECRET_KEY" \
    CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-15} "$program" 2>&1) || status=$?
echo "$output"
if [[ -n ${TEST_TALLY:-} ]]; then
    [[ $output =~ Checks:\ ([0-9]+),\ Failures:\ ([0-9]+),\ Errors:\ ([0-9]+) ]] || exit 1
    bad=$((BASH_REMATCH[2] + BASH_REMATCH[3]))
    echo "s3 $((BASH_REMATCH[1] - bad)) $bad" >>"$TEST_TALLY"
fi
exit "$status"
