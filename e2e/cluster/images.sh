# shellcheck shell=bash
# Images for the node, made of what is on the machine: no registry, no daemon.

# with_libraries ROOT FILE...: what these need to be loaded, at the same paths
with_libraries() {
    local root=$1 library
    shift
    for library in $({ ldd "$@" 2>/dev/null || true; } | grep -o '/[^ )]*\.so[^ )]*' | sort -u); do
        [[ -e $root$library ]] || install -D "$library" "$root$library"
    done
}

# image NAME ROOT ENTRYPOINT...: into the node's store
image() {
    local name=$1 root=$2
    shift 2
    "$PYTHON_HOME/bin/python" "$HERE/cluster/oci_image.py" --name "localhost/$name" "${IMAGE_ENV[@]}" \
        "$root" "$NODE/image.tar" "$@"
    ctr --address "$NODE/containerd.sock" --namespace k8s.io images import "$NODE/image.tar" >/dev/null
    rm -rf "$NODE/image.tar" "$root"
}

image_pause() {
    local root=$NODE/image-pause IMAGE_ENV=()
    mkdir -p "$root"
    gcc -O2 -static -o "$root/pause" "$HERE/cluster/pause.c"
    image pause:1 "$root" /pause
}

# The test device, which reads its environment as the real one does (device/pod.py).
image_proplet() {
    local root=$NODE/image-proplet base version
    local IMAGE_ENV=(--env PYTHONHOME=/python --env PYTHONPATH=/site:/device --env LD_LIBRARY_PATH=/python/lib
        --env PYTHONDONTWRITEBYTECODE=1)
    base=$("$PYTHON_HOME/bin/python" -c 'import sys; print(sys.base_prefix)')
    version=$("$PYTHON_HOME/bin/python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    mkdir -p "$root/python/bin" "$root/python/lib" "$root/site" "$root/tmp"
    cp "$(readlink -f "$PYTHON_HOME/bin/python")" "$root/python/bin/python3"
    cp -r "$base/lib/$version" "$root/python/lib/"
    rm -rf "$root/python/lib/$version"/{test,idlelib,site-packages,ensurepip,tkinter,lib2to3,config-*}
    cp -r "$PYTHON_HOME/lib/$version"/site-packages/{paho,wasmtime} "$root/site/"
    find "$root" -name __pycache__ -prune -exec rm -rf {} +
    cp -r "$HERE/device" "$root/device"
    with_libraries "$root" "$root/python/bin/python3" "$root/python/lib/$version"/lib-dynload/*.so \
        "$root"/site/wasmtime/*/*.so
    cp "$base"/lib/libpython*.so* "$root/python/lib/" 2>/dev/null || true
    image proplet:1 "$root" /python/bin/python3 /device/pod.py
}
