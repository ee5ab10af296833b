#include "standalone/patch/go_text.h"

const char *go_text(struct arena *arena, const cJSON *value)
{
    bool map = cJSON_IsObject(value);
    const char *all = map ? "map[" : "[";

    if (cJSON_IsString(value))
        return json_string(value, "");
    if (cJSON_IsNull(value))
        return "<nil>";
    if (!map && !cJSON_IsArray(value))
        return json_text(arena, value, NULL);
    json_for_each (item, value)
        all = arena_printf(arena, "%s%s%s%s%s", all, map ? item->string : "", map ? ":" : "",
                           go_text(arena, item), item->next ? " " : "");
    return arena_printf(arena, "%s]", all);
}

const char *go_source(struct arena *arena, const cJSON *value)
{
    bool map = cJSON_IsObject(value);
    const char *all = map ? "map[string]interface {}{" : "[]interface {}{";

    if (cJSON_IsString(value))
        return arena_printf(arena, "\"%s\"", json_string(value, ""));
    if (cJSON_IsNull(value))
        return "interface {}(nil)";
    if (!map && !cJSON_IsArray(value))
        return json_text(arena, value, NULL);
    json_for_each (item, value)
        all = arena_printf(arena, "%s%s%s%s", all,
                           map ? arena_printf(arena, "\"%s\":", item->string) : "",
                           go_source(arena, item), item->next ? ", " : "");
    return arena_printf(arena, "%s}", all);
}

static int compare_members(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* The caller's. */
static cJSON *sorted(struct arena *arena, const cJSON *json)
{
    const cJSON **members = arena_array(arena, const cJSON *, json_len(json) + 1);
    cJSON *copy;
    size_t len = 0;

    if (!cJSON_IsObject(json) && !cJSON_IsArray(json))
        return json_copy(json);
    copy = cJSON_IsObject(json) ? cJSON_CreateObject() : cJSON_CreateArray();
    json_for_each (member, json)
        members[len++] = member;
    if (cJSON_IsObject(json))
        qsort(members, len, sizeof(const cJSON *), compare_members);
    for (size_t i = 0; i < len; i++) {
        if (cJSON_IsObject(json))
            json_set(copy, members[i]->string, sorted(arena, members[i]));
        else
            json_add(copy, sorted(arena, members[i]));
    }
    return copy;
}

const char *sorted_text(struct arena *arena, const cJSON *json)
{
    return json_text(arena, arena_own(arena, sorted(arena, json), json_free), NULL);
}
