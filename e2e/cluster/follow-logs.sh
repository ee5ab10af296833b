#!/usr/bin/env bash
# follow-logs.sh SOCKET NAMESPACE SELECTOR FOLDER: what the containers of these pods say, into FOLDER/<pod>.log,
# until it is killed. Containers that are started again are followed again, and a stream that broke, with the
# API server or with the kubelet, goes on behind the last line that it had.
set -u
SOCKET=$1 NAMESPACE=$2 SELECTOR=$3 FOLDER=$4
declare -A FOLLOWED=()
trap 'exit 0' TERM

get() { # get PATH [CURL-OPTION...]
    local path=$1
    shift
    curl -sSf --no-buffer --unix-socket "$SOCKET" "http://localhost/api/v1/namespaces/$NAMESPACE/$path" "$@" 2>/dev/null
}

# shellcheck disable=SC2016 # for jq
RUNNING='.metadata.name as $pod | .status.containerStatuses[0]? | select(.state.running)
    | "\($pod) \(.containerID | sub(".*/"; ""))"'
is_running() { # is_running POD INSTANCE: or nobody can say
    local now
    now=$(get "pods/$1" --retry 9 --retry-delay 1 | jq -r "$RUNNING")
    [[ $now == "$1 $2" ]]
}

# Line by line, and not by awk: that waits for 4 KiB.
follow() { # follow POD INSTANCE
    local last='' time line
    while :; do
        while IFS=' ' read -r time line; do
            [[ $time > $last ]] || continue
            printf '%s\n' "$line"
            last=$time
        done < <(get "pods/$1/log?follow=true&timestamps=true${last:+&sinceTime=$last}") >>"$FOLDER/$1.log"
        is_running "$1" "$2" || break
        timeout 0.5 tail -f /dev/null # a stream that ends at once shall not be asked for without a pause
    done
}

# All of them at first, then each that changes.
while :; do
    while read -r pod instance; do
        [[ -z ${FOLLOWED[$instance]:-} ]] || continue
        FOLLOWED[$instance]=yes
        follow "$pod" "$instance" &
    done < <(get "pods?watch=true&labelSelector=$SELECTOR" --retry 9999 --retry-delay 1 |
        jq --unbuffered -r ".object | $RUNNING")
done
