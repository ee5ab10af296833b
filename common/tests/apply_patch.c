#include "common/tests/apply_patch.h"

#include <string.h>

#include "common/base/str.h"

#define MAX_TOKEN 512

/* The place that a pointer names: container[token], item is what stands there now or NULL. */
struct place {
    cJSON *container;
    cJSON *item;
    char token[MAX_TOKEN];
};

static cJSON *array_item(const cJSON *array, const char *token)
{
    int64_t index;
    cJSON *item = array->child;

    if (!str_to_int64(token, &index) || index < 0)
        return NULL;
    while (item && index-- > 0)
        item = item->next;
    return item;
}

static cJSON *item_of(const cJSON *container, const char *token)
{
    if (cJSON_IsArray(container))
        return array_item(container, token);
    if (!cJSON_IsObject(container))
        return NULL;
    for (cJSON *item = container->child; item; item = item->next) {
        if (str_equal(item->string, token))
            return item;
    }
    return NULL;
}

/* One reference token with ~0 and ~1 resolved; the rest of the pointer, or NULL if it is too long.
 */
static const char *next_token(const char *pointer, char ret[static MAX_TOKEN])
{
    size_t len = 0;

    for (; *pointer && *pointer != '/'; pointer++) {
        char c = *pointer;
        if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
            c = *++pointer == '0' ? '~' : '/';
        if (len + 1 >= MAX_TOKEN)
            return NULL;
        ret[len++] = c;
    }
    ret[len] = '\0';
    return pointer;
}

static bool find_place(cJSON *document, const char *pointer, struct place *ret)
{
    cJSON *container = NULL, *item = document;

    while (pointer && *pointer == '/') {
        container = item;
        pointer = next_token(pointer + 1, ret->token);
        item = container ? item_of(container, ret->token) : NULL;
    }
    ret->container = container;
    ret->item = item;
    return container && pointer && !*pointer;
}

/* cJSON_InsertItemInArray of Debian 12 refuses any place but the first and the last. */
static void insert(cJSON *array, int64_t index, const cJSON *value)
{
    int64_t behind = (int64_t)json_len(array) - index;

    json_add(array, json_copy(value));
    while (behind-- > 0)
        json_add(array, cJSON_DetachItemFromArray(array, (int)index));
}

static bool put(const struct place *place, const cJSON *value, bool replace)
{
    if (cJSON_IsObject(place->container)) {
        json_set_copy(place->container, place->token, value);
        return true;
    }
    if (!cJSON_IsArray(place->container))
        return false;
    if (place->item && replace)
        return cJSON_ReplaceItemViaPointer(place->container, place->item, json_copy(value));

    int64_t len = (int64_t)json_len(place->container), index = len;
    if (!str_equal(place->token, "-") && !str_to_int64(place->token, &index))
        return false;
    if (index < 0 || index > len)
        return false;
    insert(place->container, index, value);
    return true;
}

static bool apply_operation(cJSON *document, const cJSON *operation)
{
    const char *op = json_string(json_get(operation, "op"), "");
    const cJSON *value = json_get(operation, "value");
    struct place place;

    if (!find_place(document, json_string(json_get(operation, "path"), ""), &place))
        return false;
    if (str_equal(op, "add"))
        return value && put(&place, value, false);
    if (!place.item)
        return false;
    if (str_equal(op, "replace"))
        return value && put(&place, value, true);
    if (str_equal(op, "test"))
        return json_equal(place.item, value);
    if (!str_equal(op, "remove"))
        return false;
    cJSON_Delete(cJSON_DetachItemViaPointer(place.container, place.item));
    return true;
}

cJSON *apply_json_patch(cJSON *document, const cJSON *operations, const char **ret_problem)
{
    bool fits = cJSON_IsArray(operations);
    const char *problem = "the patch is not a list";

    json_for_each (operation, operations) {
        fits = fits && apply_operation(document, operation);
        if (!fits) {
            problem = json_string(json_get(operation, "path"), "an operation without a path");
            break;
        }
    }
    if (fits)
        return document;
    cJSON_Delete(document);
    *ret_problem = problem;
    return NULL;
}

cJSON *apply_merge_patch(cJSON *document, const cJSON *patch)
{
    if (!cJSON_IsObject(patch)) {
        cJSON_Delete(document);
        return json_copy(patch);
    }
    if (!cJSON_IsObject(document)) {
        cJSON_Delete(document);
        document = cJSON_CreateObject();
    }
    json_for_each (member, patch) {
        cJSON *old = item_of(document, member->string);
        if (cJSON_IsNull(member)) {
            json_remove(document, member->string);
        } else {
            if (old)
                cJSON_DetachItemViaPointer(document, old);
            json_set(document, member->string, apply_merge_patch(old, member));
        }
    }
    return document;
}
