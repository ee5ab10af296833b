#!/usr/bin/env bash
# systemd-test.sh FOLDER: the service of the Debian packages in FOLDER, with systemd as process 1 in namespaces. The unit
# becomes active, survives kill -9 and a main thread that hangs, makes a backup, and is removed. Needs root, a cgroup
# version 2 that is mounted somewhere, and the folder of install-test.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PACKAGES=${1:?a folder of packages is needed}
WORK=$PWD/build/install-test/$(dpkg --print-architecture)
ROOT=$WORK/root
UNIT=propeller-standalone.service
INIT=
# shellcheck source=config/packages/test-lib.sh
source config/packages/test-lib.sh

not_here() {
    printf '%s: n/a on this machine: %s\n' "$TEST" "$*"
    exit 0
}
about() { in_machine systemctl status --no-pager --lines=5 $UNIT 2>&1 | tail -n 12; }
in_machine() {
    nsenter --target "$INIT" --mount --pid --net --ipc --uts --cgroup env -i LC_ALL=C PATH=/usr/bin:/usr/sbin:/bin:/sbin \
        DEBIAN_FRONTEND=noninteractive "$@"
}
property() { in_machine systemctl show --value --property "$1" $UNIT; }
has_backup() { compgen -G "$ROOT/var/lib/propeller-backup/propeller-*.db" >/dev/null; }
is() { [[ $(property "$1") == "$2" ]]; }

# A cgroup of its own, so that systemd sees no other one.
make_cgroup() {
    local mounted
    mounted=$(findmnt --noheadings --types cgroup2 --output TARGET | head -n 1)
    [[ -n $mounted ]] || return 1
    CGROUP=$mounted/propeller-systemd-test
    mkdir -p "$CGROUP"
}
end_machine() {
    [[ -z $INIT ]] || kill -KILL "$INIT" 2>/dev/null || true
    wait || true
    find "$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
}
start_machine() {
    # shellcheck disable=SC2016 # the inner shell expands it
    sh -c 'echo 0 >"$1/cgroup.procs"
        exec unshare --pid --mount --uts --ipc --cgroup --net --fork --kill-child sh -ec "
            mount --make-rprivate /
            mount --bind $2 $2
            mount -t proc proc $2/proc
            mount -t sysfs sysfs $2/sys
            mount -t cgroup2 cgroup2 $2/sys/fs/cgroup
            mount -t tmpfs tmpfs $2/run
            mount --rbind /dev $2/dev
            ip link set lo up
            cd $2
            pivot_root . mnt
            umount -l /mnt
            exec env -i container=propeller /lib/systemd/systemd --unit=multi-user.target"' sh "$CGROUP" "$ROOT" \
        >"$WORK/systemd.log" 2>&1 </dev/null &
    wait_for 20 pgrep -P $! || return 1
    INIT=$(pgrep -P $!)
    wait_for 60 in_machine systemctl is-system-running --wait || [[ $(in_machine systemctl is-system-running) == degraded ]]
}

# Stops one thread as a debugger does, and leaves the others alone, until the process is killed.
hang_main_thread() {
    nsenter --target "$INIT" --pid python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 0x4206, 0x4207, 0x40000000
for request in PTRACE_SEIZE, PTRACE_INTERRUPT:
    if libc.ptrace(request, int(sys.argv[1]), None, None) < 0:
        sys.exit("ptrace: error %d" % ctypes.get_errno())
while not os.WIFSIGNALED(os.waitpid(int(sys.argv[1]), WALL)[1]):
    pass' "$1" &
}

# with_setting NAME=VALUE: another one than in the unit, for a shorter test
with_setting() {
    mkdir -p "$ROOT/etc/systemd/system/$UNIT.d"
    printf '[Service]\n%s\n' "$1" >"$ROOT/etc/systemd/system/$UNIT.d/test.conf"
    in_machine systemctl daemon-reload
}
says() { in_machine sh -c "journalctl --no-pager -u $UNIT | grep -q '$1'"; }

check_service() {
    local main
    in_machine sh -c 'dpkg --install /root/new/*.deb' >"$WORK/systemd-dpkg.log" 2>&1 || die "$(tail -n 5 "$WORK/systemd-dpkg.log")"
    passes "the unit is active after the installation" is ActiveState active
    passes "its status is the server's own" wait_for 30 is StatusText "serving, everything has started"
    passes "its user is propeller" is User propeller
    passes "the timer is active" in_machine systemctl --quiet is-active propeller-backup.timer

    main=$(property MainPID)
    in_machine sh -c "kill -KILL $main"
    passes "kill -9 is followed by a start" wait_for 30 is NRestarts 1
    passes "the unit is active again" wait_for 30 is ActiveState active

    with_setting WatchdogSec=4
    in_machine systemctl restart $UNIT
    passes "a healthy main thread is left alone" not wait_for 10 is ActiveState failed
    passes "it was not restarted" is NRestarts 0
    hang_main_thread "$(property MainPID)"
    passes "a main thread that hangs is followed by a start" wait_for 60 is NRestarts 1
    passes "the watchdog was the reason" says "Watchdog timeout"
    passes "the unit is active once more" wait_for 30 is ActiveState active

    in_machine systemctl start propeller-backup.service
    passes "a backup is made" has_backup
    in_machine systemctl stop $UNIT
    passes "a stop is a success" is Result success
}

check_limit_of_starts() {
    local settings=$ROOT/etc/default/propeller-standalone
    echo PROPELLER_ADDRESS=192.0.2.1:6443 >>"$settings"
    with_setting RestartSec=100ms
    passes "a server without its address does not start" not in_machine systemctl restart $UNIT
    passes "its starts end" wait_for 120 says "Start request repeated too quickly"
    passes "the unit has failed" is ActiveState failed
    passes "its status names the address" status_names 192.0.2.1:6443
    sed -i '$d' "$settings"
    in_machine systemctl reset-failed $UNIT
    passes "it starts with another address" in_machine systemctl start $UNIT
    in_machine systemctl stop $UNIT
}
status_names() { [[ $(property StatusText) == *"$1"* ]]; }

check_removal() {
    in_machine systemctl start $UNIT
    in_machine apt-get remove -qq propeller-standalone >"$WORK/systemd-dpkg.log" 2>&1
    passes "removal stops the service" not in_machine systemctl --quiet is-active $UNIT
    passes "removal keeps the data" test -e "$ROOT/var/lib/propeller/propeller.db"
    in_machine apt-get purge -qq propeller-standalone >"$WORK/systemd-dpkg.log" 2>&1
    passes "purge deletes the data" not test -e "$ROOT/var/lib/propeller"
}

((EUID == 0)) || not_here "it needs root"
[[ -x $ROOT/lib/systemd/systemd ]] || not_here "config/packages/install-test.sh has not made its folder"
make_cgroup || not_here "there is no cgroup of version 2"
trap end_machine EXIT
mkdir -p "$ROOT/root/new"
cp "$PACKAGES"/*_"$(dpkg --print-architecture)".deb "$ROOT/root/new"
start_machine || not_here "systemd does not start in namespaces: $(tail -n 3 "$WORK/systemd.log")"
check_service
check_limit_of_starts
check_removal
all_passed
