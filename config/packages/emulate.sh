#!/usr/bin/env bash
# emulate.sh ARCHITECTURE COMMAND...: runs a command that may start programs of another architecture, under QEMU.
#
# The command has a user and a mount namespace of its own, so the kernel knows of QEMU there alone. For the architecture of
# this machine it runs as it is. Needs root, Linux 6.7 and Debian's qemu-user-static.
set -euo pipefail

ARCHITECTURE=$1
shift
[[ $ARCHITECTURE != "$(dpkg --print-architecture)" ]] || exec unshare --mount "$@"
case $ARCHITECTURE in
arm64) emulator=qemu-aarch64 ;;
*)
    echo "emulate: the architecture is '$ARCHITECTURE', it must be amd64 or arm64" >&2
    exit 2
    ;;
esac

# The process that has the name space until the command is in it.
unshare --user sleep 60 >/dev/null 2>&1 </dev/null &
holder=$!
until [[ $(readlink /proc/$holder/ns/user) != "$(readlink /proc/$$/ns/user)" ]]; do :; done
echo 0 0 65536 >/proc/$holder/uid_map
echo 0 0 65536 >/proc/$holder/gid_map
# shellcheck disable=SC2016 # the inner shell expands it
exec nsenter --target $holder --user unshare --mount --pid --fork --kill-child --mount-proc sh -ec '
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    cat "/usr/lib/binfmt.d/$0.conf" >/proc/sys/fs/binfmt_misc/register
    exec "$@"' "$emulator" "$@"
