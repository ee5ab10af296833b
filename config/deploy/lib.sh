# shellcheck shell=bash disable=SC2034 # used by those who source it
# What deploy.sh and undeploy.sh share. From the environment:
#   OVERLAY   a folder of config/overlays, or the path of an overlay of your own
#   IMAGE     name and tag, or digest, of the image (with deploy.sh)
#   KUBECTL   the kubectl to use; it reads KUBECONFIG as always
#   DEPLOY_SECONDS  how long one wait may take
#   FORCE=1   (undeploy.sh) also with what others have in the namespace of the operator

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
OVERLAY=${OVERLAY:-default}
KUBECTL=${KUBECTL:-kubectl}
DEPLOY_SECONDS=${DEPLOY_SECONDS:-180}
DEPLOY_OUT=${DEPLOY_OUT:-$TOP/build/deploy}

SYSTEM=propeller-system
GROUP=propeller.propeller.abstractmachines.fr
OURS=app.kubernetes.io/part-of=propeller
# Who makes objects of other kinds comes before these.
KINDS=(enrollments federatedjobs trainingrounds propellerjobs tasks proplets)

say() { printf '%s\n' "$*"; }
die() {
    printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2
    exit 1
}
kube() { "$KUBECTL" "$@"; }

overlay_folder() {
    local folder=$OVERLAY
    [[ $folder == */* ]] || folder=$TOP/config/overlays/$OVERLAY
    compgen -G "$folder/[kK]ustomization*" >/dev/null ||
        die "OVERLAY is '$OVERLAY', it must be one of $(cd "$TOP/config/overlays" && echo *), or the path of a kustomization"
    (cd "$folder" && pwd)
}

# image_fields: of a kustomization, for IMAGE
image_fields() {
    [[ -n ${IMAGE:-} ]] || return 0
    printf 'images:\n  - name: localhost/propeller\n'
    if [[ $IMAGE == *@* ]]; then
        printf '    newName: %s\n    digest: %s\n' "${IMAGE%@*}" "${IMAGE#*@}"
    else
        [[ ${IMAGE##*/} == *:* ]] || die "IMAGE is '$IMAGE', it must end with a tag or a digest"
        printf '    newName: %s\n    newTag: "%s"\n' "${IMAGE%:*}" "${IMAGE##*:}"
    fi
}

# render: the overlay with the image, into MANIFESTS
render() {
    local folder
    folder=$(overlay_folder) || exit 1
    command -v "$KUBECTL" >/dev/null || die "KUBECTL is '$KUBECTL', which is not there"
    mkdir -p "$DEPLOY_OUT"
    MANIFESTS=$DEPLOY_OUT/manifests.yaml
    {
        printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n'
        printf '  - %s\n' "$(realpath --relative-to="$(realpath "$DEPLOY_OUT")" "$folder")"
        image_fields
    } >"$DEPLOY_OUT/kustomization.yaml" || exit 1
    kube kustomize "$DEPLOY_OUT" >"$MANIFESTS.new" || die "the overlay '$OVERLAY' cannot be built"
    mv "$MANIFESTS.new" "$MANIFESTS"
}

# documents PATTERN: those whose "KIND NAME" matches; documents -v PATTERN: the others
documents() {
    local invert=0
    [[ $1 != -v ]] || {
        invert=1
        shift
    }
    awk -v pattern="$1" -v invert="$invert" '
        function flush() {
            if (text != "" && ((kind " " name) ~ pattern) != invert)
                printf "---\n%s", text
            text = kind = name = ""
        }
        /^---$/ { flush(); next }
        /^kind: / { kind = $2 }
        /^metadata:/ { inside = 1 }
        /^[a-z]/ && !/^metadata:/ { inside = 0 }
        inside && /^  name: / { name = $2 }
        { text = text $0 "\n" }
        END { flush() }' "$MANIFESTS"
}
has() { [[ -n $(documents "$1") ]]; }

# A value of the controller's settings as it was deployed.
setting() { sed -n "s/^  $1: //p" "$MANIFESTS" | head -n 1; }

# our_bindings: "NAMESPACE NAME" of the RoleBindings of all namespaces that speak of the accounts of this overlay and of
# nobody else: another installation, in another namespace, has some with the same names and labels.
our_bindings() {
    local home
    home=$(documents '^ServiceAccount propeller-controller$' | sed -n 's/^  namespace: //p')
    kube get rolebindings --all-namespaces --selector "$OURS" --output go-template='{{range .items}}{{.metadata.namespace}} {{.metadata.name}}{{range .subjects}} {{.namespace}}{{end}}
{{end}}' | awk -v home="$home" '{ for (i = 3; i <= NF; i++) if ($i != home) next } NF > 2 { print $1, $2 }'
}
# remove_ours NAMESPACE KINDS NAME: what somebody else has under this name is left
remove_ours() {
    kube --namespace "$1" delete "$2" --selector "$OURS" --field-selector "metadata.name=$3" | sed '/^No resources/d'
}
# remove_rights NAMESPACE NAME: the Role first, as it is found by its binding
remove_rights() { remove_ours "$1" roles,rolebindings "$2"; }

apply() { kube apply --server-side --force-conflicts --field-manager=propeller-deploy -f - >/dev/null; }

# wait_until SECONDS COMMAND...: once a second
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        timeout 1 tail -f /dev/null || true
    done
}

there() { kube get "$@" --output name >/dev/null 2>&1; }
