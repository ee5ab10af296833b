#include "standalone/patch/managed_fields.h"

#include "common/base/str.h"
#include "standalone/patch/writing.h"

const char *managed_fields_manager(struct arena *arena, const char *field_manager,
                                   const char *user_agent)
{
    size_t len;

    if (!str_is_empty(field_manager))
        return arena_strdup(arena, field_manager);
    if (str_is_empty(user_agent))
        return "unknown";
    len = strcspn(user_agent, "/");
    len = str_utf8_cut(user_agent, len, FIELD_MANAGER_MAX);
    return len ? arena_strndup(arena, user_agent, len) : "unknown";
}

/* A list with an entry that says nothing; of built-in kinds also an empty one, which gets lost on the
 * way of custom ones. */
static bool is_reset(const struct writing *writing, const cJSON *managed_fields)
{
    if (!cJSON_IsArray(managed_fields))
        return false;
    if (!json_first(managed_fields))
        return !writing->write->resource->custom;
    return json_len(managed_fields) == 1 && json_len(json_first(managed_fields)) == 0;
}

static struct managers managers_of(const struct writing *writing, const cJSON *live,
                                   const cJSON *object)
{
    const cJSON *sent = json_path(object, "metadata", "managedFields", NULL);
    const cJSON *known = json_path(live, "metadata", "managedFields", NULL);
    struct managers managers = { 0 };

    if (!*writing->write->subresource) {
        if (is_reset(writing, sent))
            return managers;
        if (json_len(sent) && managers_read(writing->arena, sent, &managers))
            return managers;
    }
    if (!managers_read(writing->arena, known, &managers))
        return (struct managers){ 0 };
    return managers;
}

void managed_fields_update(struct arena *arena, const struct managed_fields_write *write,
                           const cJSON *live, cJSON *object)
{
    struct writing writing = writing_of(arena, write);
    struct managers managers = managers_of(&writing, live, object);
    const cJSON *old = live ? writing_bare(&writing, live) : writing_nothing(&writing);

    /* Not everything is validated, as what comes beside a status; of what does not fit nothing is known. */
    if (typed_check(arena, writing.schema, object, true, NULL) < 0)
        managers = (struct managers){ 0 };
    else if (managers.len || !live) {
        writing_update(&writing, &managers, old, writing_bare(&writing, object), write->manager,
                       writing.now);
        managers_cap(arena, &managers, MANAGED_FIELDS_MAX_UPDATERS);
    }
    writing_set_managers(&writing, object, &managers);
}
