#!/usr/bin/env bash
# kubelet.sh KUBECONFIG NAMESPACE SECRET DIRECTORY DELAY: follows a Secret as the kubelet does for a mounted
# one, DELAY seconds late: all files change in one step, and a deleted Secret changes nothing.
set -euo pipefail

HERE=$(dirname "${BASH_SOURCE[0]}")/..
# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"
# shellcheck source=e2e/lib/base.sh
source "$HERE/lib/base.sh"
config=$1 namespace=$2 secret=$3 directory=$4 delay=$5

kubectl() { "$CONTROL_PLANE_BIN/kubectl" --kubeconfig "$config" --namespace "$namespace" "$@"; }

swap() {
    local object=$1 name folder
    folder=$(mktemp -d "$directory/..XXXXXX")
    chmod 755 "$folder"
    for name in $(jq -r '.data // {} | keys[]' <<<"$object"); do
        jq -r --arg name "$name" '.data[$name]' <<<"$object" | base64 -d >"$folder/$name"
        ln -sfn "..data/$name" "$directory/$name"
    done
    ln -sfn "${folder##*/}" "$directory/..data_tmp"
    mv -T "$directory/..data_tmp" "$directory/..data"
}

# A watch ends now and then, and with the API server, which may be away for as long as its case likes.
while :; do
    kubectl get secret --field-selector "metadata.name=$secret" --watch -o json 2>/dev/null |
        jq --unbuffered -c 'select(.kind == "Secret")' | while read -r object; do
        sleep "$delay"
        swap "$object"
    done || true
    wait_for 3600 "the API server" kubectl get --raw /readyz
done
