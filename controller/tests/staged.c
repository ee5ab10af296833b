#include "controller/tests/staged.h"

#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

struct informer *staged_cache(struct watch_loop *loop, const struct kube_kind *kind)
{
    struct informer *informer = NULL;

    for (size_t i = 0; MODULES[i]; i++) {
        const struct module_cache *cache = MODULES[i]->caches;

        for (; cache && cache->watch.kind; cache++) {
            if (cache->watch.kind != kind)
                continue;
            if (!informer)
                informer = informer_create(loop, &cache->watch);
            if (cache->add_indexes)
                cache->add_indexes(informer_store(informer));
        }
    }
    ck_assert_msg(informer, "no module keeps a %s", kind->kind);
    return informer;
}

static const struct staged *find(const struct staged *staged, size_t len, const void *what)
{
    static const struct staged NOBODY = { .what = NULL };

    for (size_t i = 0; i < len; i++) {
        if (staged[i].what == what)
            return &staged[i];
    }
    return &NOBODY;
}

void staged_changed(const struct staged *staged, size_t len, const struct kube_kind *kind,
                    struct kube_object *old, struct kube_object *current)
{
    for (size_t i = 0; MODULES[i]; i++) {
        const void *what = MODULES[i]->kind ? (const void *)MODULES[i]->kind : MODULES[i];
        const struct staged *module = find(staged, len, what);
        const struct module_source *source = MODULES[i]->sources;

        for (; source && module->self && source->kind; source++) {
            struct workqueue *queue =
                source->wakes ? find(staged, len, source->wakes)->queue : module->queue;
            if (source->kind == kind && queue)
                source->map(module->self, old, current, queue);
        }
    }
}

struct kube_config *staged_config(struct arena *arena)
{
    static const char CONFIG[] = "{apiVersion: v1, kind: Config, current-context: c,\n"
                                 "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                                 "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}],\n"
                                 "users: [{name: u, user: {}}]}\n";
    struct kube_config *config;
    struct error err = { 0 };
    int r = kube_config_load(temp_file(arena, temp_dir(arena), "config", CONFIG), &config, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    return config;
}

int staged_failure(enum fault fault, bool *dead, void *ctx, struct arena *arena,
                   const struct http_request *request, struct http_response *ret, struct error *err)
{
    static const enum fake_failure FAILURES[] = {
        [FAULT_REFUSED] = FAKE_REFUSED,
        [FAULT_LOST_REPLY] = FAKE_LOST_REPLY,
        [FAULT_CONFLICT] = FAKE_CONFLICT,
        [FAULT_SERVER_ERROR] = FAKE_SERVER_ERROR,
    };

    if (fault < FAULT_CRASH_BEFORE) {
        fake_api_fail(ctx, 1, FAILURES[fault]);
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    }
    *dead = true;
    if (fault == FAULT_CRASH_AFTER)
        (void)fake_api_roundtrip(ctx, arena, request, ret, err);
    return error_set(err, ERROR_UNAVAILABLE, "dead");
}

const char *staged_kstatus(struct arena *arena, const cJSON *object)
{
    const cJSON *conditions = json_path(object, "status", "conditions", NULL);
    const cJSON *reconciling = condition_get(conditions, "Reconciling");
    const cJSON *stalled = condition_get(conditions, "Stalled");
    const cJSON *shown = reconciling ? reconciling : stalled;

    ck_assert(!reconciling || !stalled);
    if (!shown)
        return "";
    ck_assert_str_eq(json_string(json_get(shown, "status"), ""), "True");
    return arena_printf(arena, "%s %s", json_string(json_get(shown, "type"), ""),
                        json_string(json_get(shown, "reason"), ""));
}

void staged_expect_kstatus(const cJSON *object)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *phase = json_string(json_path(object, "status", "phase", NULL), "");
    const char *expected = "Reconciling ";

    if (str_is_empty(phase))
        return; /* it has not been written yet */
    if (str_equal(phase, "Completed"))
        expected = "";
    else if (str_equal(phase, "Failed"))
        expected = "Stalled ";
    ck_assert_msg(str_is_empty(expected) == str_is_empty(staged_kstatus(arena, object)) &&
                      str_has_prefix(staged_kstatus(arena, object), expected),
                  "%s: '%s'", phase, staged_kstatus(arena, object));
}

struct kube_name staged_name(const char *name)
{
    struct kube_name ret;

    ck_assert(kube_name_set(&ret, "default", name));
    return ret;
}

void staged_put(struct fake_api *api, const struct kube_kind *kind, const char *name,
                const cJSON *spec, const cJSON *status)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kube_name key = staged_name(name);
    const cJSON *old = fake_api_get(api, arena, kind, &key);
    cJSON *object = json_object(arena), *metadata;

    json_set_string(object, "kind", kind->kind);
    metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "namespace", "default");
    json_set_string(metadata, "name", name);
    json_for_each (member, json_get(old, "metadata"))
        json_set_copy(metadata, member->string, member);
    if (spec)
        json_set_int(metadata, "generation", json_int(json_get(metadata, "generation"), 0) + 1);
    json_set_copy(object, "spec", spec ? spec : json_get(old, "spec"));
    json_set_copy(object, "status", status ? status : json_get(old, "status"));
    fake_api_put(api, kind, object);
}
