#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/backoff.h"
#include "controller/vmafx/vmafx.h"
#include "controller/vmafx/vmafx_job_plan.h"
#include "controller/vmafx/vmafx_status.h"

static struct vmafx_answer ask(const struct vmafx_poll_deps *deps, const struct reconcile *rc,
                               const char *id)
{
    const char *address = vmafx_address(rc->arena, deps->flags->grpc_address, rc->name.ns, NULL);
    const struct grpc_target target = {
        .url = str_has_prefix(address, "https://") ? address
                                                   : arena_printf(rc->arena, "http://%s", address),
        .ca_file = deps->flags->ca_file,
        .pool = deps->pool,
        .timeout_s = VMAFX_TIMEOUT_MS / 1000,
    };

    return vmafx_get_job(rc->arena, &target, id);
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct event *event)
{
    if (!event)
        return;
    log_info("VMAFX job changed", "uid", object->uid, "event", event->reason, NULL);
    events_emit(rc->events, &KIND_VMAFXJOB, object, event);
}

static void observe(const struct vmafx_poll_deps *deps, struct reconcile *rc,
                    const struct vmafx_note *note, struct vmafx_job_observed *ret)
{
    if (vmafx_job_is_followed(&ret->status) && clock_monotonic_ms(rc->clock) >= note->due_ms)
        ret->answer = ask(deps, rc, ret->status.controller_job_id);
    ret->series = note->series;
    ret->jitter = (int32_t)jitter_ms(1000, 90, 110) - 1000;
    ret->now_us = clock_wall_us(rc->clock);
    ret->now_ms = clock_monotonic_ms(rc->clock);
    if (ret->answer.seen == VMAFX_SEEN_UNAVAILABLE && !note->series.failures)
        log_warn("VMAFX controller gives no answer, asking again", "error", ret->answer.problem,
                 NULL);
}

/* An answer that could not be written down is asked for again by the retry. */
static int act(const struct vmafx_poll_deps *deps, struct reconcile *rc,
               const struct kube_object *object, const struct vmafx_job_observed *observed,
               struct vmafx_note *note, struct error *err)
{
    const struct vmafx_job_plan plan = vmafx_job_plan(rc->arena, observed);
    const struct vmafx_write write = { deps->objects, &KIND_VMAFXJOB,    &VMAFX_JOB_STATUS,
                                       object,        &observed->status, &plan.status };
    bool written, asked = observed->answer.seen != VMAFX_SEEN_NOTHING;

    note->series = plan.series;
    announce(rc, object, plan.peer_event);
    if (asked)
        note->due_ms = 0;
    int r = vmafx_status_write(rc, &write, note, &written, err);
    if (r < 0)
        return r;
    if (written)
        announce(rc, object, plan.event);
    if (asked)
        note->due_ms = observed->now_ms + plan.wait_ms;
    if (vmafx_job_is_followed(&plan.status))
        reconcile_again_after(rc, note->due_ms - observed->now_ms);
    return 0;
}

int vmafx_job_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct vmafx_poll_deps *deps = self;
    struct vmafx_job_observed observed = { .answer = { .seen = VMAFX_SEEN_NOTHING } };
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->objects), &rc->name);
    int r = 0;

    if (object && !object->deleting)
        r = vmafx_status_read(rc->arena, &VMAFX_JOB_STATUS, object, &observed.status, err);
    if (r < 0)
        return r;
    if (!object || object->deleting || observed.status.phase >= VMAFX_JOB_SUCCEEDED) {
        vmafx_notes_drop(deps->notes, &rc->name);
        return 0;
    }

    const char *id = observed.status.controller_job_id;
    struct vmafx_note *note = vmafx_notes_of(deps->notes, &rc->name, object->uid, id ? id : "");
    observe(deps, rc, note, &observed);
    r = act(deps, rc, object, &observed, note, err);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}

static void index_node(const cJSON *json, index_add_fn *add, void *ctx)
{
    const cJSON *status = json_get(json, "status");
    const char *node = json_string(json_get(status, "assignedNode"), "");
    const char *ns = json_string(json_path(json, "metadata", "namespace", NULL), "");
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (str_equal(json_string(json_get(status, "phase"), ""),
                  VMAFX_JOB_PHASE_NAMES[VMAFX_JOB_RUNNING]) &&
        *node && kube_name_set(&name, ns, node))
        add(ctx, kube_name_key(&name, key));
}

void indexes_add_vmafx_job(struct store *store)
{
    store_add_index(store, INDEX_VMAFX_NODE, index_node);
}

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_VMAFXJOB, .project = vmafx_project, .unread = VMAFX_UNREAD },
      indexes_add_vmafx_job },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_VMAFXJOB, map_self, NULL },
    { .kind = NULL },
};

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    *ret = vmafx_poll_deps_create(host, &KIND_VMAFXJOB);
    return 0;
}

const struct module VMAFXJOB_MODULE = {
    .name = "vmafxjob",
    .kind = &KIND_VMAFXJOB,
    .extension = "vmafx",
    .workers = 1,
    .flags = &VMAFX_FLAGS,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .reconcile = vmafx_job_reconcile,
    .destroy = vmafx_poll_deps_destroy,
};
