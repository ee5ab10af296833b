#include <string.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/runtime/backoff.h"
#include "controller/vmafx/vmafx.h"
#include "controller/vmafx/vmafx_status.h"
#include "controller/vmafx/vmafx_training_plan.h"

/* NULL: there is no answer that can be used. */
static const cJSON *ask(const struct vmafx_poll_deps *deps, const struct reconcile *rc)
{
    const struct http_client_request get = {
        .method = "GET",
        .url = vmafx_address(rc->arena, deps->flags->trainer_url, rc->name.ns, rc->name.name),
        .max_reply = VMAFX_MAX_TRAINER_REPLY,
        .timeout_ms = VMAFX_TIMEOUT_MS,
        .is_direct = true,
        .ca_file = deps->flags->ca_file,
        .pool = deps->pool,
    };
    struct http_client_reply reply = { 0 };
    const cJSON *ret = NULL;
    struct error err = { 0 };
    int r = http_client_send(rc->arena, &get, &reply, &err);

    if (r == 0 && reply.status != 200)
        r = error_set(&err, ERROR_UNAVAILABLE, "HTTP status %d", reply.status);
    if (r == 0)
        r = json_parse(rc->arena, reply.body, reply.len, &ret, &err);
    if (r < 0)
        log_debug("VMAFX trainer gives no answer", "error", ERROR_TEXT(&err), NULL);
    return r == 0 && cJSON_IsObject(ret) ? ret : NULL;
}

static void announce(struct reconcile *rc, const struct kube_object *object,
                     const struct vmafx_training_plan *plan, bool has_host)
{
    if (!has_host)
        events_emit(rc->events, &KIND_VMAFXMODELTRAINING, object, &VMAFX_TRAINING_EVENT_NAME);
    if (plan->checkpoint)
        events_emit_note(rc->events, &KIND_VMAFXMODELTRAINING, object,
                         &VMAFX_TRAINING_EVENT_CHECKPOINT, plan->checkpoint);
}

/* An answer that could not be written down is asked for again by the retry. */
static int poll_and_write(const struct vmafx_poll_deps *deps, struct reconcile *rc,
                          const struct kube_object *object,
                          struct vmafx_training_observed *observed, struct vmafx_note *note,
                          struct error *err)
{
    bool has_host = !strchr(rc->name.name, '.'), written; /* a Service has no dot in its name */
    bool asks = has_host && clock_monotonic_ms(rc->clock) >= note->due_ms;

    observed->reply = asks ? ask(deps, rc) : NULL;
    const struct vmafx_training_plan plan = vmafx_training_plan(rc->arena, observed);
    const struct vmafx_write write = { deps->objects,          &KIND_VMAFXMODELTRAINING,
                                       &VMAFX_TRAINING_STATUS, object,
                                       &observed->status,      &plan.status };
    int r = vmafx_status_write(rc, &write, note, &written, err);
    if (r < 0)
        return r;
    if (written)
        announce(rc, object, &plan, has_host);
    int64_t now_ms = clock_monotonic_ms(rc->clock);
    if (asks)
        note->due_ms = now_ms + jitter_ms(VMAFX_TRAINING_POLL_MS, 90, 110);
    if (has_host)
        reconcile_again_after(rc, note->due_ms - now_ms);
    return 0;
}

int vmafx_training_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    const struct vmafx_poll_deps *deps = self;
    struct vmafx_training_observed observed = { .reply = NULL };
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->objects), &rc->name);

    if (!object || object->deleting) {
        vmafx_notes_drop(deps->notes, &rc->name);
        return 0;
    }
    int r = vmafx_status_read(rc->arena, &VMAFX_TRAINING_STATUS, object, &observed.status, err);
    if (r < 0)
        return r;
    r = poll_and_write(deps, rc, object, &observed,
                       vmafx_notes_of(deps->notes, &rc->name, object->uid, ""), err);
    return r == -ERROR_NOT_FOUND ? 0 : r; /* deleted meanwhile */
}

static const struct module_cache CACHES[] = {
    { { .kind = &KIND_VMAFXMODELTRAINING, .project = vmafx_project, .unread = VMAFX_UNREAD },
      NULL },
    { .add_indexes = NULL },
};

static const struct module_source SOURCES[] = {
    { &KIND_VMAFXMODELTRAINING, map_self, NULL },
    { .kind = NULL },
};

static int create(struct module_host *host, void **ret, struct error *err UNUSED)
{
    *ret = vmafx_poll_deps_create(host, &KIND_VMAFXMODELTRAINING);
    return 0;
}

const struct module VMAFXMODELTRAINING_MODULE = {
    .name = "vmafxmodeltraining",
    .kind = &KIND_VMAFXMODELTRAINING,
    .extension = "vmafx",
    .workers = 1,
    .caches = CACHES,
    .sources = SOURCES,
    .create = create,
    .reconcile = vmafx_training_reconcile,
    .destroy = vmafx_poll_deps_destroy,
};
