#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/patch/patches.h"

struct json_patching {
    struct arena *arena;
    struct error *err;
    cJSON *document;
    size_t steps;  /* values looked at */
    size_t copied; /* bytes of JSON */
    size_t copied_values;
};

/* The place that a path points to. */
struct json_place {
    cJSON *container;
    cJSON *item; /* NULL: nothing is there */
    const char *token;
    bool is_end;  /* token is the place behind the last item of an array */
    size_t depth; /* of container; the document is at 1 */
};

static int json_patch_unfit(const struct json_patching *patching, const char *path, const char *why)
{
    return error_set(patching->err, ERROR_CONFLICT, "path '%s': %s", path, why);
}

static int json_patch_spend(struct json_patching *patching, size_t steps)
{
    patching->steps += steps;
    if (patching->steps < JSON_PATCH_MAX_STEPS)
        return 0;
    return error_set(patching->err, ERROR_TOO_LARGE,
                     "the operations of the patch look at more than %u values",
                     JSON_PATCH_MAX_STEPS);
}

static int json_patch_spend_on(struct json_patching *patching, const cJSON *value)
{
    return json_patch_spend(patching, json_count(value, JSON_PATCH_MAX_STEPS - patching->steps));
}

/* --- pointers --------------------------------------------------------------------------------- */

static const char *json_patch_unescaped(struct arena *arena, const char *token, size_t len)
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

/* For an insertion a negative index counts the place behind the last item too. */
static void json_patch_find_item(struct json_place *place, bool insert, size_t len)
{
    int64_t index, places = (int64_t)len + insert;

    if (insert && str_equal(place->token, "-"))
        index = (int64_t)len;
    else if (!str_to_int64(place->token, &index) || index < -places || index >= places)
        return;
    if (index < 0)
        index += places;
    place->is_end = index == (int64_t)len;
    for (place->item = place->container->child; place->item && index > 0; index--)
        place->item = place->item->next;
}

static int json_patch_find_child(struct json_patching *patching, struct json_place *place,
                                 bool insert)
{
    cJSON *container = place->container;
    size_t len = json_len(container);

    place->is_end = false;
    place->item = NULL;
    if (cJSON_IsObject(container))
        place->item = (cJSON *)(uintptr_t)json_get(container, place->token);
    else
        json_patch_find_item(place, insert, len);
    return json_patch_spend(patching, len);
}

static int json_patch_find(struct json_patching *patching, const char *path, bool insert,
                           struct json_place *ret)
{
    struct json_place place = { .item = patching->document, .token = "" };

    if (*path && *path != '/')
        return json_patch_unfit(patching, path, "does not begin with a slash");
    for (const char *at = path; *at; place.depth++) {
        size_t len = strcspn(at + 1, "/");

        if (!cJSON_IsArray(place.item) && !cJSON_IsObject(place.item))
            return json_patch_unfit(patching, path, "leads through what has no members");
        place.container = place.item;
        place.token = json_patch_unescaped(patching->arena, at + 1, len);
        at += 1 + len;
        int r = json_patch_find_child(patching, &place, insert && !*at);
        if (r < 0)
            return r;
    }
    *ret = place;
    return 0;
}

/* --- operations ------------------------------------------------------------------------------- */

/* A value that nests deeper could not be read again. */
static int json_patch_check_depth(struct json_patching *patching, const char *path, size_t depth,
                                  const cJSON *value)
{
    if (depth <= JSON_MAX_DEPTH && depth + value_depth(value, JSON_MAX_DEPTH) <= JSON_MAX_DEPTH)
        return 0;
    return json_patch_unfit(patching, path, "nests too deep");
}

static void json_patch_put(struct json_place *place, bool replace, cJSON *value)
{
    cJSON *container = place->container, *item = place->item;

    if (!item && cJSON_IsObject(container)) {
        members_append(container, place->token, value);
    } else if (!item) {
        json_add(container, value);
    } else if (replace || cJSON_IsObject(container)) {
        if (cJSON_IsObject(container))
            json_rename(value, item->string); /* a value that is moved had another name */
        cJSON_ReplaceItemViaPointer(container, item, value);
    } else { /* before item; prev of the first item is the last one */
        value->next = item;
        value->prev = item->prev;
        if (container->child == item)
            container->child = value;
        else
            item->prev->next = value;
        item->prev = value;
    }
}

/* Takes value, also when it fails. */
static int json_patch_add_value(struct json_patching *patching, const char *path, cJSON *value)
{
    struct json_place place = { 0 };
    int r = json_patch_find(patching, path, true, &place);

    if (r == 0 && !place.container)
        r = json_patch_unfit(patching, path, "is the whole document");
    else if (r == 0 && !cJSON_IsObject(place.container) && !place.item && !place.is_end)
        r = json_patch_unfit(patching, path, "is not an index of the list");
    if (r == 0)
        r = json_patch_check_depth(patching, path, place.depth, value);
    if (r == 0)
        json_patch_put(&place, false, value);
    else
        json_free(value);
    return r;
}

/* Without a value it is null. The caller's. */
static cJSON *json_patch_value(const cJSON *operation)
{
    const cJSON *value = json_get(operation, "value");

    return value ? json_copy(value) : cJSON_CreateNull();
}

static int json_patch_add(struct json_patching *patching, const cJSON *operation, const char *path)
{
    return json_patch_add_value(patching, path, json_patch_value(operation));
}

/* *ret is the caller's. */
static int json_patch_take(struct json_patching *patching, const char *path, cJSON **ret)
{
    struct json_place place = { 0 };

    int r = json_patch_find(patching, path, false, &place);
    if (r < 0)
        return r;
    if (!place.container || !place.item)
        return json_patch_unfit(patching, path, "there is nothing to remove");
    *ret = cJSON_DetachItemViaPointer(place.container, place.item);
    return 0;
}

static int json_patch_remove(struct json_patching *patching, const cJSON *operation,
                             const char *path)
{
    cJSON *removed = NULL;

    (void)operation;
    int r = json_patch_take(patching, path, &removed);
    json_free(removed);
    return r;
}

static int json_patch_replace(struct json_patching *patching, const cJSON *operation,
                              const char *path)
{
    const cJSON *value = json_get(operation, "value");
    struct json_place place = { 0 };

    int r = json_patch_find(patching, path, false, &place);
    if (r == 0 && !place.item && !cJSON_IsObject(place.container))
        r = json_patch_unfit(patching, path, "there is nothing to replace");
    else if (r == 0 && !place.container && !cJSON_IsObject(value) && !cJSON_IsArray(value))
        r = json_patch_unfit(patching, path, "is replaced by what has no members");
    if (r == 0)
        r = json_patch_check_depth(patching, path, place.depth, value);
    if (r < 0)
        return r;
    if (place.container)
        json_patch_put(&place, true, json_patch_value(operation));
    else
        patching->document = arena_own(patching->arena, json_copy(value), json_free);
    return 0;
}

static int json_patch_move(struct json_patching *patching, const cJSON *operation, const char *path)
{
    cJSON *moved = NULL;

    int r = json_patch_take(patching, json_string(json_get(operation, "from"), ""), &moved);
    if (r == 0)
        r = json_patch_spend_on(patching, moved);
    if (r == 0)
        return json_patch_add_value(patching, path, moved);
    json_free(moved);
    return r;
}

/* Limits a copy before it is made. */
static int json_patch_count_copy(struct json_patching *patching, const char *from,
                                 const cJSON *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len;

    patching->copied_values += json_count(value, JSON_PATCH_MAX_COPIED_VALUES);
    if (patching->copied_values >= JSON_PATCH_MAX_COPIED_VALUES)
        return json_patch_unfit(patching, from, "the patch copies too many values");
    (void)json_text(arena, value, &len);
    patching->copied += len;
    if (patching->copied > JSON_PATCH_MAX_COPIED)
        return json_patch_unfit(patching, from, "the patch copies too much");
    return 0;
}

static int json_patch_copy(struct json_patching *patching, const cJSON *operation, const char *path)
{
    const char *from = json_string(json_get(operation, "from"), "");
    struct json_place place = { 0 };

    int r = json_patch_find(patching, from, false, &place);
    if (r == 0 && (!place.container || !place.item))
        r = json_patch_unfit(patching, from, "there is nothing to copy");
    if (r == 0)
        r = json_patch_count_copy(patching, from, place.item);
    return r < 0 ? r : json_patch_add_value(patching, path, json_copy(place.item));
}

/* A missing value equals null. */
static int json_patch_test(struct json_patching *patching, const cJSON *operation, const char *path)
{
    const cJSON *value = json_get(operation, "value");
    struct json_place place = { 0 };

    int r = json_patch_find(patching, path, false, &place);
    if (r < 0)
        return r;
    if (place.item ? json_equal(place.item, value) : !value || cJSON_IsNull(value))
        return 0;
    return json_patch_unfit(patching, path, "has another value");
}

/* --- the patch -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*apply)(struct json_patching *patching, const cJSON *operation, const char *path);
    bool has_from;
} JSON_PATCH_OPERATIONS[] = {
    { "add", json_patch_add, false },         { "remove", json_patch_remove, false },
    { "replace", json_patch_replace, false }, { "move", json_patch_move, true },
    { "copy", json_patch_copy, true },        { "test", json_patch_test, false },
};

static int json_patch_carry_out(struct json_patching *patching, const cJSON *operation)
{
    const char *name = json_string(json_get(operation, "op"), "");
    const char *path = json_string(json_get(operation, "path"), NULL);
    const char *from = json_string(json_get(operation, "from"), NULL);

    for (size_t i = 0; path && i < ARRAY_LEN(JSON_PATCH_OPERATIONS); i++) {
        if (str_equal(JSON_PATCH_OPERATIONS[i].name, name) &&
            (from || !JSON_PATCH_OPERATIONS[i].has_from))
            return JSON_PATCH_OPERATIONS[i].apply(patching, operation, path);
    }
    return error_set(patching->err, ERROR_CONFLICT,
                     "an operation has no path or no from, or is none: '%s'", name);
}

static int json_patch_check(const cJSON *operations, struct error *err)
{
    if (!cJSON_IsArray(operations))
        return error_set(err, ERROR_INVALID, "a JSON patch is a list of operations");
    if (json_len(operations) > JSON_PATCH_MAX_OPERATIONS)
        return error_set(err, ERROR_TOO_LARGE, "a JSON patch has at most %d operations, not %zu",
                         JSON_PATCH_MAX_OPERATIONS, json_len(operations));
    json_for_each (operation, operations) {
        if (!cJSON_IsObject(operation))
            return error_set(err, cJSON_IsNull(operation) ? ERROR_CONFLICT : ERROR_INVALID,
                             "an operation of a JSON patch is an object");
    }
    return 0;
}

int json_patch_apply(struct arena *arena, const cJSON *document, const cJSON *operations,
                     cJSON **ret, struct error *err)
{
    struct json_patching patching = { .arena = arena, .err = err };

    int r = json_patch_check(operations, err);
    if (r < 0)
        return r;
    patching.document = arena_own(arena, json_copy(document), json_free);
    json_for_each (operation, operations) {
        r = json_patch_carry_out(&patching, operation);
        if (r < 0)
            return r;
    }
    *ret = patching.document;
    return 0;
}
