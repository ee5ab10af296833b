#include "common/json/jsonpatch.h"

#include <assert.h>

#include "common/base/str.h"

struct json_patch {
    struct arena *arena;
    cJSON *root;       /* array of one: the document as it is after the operations so far */
    cJSON *operations; /* array */
    bool changes;      /* there is an operation other than a test */
};

/* Where a pointer leads. An absent target has a parent, and no item. */
struct target {
    cJSON *parent;
    const char *key; /* of an object's member */
    size_t index;    /* of an array's element; its length: behind the last */
    cJSON *item;
};

struct json_patch *json_patch_create(struct arena *arena, const cJSON *document)
{
    struct json_patch *patch = arena_new(arena, struct json_patch);

    patch->arena = arena;
    patch->root = json_array(arena);
    json_add(patch->root, document ? json_copy(document) : cJSON_CreateObject());
    patch->operations = json_array(arena);
    return patch;
}

static cJSON *add_operation(struct json_patch *patch, const char *op, const char *pointer)
{
    cJSON *operation = json_add_object(patch->operations);

    json_set_string(operation, "op", op);
    json_set_string(operation, "path", pointer);
    return operation;
}

/* RFC 6901: ~1 is /, ~0 is ~. */
static char *unescape(struct arena *arena, const char *token, size_t len)
{
    char *key = arena_strndup(arena, token, len);
    char *to = key;

    for (const char *from = key; *from; from++) {
        if (*from == '~' && (from[1] == '0' || from[1] == '1'))
            *to++ = *++from == '1' ? '/' : '~';
        else
            *to++ = *from;
    }
    *to = '\0';
    return key;
}

static bool find_element(cJSON *array, const char *token, struct target *ret)
{
    int64_t index = (int64_t)json_len(array);

    if (!str_equal(token, "-") &&
        (!str_to_int64(token, &index) || token[0] == '-' || (token[0] == '0' && token[1])))
        return false;
    *ret = (struct target){ .parent = array, .index = (size_t)index };

    size_t left = ret->index;
    cJSON *item = array->child;

    for (; item && left; left--)
        item = item->next;
    ret->item = item;
    return !left; /* further than behind the last: nowhere */
}

/* One token down from a container; false: the token means nothing there. */
static bool step_down(cJSON *container, const char *token, struct target *ret)
{
    if (cJSON_IsArray(container))
        return find_element(container, token, ret);
    if (!cJSON_IsObject(container))
        return false;
    *ret = (struct target){ .parent = container,
                            .key = token,
                            .item = (cJSON *)(uintptr_t)json_get(container, token) };
    return true;
}

/* Puts value, which it takes, into the document. */
static void put(const struct target *target, cJSON *value)
{
    if (target->key)
        json_set(target->parent, target->key, value);
    else if (target->item)
        cJSON_ReplaceItemViaPointer(target->parent, target->item, value);
    else
        json_add(target->parent, value);
}

/* The operation that puts value, which it takes, at target; value becomes the item there. */
static void emit(struct json_patch *patch, const struct target *target, const char *pointer,
                 cJSON *value)
{
    cJSON *operation = add_operation(patch, target->item ? "replace" : "add", pointer);

    json_set_copy(operation, "value", value);
    put(target, value);
    patch->changes = true;
}

static bool is_absent(const cJSON *item)
{
    return !item || cJSON_IsNull(item);
}

/*
 * Follows pointer. With `make`, absent parents become empty objects, in the document and by an
 * operation. False: a parent is absent, or is a value that has no members.
 */
static bool resolve(struct json_patch *patch, const char *pointer, bool make, struct target *ret)
{
    struct target target = { .parent = patch->root, .item = patch->root->child };
    const char *at = pointer;

    assert(!*pointer || *pointer == '/');
    while (*at) {
        if (is_absent(target.item)) {
            if (!make)
                return false;
            cJSON *made = cJSON_CreateObject();

            emit(patch, &target, arena_strndup(patch->arena, pointer, (size_t)(at - pointer)),
                 made);
            target.item = made;
        }

        size_t len = strcspn(++at, "/");

        if (!step_down(target.item, unescape(patch->arena, at, len), &target))
            return false;
        at += len;
    }
    *ret = target;
    return true;
}

void json_patch_set(struct json_patch *patch, const char *pointer, cJSON *value)
{
    struct target target;

    if (resolve(patch, pointer, true, &target) && !json_equal(target.item, value))
        emit(patch, &target, pointer, value);
    else
        json_free(value);
}

void json_patch_default(struct json_patch *patch, const char *pointer, cJSON *value)
{
    struct target target;

    if (resolve(patch, pointer, true, &target) && is_absent(target.item))
        emit(patch, &target, pointer, value);
    else
        json_free(value);
}

void json_patch_remove(struct json_patch *patch, const char *pointer)
{
    struct target target;

    assert(*pointer); /* nobody removes the document */
    if (!resolve(patch, pointer, false, &target) || !target.item)
        return;
    (void)add_operation(patch, "remove", pointer);
    json_free(cJSON_DetachItemViaPointer(target.parent, target.item));
    patch->changes = true;
}

void json_patch_test(struct json_patch *patch, const char *pointer, cJSON *value)
{
    json_set(add_operation(patch, "test", pointer), "value", value);
}

const char *json_pointer_escape(struct arena *arena, const char *token)
{
    char *escaped = arena_alloc(arena, 2 * strlen(token) + 1, 1);
    char *to = escaped;

    for (; *token; token++) {
        if (*token == '~' || *token == '/') {
            *to++ = '~';
            *to++ = *token == '/' ? '1' : '0';
        } else {
            *to++ = *token;
        }
    }
    return escaped;
}

void json_patch_members(struct json_patch *patch, const char *pointer, const cJSON *from,
                        const cJSON *to)
{
    json_for_each (member, to) {
        json_patch_set(patch,
                       arena_printf(patch->arena, "%s/%s", pointer,
                                    json_pointer_escape(patch->arena, member->string)),
                       json_copy(member));
    }
    json_for_each (member, from) {
        if (!json_get(to, member->string))
            json_patch_remove(patch,
                              arena_printf(patch->arena, "%s/%s", pointer,
                                           json_pointer_escape(patch->arena, member->string)));
    }
}

const cJSON *json_patch_operations(const struct json_patch *patch)
{
    return patch->changes ? patch->operations : NULL;
}
