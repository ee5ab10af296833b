#include "standalone/patch/merge_patch.h"

#include "common/schema/members.h"

/* What a patch adds has no nulls, in lists too; items of lists may be null. The caller's. */
static cJSON *without_nulls(const cJSON *value)
{
    cJSON *copy;

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return json_copy(value);
    copy = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    json_for_each (member, value) {
        if (cJSON_IsArray(value))
            json_add(copy, without_nulls(member));
        else if (!cJSON_IsNull(member))
            members_append(copy, member->string, without_nulls(member));
    }
    return copy;
}

/* Takes document; returns what it becomes. json_parse bounds the depth of both. */
static cJSON *merged(struct arena *arena, cJSON *document, const cJSON *patch)
{
    if (!cJSON_IsObject(patch)) {
        json_free(document);
        return without_nulls(patch);
    }
    if (!cJSON_IsObject(document)) {
        json_free(document);
        document = cJSON_CreateObject();
    }

    const struct members members = members_of(arena, document);

    json_for_each (member, patch) {
        cJSON *old = members_get(&members, member->string); /* once: a patch has no name twice */

        if (old)
            old = cJSON_DetachItemViaPointer(document, old);
        if (cJSON_IsNull(member))
            json_free(old);
        else
            members_append(document, member->string, merged(arena, old, member));
    }
    return document;
}

cJSON *merge_patch_apply(struct arena *arena, const cJSON *document, const cJSON *patch)
{
    return arena_own(arena, merged(arena, json_copy(document), patch), json_free);
}
