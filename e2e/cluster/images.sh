# shellcheck shell=bash
# Images for the node, made of what is on the machine: no registry, no daemon. Archives are kept in the
# cache under what they are made of, IMAGES_KEPT of each name: those that were used last.

IMAGES_KEPT=4

# with_libraries ROOT FILE...: what these need to be loaded, at the same paths
with_libraries() {
    local root=$1 library
    shift
    # Asked for several files it names each first, with a colon.
    for library in $({ ldd "$@" 2>/dev/null || true; } | grep -v ':$' | grep -o '/[^ )]*\.so[^ )]*' | sort -u); do
        [[ -e $root$library ]] || install -D "$library" "$root$library"
    done
}

# image NAME FUNCTION INPUT...: FUNCTION ROOT fills a folder, and sets ENTRYPOINT and ENVIRONMENT; the
# archive is made anew when one of the input files changed. A NAME without a registry gets "localhost/".
image() {
    local name=$1 fill=$2 file key archive root new ENTRYPOINT=() ENVIRONMENT=()
    shift 2
    [[ $name == */* ]] || name=localhost/$name
    file=${name##*/} file=${file/:/-}
    key=$(cat "$HERE/cluster/images.sh" "$HERE/../config/image/oci.py" "$@" | cksum | cut -d' ' -f1)
    archive=$CACHE/images/$file-$key-${PYTHON_HOME##*-}.tar
    if [[ ! -e $archive ]]; then
        mkdir -p "$CACHE/images"
        root=$(mktemp -d "$NODE/image.XXXXXX")
        new=$(mktemp "$CACHE/images/.new.XXXXXX")
        "$fill" "$root"
        "$PYTHON_HOME/bin/python" -B "$HERE/../config/image/oci.py" --name "$name" \
            "${ENVIRONMENT[@]/#/--env=}" "$root" "$new" "${ENTRYPOINT[@]}"
        mv "$new" "$archive"
        rm -rf "$root"
    fi
    touch "$archive"
    images_prune "$file"
    node_import "$archive"
}

# images_prune NAME: also what was half made an hour ago, by somebody who was killed
images_prune() {
    find "$CACHE/images" -name "$1-*.tar" -printf '%T@ %p\n' | sort -rn | tail -n "+$((IMAGES_KEPT + 1))" |
        cut -d' ' -f2- | xargs -r rm -f
    find "$CACHE/images" -name '.new.*' -mmin +60 -delete
}

fill_pause() {
    ENTRYPOINT=(/pause)
    gcc -O2 -static -o "$1/pause" "$HERE/cluster/pause.c"
}

# Debian's mosquitto under the name that config/broker asks a registry for.
fill_mosquitto() {
    ENTRYPOINT=(/usr/sbin/mosquitto)
    ENVIRONMENT=(PATH=/usr/sbin:/usr/bin)
    install -D /usr/sbin/mosquitto "$1/usr/sbin/mosquitto"
    with_libraries "$1" /usr/sbin/mosquitto
}

# The test device, which reads its environment as the real one does (device/pod.py).
fill_proplet() {
    local root=$1 base version
    ENTRYPOINT=(/python/bin/python3 /device/pod.py)
    ENVIRONMENT=(PYTHONHOME=/python PYTHONPATH=/site:/device LD_LIBRARY_PATH=/python/lib
        PYTHONDONTWRITEBYTECODE=1)
    base=$("$PYTHON_HOME/bin/python" -c 'import sys; print(sys.base_prefix)')
    version=$("$PYTHON_HOME/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    mkdir -p "$root/python/bin" "$root/python/lib" "$root/site" "$root/tmp" "$root/etc"
    printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
    cp "$(readlink -f "$PYTHON_HOME/bin/python")" "$root/python/bin/python3"
    cp -r "$base/lib/$version" "$root/python/lib/"
    rm -rf "$root/python/lib/$version"/{test,idlelib,site-packages,ensurepip,tkinter,lib2to3,config-*}
    cp -r "$PYTHON_HOME/lib/$version"/site-packages/{paho,wasmtime} "$root/site/"
    cp -r "$HERE/device" "$root/device"
    find "$root" -name __pycache__ -prune -exec rm -rf {} +
    with_libraries "$root" "$root/python/bin/python3" "$root/python/lib/$version"/lib-dynload/*.so \
        "$root"/site/wasmtime/*/*.so
    cp "$base"/lib/libpython*.so* "$root/python/lib/" 2>/dev/null || true
}
