#include "controller/task/owner.h"

#include <assert.h>

void task_owners_add(struct task_owners *owners, const struct task_owner *hooks, void *self)
{
    assert(owners->len < TASK_OWNERS_MAX);
    owners->items[owners->len].hooks = hooks;
    owners->items[owners->len++].self = self;
}

void task_owners_order(const struct task_owners *owners, struct arena *arena, const cJSON *task,
                       struct task_observed *observed)
{
    for (size_t i = 0; i < owners->len; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;

        if (hooks->has_updates && hooks->has_updates(task))
            observed->has_updates = true;
        if (observed->order != TASK_ORDER_NONE || !hooks->order)
            continue;
        observed->order = hooks->order(owners->items[i].self, arena, task);
        observed->order_message = hooks->order_message;
    }
}

/* The member, made unless it is an object. */
static cJSON *part(cJSON *object, const char *name)
{
    const cJSON *found = json_get(object, name);

    return cJSON_IsObject(found) ? (cJSON *)(uintptr_t)found : json_set_object(object, name);
}

void task_owners_constrain(const struct task_owners *owners, struct arena *arena, cJSON *task)
{
    for (size_t i = 0; i < owners->len; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;
        const cJSON *labels =
            hooks->match_labels ? hooks->match_labels(owners->items[i].self, arena, task) : NULL;
        cJSON *own = cJSON_IsObject(labels) && json_len(labels)
                         ? part(part(part(task, "spec"), "propletSelector"), "matchLabels")
                         : NULL;

        json_for_each (label, own ? labels : NULL) {
            if (!json_get(own, label->string))
                json_set_copy(own, label->string, label);
        }
    }
}

bool task_owners_await(const struct task_owners *owners, struct arena *arena,
                       const struct kube_name *name, const cJSON *task)
{
    bool awaited = false;

    for (size_t i = 0; i < owners->len && !awaited; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;
        awaited = hooks->awaits && hooks->awaits(owners->items[i].self, arena, name, task);
    }
    return awaited;
}

int task_owners_read_results(const struct task_owners *owners, struct reconcile *rc,
                             const cJSON *task, struct task_observed *observed, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < owners->len && r == 0; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;
        if (hooks->read_results)
            r = hooks->read_results(owners->items[i].self, rc, task, observed, err);
    }
    return r;
}

int task_owners_before_write(const struct task_owners *owners, struct reconcile *rc,
                             const cJSON *task, const struct task_observed *observed,
                             const struct task_plan *plan, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < owners->len && r == 0; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;
        if (hooks->before_write)
            r = hooks->before_write(owners->items[i].self, rc, task, observed, plan, err);
    }
    return r;
}

void task_owners_after_write(const struct task_owners *owners, const struct task_observed *observed,
                             const struct task_plan *plan)
{
    for (size_t i = 0; i < owners->len; i++) {
        if (owners->items[i].hooks->after_write)
            owners->items[i].hooks->after_write(owners->items[i].self, observed, plan);
    }
}

void task_owners_bring(const struct task_owners *owners, struct reconcile *rc,
                       const struct task_observed *attempt, struct start_request *request,
                       struct bringing *ret)
{
    *ret = (struct bringing){ .step = BRING_NOTHING };
    for (size_t i = 0; i < owners->len && ret->step == BRING_NOTHING; i++) {
        if (owners->items[i].hooks->bring)
            owners->items[i].hooks->bring(owners->items[i].self, rc, attempt, request, ret);
    }
}

int64_t task_owners_rest(const struct task_owners *owners, const struct task_observed *observed)
{
    int64_t ret = 0;

    for (size_t i = 0; i < owners->len; i++) {
        const struct task_owner *hooks = owners->items[i].hooks;
        int64_t ms = hooks->rest ? hooks->rest(owners->items[i].self, observed) : 0;

        if (ms && (!ret || ms < ret))
            ret = ms;
    }
    return ret;
}

void task_owners_failed(const struct task_owners *owners, const char *uid)
{
    for (size_t i = 0; i < owners->len; i++) {
        if (owners->items[i].hooks->failed)
            owners->items[i].hooks->failed(owners->items[i].self, uid);
    }
}

void task_owners_forget(const struct task_owners *owners, const char *uid)
{
    for (size_t i = 0; i < owners->len; i++) {
        if (owners->items[i].hooks->forget)
            owners->items[i].hooks->forget(owners->items[i].self, uid);
    }
}
