/*
 * The reconcilers of the kinds of vmafx.dev, and the parts that they share.
 *
 * They belong to the extension "vmafx": without --enable-vmafx none of this exists but the flags.
 */
#pragma once

#include "common/net/http_client.h"
#include "common/runtime/controller.h"
#include "controller/module/module.h"
#include "controller/vmafx/vmafx_notes.h"
#include "controller/vmafx/vmafx_prober.h"

/* Addresses may have {namespace}, that of the object; the URL of the trainer {name}, too. */
struct vmafx_flags {
    bool is_enabled;
    const char *grpc_address; /* "HOST:PORT", or "https://HOST:PORT" with TLS */
    const char *http_address; /* "http://HOST:PORT" or https, without a slash at its end */
    const char *trainer_url;
    const char *ca_file; /* NULL: the system's authorities */
};
extern const struct module_flags VMAFX_FLAGS;
const struct vmafx_flags *vmafx_flags_of(const struct module_host *host);

extern const struct module VMAFXJOB_MODULE, VMAFXNODE_MODULE, VMAFXMODELTRAINING_MODULE;

/* Removes VMAFX_UNREAD, which no code reads. */
watch_project_fn vmafx_project;
extern const char *const VMAFX_UNREAD[];

/* Time-out of a call, a probe or a poll. */
#define VMAFX_TIMEOUT_MS 5000

/* Of a kind whose objects are polled: VmafxJobs and VmafxModelTrainings. */
struct vmafx_poll_deps {
    struct informer *objects;
    const struct vmafx_flags *flags;
    struct http_client_pool *pool;
    struct vmafx_notes *notes;
};
/* In the arena of the host. */
struct vmafx_poll_deps *vmafx_poll_deps_create(const struct module_host *host,
                                               const struct kube_kind *kind);
void vmafx_poll_deps_destroy(void *ptr);

struct vmafx_node_deps {
    struct informer *nodes;
    struct informer *jobs;
    struct vmafx_prober *prober;
    struct vmafx_notes *notes;
};

/* Between two polls of a trainer, plus or minus a tenth. */
#define VMAFX_TRAINING_POLL_MS 60000
/* Limit of the answer of a trainer; bytes. */
#define VMAFX_MAX_TRAINER_REPLY 4096

/* self: the deps of the kind. */
reconcile_fn vmafx_job_reconcile;
reconcile_fn vmafx_node_reconcile;
reconcile_fn vmafx_training_reconcile;

/* Running jobs by "<namespace>/<node>". */
#define INDEX_VMAFX_NODE "node"
void indexes_add_vmafx_job(struct store *store);
map_fn vmafx_map_job_to_nodes; /* a job runs on another node, or on it no more */

/* Replaces {namespace}, and {name} unless name is NULL. */
const char *vmafx_address(struct arena *arena, const char *address, const char *ns,
                          const char *name);
