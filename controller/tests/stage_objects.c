/* What users put into the API server in memory. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/tests/stage.h"

#define MAX_KNOWN 20000

/* What was put, for the list of the next process. */
static struct known {
    const struct kube_kind *kind;
    const char *name;
} known[MAX_KNOWN];
static size_t known_count;

void stage_forget_objects(void)
{
    known_count = 0;
}

void stage_each_object(void (*each)(const struct kube_kind *kind, const char *name))
{
    for (size_t i = 0; i < known_count; i++)
        each(known[i].kind, known[i].name);
}

static struct kube_name name_of(const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, "default", name));
    return ret;
}

const cJSON *stage_get(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = name_of(name);

    return fake_api_get(stage.api, stage.arena, kind, &key);
}

static void note_known(const struct kube_kind *kind, const char *name)
{
    ck_assert_uint_lt(known_count, MAX_KNOWN);
    known[known_count++] = (struct known){ kind, arena_strdup(stage.arena, name) };
}

void stage_put(const struct kube_kind *kind, const char *name, const char *spec)
{
    const char *fresh = arena_printf(
        stage.arena, "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\"}}", name);
    const cJSON *old = stage_get(kind, name);
    cJSON *object = json_object(stage.arena);
    cJSON *metadata = json_object(stage.arena);

    if (!old) {
        old = parsed(stage.arena, fresh);
        note_known(kind, name);
    }
    json_for_each (member, json_get(old, "metadata"))
        json_set_copy(metadata, member->string, member);
    json_set_int(metadata, "generation", json_int(json_get(metadata, "generation"), 0) + 1);
    json_set_copy(object, "metadata", metadata);
    json_set_copy(object, "spec", parsed(stage.arena, spec));
    json_set_copy(object, "status", json_get(old, "status"));
    fake_api_put(stage.api, kind, object);
}

void stage_put_fleet(unsigned count)
{
    while (stage.fleet < count) {
        unsigned i = ++stage.fleet;
        const char *text = arena_printf(
            stage.arena,
            "{\"metadata\":{\"namespace\":\"default\",\"name\":\"fleet-%u\",\"generation\":1,"
            "\"finalizers\":[\"" FINALIZER_PROPLET "\"]},"
            "\"spec\":{\"type\":\"external\",\"unschedulable\":true,\"connectionConfig\":{"
            "\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\",\"channelId\":\"c\","
            "\"clientId\":\"fleet-%u\"}}}",
            i, i);
        note_known(&KIND_PROPLET, arena_printf(stage.arena, "fleet-%u", i));
        fake_api_put(stage.api, &KIND_PROPLET, parsed(stage.arena, text));
    }
}

void stage_annotate(const struct kube_kind *kind, const char *name, const char *key,
                    const char *value)
{
    cJSON *object = json_copy(stage_get(kind, name));
    cJSON *metadata = (cJSON *)json_get(object, "metadata");

    arena_own(stage.arena, object, json_free);
    json_set_string(json_set_object(metadata, "annotations"), key, value);
    fake_api_put(stage.api, kind, object);
}

void stage_put_task(const char *spec)
{
    stage_put(&KIND_TASK, "one", spec);
}

void stage_put_proplet(const char *name, const char *spec)
{
    stage_put(&KIND_PROPLET, name, spec);
}

void stage_delete(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = name_of(name);

    fake_api_delete(stage.api, kind, &key);
}

void stage_replace_proplet(const char *name, const char *spec)
{
    cJSON *object = json_copy(stage_get(&KIND_PROPLET, name));

    arena_own(stage.arena, object, json_free);
    json_remove((cJSON *)json_get(object, "metadata"), "finalizers");
    fake_api_put(stage.api, &KIND_PROPLET, object);
    stage_delete(&KIND_PROPLET, name);
    ck_assert_ptr_null(stage_get(&KIND_PROPLET, name));
    stage_put_proplet(name, spec);
}

const char *stage_task_string(const char *key)
{
    return json_string(json_path(stage_get(&KIND_TASK, "one"), "status", key, NULL), "");
}

unsigned stage_requests(const char *method, const char *path)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(stage.api, stage.arena, &requests);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count +=
            (!method || str_equal(requests[i].method, method)) && strstr(requests[i].path, path);
    return count;
}

int64_t stage_active(void)
{
    struct placements *placements = stage.task.placements;

    return placements_count(placements, "default", "alpha").active +
           placements_count(placements, "default", "beta").active;
}
