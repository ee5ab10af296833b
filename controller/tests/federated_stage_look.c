/* What the tests of federated learning look at, and store themselves. */
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/kinds.h"
#include "controller/federated/round_observe.h"
#include "controller/federated/update.h"
#include "controller/tests/federated_stage.h"
#include "controller/tests/memory_store.h"
#include "controller/tests/staged.h"

/* Of the round that owns the Task. */
static void scope_of_task(const char *name, struct model_scope *ret)
{
    const cJSON *task = federated_stage_get(&KIND_TASK, name);
    const cJSON *owner =
        cJSON_GetArrayItem(json_path(task, "metadata", "ownerReferences", NULL), 0);

    *ret = (struct model_scope){ .kind = &KIND_TRAININGROUND,
                                 .uid = json_string(json_get(owner, "uid"), "") };
    ck_assert(kube_name_set(&ret->owner, "default", json_string(json_get(owner, "name"), "")));
}

void federated_stage_end_task_by_reference(const char *name, const char *update, int samples)
{
    const struct fl_envelope envelope = { .format = FL_FORMAT_JSON_F64,
                                          .payload = update,
                                          .payload_len = update ? strlen(update) : 0,
                                          .num_samples = samples };
    struct arena *arena = federated.arena;
    char reference[MODEL_REFERENCE_LEN];
    struct model_scope scope;
    struct fl_update decoded;
    size_t len;

    if (!update) {
        federated_stage_end_task(name, NULL, 0);
        return;
    }
    ck_assert_int_eq(fl_update_decode(arena, &envelope, NULL, &decoded, NULL), 0);
    const char *packed = fl_update_pack(arena, &decoded, &len);
    scope_of_task(name, &scope);
    federated.looking = true;
    ck_assert_int_eq(model_store_put(federated.user_store, &scope, packed, len, reference, NULL),
                     0);
    federated.looking = false;
    federated_stage_set_task(name, arena_printf(arena,
                                                "{\"phase\":\"completed\",\"results\":{\"format\":"
                                                "\"%s\",\"numSamples\":%d,\"ref\":\"%s\"}}",
                                                FL_FORMAT_PACKED_F64, samples, reference));
}

static const char *text_at(const cJSON *object, const char *key)
{
    return json_string(json_path(object, "status", key, NULL), "-");
}

const char *federated_stage_model(const char *reference)
{
    const cJSON *job = federated_stage_get(&KIND_FEDERATEDJOB, "job");
    struct model_scope scope;
    const char *bytes;
    size_t len;

    if (!job)
        return NULL;
    model_scope_of(&KIND_FEDERATEDJOB, job, &scope);
    federated.looking = true;
    int r = model_store_get(federated.user_store, federated.arena, &scope, reference, &bytes, &len,
                            NULL);
    federated.looking = false;
    return r < 0 ? NULL : bytes;
}

const char *federated_stage_told(void)
{
    const cJSON *job = federated_stage_get(&KIND_FEDERATEDJOB, "job");
    const cJSON *status = json_get(job, "status");
    const cJSON *progress = condition_get(json_get(status, "conditions"), "Progressing");
    const char *model = federated_stage_model(text_at(job, "aggregatedModelRef"));

    staged_expect_kstatus(job);
    return arena_printf(federated.arena, "%s %d %d %s; %s %s", text_at(job, "phase"),
                        (int)json_int(json_get(status, "currentRound"), -1),
                        (int)json_int(json_get(status, "completedRounds"), 0), model ? model : "-",
                        json_string(json_get(progress, "status"), "-"),
                        json_string(json_get(progress, "reason"), "-"));
}

const char *federated_stage_round(const char *name)
{
    const cJSON *round = federated_stage_get(&KIND_TRAININGROUND, name);
    const cJSON *status = json_get(round, "status");
    const char *text;

    if (!round)
        return "";
    staged_expect_kstatus(round);
    text = arena_printf(federated.arena, "%s %d/%d", text_at(round, "phase"),
                        (int)json_int(json_get(status, "updatesReceived"), 0),
                        (int)json_int(json_get(status, "updatesRequired"), 0));
    json_for_each (part, json_get(status, "participants"))
        text = arena_printf(federated.arena, "%s %s=%s%s", text,
                            json_string(json_get(part, "propletId"), ""),
                            json_string(json_get(part, "status"), ""),
                            json_bool(json_get(part, "updateReceived"), false) ? "!" : "");
    return text;
}

/* What is stored of owners of a kind. */
struct count {
    const char *kind;
    size_t found;
};

static int count_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct count *count = ctx;
    const cJSON *owner =
        cJSON_GetArrayItem(json_path(item, "metadata", "ownerReferences", NULL), 0);

    count->found += str_equal(json_string(json_get(owner, "kind"), ""), count->kind);
    return 0;
}

static size_t stored_of(const struct kube_kind *kind)
{
    const struct kube_list_options options = { 0 };
    struct count count = { .kind = kind->kind };
    struct error err = { 0 };

    if (!federated.user_store->type->is_owned)
        return memory_store_count(federated.user_store, kind);
    ck_assert_int_eq(kube_list(federated.user, &KIND_CONFIGMAP, &options, count_item, &count, &err),
                     0);
    return count.found;
}

size_t federated_stage_models(void)
{
    return stored_of(&KIND_FEDERATEDJOB);
}

size_t federated_stage_updates(void)
{
    return stored_of(&KIND_TRAININGROUND);
}
