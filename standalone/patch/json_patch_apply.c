#include "standalone/patch/json_patch_apply.h"

#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/patch/child_index.h"

/* The rules and words of github.com/evanphx/json-patch v4, as the API server is built with it. */

struct patching {
    struct arena *arena;
    struct error *err;
    cJSON *document;
    struct child_index *index;
    size_t copied; /* bytes of JSON */
    size_t copied_values;
    size_t visited; /* values below what was moved */
};

/* container[token], and what stands there now; item NULL: nothing. */
struct place {
    cJSON *container;
    cJSON *item;
    const char *token;
    size_t depth; /* of the container; the document is at 1 */
};

#define MISSING_PATH "Unable to access nonexistent path"

/* Of all values that one patch moves, to find how deep they are. */
#define MAX_VISITED 10000000u

static int unfit(const struct patching *patching, const char *operation, const char *path,
                 const char *why)
{
    return error_set(patching->err, ERROR_CONFLICT,
                     "%s operation does not apply: doc is missing %s: %s: missing value", operation,
                     why, path);
}

static int missing(const struct patching *patching, const char *operation, const char *path)
{
    return error_set(patching->err, ERROR_CONFLICT,
                     "%s operation does not apply: " MISSING_PATH ": %s", operation, path);
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

/* An index among so many places, as that library reads it: a negative one counts from the last. false: none. */
static bool read_index(const char *token, int64_t places, int64_t *ret)
{
    int64_t index;

    if (*token == '+' && token[1] != '-')
        token++;
    if (!str_to_int64(token, &index) || index < -places)
        return false;
    *ret = index < 0 ? index + places : index;
    return true;
}

/* Of an item that is there. */
static bool index_of(const struct patching *patching, cJSON *array, const char *token, int64_t *ret)
{
    return read_index(token, (int64_t)child_index_len(patching->index, array), ret);
}

static cJSON *child_of(const struct patching *patching, cJSON *container, const char *token)
{
    int64_t index;

    if (cJSON_IsObject(container))
        return child_index_member(patching->index, container, token);
    if (!cJSON_IsArray(container) || !index_of(patching, container, token, &index))
        return NULL;
    return child_index_item(patching->index, container, (size_t)index);
}

/* false: something on the way is not there, or has no members. What is before the first "/" is passed over, as there. */
static bool find_place(const struct patching *patching, const char *path, struct place *ret)
{
    cJSON *container = NULL, *item = patching->document;
    const char *token = "";
    size_t depth = 0;

    for (const char *at = path + strcspn(path, "/"); *at == '/'; depth++) {
        size_t len = strcspn(at + 1, "/");

        container = item;
        if (!cJSON_IsArray(container) && !cJSON_IsObject(container))
            return false;
        token = unescaped(patching->arena, at + 1, len);
        item = child_of(patching, container, token);
        at += 1 + len;
    }
    *ret = (struct place){ .container = container, .item = item, .token = token, .depth = depth };
    return container != NULL;
}

/* --- operations ------------------------------------------------------------------------------- */

/* Nothing that is deeper could be read again. */
static int check_depth(const struct patching *patching, const struct place *place,
                       const cJSON *value)
{
    if (place->depth <= JSON_MAX_DEPTH &&
        place->depth + value_depth(value, JSON_MAX_DEPTH) <= JSON_MAX_DEPTH)
        return 0;
    return error_set(patching->err, ERROR_CONFLICT, "exceeded max depth");
}

/* Takes value, which nothing owns, also when it fails. */
static int add_value(const struct patching *patching, const char *operation, const char *path,
                     cJSON *value)
{
    int64_t len, index;
    struct place place;
    int r = 0;

    if (!find_place(patching, path, &place))
        r = unfit(patching, operation, path, "path");
    else
        r = check_depth(patching, &place, value);
    if (r == 0 && cJSON_IsObject(place.container)) {
        child_index_set(patching->index, place.container, place.token, value);
        return 0;
    }
    if (r == 0) {
        len = index = (int64_t)child_index_len(patching->index, place.container);
        /* It counts among the places after it: -1 is behind the last. */
        if (!str_equal(place.token, "-") && !read_index(place.token, len + 1, &index))
            r = error_set(patching->err, ERROR_CONFLICT, "invalid array index '%s'", place.token);
        else if (index > len)
            r = error_set(patching->err, ERROR_CONFLICT, "invalid index referenced: '%s'",
                          place.token);
    }
    if (r < 0) {
        arena_own(patching->arena, value, json_free); /* the index may know it */
        return r;
    }
    child_index_insert(patching->index, place.container, (size_t)index, value);
    return 0;
}

/* *ret is nobody's. */
static int remove_value(const struct patching *patching, const char *operation, const char *path,
                        cJSON **ret)
{
    struct place place;
    int64_t index = 0;

    if (!find_place(patching, path, &place))
        return unfit(patching, operation, path, "path");
    if (!place.item)
        return missing(patching, operation, path);
    if (cJSON_IsObject(place.container))
        *ret = child_index_take(patching->index, place.container, place.token);
    else if (index_of(patching, place.container, place.token, &index))
        *ret = child_index_take_item(patching->index, place.container, (size_t)index);
    return 0;
}

/* Without a value it is null. */
static const cJSON *value_of(struct patching *patching, const cJSON *operation)
{
    const cJSON *value = json_get(operation, "value");

    return value ? value : arena_own(patching->arena, cJSON_CreateNull(), json_free);
}

static int apply_add(struct patching *patching, const cJSON *operation, const char *path)
{
    return add_value(patching, "add", path, json_copy(value_of(patching, operation)));
}

static int apply_remove(struct patching *patching, const cJSON *operation, const char *path)
{
    cJSON *removed = NULL;

    (void)operation;
    int r = remove_value(patching, "remove", path, &removed);
    if (r == 0)
        arena_own(patching->arena, removed, json_free);
    return r;
}

/* By what has no members it is not replaced, and nothing is said. */
static int replace_document(struct patching *patching, const cJSON *value)
{
    const struct place place = { .depth = 0 };

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return 0;

    int r = check_depth(patching, &place, value);
    if (r == 0)
        patching->document = arena_own(patching->arena, json_copy(value), json_free);
    return r;
}

static int apply_replace(struct patching *patching, const cJSON *operation, const char *path)
{
    const cJSON *value = value_of(patching, operation);
    struct place place;
    int64_t index = 0;

    if (!*path && json_get(operation, "value"))
        return replace_document(patching, value);
    if (!find_place(patching, path, &place))
        return unfit(patching, "replace", path, "path");
    if (!place.item && !cJSON_IsObject(place.container)) /* a member that is not there is added */
        return unfit(patching, "replace", path, "key");
    int r = check_depth(patching, &place, value);
    if (r < 0)
        return r;
    if (cJSON_IsObject(place.container))
        child_index_set(patching->index, place.container, place.token, json_copy(value));
    else if (index_of(patching, place.container, place.token, &index))
        child_index_set_item(patching->index, place.container, (size_t)index, json_copy(value));
    return 0;
}

static int apply_move(struct patching *patching, const cJSON *operation, const char *path)
{
    const char *from = json_string(json_get(operation, "from"), "");
    cJSON *moved = NULL;

    int r = remove_value(patching, "move", from, &moved);
    if (r < 0)
        return r;
    patching->visited += json_count(moved, MAX_VISITED);
    if (patching->visited < MAX_VISITED)
        return add_value(patching, "move", path, moved);
    arena_own(patching->arena, moved, json_free);
    return error_set(patching->err, ERROR_CONFLICT, "more is moved than one patch may");
}

static int count_copy(struct patching *patching, const cJSON *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len;

    patching->copied_values += json_count(value, JSON_PATCH_MAX_COPIED_VALUES);
    if (patching->copied_values >= JSON_PATCH_MAX_COPIED_VALUES)
        return error_set(patching->err, ERROR_CONFLICT,
                         "Unable to complete the copy, more than %u values are copied",
                         JSON_PATCH_MAX_COPIED_VALUES);
    (void)json_text(arena, value, &len);
    patching->copied += len;
    if (patching->copied <= JSON_PATCH_MAX_COPIED)
        return 0;
    return error_set(patching->err, ERROR_CONFLICT,
                     "Unable to complete the copy, the accumulated size increase of copy is %zu, "
                     "exceeding the limit %u",
                     patching->copied, JSON_PATCH_MAX_COPIED);
}

static int apply_copy(struct patching *patching, const cJSON *operation, const char *path)
{
    const char *from = json_string(json_get(operation, "from"), "");
    struct place place;

    if (!find_place(patching, from, &place) || (!place.item && !cJSON_IsObject(place.container)))
        return unfit(patching, "copy", from, "from path");
    if (!place.item) /* a member that is not there is null */
        return add_value(patching, "copy", path, cJSON_CreateNull());

    int r = count_copy(patching, place.item);
    return r < 0 ? r : add_value(patching, "copy", path, json_copy(place.item));
}

static int apply_test(struct patching *patching, const cJSON *operation, const char *path)
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
    int (*apply)(struct patching *patching, const cJSON *operation, const char *path);
    bool has_from;
} OPERATIONS[] = {
    { "add", apply_add, false },         { "remove", apply_remove, false },
    { "replace", apply_replace, false }, { "move", apply_move, true },
    { "copy", apply_copy, true },        { "test", apply_test, false },
};

static int apply(struct patching *patching, const cJSON *operation)
{
    const char *name = json_string(json_get(operation, "op"), "");
    const char *path = json_string(json_get(operation, "path"), NULL);

    for (size_t i = 0; i < ARRAY_LEN(OPERATIONS); i++) {
        if (!str_equal(OPERATIONS[i].name, name))
            continue;
        if (!path)
            return error_set(patching->err, ERROR_CONFLICT, "%s operation has no path", name);
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
                         "error decoding patch: json: cannot unmarshal %s into Go value of type "
                         "[]handlers.jsonPatchOp",
                         cJSON_IsObject(operations)   ? "object"
                         : cJSON_IsString(operations) ? "string"
                         : cJSON_IsBool(operations)   ? "bool"
                                                      : "number");
    if (json_len(operations) > JSON_PATCH_MAX_OPERATIONS)
        return error_set(err, ERROR_TOO_LARGE,
                         "The allowed maximum operations in a JSON patch is %d, got %zu",
                         JSON_PATCH_MAX_OPERATIONS, json_len(operations));
    json_for_each (operation, operations) {
        if (cJSON_IsNull(operation))
            return error_set(err, ERROR_CONFLICT, "Unexpected kind: unknown");
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

    struct patching patching = { .arena = arena, .err = err, .index = child_index_create(arena) };
    patching.document = arena_own(arena, json_copy(document), json_free);
    json_for_each (operation, operations) {
        r = apply(&patching, operation);
        if (r < 0)
            return r;
    }
    *ret = patching.document;
    return 0;
}
