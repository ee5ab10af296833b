# shellcheck shell=bash
# One library for demo, cases and bench. `source lib.sh`, then work_begin, cluster_start.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$HERE")

# shellcheck source=e2e/versions.sh
source "$HERE/versions.sh"
KUBECTL=$CONTROL_PLANE_BIN/kubectl
PATH=$PATH:/usr/sbin # mosquitto is there, and in the PATH of an ordinary user of Debian that is not

# shellcheck source=e2e/lib/base.sh
source "$HERE/lib/base.sh"
# shellcheck source=e2e/lib/assert.sh
source "$HERE/lib/assert.sh"
# shellcheck source=e2e/lib/cluster.sh
source "$HERE/lib/cluster.sh"
# shellcheck source=e2e/cluster/local.sh
source "$HERE/cluster/local.sh"
# shellcheck source=e2e/cluster/standalone.sh
source "$HERE/cluster/standalone.sh"
# shellcheck source=e2e/lib/broker.sh
source "$HERE/lib/broker.sh"
# shellcheck source=e2e/lib/controller.sh
source "$HERE/lib/controller.sh"
# shellcheck source=e2e/lib/operator.sh
source "$HERE/lib/operator.sh"
# shellcheck source=e2e/lib/webhook.sh
source "$HERE/lib/webhook.sh"
# shellcheck source=e2e/lib/devices.sh
source "$HERE/lib/devices.sh"
# shellcheck source=e2e/lib/objects.sh
source "$HERE/lib/objects.sh"
# shellcheck source=e2e/lib/workloads.sh
source "$HERE/lib/workloads.sh"
# shellcheck source=e2e/lib/quota.sh
source "$HERE/lib/quota.sh"
# shellcheck source=e2e/lib/kubelet.sh
source "$HERE/lib/kubelet.sh"
# shellcheck source=e2e/lib/federated.sh
source "$HERE/lib/federated.sh"
# shellcheck source=e2e/lib/machines.sh
source "$HERE/lib/machines.sh"
# shellcheck source=e2e/lib/vmafx.sh
source "$HERE/lib/vmafx.sh"
# shellcheck source=e2e/lib/s3.sh
source "$HERE/lib/s3.sh"
# shellcheck source=e2e/lib/oci.sh
source "$HERE/lib/oci.sh"
# shellcheck source=e2e/lib/faults.sh
source "$HERE/lib/faults.sh"
# shellcheck source=e2e/lib/replicas.sh
source "$HERE/lib/replicas.sh"
# shellcheck source=e2e/lib/install.sh
source "$HERE/lib/install.sh"
# shellcheck source=e2e/lib/case.sh
source "$HERE/lib/case.sh"
