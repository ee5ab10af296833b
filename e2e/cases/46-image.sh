#!/usr/bin/env bash
# `make image`: another folder gives the same image, bit for bit; image and bill of materials are what the
# specifications ask for; the programs run in it, as nobody special, without anything from outside.
set -euo pipefail
# shellcheck source=e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
case_begin

# The version that is in build/bin: so nothing there is made anew.
VERSION=$("$ROOT/build/bin/propeller-controller" --version)
VERSION=${VERSION##* }
# make_image FOLDER OUTPUT: prints what make says
make_image() {
    nice make -C "$1" --no-print-directory -j2 FLAVOUR=plain VERSION="$VERSION" REVISION=0123abc \
        SOURCE_DATE_EPOCH=1767225600 IMAGE=localhost/propeller:v1 IMAGE_OUT="$2" image
}
copy_sources() {
    mkdir -p "$1"
    (cd "$ROOT" && git ls-files -z --cached --others --exclude-standard |
        tar --create --null --ignore-failed-read --files-from=-) | tar --extract --directory "$1"
}

# One is what was built here, bit by bit; the other is all made at once from a copy of the sources.
OTHER=$PART/elsewhere/with/a/longer/name
copy_sources "$OTHER"
make_image "$ROOT" "$PART/a" >"$PART/said"
make_image "$OTHER" "$PART/b" >"$PART/said-elsewhere"
expect_eq "digest of the second build" "$(sed -n 's/^digest *//p' "$PART/said")" \
    "$(sed -n 's/^digest *//p' "$PART/said-elsewhere")"
for name in propeller.tar propeller.spdx.json; do
    cmp "$PART/a/$name" "$PART/b/$name" || fail "$name differs"
done
expect_match "what make image says" 'digest   sha256:[0-9a-f]{64}.*size +[0-9.]+ MB' "$(tr '\n' ' ' <"$PART/said")"

IN=$PART/root
mkdir "$IN"
found=$("$PYTHON_HOME/bin/python" -B "$ROOT/config/image/verify.py" "$PART/a/propeller.tar" \
    "$PART/a/propeller.spdx.json" "$IN") || fail "the image: $found"
# The check bites: with another bill of materials, and with another file in it.
jq '.files[0].checksums[1].checksumValue = "00"' "$PART/a/propeller.spdx.json" >"$PART/other.json"
expect_failure "another bill of materials" 'the label names another SBOM.*checksums of' \
    "$PYTHON_HOME/bin/python" -B "$ROOT/config/image/verify.py" "$PART/a/propeller.tar" "$PART/other.json" "$PART/a/again"

# in_image COMMAND...: nothing but the image, as its user; without root with the image's own loader
in_image() {
    local program=$1
    shift
    if ((EUID == 0)); then
        env -i "$(command -v chroot)" --userspec=65532:65532 "$IN" "$program" "$@"
    else
        env -i "$IN/$(readlink "$(compgen -G "$IN/usr/lib*/ld-linux*.so.*" | head -n 1)")" --inhibit-cache \
            --library-path "$(dirname "$(find "$IN/usr/lib" -name libc.so.6)")" "$IN$program" "$@"
    fi
}
for name in controller webhook certgen standalone; do
    expect_eq "version of $name" "propeller-$name $VERSION" "$(in_image "/usr/bin/propeller-$name" --version)"
    in_image "/usr/bin/propeller-$name" --help >/dev/null
done
for zone in Europe/Berlin America/New_York Etc/GMT+1 UTC; do
    cmp "/usr/share/zoneinfo/$zone" "$IN/usr/share/zoneinfo/$zone" || fail "zone $zone"
done
certificates=$(grep -c BEGIN "$IN/etc/ssl/certs/ca-certificates.crt")
((certificates > 50)) || fail "only $certificates roots are in the image"
expect_eq "where OpenSSL finds them" /etc/ssl/certs/ca-certificates.crt "$(readlink "$IN/usr/lib/ssl/cert.pem")"
openssl verify -CAfile "$IN/etc/ssl/certs/ca-certificates.crt" /usr/share/ca-certificates/mozilla/ISRG_Root_X1.crt \
    >/dev/null || fail "OpenSSL does not take the roots"

expect_failure "a name without a tag" "must be \[HOST/\]NAME:TAG" \
    "$PYTHON_HOME/bin/python" -B "$ROOT/config/image/build.py" --programs "$ROOT/build/bin" --output "$PART" --name X
say "measured: $(sed -n 's/^size *//p' "$PART/said")"
