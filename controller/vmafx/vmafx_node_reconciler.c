#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "controller/vmafx/vmafx.h"
#include "controller/vmafx/vmafx_status.h"

/* Until the first list of the VmafxJobs is complete. */
#define JOBS_RETRY_MS 10000

/* < 0: not known yet. */
static int64_t running_jobs(const struct vmafx_node_deps *deps, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    if (!informer_synced(deps->jobs))
        return -1;
    return (int64_t)store_count(informer_store(deps->jobs), INDEX_VMAFX_NODE,
                                kube_name_key(name, key));
}

static int act(const struct vmafx_node_deps *deps, struct reconcile *rc,
               const struct kube_object *object, const struct vmafx_node_observed *observed,
               struct error *err)
{
    const struct vmafx_node_plan plan = vmafx_node_plan(observed);
    const struct vmafx_write write = { deps->nodes, &KIND_VMAFXNODE,   &VMAFX_NODE_STATUS,
                                       object,      &observed->status, &plan.status };
    bool written;
    int r = vmafx_status_write(rc, &write, vmafx_notes_of(deps->notes, &rc->name, object->uid, ""),
                               &written, err);
    if (r < 0)
        return r;
    if (written && plan.event) {
        log_info("VMAFX node changed", "uid", object->uid, "event", plan.event->reason, "note",
                 plan.event->note, NULL);
        events_emit(rc->events, &KIND_VMAFXNODE, object, plan.event);
    }
    if (plan.wait_ms)
        reconcile_again_after(rc, plan.wait_ms);
    if (observed->running_jobs < 0)
        reconcile_again_after(rc, JOBS_RETRY_MS);
    return 0;
}

int vmafx_node_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct vmafx_node_deps *deps = self;
    struct vmafx_node_observed observed = { .now_us = clock_wall_us(rc->clock) };
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->nodes), &rc->name);

    if (!object || object->deleting) {
        vmafx_notes_drop(deps->notes, &rc->name);
        return 0;
    }
    int r = vmafx_status_read(rc->arena, &VMAFX_NODE_STATUS, object, &observed.status, err);
    if (r < 0)
        return r;
    observed.probe = vmafx_prober_state(deps->prober, rc->name.ns);
    observed.running_jobs = running_jobs(deps, &rc->name);
    r = act(deps, rc, object, &observed, err);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}

/* "" unless the job runs there. */
static const char *node_of(struct arena *arena, const struct kube_object *object)
{
    const cJSON *status = object ? json_get(kube_object_json(arena, object), "status") : NULL;
    const char *phase = json_string(json_get(status, "phase"), "");

    return str_equal(phase, VMAFX_JOB_PHASE_NAMES[VMAFX_JOB_RUNNING])
               ? json_string(json_get(status, "assignedNode"), "")
               : "";
}

static void wake(struct workqueue *queue, const char *ns, const char *node)
{
    struct kube_name name;

    if (*node && kube_name_set(&name, ns, node))
        workqueue_add(queue, &name);
}

void vmafx_map_job_to_nodes(void *self UNUSED, struct kube_object *old, struct kube_object *current,
                            struct workqueue *queue)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *ns = current ? current->ns : old->ns;
    const char *from = node_of(arena, old), *to = node_of(arena, current);

    if (str_equal(from, to))
        return;
    wake(queue, ns, from);
    wake(queue, ns, to);
}

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_VMAFXNODE, .project = vmafx_project, .unread = VMAFX_UNREAD }, NULL },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_VMAFXNODE, map_self, NULL },
    { &KIND_VMAFXJOB, vmafx_map_job_to_nodes, NULL },
    { .kind = NULL },
};

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    const struct vmafx_flags *flags = vmafx_flags_of(host);
    struct vmafx_node_deps *deps = arena_new(host->arena, struct vmafx_node_deps);

    *deps = (struct vmafx_node_deps){ .nodes = module_host_informer(host, &KIND_VMAFXNODE),
                                      .jobs = module_host_informer(host, &KIND_VMAFXJOB),
                                      .notes = vmafx_notes_create() };
    const struct vmafx_prober_options options = { .address = flags->http_address,
                                                  .ca_file = flags->ca_file,
                                                  .nodes = informer_store(deps->nodes),
                                                  .queue = module_host_queue(host, &KIND_VMAFXNODE),
                                                  .clock = host->clock };
    deps->prober = vmafx_prober_create(&options);

    const struct runnable prober = { .name = "vmafxprobe",
                                     .group = RUN_LEADER,
                                     .self = deps->prober,
                                     .start = vmafx_prober_start,
                                     .stop = vmafx_prober_stop,
                                     .join = vmafx_prober_join };
    manager_add(host->manager, &prober);
    *ret = deps;
    return 0;
}

static void destroy(void *self)
{
    struct vmafx_node_deps *deps = self;

    vmafx_prober_destroy(deps->prober);
    vmafx_notes_destroy(deps->notes);
}

const struct module VMAFXNODE_MODULE = {
    .name = "vmafxnode",
    .kind = &KIND_VMAFXNODE,
    .extension = "vmafx",
    .workers = 1,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .reconcile = vmafx_node_reconcile,
    .destroy = destroy,
};
