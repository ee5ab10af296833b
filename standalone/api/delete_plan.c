#include "standalone/api/delete_plan.h"

#include "common/base/clock.h"
#include "common/base/str.h"

bool delete_has_finalizer(const cJSON *object, const char *name)
{
    json_for_each (item, json_path(object, "metadata", "finalizers", NULL)) {
        if (str_equal(json_string(item, NULL), name))
            return true;
    }
    return false;
}

/* Nobody depends on an Event. */
static bool is_event(const cJSON *live)
{
    return str_equal(json_string(json_get(live, "kind"), ""), "Event");
}

static bool orphans(const cJSON *live, const struct delete_options *options)
{
    if (is_event(live))
        return false;
    if (options->orphan_dependents >= 0)
        return options->orphan_dependents > 0;
    if (*options->propagation_policy)
        return str_equal(options->propagation_policy, "Orphan");
    return delete_has_finalizer(live, FINALIZER_ORPHAN);
}

static bool waits_for_dependents(const cJSON *live, const struct delete_options *options)
{
    if (is_event(live))
        return false;
    if (options->orphan_dependents >= 0)
        return false;
    if (*options->propagation_policy)
        return str_equal(options->propagation_policy, "Foreground");
    return delete_has_finalizer(live, FINALIZER_FOREGROUND);
}

/* The list that it has to have. */
static cJSON *make_finalizers(struct arena *arena, const cJSON *live,
                              const struct delete_options *options)
{
    cJSON *ret = json_array(arena);

    json_for_each (item, json_path(live, "metadata", "finalizers", NULL)) {
        const char *name = json_string(item, "");

        if (!str_equal(name, FINALIZER_ORPHAN) && !str_equal(name, FINALIZER_FOREGROUND))
            json_add_string(ret, name);
    }
    if (orphans(live, options))
        json_add_string(ret, FINALIZER_ORPHAN);
    if (waits_for_dependents(live, options))
        json_add_string(ret, FINALIZER_FOREGROUND);
    return ret;
}

static void mark(cJSON *object, int64_t now_us)
{
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");
    int64_t generation = json_int(json_get(metadata, "generation"), 0);
    char now[RFC3339_LEN];

    json_set_string(metadata, "deletionTimestamp", rfc3339_format(now_us, now));
    if (!str_equal(json_string(json_get(object, "kind"), ""), "Namespace"))
        json_set_int(metadata, "deletionGracePeriodSeconds", 0);
    if (generation > 0)
        json_set_int(metadata, "generation", generation + 1);
}

enum delete_action delete_plan(struct arena *arena, const cJSON *live,
                               const struct delete_options *options, int64_t now_us,
                               cJSON **ret_object)
{
    cJSON *finalizers = make_finalizers(arena, live, options);
    bool deleting = json_path(live, "metadata", "deletionTimestamp", NULL);
    bool is_namespace = str_equal(json_string(json_get(live, "kind"), ""), "Namespace") &&
                        json_len(json_path(live, "spec", "finalizers", NULL));

    if (!json_len(finalizers) && !is_namespace)
        return DELETE_NOW;

    cJSON *object = arena_own(arena, json_copy(live), json_free);
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");

    json_remove(metadata, "finalizers");
    if (json_len(finalizers))
        json_set_copy(metadata, "finalizers", finalizers);
    if (!deleting)
        mark(object, now_us);
    if (is_namespace) {
        json_remove(object, "status");
        json_set_string(json_set_object(object, "status"), "phase", "Terminating");
    }
    *ret_object = object;
    return json_equal(object, live) ? DELETE_NOTHING : DELETE_MARK;
}
