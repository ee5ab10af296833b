#!/usr/bin/env bash
# kubelet.sh KUBECONFIG NAMESPACE SECRET DIRECTORY DELAY: follows a Secret as the kubelet does for a mounted
# one, DELAY seconds late: all files change in one step, and a deleted Secret changes nothing.
set -euo pipefail

# shellcheck source=e2e/versions.sh
source "$(dirname "${BASH_SOURCE[0]}")/../versions.sh"
config=$1 namespace=$2 secret=$3 directory=$4 delay=$5
count=0

swap() {
    local object=$1 name folder
    count=$((count + 1))
    folder=..$count
    mkdir "$directory/$folder"
    for name in $(jq -r '.data // {} | keys[]' <<<"$object"); do
        jq -r --arg name "$name" '.data[$name]' <<<"$object" | base64 -d >"$directory/$folder/$name"
        ln -sfn "..data/$name" "$directory/$name"
    done
    ln -sfn "$folder" "$directory/..data_tmp"
    mv -T "$directory/..data_tmp" "$directory/..data"
}

# A watch ends now and then, and with the API server.
while :; do
    "$CONTROL_PLANE_BIN/kubectl" --kubeconfig "$config" --namespace "$namespace" get secret \
        --field-selector "metadata.name=$secret" --watch -o json 2>/dev/null |
        jq --unbuffered -c 'select(.kind == "Secret")' | while read -r object; do
        sleep "$delay"
        swap "$object"
    done
    sleep 1
done
