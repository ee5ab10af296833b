#!/usr/bin/env bash
# cross.sh build ARCHITECTURE  programs, packages and image for another architecture, into build/ARCHITECTURE
# cross.sh test ARCHITECTURE   unit tests of these programs under QEMU
#
# `make cross ARCH=arm64` calls it with VERSION, IMAGE, REVISION and SOURCE_DATE_EPOCH, after the manual pages are built.
# The compiler of this machine has the libraries of a Debian of that architecture in a folder, which is made once. There
# packages and image are made under QEMU (emulate.sh). Needs root.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
die() {
    printf 'cross: %s\n' "$*" >&2
    exit 1
}
ACTION=${1:-} ARCHITECTURE=${2:-}
case $ARCHITECTURE in
arm64) TRIPLET=aarch64-linux-gnu ;;
*) die "the architecture is '$ARCHITECTURE', it must be arm64" ;;
esac
((EUID == 0)) || die "only root can make a Debian in a folder"
OUT=build/$ARCHITECTURE
ROOT=$PWD/build/cross/$ARCHITECTURE
PACKAGES=(libc6-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev libcjson-dev libyaml-dev libmosquitto-dev
    libprotobuf-c-dev libsqlite3-dev check debhelper binutils python3 ca-certificates tzdata)
# Of every part those that are fast and start no other program.
TESTS=(common/{alloc,arena,buf,certificate,conditions,cron,digest,error,json,json_numbers,json_stream,json_tree,map}
    common/{names,notify,object,options,quantity,str,timezone,validate,windows,workqueue,yaml}
    controller/{enrollment_plan,messages,payload,scheduler,strangers,task_plan_choice,task_plan_results,task_retry_plan,proplet_plan}
    certs/{cert_make,cert_plan} standalone/{data_dir,kv_open,kv_model,rules} plugin/{run_manifest,output})

# in_folder COMMAND...: where this checkout is /src
in_folder() {
    # shellcheck disable=SC2016 # the inner shell expands it
    config/packages/emulate.sh "$ARCHITECTURE" sh -ec '
        mount --bind "$PWD" "$0/src"
        mount --rbind /dev "$0/dev"
        mount --rbind /proc "$0/proc"
        exec chroot "$0" env -C /src PATH=/usr/bin:/usr/sbin:/bin:/sbin LC_ALL=C HOME=/root "$@"' "$ROOT" "$@"
}

make_folder() {
    [[ ! -e $ROOT/src ]] || return 0
    rm -rf "$ROOT"
    mkdir -p "${ROOT%/*}"
    config/packages/debian.sh "$ARCHITECTURE" "$ROOT" "${PACKAGES[@]}"
    mkdir "$ROOT/src"
}

# compile TARGET...: with the jobs of this machine, not those of the make that has called
compile() {
    env -u MAKEFLAGS -u MAKELEVEL PKG_CONFIG_SYSROOT_DIR="$ROOT" \
        PKG_CONFIG_LIBDIR="$ROOT/usr/lib/$TRIPLET/pkgconfig:$ROOT/usr/share/pkgconfig" \
        nice make --no-print-directory -j"$(nproc)" OUT="$OUT" CC="$TRIPLET-gcc --sysroot=$ROOT" AR="$TRIPLET-ar" FAST_LINK= \
        VERSION="${VERSION:-unknown}" "$@"
}

case $ACTION in
build)
    e2e/setup.sh build cross
    make_folder
    compile all
    in_folder env VERSION="$VERSION" SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" config/packages/deb.sh "$OUT/bin" "$OUT/release"
    in_folder python3 -B config/image/build.py --programs "$OUT/bin" --output "$OUT/image" --name "$IMAGE" \
        --version "$VERSION" --revision "$REVISION" --epoch "$SOURCE_DATE_EPOCH"
    lintian --fail-on error,warning "$OUT"/release/*_"$ARCHITECTURE".deb
    ;;
test)
    programs=()
    for test in "${TESTS[@]}"; do
        programs+=("$OUT/${test%/*}/tests/test_${test##*/}")
    done
    compile "${programs[@]}"
    in_folder e2e/tools/unit.sh "${programs[@]}"
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
