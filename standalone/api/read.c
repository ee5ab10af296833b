/* get and list. */
#include "standalone/api/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "standalone/api/stored.h"

/* Limits of the part of a list that is in memory as the store has it: objects, or bytes. */
#define MAX_CHUNK 500
#define MAX_CHUNK_BYTES ((size_t)1 << 20)
/* Everything in the store, should it ever be that much. */
#define MAX_LIST ((size_t)1 << 30)
/* While a list grows room is found for so much at a time. */
#define ROOM_STEP ((size_t)64 << 10)

int call_get(struct api_call *call)
{
    struct kv_value value;
    struct error err;
    uint64_t version = 0;
    cJSON *tree = NULL;

    if (call_read_version(call, &version) < 0)
        return -1;
    if (version > kv_revision(call->api->kv))
        return call_fail_too_large_version(call, version);

    const char *key = stored_key(call->arena, call->resource, call->route.ns, call->route.name);
    int r = kv_get(call->api->kv, call->arena, key, 0, &value, &err);
    if (r == -ERROR_NOT_FOUND)
        return call_fail_not_found(call, call->route.name);
    if (r == 0)
        r = stored_tree(call->arena, call->resource, &value, 0, &tree, &err);
    return r < 0 ? call_fail_error(call, &err) : present_object(call, 200, tree);
}

/* --- which revision --------------------------------------------------------------------------- */

/* A continue token: base64 of the revision, a blank and the key behind the prefix. */
static int list_read_token(struct list *list, const char *token)
{
    struct api_call *call = list->call;
    size_t len;
    const char *text = base64_decode(call->arena, token, strlen(token), &len);
    const char *start = text ? strchr(text, ' ') : NULL;
    int64_t revision;

    if (!start || !start[1] ||
        !str_to_int64(arena_strndup(call->arena, text, (size_t)(start - text)), &revision) ||
        revision <= 0)
        return call_fail(call, 400, "BadRequest", "the continue token cannot be read");
    list->range.revision = (uint64_t)revision;
    list->range.after = arena_printf(call->arena, "%s%s", list->range.prefix, start + 1);
    return 0;
}

/* KEP-2523, "the meaning of resourceVersion". A client that takes any version gets all of the newest one. */
static int list_choose_revision(struct list *list)
{
    struct api_call *call = list->call;
    const struct query *query = &call->query;
    bool exact = str_equal(query->resource_version_match, "Exact") ||
                 (!*query->resource_version_match &&
                  (query->limit > 0 || str_equal(call->request->method, "DELETE")));
    uint64_t version = 0;

    if (call_read_version(call, &version) < 0)
        return -1;
    if (*query->resource_version_match && !str_equal(query->resource_version_match, "Exact") &&
        !str_equal(query->resource_version_match, "NotOlderThan"))
        return call_fail(call, 400, "BadRequest",
                         "resourceVersionMatch must be Exact or NotOlderThan");
    list->limit = query->limit > 0 ? (size_t)query->limit : 0;
    if (*query->continue_token)
        return version ? call_fail(call, 400, "BadRequest",
                                   "resourceVersion and continue exclude each other")
                       : list_read_token(list, query->continue_token);
    if (version > kv_revision(call->api->kv))
        return call_fail_too_large_version(call, version);
    list->range.revision = exact ? version : 0;
    if (str_equal(query->resource_version, "0"))
        list->limit = 0;
    return 0;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* tree: of the value; NULL: made in the arena if the form needs it. */
static int list_append(struct list *list, struct arena *arena, const struct kv_value *value,
                       cJSON *tree, struct error *err)
{
    const struct api_call *call = list->call;
    const cJSON *shown;
    size_t len;

    if ((list->len && !buf_append_string(&list->text, ",")) ||
        (list->keeps_keys && !buf_append(&list->keys, value->key, strlen(value->key) + 1)))
        return error_set(err, ERROR_TOO_LARGE, "the list is too large");
    if (!tree && call->format.type == FORMAT_OBJECT)
        return stored_append(arena, call->resource, value, 0, &list->text, err);
    if (!tree && stored_tree(arena, call->resource, value, 0, &tree, err) < 0)
        return -1;
    shown = call->format.type == FORMAT_TABLE
                ? arena_own(arena, table_row(arena, call->resource, &list->table, tree), json_free)
                : present_tree(arena, &call->format, call->resource, &list->table, tree);

    const char *text = json_text(arena, shown, &len);

    return buf_append(&list->text, text, len)
               ? 0
               : error_set(err, ERROR_TOO_LARGE, "the list is too large");
}

/* Nothing of the arena is needed afterwards. */
static int list_take(struct list *list, const struct kv_value *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct api_request *request = list->call->request;
    cJSON *tree = NULL;
    struct error err;
    int r = selection_takes(&list->selection, arena, value, 0, &tree, &err);

    if (r == 0)
        return 0;
    if (r < 0 || list_append(list, arena, value, tree, &err) < 0)
        return call_fail_error(list->call, &err);
    list->len++;
    if (!request->has_room || list->text.len <= list->room)
        return 0;
    list->room = list->text.len + ROOM_STEP;
    return request->has_room(request->ctx, list->room) ? 0 : call_fail_too_many(list->call);
}

static bool list_is_full(const struct list *list)
{
    return list->limit && list->len >= list->limit;
}

/* The next chunk is taken, and let go. How many objects come after it is counted once, where the limit of the client
 * is reached. 1: there may be one after it. */
static int list_read_chunk(struct list *list)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct api_call *call = list->call;
    struct kv_range *range = &list->range;
    size_t left = selection_is_empty(&list->selection) ? list->limit - list->len : 0;
    bool is_last = list->limit && left && left <= MAX_CHUNK;
    struct kv_page page;
    struct error err;
    size_t i;

    range->limit = is_last ? left : MAX_CHUNK;
    range->max_bytes = MAX_CHUNK_BYTES;
    range->uncounted = !is_last;

    int r = kv_list(call->api->kv, arena, range, &page, &err);
    if (r == -ERROR_GONE)
        return call_fail(call, 410, "Expired",
                         "the version of the list is older than the history: list again");
    if (r < 0)
        return call_fail_error(call, &err);
    range->revision = page.revision;
    for (i = 0; i < page.len && !list_is_full(list); i++) {
        if (list_take(list, &page.items[i]) < 0)
            return -1;
    }
    if (i)
        range->after = arena_strdup(call->arena, page.items[i - 1].key);
    list->remaining = page.len - i + page.remaining;
    return list->remaining && !list_is_full(list);
}

int list_open(struct list *list, struct api_call *call)
{
    list->call = call;
    list->text = list->keys = (struct buf)BUF_INIT(MAX_LIST);
    list->room = ROOM_STEP;
    list->range.prefix = stored_key(call->arena, call->resource, call->route.ns, NULL);
    list->table = present_options(call);
    return call_select(call, &list->selection) < 0 ? -1 : list_choose_revision(list);
}

int list_read(struct list *list)
{
    int r;

    do
        r = call_check_gone(list->call) < 0 ? -1 : list_read_chunk(list);
    while (r > 0);
    return r;
}

/* --- the answer ------------------------------------------------------------------------------- */

/* As a cluster has it. */
static bool list_is_null(const struct list *list)
{
    return !list->len && list->call->format.type == FORMAT_METADATA;
}

/* A list without items, as text; their array is its last member. */
static const char *list_frame(const struct list *list)
{
    struct api_call *call = list->call;
    const struct resource *resource = call->resource;
    bool partial = call->format.type == FORMAT_METADATA;
    cJSON *frame = json_object(call->arena), *meta = json_object(call->arena);
    const char *token = list->remaining
                            ? arena_printf(call->arena, "%" PRIu64 " %s", list->range.revision,
                                           list->range.after + strlen(list->range.prefix))
                            : "";

    json_set_string(meta, "resourceVersion",
                    arena_printf(call->arena, "%" PRIu64, list->range.revision));
    if (list->remaining || (resource->custom && call->format.type == FORMAT_OBJECT))
        json_set_string(meta, "continue", base64_encode(call->arena, token, strlen(token)));
    if (list->remaining && selection_is_empty(&list->selection))
        json_set_int(meta, "remainingItemCount", (int64_t)list->remaining);
    if (call->format.type == FORMAT_TABLE)
        return json_text(call->arena, table_create(call->arena, resource, meta, NULL), NULL);
    json_set_string(frame, "kind", partial ? "PartialObjectMetadataList" : resource->list_kind);
    json_set_string(frame, "apiVersion",
                    partial ? "meta.k8s.io/v1" : resource_api_version(call->arena, resource));
    json_set_copy(frame, "metadata", meta);
    if (list_is_null(list))
        json_set(frame, "items", cJSON_CreateNull());
    else
        (void)json_set_array(frame, "items");
    return json_text(call->arena, frame, NULL);
}

int list_reply(struct list *list)
{
    struct api_call *call = list->call;
    const char *frame = list_frame(list), *end = list_is_null(list) ? "}" : "]}";

    if (!buf_prepend(&list->text, frame, strlen(frame) - strlen(end)) ||
        !buf_append_string(&list->text, end) || !buf_append_string(&list->text, "\n"))
        return call_fail(call, 413, "RequestEntityTooLarge", "the list is too large");

    size_t len = list->text.len;

    return call_reply_text(call, 200, "application/json",
                           arena_own(call->arena, TAKE(list->text.data), free), len);
}

void list_release(struct list *list)
{
    buf_release(&list->text);
    buf_release(&list->keys);
}

int call_list(struct api_call *call)
{
    CLEANUP(list_releasep) struct list list = { 0 };

    return list_open(&list, call) < 0 || list_read(&list) < 0 ? -1 : list_reply(&list);
}
