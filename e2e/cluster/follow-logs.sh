#!/usr/bin/env bash
# follow-logs.sh SOCKET NAMESPACE SELECTOR FOLDER: what the containers of these pods say, into FOLDER/<pod>.log,
# until it is killed. Containers that are started again are followed again, and a stream that broke with the
# API server goes on behind the last line that it had.
set -u
SOCKET=$1 NAMESPACE=$2 SELECTOR=$3 FOLDER=$4
STATE=$(mktemp -d)
trap 'rm -rf "$STATE"' EXIT
trap 'exit 0' TERM

get() { curl -sSf --no-buffer --unix-socket "$SOCKET" "http://localhost/api/v1/namespaces/$NAMESPACE/$1" 2>/dev/null; }

follow() { # follow POD INSTANCE
    local last
    last=$(cat "$STATE/$2.last" 2>/dev/null)
    get "pods/$1/log?follow=true&timestamps=true${last:+&sinceTime=$last}" |
        awk -v last="$last" -v state="$STATE/$2.last" '
            last != "" && $1 <= last { next }
            { print $1 > state; close(state); print substr($0, length($1) + 2); fflush() }' >>"$FOLDER/$1.log"
    rm -f "$STATE/$2.followed"
}

while :; do
    while read -r pod instance; do
        [[ ! -e $STATE/$instance.followed ]] || continue
        : >"$STATE/$instance.followed"
        follow "$pod" "$instance" &
    done < <(get "pods?labelSelector=$SELECTOR" | jq -r '.items[] | .metadata.name as $pod
        | .status.containerStatuses[0]? | select(.state.running) | "\($pod) \(.containerID | sub(".*/"; ""))"')
    sleep 0.3
done
