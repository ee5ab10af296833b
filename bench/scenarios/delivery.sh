#!/usr/bin/env bash
# Modules of a registry on devices: what is pulled and sent, how long Tasks take, memory. Real devices on three channels:
# many on one, two on another, one on a third.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

DEVICES=${BENCH_DEVICES:-100}
SAMPLES=${BENCH_SAMPLES:-200}
REPEATS_LARGE=${BENCH_LARGE:-10}
ON=(--module-registries) # and where it listens

MIB=$((1 << 20))
# One pass of a module of so many bytes in base64, and a tenth more.
most_published() { printf '%s\n' $(($1 * 4 * 11 / 3 / 10)); }

published() { metrics | awk '$1 == "propeller_module_chunk_bytes_sent_total" { print $2 }'; }
digest_of() { printf 'sha256:%s\n' "$(sha256sum <"$PART/$1.wasm" | cut -d ' ' -f 1)"; }
reference() { printf '127.0.0.1:%s/acme/%s:1\n' "$OCI_PORT" "$1"; }
resolves() { grep -c "\"HEAD /v2/acme/$1/manifests/1 HTTP/" "$LOGS/oci.log" || true; }

push() { # push NAME BYTES: a module that no other one shares
    padded_module "$2" >"$PART/$1.wasm"
    printf '\0\x09\x01x%-7.7s' "$1" >>"$PART/$1.wasm"
    oci_push "acme/$1" 1 "$PART/$1.wasm"
}

settle() {
    wait_for 600 "it to have settled" settled
    observe_for "${BENCH_SETTLE_SECONDS:-45}"
}

# peak_of COMMAND...: sets PEAK, the most RssAnon while it runs
peak_of() {
    local command now
    "$@" >/dev/null &
    command=$!
    PEAK=0
    while kill -0 "$command" 2>/dev/null; do
        now=$(memory RssAnon)
        PEAK=$((now > PEAK ? now : PEAK))
        sleep 0.05
    done
    wait "$command"
}

# runs NAME MODULE PROPLET COUNT: p50 of one after the other, in ms; MODULE inline: the addition
runs() {
    local -a module=()
    [[ $2 == inline ]] || module=(--image-url "$(reference "$2")")
    tasks_py runs "$4" --prefix "$1" --proplet "$3" "${module[@]}"
}

devices_start() { # devices_start GROUP CHANNEL COUNT
    local CHANNEL=$2
    proplet_json "$1-NUMBER" "$1-NUMBER" "$(jq -nc --arg group "$1" '{metadata: {labels: {$group}}}')" | add_numbered "$3"
    device_start "$1" --prefix "$1" --count "$3"
}

prepare() {
    local CHANNEL
    local -a many pair
    mapfile -t many < <(printf 'many-%s\n' $(seq "$DEVICES"))
    pair=(pair-1 pair-2)
    broker_in_memory
    CHANNEL=chan-1
    broker_prepare "${many[@]}"
    CHANNEL=chan-2
    broker_devices "${pair[@]}"
    CHANNEL=chan-3
    broker_devices alone-1
    broker_start
    oci_start
    ON+=("http://127.0.0.1:$OCI_PORT" --module-cache-dir "$PART/modules")
    push small 1000
    push tag 1000
    push inline $((MIB / 2))
    push medium $((4 * MIB))
    push large $((32 * MIB - 11))
    push shared $((4 * MIB))
}

measure_memory_at_rest() {
    local off
    operator_start
    settle
    off=$(memory RssAnon)
    figure "off, idle: RssAnon (KiB)" "$off"
    controller_stop
    operator_start "${ON[@]}"
    settle
    figure "on, idle: RssAnon beyond off (KiB)" $(($(memory RssAnon) - off)) "<= 512"
}

measure_times() {
    local inline addition
    runs warm-up inline pair-1 3 >/dev/null
    runs warm-alone inline alone-1 3 >/dev/null
    runs cached medium pair-2 1 >/dev/null
    figure "4 MiB in the cache, two devices of a channel: create -> completed, p50 (ms)" \
        "$(runs shared-channel medium pair-1 $((SAMPLES / 10)))" "<= 1000"
    # The test device needs longer for a module than one that is no script.
    figure "of it on the device, p50 (ms)" "$(journal pair | jq -s '
        (map(select(.event == "asked") | {(.task): .time}) | add) as $asked
        | map(select(.event == "result" and $asked[.task]) | (.time - $asked[.task]) * 1000) | sort | .[length / 2 | floor] | floor')"
    runs cached-inline inline alone-1 1 >/dev/null
    addition=$(runs addition small alone-1 $((SAMPLES / 4)))
    inline=$(runs in-the-start inline alone-1 $((SAMPLES / 4)))
    figure "addition of the cache, own channel: create -> completed, p50 (ms)" "$addition"
    figure "512 KiB in the start, own channel: p50 beyond the addition (ms)" \
        "$(awk -v a="$inline" -v b="$addition" 'BEGIN { printf "%.1f\n", a - b }')" "<= 150"
}

# One Task for each device, all at once.
measure_many() {
    local before started
    before=$(published)
    started=$(now_ms)
    tasks_py many "$DEVICES" --prefix each --proplet many-NUMBER --image-url "$(reference shared)" >/dev/null
    wait_for 300 "$DEVICES starts" journal_has many '.event == "start"' "$DEVICES"
    figure "4 MiB, $DEVICES devices of a channel: first create -> last start (s)" \
        "$(journal many '.event == "start"' | jq -s --argjson begin "$started" 'map(.time) | max - $begin / 1000')" "<= 5"
    figure "4 MiB, $DEVICES devices of a channel: bytes published" $(($(published) - before)) \
        "<= $(most_published $((4 * MIB)))"
    figure "4 MiB, $DEVICES Tasks at once: requests for the blob" "$(oci_blobs "$(digest_of shared)")" "<= 1"
    tasks_await 300 completed "$(kn get tasks --no-headers | wc -l)"
}

measure_broadcast() {
    local before
    before=$(published)
    padded_module 512000 | base64 -w0 >"$PART/file"
    task_json broadcast "" '[10, 32]' | jq --rawfile file "$PART/file" '
        .spec += {$file, broadcast: true, propletSelector: {matchLabels: {group: "many"}}}' | create
    wait_task broadcast completed 300
    figure "500 KiB of spec.file, broadcast to $DEVICES devices of a channel: bytes published" \
        $(($(published) - before)) "<= $(most_published 512000)"
}

measure_tag() {
    local before
    before=$(resolves tag)
    tasks_py many 200 --prefix tag --image-url "$(reference tag)" >/dev/null
    tasks_await 300 completed "$(kn get tasks --no-headers | wc -l)"
    figure "200 Tasks by one tag: resolves" $(($(resolves tag) - before)) "<= 2"
    figure "200 Tasks by one tag: requests for the blob" "$(oci_blobs "$(digest_of tag)")" "<= 1"
}

p99_of_starts() { # p99_of_starts PREFIX: on the two devices, in ms
    tasks_py latency "$SAMPLES" --prefix "$1" --proplet pair-1 --journal "$LOGS/pair.journal" |
        awk -F '|' '$1 == "created -> start on the device, p99 (ms)" { print $2 }'
}

measure_others() {
    local alone beside large
    alone=$(p99_of_starts quiet)
    runs busy large alone-1 "$REPEATS_LARGE" >"$PART/large.p50" &
    large=$!
    beside=$(p99_of_starts beside)
    kill -0 "$large" || say "the large modules were sent before the last start of others"
    wait "$large"
    figure "start of others while 32 MiB go out: p99 beyond that without (ms)" \
        "$(awk -v a="$beside" -v b="$alone" 'BEGIN { printf "%.1f\n", a - b }')" "<= 100"
}

measure_memory() {
    local before
    settle
    before=$(memory RssAnon)
    peak_of runs large large alone-1 1
    figure "32 MiB pulled and delivered: RssAnon beyond idle, at most (KiB)" $((PEAK - before)) "<= $((6 << 10))"
}

main() {
    [[ $BENCH_WHO == ours ]] || return 0
    scenario_begin
    prepare
    measure_memory_at_rest
    devices_start pair chan-2 2
    devices_start alone chan-3 1
    proplets_await 120 Running 3
    measure_memory
    measure_times
    measure_others
    devices_start many chan-1 "$DEVICES"
    proplets_await 120 Running $((DEVICES + 3))
    measure_many
    measure_broadcast
    measure_tag
}

main "$@"
