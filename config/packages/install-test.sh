#!/usr/bin/env bash
# install-test.sh FOLDER [ARCHITECTURE]: installs the Debian packages of FOLDER into a fresh Debian below
# build/install-test, and checks what docs/how-to/packages.md promises: installation, first start, a Task, a backup, an
# upgrade, removal, purge. Then it follows the Raspberry Pi tutorial. Another architecture runs under QEMU.
# Needs root and mmdebstrap. Programs run in namespaces of their own, so their ports are free and none outlives it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=e2e/versions.sh
source e2e/versions.sh
PACKAGES=${1:?a folder of packages is needed}
ARCHITECTURE=${2:-$(dpkg --print-architecture)}
WORK=$PWD/build/install-test/$ARCHITECTURE
ROOT=$WORK/root
# shellcheck source=config/packages/test-lib.sh
source config/packages/test-lib.sh

in_root() { chroot "$ROOT" env LC_ALL=C HOME=/root PATH=/usr/bin:/usr/sbin:/bin:/sbin DEBIAN_FRONTEND=noninteractive "$@"; }

# ---- the folder ----

dependencies() {
    for deb in "$PACKAGES"/*_"$ARCHITECTURE".deb; do
        dpkg-deb --field "$deb" Depends
    done | tr ',' '\n' | sed -E 's/^ *([a-z0-9.+-]+).*/\1/' | LC_ALL=C sort -u
}

# What the tutorial installs beside the packages.
readonly TUTORIAL=(mosquitto mosquitto-clients kubernetes-client python3-venv)

# The same programs as a version that is older than any.
make_former() {
    local deb folder
    for deb in "$WORK"/new/*.deb; do
        folder=$WORK/former/$(basename "$deb" .deb)
        dpkg-deb --raw-extract "$deb" "$folder"
        sed -i 's/^Version: .*/Version: 0.0.1/' "$folder/DEBIAN/control"
        dpkg-deb --root-owner-group --build "$folder" "$folder.deb" >/dev/null
        rm -r "$folder"
    done
}

prepare() {
    local needed
    rm -rf "$WORK"
    mkdir -p "$WORK/new" "$WORK/former"
    cp "$PACKAGES"/*_"$ARCHITECTURE".deb "$WORK/new"
    make_former
    mapfile -t needed < <(dependencies)
    config/packages/debian.sh "$ARCHITECTURE" "$ROOT" "${needed[@]}" "${TUTORIAL[@]}"
    echo 127.0.0.1 localhost >"$ROOT/etc/hosts"
    mv "$WORK/new" "$WORK/former" "$ROOT/root"
    sed -n 's/^  file: //p' config/samples/task-addition.yaml | base64 -d >"$ROOT/root/add.wasm"
    cp config/samples/proplet-external.yaml "$ROOT/tmp"
    echo device-1:unused >"$WORK/passwords"
    wheels
}
# There is no network inside the namespaces.
wheels() {
    local machine=x86_64
    [[ $ARCHITECTURE != arm64 ]] || machine=aarch64
    grep -e paho -e wasmtime e2e/device/requirements.txt >"$WORK/requirements"
    "$PYTHON_HOME/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --platform manylinux2014_$machine --platform manylinux1_$machine --dest "$ROOT/root/wheels" -r "$WORK/requirements"
}

# ---- inside the namespaces ----

install_all() { in_root sh -c "apt-get install -qq /root/$1/*.deb"; }
has_version() { [[ $(in_root dpkg-query --show propeller-standalone | cut -f2) == "$1" ]]; }

# As the unit does: its user, its folder, its settings.
become_service() {
    exec chroot --userspec=propeller:propeller "$ROOT" env -C / PATH=/usr/bin:/bin PROPELLER_DATA_DIR=/var/lib/propeller \
        sh -c 'set -a; . /etc/default/propeller-standalone; set +a; exec "$@"' sh "$@"
}
as_service() { (become_service "$@"); }
is_ready() { curl -sSf -o /dev/null http://127.0.0.1:8081/readyz; }
start_server() {
    as_service propeller-standalone init >/dev/null
    become_service propeller-standalone serve >>"$WORK/serve.log" 2>&1 &
    SERVER=$!
    wait_for 60 is_ready || die "the server is not ready: $(tail -n 3 "$WORK/serve.log")"
}
stop_server() {
    kill "$SERVER"
    wait "$SERVER" || die "the server ended with status $?"
}
start_device() {
    printf 'listener 1883 127.0.0.1\nallow_anonymous true\n' >"$WORK/mosquitto.conf"
    mosquitto -c "$WORK/mosquitto.conf" >"$WORK/mosquitto.log" 2>&1 &
    BROKER=$!
    "$PYTHON_HOME/bin/python" -B e2e/device/device.py --broker localhost:1883 --domain demo --channel workers \
        --identity device-1 --passwords "$WORK/passwords" --alive-interval 2 >"$WORK/device.log" 2>&1 &
    DEVICE=$!
}
plugin() { in_root kubectl-propeller "$@" --kubeconfig /var/lib/propeller/admin.kubeconfig; }
adds() { [[ $(plugin run "$1" --wasm /root/add.wasm --input 10 --input 32 2>>"$WORK/log") == 42 ]]; }
exports_proplet() { as_service propeller-standalone export --all 2>/dev/null | grep -q '^  name: gateway'; }
is_there() { [[ -e $ROOT$1 ]]; }
is_empty() { [[ -d $ROOT$1 && -z $(ls -A "$ROOT$1") ]]; }

check_installed() {
    passes "packages are installed" install_all former
    passes "the version is the former one" has_version 0.0.1
    passes "the user propeller exists" in_root getent passwd propeller
    for unit in propeller-standalone.service propeller-backup.timer; do
        passes "$unit starts at boot" in_root systemctl --quiet is-enabled $unit
    done
    for file in share/man/man1/{propeller-standalone,propeller-graph,kubectl-propeller,kubectl_complete-propeller}.1.gz \
        share/man/man8/propeller-{controller,webhook,certgen}.8.gz share/bash-completion/completions/propeller-standalone \
        share/zsh/vendor-completions/_kubectl-propeller share/fish/vendor_completions.d/propeller-controller.fish; do
        passes "$file" is_there "/usr/$file"
    done
    for program in propeller-{standalone,controller,webhook,certgen,graph} kubectl-propeller; do
        passes "$program runs" in_root "$program" --help
    done
}

check_work() {
    echo PROPELLER_MQTT_ADDRESS=tcp://localhost:1883 >>"$ROOT/etc/default/propeller-standalone"
    start_server
    passes "a Proplet is imported" as_service propeller-standalone import -f /tmp/proplet-external.yaml
    passes "a Task completes" adds first
    passes "a backup is made" as_service /usr/lib/propeller/propeller-backup.sh /var/lib/propeller-backup
    stop_server
}

check_upgrade() {
    passes "packages are upgraded" install_all new
    passes "the version is another one" not has_version 0.0.1
    passes "settings are kept" grep -q ^PROPELLER_MQTT_ADDRESS "$ROOT/etc/default/propeller-standalone"
    start_server
    passes "objects are kept" exports_proplet
    passes "a Task completes after the upgrade" adds second
    stop_server
}

# The programs are those of the packages, so the section that makes them is left out.
check_tutorial() {
    local started=$SECONDS
    kill "$BROKER" "$DEVICE"
    mkdir -p "$ROOT/src" "$WORK/no-programs"
    mount --bind "$PWD" "$ROOT/src"
    mount --bind "$WORK/no-programs" "$ROOT/src/build/plain/bin"
    sed '/^## Install the programs/,/^## Set up/{/^## Set up/!d}' docs/tutorials/raspberry-pi.md >"$ROOT/root/tutorial.md"
    passes "the tutorial ends with a Task" in_root env -C /src PIP_NO_INDEX=1 PIP_FIND_LINKS=/root/wheels \
        python3 -B e2e/tools/doc_commands.py /root/tutorial.md
    printf '      in %s s\n' $((SECONDS - started))
    passes "in less than five minutes" test $((SECONDS - started)) -lt 300
    umount "$ROOT/src/build/plain/bin" "$ROOT/src"
}

check_removal() {
    in_root apt-get remove -qq propeller-standalone propeller-operator kubectl-propeller >>"$WORK/log" 2>&1
    passes "removal removes the program" not is_there /usr/bin/propeller-standalone
    passes "removal keeps the data" is_there /var/lib/propeller/propeller.db
    passes "removal keeps the settings" is_there /etc/default/propeller-standalone
    mount -t tmpfs tmpfs "$ROOT/var/lib/propeller-backup" # as a disk for backups
    touch "$ROOT/var/lib/propeller-backup/propeller-2026-01-01.db"
    passes "packages are purged" in_root apt-get purge -qq propeller-standalone
    passes "purge empties a mounted folder" is_empty /var/lib/propeller-backup
    umount "$ROOT/var/lib/propeller-backup"
    rm -r "$ROOT/var/lib/propeller-backup" # what the mount hid
    for path in /var/lib/propeller /etc/default/propeller-standalone /usr/lib/propeller; do
        passes "purge deletes $path" not is_there $path
    done
}

inside() {
    ip link set lo up
    mount -t proc proc "$ROOT/proc"
    mount --rbind /dev "$ROOT/dev"
    check_installed
    # systemd does this by StateDirectory.
    in_root install -d -o propeller -g propeller -m 0700 /var/lib/propeller /var/lib/propeller-backup
    start_device
    check_work
    check_upgrade
    check_tutorial
    check_removal
    all_passed
}

if [[ ${3:-} == inside ]]; then
    inside
    exit
fi
((EUID == 0)) || die "only root can make a Debian in a folder"
e2e/setup.sh release-test
prepare
config/packages/emulate.sh "$ARCHITECTURE" unshare --net "$0" "$PACKAGES" "$ARCHITECTURE" inside
