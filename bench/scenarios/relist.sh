#!/usr/bin/env bash
# Everything is listed again: the API server is killed and started anew right after a write, so that it does not
# know the versions that the operator watches from (410 Gone). 10,000 Proplets and as many Tasks at rest; what
# did not change causes no write.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

COUNT=${BENCH_RELIST:-10000}

# The pages of lists of both kinds that were answered since the mark; who asks for all at once has one.
lists() { operator_requests "$1" '.verb == "list" and .responseStatus.code == 200 and .objectRef.resource == "'"$2"'"'; }
listed_again() {
    local kind pages whole
    for kind in proplets tasks; do
        pages=$(lists "$1" "$kind" | wc -l)
        whole=$(lists "$1" "$kind" | jq -c 'select(.requestURI | contains("limit=") | not)' | wc -l)
        printf '%s: %s pages\n' "$kind" "$pages"
        ((whole > 0 || pages >= (COUNT + 499) / 500)) || return 1
    done
}
# last_list MARK: when the last page was there, in ms
last_list() {
    operator_requests "$1" '.verb == "list" and .responseStatus.code == 200' | jq -r .stageTimestamp |
        sort | tail -n 1 | xargs -I TIME date -d TIME +%s%3N
}

main() {
    local mark cpu ready
    scenario_begin
    broker_prepare
    broker_start
    operator_start
    add_proplets "$COUNT" --defaulted
    tasks_py many "$COUNT" --prefix rest --suspend --defaulted >/dev/null
    tasks_await 3600 Suspended "$COUNT"
    wait_for 3600 "it to have settled" settled
    controller_stop
    operator_start # without what the writes before left in memory
    wait_for 600 "it to have settled" settled
    observe_for "${BENCH_SETTLE_SECONDS:-45}"
    figure "$COUNT + $COUNT at rest: RssAnon (KiB)" "$(memory RssAnon)"
    k annotate namespace "$NS" bench=relist >/dev/null
    peak_reset
    mark=$(audit_mark)
    cpu=$(cpu_ms)
    in_cluster crash apiserver
    in_cluster cluster_apiserver
    wait_for 120 "the API server" apiserver_ready
    ready=$(now_ms)
    wait_for 300 "both kinds to be listed again" listed_again "$mark"
    figure "API server ready to the end of the last list (ms)" $(($(last_list "$mark") - ready))
    wait_for 300 "it to have settled" settled
    figure "relist of $COUNT + $COUNT: processor time (ms)" $(($(cpu_ms) - cpu))
    figure "relist of $COUNT + $COUNT: VmHWM (KiB)" "$(memory VmHWM)"
    observe_for "${BENCH_SETTLE_SECONDS:-45}"
    figure "relist of $COUNT + $COUNT: RssAnon, settled (KiB)" "$(memory RssAnon)"
    figure "relist of $COUNT + $COUNT: writes" "$(audit_writes "$mark" | wc -l)" "<= 0"
}

main "$@"
