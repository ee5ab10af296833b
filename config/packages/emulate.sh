#!/usr/bin/env bash
# emulate.sh ARCHITECTURE COMMAND...: runs a command that may start programs of another architecture, under QEMU.
#
# The command is process 1 of a name space of its own, and what it mounts is seen there alone. If this machine does not run
# such programs anyway, the kernel learns of QEMU in a user name space, which Linux has from version 6.7 on. Needs root, and
# Debian's qemu-user-static and arch-test.
set -euo pipefail

ARCHITECTURE=$1
shift
readonly OWN=(unshare --mount --pid --fork --kill-child --mount-proc)
if [[ $ARCHITECTURE == "$(dpkg --print-architecture)" ]] || arch-test "$ARCHITECTURE" >/dev/null 2>&1; then
    exec "${OWN[@]}" "$@"
fi
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
until [[ $(readlink /proc/$holder/ns/user) != "$(readlink /proc/$$/ns/user)" ]]; do
    kill -0 $holder
done
echo 0 0 65536 >/proc/$holder/uid_map
echo 0 0 65536 >/proc/$holder/gid_map
# shellcheck disable=SC2016 # the inner shell expands it
exec nsenter --target $holder --user "${OWN[@]}" sh -ec '
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    cat "/usr/lib/binfmt.d/$0.conf" >/proc/sys/fs/binfmt_misc/register
    exec "$@"' "$emulator" "$@"
