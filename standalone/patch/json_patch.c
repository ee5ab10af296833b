#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/patch/patches.h"

enum json_operation { JSON_ADD, JSON_REMOVE, JSON_REPLACE, JSON_MOVE, JSON_COPY, JSON_TEST };

static const char *const JSON_OPERATIONS[] = {
    [JSON_ADD] = "add",   [JSON_REMOVE] = "remove", [JSON_REPLACE] = "replace",
    [JSON_MOVE] = "move", [JSON_COPY] = "copy",     [JSON_TEST] = "test",
};

struct json_patching {
    struct arena *arena;
    struct error *err;
    cJSON *document;
    size_t copied_values, copied_bytes; /* by all operations so far */
};

/* The place that a path points to. */
struct json_place {
    cJSON *container; /* NULL: the place is the whole document */
    cJSON *item;      /* NULL: nothing is there */
    const char *token;
    bool may_add; /* container has, or can get, an item there */
    size_t depth; /* of container; the document is at 1 */
};

static int json_patch_unfit(const struct json_patching *patching, const char *path)
{
    return error_set(patching->err, ERROR_CONFLICT,
                     "an operation does not fit the document at '%s'", path);
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

static void json_patch_find_item(struct json_place *place, bool insert)
{
    int64_t index, len = (int64_t)json_len(place->container);

    if (insert && str_equal(place->token, "-"))
        index = len;
    else if (!str_to_int64(place->token, &index) || index < 0 || index >= len + insert)
        return;
    place->may_add = true;
    for (place->item = place->container->child; place->item && index > 0; index--)
        place->item = place->item->next;
}

/* insert: the last token may name the place behind the last item of a list. */
static int json_patch_find(struct json_patching *patching, const char *path, bool insert,
                           struct json_place *ret)
{
    struct json_place place = { .item = patching->document };

    if (*path && *path != '/')
        return json_patch_unfit(patching, path);
    for (const char *at = path; *at; place.depth++) {
        size_t token_len = strcspn(at + 1, "/");

        if (!cJSON_IsArray(place.item) && !cJSON_IsObject(place.item))
            return json_patch_unfit(patching, path);
        place.container = place.item;
        place.token = json_patch_unescaped(patching->arena, at + 1, token_len);
        at += 1 + token_len;
        place.may_add = cJSON_IsObject(place.container);
        place.item =
            place.may_add ? (cJSON *)(uintptr_t)json_get(place.container, place.token) : NULL;
        if (!place.may_add)
            json_patch_find_item(&place, insert && !*at);
    }
    *ret = place;
    return 0;
}

/* --- operations ------------------------------------------------------------------------------- */

/* Limits a copy before it is made. */
static int json_patch_count_copy(struct json_patching *patching, const cJSON *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len = 0;

    patching->copied_values += json_count(value, JSON_PATCH_MAX_COPIED_VALUES);
    if (patching->copied_values < JSON_PATCH_MAX_COPIED_VALUES)
        (void)json_text(arena, value, &len);
    patching->copied_bytes += len;
    if (len && patching->copied_bytes <= JSON_PATCH_MAX_COPIED_BYTES)
        return 0;
    return error_set(patching->err, ERROR_TOO_LARGE,
                     "the operations of the patch copy more than %u values or %u bytes",
                     JSON_PATCH_MAX_COPIED_VALUES, JSON_PATCH_MAX_COPIED_BYTES);
}

/* The value of a move or a copy. *ret is the caller's, also when it fails. */
static int json_patch_fetch(struct json_patching *patching, bool move, const char *from,
                            cJSON **ret)
{
    struct json_place place = { 0 };
    int r = json_patch_find(patching, from, false, &place);

    if (r == 0 && (!place.container || !place.item))
        r = json_patch_unfit(patching, from);
    if (r < 0)
        return r;
    if (move) {
        *ret = cJSON_DetachItemViaPointer(place.container, place.item);
        return 0;
    }
    r = json_patch_count_copy(patching, place.item);
    if (r == 0)
        *ret = json_copy(place.item);
    return r;
}

/* Takes value. */
static void json_patch_put(struct json_patching *patching, const struct json_place *place,
                           bool replace, cJSON *value)
{
    cJSON *container = place->container, *item = place->item;

    if (!container) {
        patching->document = arena_own(patching->arena, value, json_free);
    } else if (!item && cJSON_IsObject(container)) {
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

static bool json_patch_fits(enum json_operation kind, const struct json_place *place,
                            const cJSON *value)
{
    switch (kind) {
    case JSON_TEST: /* a missing value equals null */
        return place->item ? json_equal(place->item, value) : !value || cJSON_IsNull(value);
    case JSON_REMOVE:
        return place->container && place->item;
    case JSON_REPLACE:
        if (!place->container && !cJSON_IsObject(value) && !cJSON_IsArray(value))
            return false;
        break;
    default:
        if (!place->container)
            return false;
    }
    /* A value that nests deeper could not be read again. */
    return (!place->container || place->may_add) && place->depth <= JSON_MAX_DEPTH &&
           place->depth + value_depth(value, JSON_MAX_DEPTH) <= JSON_MAX_DEPTH;
}

/* Takes value, also when it fails; for a test it is the expected value. */
static int json_patch_act(struct json_patching *patching, enum json_operation kind,
                          const char *path, cJSON *value)
{
    bool insert = kind == JSON_ADD || kind == JSON_MOVE || kind == JSON_COPY;
    struct json_place place = { 0 };
    int r = json_patch_find(patching, path, insert, &place);

    if (r == 0 && !json_patch_fits(kind, &place, value))
        r = json_patch_unfit(patching, path);
    if (r == 0 && (insert || kind == JSON_REPLACE)) {
        json_patch_put(patching, &place, kind == JSON_REPLACE, value);
        return 0;
    }
    if (r == 0 && kind == JSON_REMOVE)
        cJSON_Delete(cJSON_DetachItemViaPointer(place.container, place.item));
    json_free(value);
    return r;
}

static int json_patch_carry_out(struct json_patching *patching, const cJSON *operation)
{
    const char *name = json_get_string(operation, "op");
    const char *path = json_string(json_get(operation, "path"), NULL);
    const char *from = json_string(json_get(operation, "from"), NULL);
    const cJSON *given = json_get(operation, "value");
    enum json_operation kind = JSON_ADD;
    cJSON *value = NULL;
    int r = 0;

    while (kind < ARRAY_LEN(JSON_OPERATIONS) && !str_equal(JSON_OPERATIONS[kind], name))
        kind++;
    if (!path || kind == ARRAY_LEN(JSON_OPERATIONS) ||
        (!from && (kind == JSON_MOVE || kind == JSON_COPY)))
        return json_patch_unfit(patching, name);
    if (kind == JSON_MOVE || kind == JSON_COPY)
        r = json_patch_fetch(patching, kind == JSON_MOVE, from, &value);
    else if (given || kind == JSON_ADD || kind == JSON_REPLACE)
        value = given ? json_copy(given) : cJSON_CreateNull();
    if (r == 0)
        return json_patch_act(patching, kind, path, value);
    json_free(value);
    return r;
}

/* --- the patch -------------------------------------------------------------------------------- */

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

    if (r == 0)
        patching.document = arena_own(arena, json_copy(document), json_free);
    for (const cJSON *operation = json_first(operations); r == 0 && operation;
         operation = operation->next)
        r = json_patch_carry_out(&patching, operation);
    if (r == 0)
        *ret = patching.document;
    return r;
}
