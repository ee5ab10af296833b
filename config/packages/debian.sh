#!/usr/bin/env bash
# debian.sh ARCHITECTURE FOLDER PACKAGE...: makes a Debian of the version of this machine in FOLDER, with these packages.
set -euo pipefail

HERE=$(dirname "${BASH_SOURCE[0]}")
# A user name space may not mount /sys. The hook takes the place of a program that would be slow under QEMU.
exec "$HERE/emulate.sh" "$1" mmdebstrap --quiet --variant=minbase --architectures="$1" --skip=chroot/mount/sys \
    --hook-directory=/usr/share/mmdebstrap/hooks/merged-usr --include="$(IFS=, && echo "${*:3}")" \
    "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$2"
