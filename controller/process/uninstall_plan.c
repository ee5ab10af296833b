#include "controller/process/uninstall_plan.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/object.h"

/* Of a list of finalizers in a message. */
#define MAX_FOREIGN 160u

bool uninstall_is_ours(const char *finalizer)
{
    return str_equal(finalizer, FINALIZER_TASK) || str_equal(finalizer, FINALIZER_PROPLET);
}

static const cJSON *finalizers_of(const cJSON *object)
{
    return json_path(object, "metadata", "finalizers", NULL);
}

enum uninstall_action uninstall_action(const cJSON *object, bool release)
{
    if (!kube_is_deleting(object))
        return UNINSTALL_DELETE;
    json_for_each (item, finalizers_of(object)) {
        if (release && uninstall_is_ours(json_string(item, NULL)))
            return UNINSTALL_RELEASE;
    }
    return UNINSTALL_WAIT;
}

const char *uninstall_foreign(struct arena *arena, const cJSON *object)
{
    const char *ret = "";

    json_for_each (item, finalizers_of(object)) {
        const char *name = json_string(item, "");

        if (!uninstall_is_ours(name))
            ret = arena_printf(arena, "%s%s%s", ret, *ret ? ", " : "", name);
        if (strlen(ret) > MAX_FOREIGN)
            return arena_printf(arena, "%.*s...", (int)MAX_FOREIGN, ret);
    }
    return ret;
}

bool uninstall_is_child(const cJSON *object)
{
    return str_has_prefix(
        json_string(json_get(kube_controller_reference(object), "apiVersion"), ""), API_GROUP "/");
}

struct uninstall_times uninstall_times(int64_t timeout_ms)
{
    return (struct uninstall_times){ .release_ms = timeout_ms / 4 * 3, .end_ms = timeout_ms };
}

enum uninstall_next uninstall_next(const struct uninstall_look *look,
                                   const struct uninstall_times *times, int64_t elapsed_ms)
{
    bool is_over = elapsed_ms >= (look->released ? 2 * times->end_ms : times->end_ms);

    if (!look->failed && !look->objects && !look->children)
        return UNINSTALL_DONE;
    if (!is_over)
        return UNINSTALL_AGAIN;
    return look->failed || look->objects ? UNINSTALL_FAILED : UNINSTALL_TO_COLLECTOR;
}
