#!/usr/bin/env bash
# Modules that not everybody may have: a registry with TLS and passwords, one with tokens; Secrets, also for what is in the
# cache; manifests of something else; registries that send in odd ways; signatures in both formats of cosign.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

oci_start
base64 -d <<<"$ADDITION" >"$PART/add.wasm"
printf 'no module' >"$PART/text"
oci_push acme/add 1 "$PART/add.wasm"

PULLER=puller
secret_of "$PULLER" >"$PART/puller"

# ---- the registries: each has what was pushed ----

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=registry -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$PART/registry.key" -out "$PART/registry.crt" 2>>"$PART/openssl.log"
printf '%s:%s\n' "$PULLER" "$(python3 -W ignore -c 'import crypt, sys
print(crypt.crypt(sys.stdin.read().strip(), crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=2 ** 4)))' <"$PART/puller")" >"$PART/htpasswd"
oci_guarded oci-tls ".http.tls = {certificate: \"$PART/registry.crt\", key: \"$PART/registry.key\"} |
    .auth = {htpasswd: {realm: \"e2e\", path: \"$PART/htpasswd\"}}"
WITH_PASSWORD=$OCI_GUARDED
TOKEN_PORT=$(free_port)
spawn token-server python3 -B "$HERE/registry/token_server.py" "$TOKEN_PORT" "$PART/registry.key" "$PART/registry.crt" \
    "$PULLER" "$PART/puller"
oci_guarded oci-token ".auth = {token: {realm: \"http://127.0.0.1:$TOKEN_PORT/token\", service: \"e2e\", issuer: \"e2e\",
    rootcertbundle: \"$PART/registry.crt\"}}"
WITH_TOKEN=$OCI_GUARDED

pull_secret() { # pull_secret NAME HOST...
    local name=$1 auth host
    auth=$(printf '%s:%s' "$PULLER" "$(<"$PART/puller")" | base64 -w0)
    for host in "${@:2}"; do jq -n --arg host "$host" --arg auth "$auth" '{($host): {auth: $auth}}'; done |
        jq -s --arg name "$name" '{apiVersion: "v1", kind: "Secret", metadata: {name: $name},
            type: "kubernetes.io/dockerconfigjson", data: {".dockerconfigjson": ({auths: add} | tojson | @base64)}}' |
        kn create -f - >/dev/null
}
pull_secret both "$WITH_PASSWORD" "https://$WITH_TOKEN/v2/"
kn create secret generic opaque --from-literal a=b >/dev/null
if ! has_standalone; then
    k apply --server-side -f "$ROOT/rbac/modules/identity.yaml" >/dev/null
    kn apply -f "$ROOT/rbac/module-pull-secrets/" >/dev/null
fi

ODD=127.0.0.1:$(free_port)
spawn odd-registry python3 -B "$HERE/registry/odd_registry.py" "${ODD##*:}" "127.0.0.1:$OCI_PORT"

broker_prepare device-1
broker_start
controller_prepare
controller_start --module-registries "$WITH_PASSWORD,http://$WITH_TOKEN,http://$ODD,open.example=http://127.0.0.1:$OCI_PORT" \
    --module-ca-file "$PART/registry.crt" --module-cache-dir "$PART/modules" --module-max-bytes 1048576
add_proplet worker device-1
device_start device --count 1
wait_proplet worker Running

by_reference() { # by_reference NAME REFERENCE [SECRET]
    task_json "$1" "" '[10, 32]' | jq --arg url "$2" --arg secret "${3:-}" 'del(.spec.file) | .spec.imageUrl = $url |
        if $secret == "" then . else .spec.imagePullSecrets = [{name: $secret}] end' | create
}
expect_run() { # expect_run NAME
    wait_task "$1" completed 60
    expect_eq "result of $1" 42 "$(task "$1" .status.results)"
}
expect_failure() { # expect_failure NAME REASON
    wait_task "$1" failed 60
    expect_eq "why $1 failed" "$2" "$(task "$1" .status.reason)"
}

# ---- who may have it ----

number=0
for host in "$WITH_PASSWORD" "$WITH_TOKEN"; do
    number=$((number + 1))
    by_reference "refused-$number" "$host/acme/add:1"
    expect_failure "refused-$number" ModuleForbidden
    by_reference "private-$number" "$host/acme/add:1" both
    expect_run "private-$number"
    digest=$(task "private-$number" .status.module.manifest)
    by_reference "cached-$number" "$host/acme/add@$digest"
    expect_failure "cached-$number" ModuleForbidden
    by_reference "again-$number" "$host/acme/add@$digest" both
    expect_run "again-$number"
done
by_reference no-secret "$WITH_TOKEN/acme/add:1" missing
expect_failure no-secret PullSecretMissing
by_reference opaque "$WITH_TOKEN/acme/add:1" opaque
expect_failure opaque PullSecretMissing

# ---- manifests of something else ----

oci_push acme/image 1 "$PART/add.wasm" --type application/vnd.oci.image.layer.v1.tar+gzip
by_reference image open.example/acme/image:1
expect_failure image ModuleInvalid
oci_push acme/text 1 "$PART/text"
by_reference text open.example/acme/text:1
expect_failure text ModuleInvalid
oci_push acme/short 1 "$PART/add.wasm" --size 10
by_reference short open.example/acme/short:1
expect_failure short ModuleInvalid
oci_push acme/large 1 "$PART/add.wasm" --size 1048577
by_reference large open.example/acme/large:1
expect_failure large ModuleTooLarge

# ---- registries that send in odd ways ----

for way in slow endless cut; do
    padded_module 1000000 >"$PART/$way.wasm"
    printf '\0\x09\x01x%-7.7s' "$way" >>"$PART/$way.wasm"
    oci_push "acme/$way" 1 "$PART/$way.wasm"
done
by_reference slow "$ODD/acme/slow:1"
by_reference endless "$ODD/acme/endless:1"
by_reference cut "$ODD/acme/cut:1"
by_reference beside open.example/acme/add:1
expect_run beside
expect_failure endless ModuleInvalid
expect_run cut
expect_eq "a Task whose module comes slowly" "scheduled PullingModule" "$(task slow '"\(.status.phase) \(.status.reason)"')"
kn delete task slow >/dev/null

# ---- signatures ----

for key in ours theirs; do
    openssl ecparam -name prime256v1 -genkey -noout -out "$PART/$key.key"
    openssl ec -in "$PART/$key.key" -pubout -out "$PART/$key.pem" 2>>"$PART/openssl.log"
done
stop controller TERM
kn delete secret both >/dev/null
controller_start --module-registries "http://$WITH_TOKEN,open.example=http://127.0.0.1:$OCI_PORT" --module-cache-dir "$PART/modules" \
    --module-public-keys "$PART/ours.pem"
wait_proplet worker Running

# The Secret is gone, and the module is in the cache.
by_reference deleted "$WITH_TOKEN/acme/add@$digest" both
expect_failure deleted PullSecretMissing

# Each module is another one, as the same bytes pushed to another repository have the same manifest.
signed() { # signed NAME [OPTION...]: a module with a signature
    cat "$PART/add.wasm" <(printf '\0\x09\x01x%-7.7s' "$1") >"$PART/$1.wasm"
    oci_push "acme/$1" 1 "$PART/$1.wasm"
    (($# == 1)) || oci_sign "acme/$1" 1 "${@:2}"
    by_reference "sig-$1" "open.example/acme/$1:1"
}
signed none
expect_failure sig-none ModuleUnsigned
signed tag "$PART/ours.key"
expect_run sig-tag
signed bundle "$PART/ours.key" --bundle
expect_run sig-bundle
signed theirs "$PART/theirs.key"
expect_failure sig-theirs ModuleUnsigned
signed theirs2 "$PART/theirs.key" --bundle
expect_failure sig-theirs2 ModuleUnsigned
signed copied "$PART/ours.key" --says "$(oci_digest acme/tag 1)"
expect_failure sig-copied ModuleUnsigned
signed attest "$PART/ours.key" --bundle --predicate https://slsa.dev/provenance/v1
expect_failure sig-attest ModuleUnsigned
add_task inline "$ADDITION" '[10, 32]'
expect_failure inline ModuleUnsigned

# A key that is removed: what it signed is in the cache, and does not run any more.
cp "$PART/theirs.pem" "$PART/ours.pem"
by_reference removed open.example/acme/tag:1
expect_failure removed ModuleUnsigned

# ---- secrets ----

kn get tasks,events -o json >"$PART/objects"
controller_log >"$PART/log"
expect_match "the log of the controller" ModuleUnsigned "$(<"$PART/log")"
for text in "$(<"$PART/puller")" "$(printf '%s:%s' "$PULLER" "$(<"$PART/puller")" | base64 -w0)"; do
    ! grep -rlF "$text" "$PART/objects" "$PART/log" "$PART/modules" "/proc/$(pid_of controller)/cmdline" ||
        fail "a password is told"
done
