#!/usr/bin/env bash
# kill.sh PROGRAM KILLS SEED: kill.py in a folder of its own, which is kept when something was lost.
set -euo pipefail

folder=$(mktemp -d)
python3 "$(dirname "${BASH_SOURCE[0]}")/kill.py" "$1" "$folder" --kills "$2" --seed "$3" || {
    printf 'kill: what was left is in %s\n' "$folder" >&2
    exit 1
}
rm -rf "$folder"
