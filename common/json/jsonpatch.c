#include "common/json/jsonpatch.h"

#include <assert.h>

#include "common/base/str.h"

struct json_patch {
    struct arena *arena;
    cJSON *root;       /* array of one: the document as it is after the operations so far */
    cJSON *operations; /* array */
    bool changes;      /* there is an operation other than a test */
};

/* The place that a pointer names. An absent target has a parent, and no item. */
struct target {
    cJSON *parent;   /* of the whole document: the root */
    const char *key; /* of an object's member; NULL: an array's element */
    cJSON *item;
    bool may_add; /* parent has, or can get, an item there */
    size_t depth; /* of parent; the document is at 1 */
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

/* Goes one token down. A list can get an item behind its last one, by its index or as "-". false: what is there has no
 * members. */
static bool step_down(struct target *target, const char *token)
{
    cJSON *parent = target->item;
    struct target below = { .parent = parent, .depth = target->depth + 1 };
    bool behind_last = str_equal(token, "-");
    int64_t index = 0;

    if (cJSON_IsObject(parent)) {
        below.key = token;
        below.item = (cJSON *)(uintptr_t)json_get(parent, token);
        below.may_add = true;
    } else if (!parent || !cJSON_IsArray(parent)) {
        return false;
    } else if (behind_last || (str_to_int64(token, &index) && index >= 0)) {
        for (below.item = parent->child; below.item && (behind_last || index > 0); index--)
            below.item = below.item->next;
        below.may_add = behind_last || index == 0;
    }
    *target = below;
    return true;
}

/* Puts value, which it takes, into the document. insert: before the element of a list that is there. */
static void put(const struct target *target, bool insert, cJSON *value)
{
    cJSON *parent = target->parent, *item = target->item;

    if (target->key) {
        json_set(parent, target->key, value);
    } else if (!item) {
        json_add(parent, value);
    } else if (!insert) {
        cJSON_ReplaceItemViaPointer(parent, item, value);
    } else { /* prev of the first element is the last one */
        value->next = item;
        value->prev = item->prev;
        if (parent->child == item)
            parent->child = value;
        else
            item->prev->next = value;
        item->prev = value;
    }
}

/* The operation that puts value, which it takes, at target; value becomes the item there. */
static void emit(struct json_patch *patch, const struct target *target, const char *pointer,
                 cJSON *value)
{
    cJSON *operation = add_operation(patch, target->item ? "replace" : "add", pointer);

    json_set_copy(operation, "value", value);
    put(target, false, value);
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
    struct target target = { .parent = patch->root, .item = patch->root->child, .may_add = true };
    const char *at = pointer;

    if (*pointer && *pointer != '/')
        return false;
    while (*at) {
        if (make && is_absent(target.item) && target.may_add) {
            cJSON *made = cJSON_CreateObject();

            emit(patch, &target, arena_strndup(patch->arena, pointer, (size_t)(at - pointer)),
                 made);
            target.item = made;
        }

        size_t len = strcspn(++at, "/");

        if (!step_down(&target, unescape(patch->arena, at, len)))
            return false;
        at += len;
    }
    *ret = target;
    return true;
}

void json_patch_set(struct json_patch *patch, const char *pointer, cJSON *value)
{
    struct target target;

    if (resolve(patch, pointer, true, &target) && target.may_add && !json_equal(target.item, value))
        emit(patch, &target, pointer, value);
    else
        json_free(value);
}

void json_patch_default(struct json_patch *patch, const char *pointer, cJSON *value)
{
    struct target target;

    if (resolve(patch, pointer, true, &target) && target.may_add && is_absent(target.item))
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

cJSON *json_patch_document(const struct json_patch *patch)
{
    return patch->root->child;
}

/* --- carrying out operations -------------------------------------------------------------------- */

enum operation { ADD, REMOVE, REPLACE, MOVE, COPY, TEST };

static const char *const OPERATIONS[] = {
    [ADD] = "add",   [REMOVE] = "remove", [REPLACE] = "replace",
    [MOVE] = "move", [COPY] = "copy",     [TEST] = "test",
};

/* The document of a patch while operations of a client change it. */
struct applying {
    struct json_patch *patch;
    struct error *err;
    size_t copied_values, copied_bytes; /* by all operations so far */
};

static int unfit(const struct applying *applying, const char *path)
{
    return error_set(applying->err, ERROR_CONFLICT,
                     "an operation does not fit the document at '%s'", path);
}

/* Limits a copy before it is made. */
static int count_copy(struct applying *applying, const cJSON *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len = 0;

    applying->copied_values += json_count(value, JSON_PATCH_MAX_COPIED_VALUES);
    if (applying->copied_values < JSON_PATCH_MAX_COPIED_VALUES)
        (void)json_text(arena, value, &len);
    applying->copied_bytes += len;
    if (len && applying->copied_bytes <= JSON_PATCH_MAX_COPIED_BYTES)
        return 0;
    return error_set(applying->err, ERROR_TOO_LARGE,
                     "the operations of the patch copy more than %u values or %u bytes",
                     JSON_PATCH_MAX_COPIED_VALUES, JSON_PATCH_MAX_COPIED_BYTES);
}

/* The value of a move or a copy, which the caller owns. */
static int fetch(struct applying *applying, bool move, const char *from, cJSON **ret)
{
    struct target target;

    if (!resolve(applying->patch, from, false, &target) || !*from || !target.item)
        return unfit(applying, from);
    if (move) {
        *ret = cJSON_DetachItemViaPointer(target.parent, target.item);
        return 0;
    }
    int r = count_copy(applying, target.item);
    if (r == 0)
        *ret = json_copy(target.item);
    return r;
}

static bool is_container(const cJSON *value)
{
    return cJSON_IsObject(value) || cJSON_IsArray(value);
}

static bool fits(enum operation kind, const char *path, const struct target *target,
                 const cJSON *value)
{
    if (kind == TEST) /* a missing value equals null */
        return target->item ? json_equal(target->item, value) : is_absent(value);
    if (kind == REMOVE)
        return *path && target->item;
    if (!*path) /* the whole document */
        return kind == REPLACE && is_container(value);
    if (kind == REPLACE && !target->key && !target->item)
        return false;
    /* A value that nests deeper could not be read again. */
    return target->may_add && target->depth <= JSON_MAX_DEPTH &&
           target->depth + json_depth(value, JSON_MAX_DEPTH) <= JSON_MAX_DEPTH;
}

/* Takes value, also when it fails; for a test it is the expected value. */
static int act(struct applying *applying, enum operation kind, const char *path, cJSON *value)
{
    struct target target;
    bool is_fit =
        resolve(applying->patch, path, false, &target) && fits(kind, path, &target, value);

    if (is_fit && kind != REMOVE && kind != TEST) {
        put(&target, kind != REPLACE, value);
        return 0;
    }
    if (is_fit && kind == REMOVE)
        json_free(cJSON_DetachItemViaPointer(target.parent, target.item));
    json_free(value);
    return is_fit ? 0 : unfit(applying, path);
}

static int carry_out(struct applying *applying, const cJSON *operation)
{
    const char *name = json_get_string(operation, "op");
    const char *path = json_string(json_get(operation, "path"), NULL);
    const char *from = json_string(json_get(operation, "from"), NULL);
    const cJSON *given = json_get(operation, "value");
    enum operation kind = ADD;
    cJSON *value = NULL;

    while (kind < ARRAY_LEN(OPERATIONS) && !str_equal(OPERATIONS[kind], name))
        kind++;

    bool is_transfer = kind == MOVE || kind == COPY;

    if (!path || kind == ARRAY_LEN(OPERATIONS) || (!from && is_transfer))
        return unfit(applying, name);
    if (is_transfer) {
        int r = fetch(applying, kind == MOVE, from, &value);
        if (r < 0)
            return r;
    } else if (given || kind == ADD || kind == REPLACE) {
        value = given ? json_copy(given) : cJSON_CreateNull();
    }
    return act(applying, kind, path, value);
}

static int check_operations(const cJSON *operations, struct error *err)
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
    struct applying applying = { .err = err };
    int r = check_operations(operations, err);

    if (r < 0)
        return r;
    applying.patch = json_patch_create(arena, document);
    json_for_each (operation, operations) {
        r = carry_out(&applying, operation);
        if (r < 0)
            return r;
    }
    *ret = json_patch_document(applying.patch);
    return 0;
}
