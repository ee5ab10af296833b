#include "common/schema/members.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/map.h"

/* Up to here a walk is as fast. */
#define FEW 16
/* Larger than any object that is in memory at once: a body, what it is merged into, and copies. */
#define MAX_KEY_TEXT ((size_t)64 << 20)

static bool are_few(const cJSON *object)
{
    size_t len = 0;

    json_for_each (member, object) {
        if (++len > FEW)
            return false;
    }
    return true;
}

struct members members_of(struct arena *arena, const cJSON *object)
{
    struct members members = { .object = cJSON_IsObject(object) ? object : NULL };

    if (!members.object || are_few(object))
        return members;
    members.names = map_of_arena(arena);
    for (cJSON *member = object->child; member; member = member->next)
        map_set(members.names, member->string, member);
    return members;
}

cJSON *members_get(const struct members *members, const char *name)
{
    cJSON *member = members->object ? members->object->child : NULL;

    if (members->names)
        return map_get(members->names, name);
    for (size_t i = 0; member && i < FEW; i++, member = member->next) { /* it may grow meanwhile */
        if (strcmp(member->string, name) == 0)
            return member;
    }
    return NULL;
}

void members_append(cJSON *object, const char *name, cJSON *value)
{
    assert(cJSON_IsObject(object) && value);
    cJSON_AddItemToObject(object, name, value);
}

void members_replace(cJSON *object, cJSON *member, cJSON *value)
{
    assert(!value->string);
    json_rename(value, member->string);
    cJSON_ReplaceItemViaPointer(object, member, value);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

const cJSON **members_in_order(struct arena *arena, const cJSON *container, size_t *ret_len)
{
    size_t len = 0;
    const cJSON **members = arena_array(arena, const cJSON *, json_len(container) + 1);

    if (cJSON_IsObject(container) || cJSON_IsArray(container)) {
        json_for_each (member, container)
            members[len++] = member;
    }
    if (cJSON_IsObject(container))
        qsort(members, len, sizeof(const cJSON *), compare_names);
    *ret_len = len;
    return members;
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool append_text(struct buf *key, char type, const char *text)
{
    return buf_printf(key, "%c%zu:", type, strlen(text)) && buf_append_string(key, text);
}

/* As Go has them: an integer of 64 bits, else a double. */
static bool append_number(struct buf *key, const cJSON *value)
{
    int64_t number = json_int(value, 0);

    if (number == json_int(value, 1))
        return buf_printf(key, "i%lld", (long long)number);
    return buf_printf(key, "d%.17g", json_double(value, 0));
}

static bool append_key(struct arena *arena, struct buf *key, const cJSON *value)
{
    size_t len;
    bool fits;

    if (json_is_number(value))
        return append_number(key, value);
    if (cJSON_IsString(value))
        return append_text(key, 's', value->valuestring);
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return buf_append_string(key, !value                ? "-"
                                      : cJSON_IsNull(value) ? "n"
                                      : cJSON_IsTrue(value) ? "t"
                                                            : "f");

    const cJSON **members = members_in_order(arena, value, &len);

    fits = buf_append_string(key, cJSON_IsObject(value) ? "{" : "[");
    for (size_t i = 0; fits && i < len; i++)
        fits = (!cJSON_IsObject(value) || append_text(key, 'm', members[i]->string)) &&
               append_key(arena, key, members[i]);
    return fits && buf_append_string(key, "}");
}

const char *value_key(struct arena *arena, const cJSON *value)
{
    CLEANUP(buf_releasep) struct buf key = BUF_INIT(MAX_KEY_TEXT);
    bool fits = append_key(arena, &key, value);

    assert(fits); /* no larger tree gets so far */
    (void)fits;
    return arena_strdup(arena, buf_string(&key));
}
