# shellcheck shell=bash disable=SC2034 # used by those who source it
# A registry: docker-registry of Debian, on this machine, with what the case pushed so far.

# oci_start: sets OCI_PORT; started again, it has the same port
oci_start() {
    "$HERE/setup.sh" oci >/dev/null
    OCI_PORT=${OCI_PORT:-$(free_port)}
    mkdir -p "$PART/oci"
    jq -n --arg root "$PART/oci" --arg address "127.0.0.1:$OCI_PORT" '
        { version: 0.1, log: { accesslog: { disabled: false } },
          storage: { filesystem: { rootdirectory: $root } }, http: { addr: $address } }' >"$PART/oci.yaml"
    oci_serve
}
oci_serve() { # again, after it has ended
    OTEL_TRACES_EXPORTER=none spawn oci "$DOCKER_REGISTRY" serve "$PART/oci.yaml"
    wait_for 30 "the registry" oci_answers
}
oci_answers() { curl -sSf "http://127.0.0.1:$OCI_PORT/v2/"; }
oci_stop() { stop oci TERM; }

# padded_module BYTES: the addition with a custom section, so that it has this size
padded_module() {
    "$PYTHON_HOME/bin/python" -c '
import base64, sys
module, name = base64.b64decode(sys.argv[1]), b"\x03pad"
rest = int(sys.argv[2]) - len(module) - 6  # number and length of the section
length = bytes(rest >> 7 * place & 0x7f | (0x80 if place < 4 else 0) for place in range(5))
sys.stdout.buffer.write(module + b"\0" + length + name + bytes(range(256)) * (rest // 256 + 1))
' "$ADDITION" "$1" | head -c "$1"
}

# oci_push REPOSITORY TAG FILE
oci_push() { "$PYTHON_HOME/bin/python" -B "$HERE/tools/push_module.py" "127.0.0.1:$OCI_PORT" "$@" >/dev/null; }
# oci_blobs DIGEST: how often it was sent
oci_blobs() { grep -c "\"GET /v2/[^ ]*/blobs/$1 HTTP/[0-9.]*\" 200" "$LOGS/oci.log" || true; }

# oci_guarded NAME FILTER: another registry with what was pushed, which jq's filter makes stricter; sets OCI_GUARDED
oci_guarded() {
    OCI_GUARDED=127.0.0.1:$(free_port)
    jq --arg address "$OCI_GUARDED" ".http.addr = \$address | $2" "$PART/oci.yaml" >"$PART/$1.yaml"
    OTEL_TRACES_EXPORTER=none spawn "$1" "$DOCKER_REGISTRY" serve "$PART/$1.yaml"
    wait_for 30 "the registry $1" port_listens "${OCI_GUARDED##*:}"
}

port_listens() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# oci_digest REPOSITORY TAG: of the manifest
oci_digest() {
    curl -sSfI -H 'Accept: application/vnd.oci.image.manifest.v1+json' "http://127.0.0.1:$OCI_PORT/v2/$1/manifests/$2" |
        awk 'tolower($1) == "docker-content-digest:" { print $2 }' | tr -d '\r'
}
# oci_sign REPOSITORY TAG KEY [OPTION...]: as cosign does
oci_sign() { "$PYTHON_HOME/bin/python" -B "$HERE/tools/sign_module.py" "127.0.0.1:$OCI_PORT" "$1" "$(oci_digest "$1" "$2")" "${@:3}"; }
