#include "controller/federated/model_cleaning.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"
#include "controller/task/plan/task_outcome.h"

/* References that stay. */
struct kept {
    const char **items;
    size_t len;
};

static void keep(struct kept *kept, const char *reference)
{
    if (!str_is_empty(reference))
        kept->items[kept->len++] = reference;
}

/* What a Task that ended, and that nobody counted, has to offer. */
static int keep_update(struct reconcile *rc, const struct kube_name *task, struct kept *kept,
                       struct error *err)
{
    cJSON *object = NULL;
    int r = kube_get(rc->client, rc->arena, &KIND_TASK, task, &object, err);

    if (r < 0)
        return r == -ERROR_NOT_FOUND ? 0 : r;
    const cJSON *results = json_path(object, "status", "results", NULL);
    keep(kept, json_string(json_get(json_opened(rc->arena, results), "ref"), NULL));
    return 0;
}

/* Of the Tasks of a round: what later rounds may count. *ret_open: one of them still runs. */
static int keep_late(const struct federatedjob_deps *deps, struct reconcile *rc,
                     const struct kube_object *round, const cJSON *json, const struct map *counted,
                     struct kept *kept, bool *ret_open, struct error *err)
{
    json_for_each (participant, json_path(json, "spec", "participants", NULL)) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        const char *task = training_task_name(scratch, round->name, json_string(participant, ""));
        struct kube_name name;

        if (map_get(counted, task) || !kube_name_set(&name, round->ns, task))
            continue;

        CLEANUP(kube_object_unrefp)
        struct kube_object *object = store_get(informer_store(deps->tasks), &name);
        const cJSON *tree = object ? kube_object_json(scratch, object) : NULL;
        if (!tree || !str_equal(kube_controller_uid(tree), round->uid))
            continue;
        *ret_open |= !task_outcome_is_final(task_outcome(tree));
        int r = task_outcome(tree) == OUTCOME_COMPLETED ? keep_update(rc, &name, kept, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int clean_updates(const struct federatedjob_deps *deps, struct reconcile *rc,
                         const struct kube_object *round, const cJSON *json,
                         const struct map *counted, bool keeps_late, struct error *err)
{
    size_t len = json_len(json_path(json, "spec", "participants", NULL));
    struct kept kept = { .items = arena_array(rc->arena, const char *, len + 1) };
    struct model_scope scope;
    bool is_open = false;
    int r = 0;

    if (keeps_late)
        r = keep_late(deps, rc, round, json, counted, &kept, &is_open, err);
    if (r < 0 || is_open)
        return r;
    model_scope_of(&KIND_TRAININGROUND, json, &scope);
    return model_store_gc(deps->models, &scope, kept.items, kept.len, err);
}

static int clean_round(const struct federatedjob_deps *deps, struct reconcile *rc,
                       const struct cleaning *cleaning, const struct kube_object *round,
                       const cJSON *json, const struct map *counted, struct error *err)
{
    const struct kube_name name = kube_object_name(round);
    bool is_old = training_round_number(json) < cleaning->keep_from;
    int r = clean_updates(deps, rc, round, json, counted, cleaning->keeps_late && !is_old, err);

    if (r == 0 && is_old)
        r = kube_delete(rc->client, &KIND_TRAININGROUND, &name, round->uid, NULL, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

int federated_clean(const struct federatedjob_deps *deps, struct reconcile *rc,
                    const struct cleaning *cleaning, struct error *err)
{
    const struct object_list *rounds = cleaning->rounds;
    const struct map *counted = rounds_read(rc->arena, rounds);
    const struct model_checkpoint *checkpoints = cleaning->checkpoints->items;
    struct kept kept = { .items = arena_array(rc->arena, const char *,
                                              2 * rounds->len + cleaning->checkpoints->len + 2) };

    keep(&kept, cleaning->model_ref);
    for (size_t i = 0; i < cleaning->checkpoints->len; i++)
        keep(&kept, checkpoints[i].ref);
    for (size_t i = 0; i < rounds->len; i++) {
        const cJSON *json = kube_object_json(rc->arena, rounds->items[i]);
        int r = clean_round(deps, rc, cleaning, rounds->items[i], json, counted, err);

        if (r < 0)
            return error_wrap(err, "TrainingRound '%s'", rounds->items[i]->name);
        if (training_round_number(json) < cleaning->keep_from)
            continue;
        keep(&kept, json_string(json_path(json, "spec", "modelRef", NULL), NULL));
        keep(&kept, json_string(json_path(json, "status", "aggregatedModelRef", NULL), NULL));
    }
    return model_store_gc(deps->models, &cleaning->scope, kept.items, kept.len, err);
}
