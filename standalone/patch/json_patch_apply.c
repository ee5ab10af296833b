#include "standalone/patch/json_patch_apply.h"

#include "common/base/str.h"

/* The rules and words of github.com/evanphx/json-patch v4, as the API server is built with it. */

struct patching {
    struct arena *arena;
    struct error *err;
    cJSON *document;
};

/* container[token], and what stands there now; item NULL: nothing. */
struct place {
    cJSON *container;
    cJSON *item;
    const char *token;
};

#define MISSING_PATH "Unable to access nonexistent path"

static int unfit(const struct patching *patching, const char *operation, const char *path,
                 const char *why)
{
    return error_set(patching->err, ERROR_CONFLICT,
                     "%s operation does not apply: doc is missing %s: %s: missing value", operation,
                     why, path);
}

/* --- pointers --------------------------------------------------------------------------------- */

static const char *unescaped(struct arena *arena, const char *token, size_t len)
{
    char *text = arena_strndup(arena, token, len), *out = text;

    for (const char *in = text; *in; in++) {
        if (in[0] == '~' && (in[1] == '0' || in[1] == '1'))
            *out++ = *++in == '0' ? '~' : '/';
        else
            *out++ = *in;
    }
    *out = '\0';
    return text;
}

/* An index into an array; negative ones count from its end, as that library has it. false: none. */
static bool index_of(const cJSON *array, const char *token, int64_t *ret)
{
    int64_t index, len = (int64_t)json_len(array);

    if (!str_to_int64(token, &index) || index < -len)
        return false;
    *ret = index < 0 ? index + len : index;
    return true;
}

static cJSON *item_at(cJSON *array, int64_t index)
{
    cJSON *item = array->child;

    while (item && index-- > 0)
        item = item->next;
    return item;
}

static cJSON *child_of(cJSON *container, const char *token)
{
    int64_t index;

    if (cJSON_IsArray(container))
        return index_of(container, token, &index) ? item_at(container, index) : NULL;
    if (!cJSON_IsObject(container))
        return NULL;
    for (cJSON *item = container->child; item; item = item->next) {
        if (str_equal(item->string, token))
            return item;
    }
    return NULL;
}

/* false: something on the way is not there, or has no members. */
static bool find_place(const struct patching *patching, const char *path, struct place *ret)
{
    cJSON *container = NULL, *item = patching->document;
    const char *token = "";

    for (const char *at = path; *at == '/';) {
        size_t len = strcspn(at + 1, "/");

        container = item;
        if (!cJSON_IsArray(container) && !cJSON_IsObject(container))
            return false;
        token = unescaped(patching->arena, at + 1, len);
        item = child_of(container, token);
        at += 1 + len;
    }
    *ret = (struct place){ .container = container, .item = item, .token = token };
    return container != NULL;
}

/* --- operations ------------------------------------------------------------------------------- */

static void insert_at(cJSON *array, int64_t index, cJSON *value)
{
    int64_t behind = (int64_t)json_len(array) - index;

    json_add(array, value);
    while (behind-- > 0)
        json_add(array, cJSON_DetachItemFromArray(array, (int)index));
}

static int add_value(const struct patching *patching, const char *operation, const char *path,
                     const cJSON *value)
{
    int64_t len, index;
    struct place place;

    if (!find_place(patching, path, &place))
        return unfit(patching, operation, path, "path");
    if (cJSON_IsObject(place.container)) {
        json_set_copy(place.container, place.token, value);
        return 0;
    }
    len = index = (int64_t)json_len(place.container);
    if (!str_equal(place.token, "-") && !index_of(place.container, place.token, &index))
        return error_set(patching->err, ERROR_CONFLICT, "invalid array index '%s'", place.token);
    if (index > len)
        return error_set(patching->err, ERROR_CONFLICT, "invalid index referenced: '%s'",
                         place.token);
    insert_at(place.container, index, json_copy(value));
    return 0;
}

static int remove_value(const struct patching *patching, const char *operation, const char *path,
                        cJSON **ret)
{
    struct place place;

    if (!find_place(patching, path, &place))
        return unfit(patching, operation, path, "path");
    if (!place.item)
        return error_set(patching->err, ERROR_CONFLICT,
                         "%s operation does not apply: " MISSING_PATH ": %s", operation, path);
    *ret = arena_own(patching->arena, cJSON_DetachItemViaPointer(place.container, place.item),
                     json_free);
    return 0;
}

static int apply_add(const struct patching *patching, const cJSON *operation, const char *path)
{
    return add_value(patching, "add", path, json_get(operation, "value"));
}

static int apply_remove(const struct patching *patching, const cJSON *operation, const char *path)
{
    cJSON *removed;

    (void)operation;
    return remove_value(patching, "remove", path, &removed);
}

static int apply_replace(const struct patching *patching, const cJSON *operation, const char *path)
{
    struct place place;

    if (!find_place(patching, path, &place))
        return unfit(patching, "replace", path, "path");
    if (!place.item)
        return unfit(patching, "replace", path, "key");
    cJSON *value = json_copy(json_get(operation, "value"));
    if (cJSON_IsObject(place.container))
        json_set(place.container, place.token, value);
    else
        cJSON_ReplaceItemViaPointer(place.container, place.item, value);
    return 0;
}

static int apply_move(const struct patching *patching, const cJSON *operation, const char *path)
{
    const char *from = json_string(json_get(operation, "from"), "");
    cJSON *moved;

    int r = remove_value(patching, "move", from, &moved);
    return r < 0 ? r : add_value(patching, "move", path, moved);
}

static int apply_copy(const struct patching *patching, const cJSON *operation, const char *path)
{
    const char *from = json_string(json_get(operation, "from"), "");
    struct place place;

    if (!find_place(patching, from, &place) || !place.item)
        return unfit(patching, "copy", from, "from path");
    return add_value(patching, "copy", path,
                     arena_own(patching->arena, json_copy(place.item), json_free));
}

static int apply_test(const struct patching *patching, const cJSON *operation, const char *path)
{
    const cJSON *value = json_get(operation, "value");
    struct place place = { .item = patching->document };

    if (*path && !find_place(patching, path, &place))
        return unfit(patching, "test", path, "path");
    if (place.item ? json_equal(place.item, value) : !value || cJSON_IsNull(value))
        return 0;
    return error_set(patching->err, ERROR_CONFLICT, "testing value %s failed: test failed", path);
}

/* --- the patch -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*apply)(const struct patching *patching, const cJSON *operation, const char *path);
    bool has_value;
    bool has_from;
} OPERATIONS[] = {
    { "add", apply_add, true, false },         { "remove", apply_remove, false, false },
    { "replace", apply_replace, true, false }, { "move", apply_move, false, true },
    { "copy", apply_copy, false, true },       { "test", apply_test, true, false },
};

static int apply(const struct patching *patching, const cJSON *operation)
{
    const char *name = json_string(json_get(operation, "op"), "");
    const char *path = json_string(json_get(operation, "path"), NULL);

    for (size_t i = 0; i < ARRAY_LEN(OPERATIONS); i++) {
        if (!str_equal(OPERATIONS[i].name, name))
            continue;
        if (!path)
            return error_set(patching->err, ERROR_CONFLICT, "%s operation has no path", name);
        if (OPERATIONS[i].has_value && !json_get(operation, "value"))
            return error_set(patching->err, ERROR_CONFLICT, "%s operation of '%s' has no value",
                             name, path);
        if (OPERATIONS[i].has_from && !json_string(json_get(operation, "from"), NULL))
            return error_set(patching->err, ERROR_CONFLICT, "%s operation of '%s' has no from",
                             name, path);
        return OPERATIONS[i].apply(patching, operation, path);
    }
    return error_set(patching->err, ERROR_CONFLICT, "Unexpected kind: %s", name);
}

static int check_operations(const cJSON *operations, struct error *err)
{
    if (!cJSON_IsArray(operations))
        return error_set(err, ERROR_INVALID,
                         "json: cannot unmarshal %s into Go value of type jsonpatch.Patch",
                         cJSON_IsObject(operations)   ? "object"
                         : cJSON_IsString(operations) ? "string"
                         : cJSON_IsBool(operations)   ? "bool"
                                                      : "number");
    if (json_len(operations) > JSON_PATCH_MAX_OPERATIONS)
        return error_set(err, ERROR_TOO_LARGE,
                         "The allowed maximum operations in a JSON patch is %d, got %zu",
                         JSON_PATCH_MAX_OPERATIONS, json_len(operations));
    json_for_each (operation, operations) {
        if (!cJSON_IsObject(operation))
            return error_set(err, ERROR_INVALID,
                             "json: cannot unmarshal a value into Go value of type "
                             "jsonpatch.Operation");
    }
    return 0;
}

int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err)
{
    int r = check_operations(operations, err);
    if (r < 0)
        return r;

    struct patching patching = { .arena = arena, .err = err };
    patching.document = arena_own(arena, json_copy(document), json_free);
    json_for_each (operation, operations) {
        r = apply(&patching, operation);
        if (r < 0)
            return r;
    }
    *ret = patching.document;
    return 0;
}
