/* get and list. */
#include <assert.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "standalone/api/read.h"
#include "standalone/api/selection.h"
#include "standalone/api/stored.h"

/* What of a list is in memory as the store has it: so many objects, or those that reach so many bytes. */
#define MAX_CHUNK 500
#define MAX_CHUNK_BYTES ((size_t)1 << 20)

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
    return r < 0 ? call_fail_read(call, &err) : present_object(call, 200, tree);
}

/* --- lists ------------------------------------------------------------------------------------ */

struct listing {
    struct api_call *call;
    struct selection selection;
    struct kv_range range;
    size_t limit; /* 0: all */
    const struct list_taker *taker;
    bool named;   /* the client says which revision: there is no other for it */
    bool at_once; /* it has begun again */
    size_t len;   /* so many were taken */
    size_t remaining;
    bool more;
};

/* A continue token: base64 of {"v":"meta.k8s.io/v1","rv":7,"start":"<key behind the prefix>"}. */
static const char *listing_make_token(struct listing *listing, const char *last_key)
{
    struct arena *arena = listing->call->arena;
    cJSON *token = json_object(arena);
    size_t len;

    json_set_string(token, "v", "meta.k8s.io/v1");
    json_set_int(token, "rv", (int64_t)listing->range.revision);
    json_set_string(token, "start", last_key + strlen(listing->range.prefix));

    const char *text = json_text(arena, token, &len);

    return base64_encode(arena, text, len);
}

static int listing_read_token(struct listing *listing, const char *text)
{
    struct api_call *call = listing->call;
    const cJSON *token = NULL;
    struct error err;
    size_t len;
    const char *json = base64_decode(call->arena, text, strlen(text), &len);

    if (!json || json_parse(call->arena, json, len, &token, &err) < 0 ||
        json_int(json_get(token, "rv"), 0) <= 0 ||
        str_is_empty(json_string(json_get(token, "start"), "")))
        return call_fail(call, 400, "BadRequest", "the continue token cannot be read");
    listing->range.revision = (uint64_t)json_int(json_get(token, "rv"), 0);
    listing->range.after = arena_printf(call->arena, "%s%s", listing->range.prefix,
                                        json_string(json_get(token, "start"), ""));
    return 0;
}

/* Which revision is read: KEP-2523, "the meaning of resourceVersion". */
static int listing_choose_revision(struct listing *listing)
{
    struct api_call *call = listing->call;
    const struct query *query = &call->query;
    bool exact = str_equal(query->resource_version_match, "Exact") ||
                 (!*query->resource_version_match &&
                  (query->limit > 0 || str_equal(call->request->method, "DELETE")));
    uint64_t version = 0;

    if (call_read_version(call, &version) < 0)
        return -1;
    listing->named = *query->continue_token || (exact && version);
    if (*query->continue_token)
        return version ? call_fail(call, 400, "BadRequest",
                                   "resourceVersion and continue exclude each other")
                       : listing_read_token(listing, query->continue_token);
    if (version > kv_revision(call->api->kv))
        return call_fail_too_large_version(call, version);
    listing->range.revision = exact ? version : 0;
    return 0;
}

/* 1: it was taken; 0: it is not selected. */
static int listing_take_item(struct listing *listing, const struct kv_value *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *tree = NULL;
    struct error err;
    int r = selection_takes(&listing->selection, arena, value, 0, &tree, &err);

    if (r < 0)
        return call_fail_error(listing->call, &err);
    return r && listing->taker->take(listing->taker->ctx, arena, value, tree) < 0 ? -1 : r;
}

/* Takes what is selected of a page, up to the limit. */
static int listing_take_page(struct listing *listing, const struct kv_page *page)
{
    size_t i;

    for (i = 0; i < page->len && (!listing->limit || listing->len < listing->limit); i++) {
        int r = listing_take_item(listing, &page->items[i]);

        if (r < 0)
            return r;
        listing->len += (size_t)r;
    }
    if (i)
        listing->range.after = arena_strdup(listing->call->arena, page->items[i - 1].key);
    listing->remaining = page->len - i + page->remaining;
    listing->more = listing->remaining > 0;
    return 0;
}

/* How many come after it is counted once, where the limit of the client is reached. */
static void listing_choose_chunk(struct listing *listing)
{
    struct kv_range *range = &listing->range;
    bool selects = !selection_is_empty(&listing->selection);
    size_t left = listing->limit && !selects ? listing->limit - listing->len : 0; /* 0: unknown */
    bool is_last = listing->at_once || (left && left <= MAX_CHUNK);

    range->limit = is_last ? left : MAX_CHUNK;
    range->max_bytes = listing->at_once ? 0 : MAX_CHUNK_BYTES;
    range->uncounted = !is_last;
}

/* Nothing of the answer was sent. */
static void listing_begin_again(struct listing *listing)
{
    assert(!listing->at_once); /* the newest revision is never compacted */
    listing->at_once = true;
    listing->range.revision = 0;
    listing->range.after = NULL;
    listing->len = 0;
    listing->taker->forget(listing->taker->ctx);
}

/* The next chunk is taken, and let go. 1: there may be one after it. */
static int listing_read_chunk(struct listing *listing)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct api_call *call = listing->call;
    struct kv_page page;
    struct error err;

    listing_choose_chunk(listing);

    int r = kv_list(call->api->kv, arena, &listing->range, &page, &err);
    if (r == -ERROR_GONE && listing->named)
        return call_fail(call, 410, "Expired",
                         "the version of the list is older than the history: list again");
    if (r == -ERROR_GONE) {
        listing_begin_again(listing);
        return 1;
    }
    if (r < 0)
        return call_fail_read(call, &err);
    listing->range.revision = page.revision;
    if (listing_take_page(listing, &page) < 0)
        return -1;
    return listing->more && (!listing->limit || listing->len < listing->limit);
}

static int listing_read(struct listing *listing)
{
    const struct api_request *request = listing->call->request;
    int r;

    do
        r = request->is_gone && request->is_gone(request->ctx)
                ? call_fail(listing->call, 504, "Timeout", "the client has gone")
                : listing_read_chunk(listing);
    while (r > 0);
    return r;
}

/* A client that takes any version gets all of it: as from the cache of a cluster's API server. */
static size_t listing_limit(const struct query *query)
{
    if (str_equal(query->resource_version, "0") && !*query->continue_token)
        return 0;
    return query->limit > 0 ? (size_t)query->limit : 0;
}

int list_read(struct api_call *call, const struct selection *selection,
              const struct list_taker *taker, struct list_end *ret)
{
    struct listing listing = { .call = call,
                               .selection = *selection,
                               .range = { .prefix = stored_key(call->arena, call->resource,
                                                               call->route.ns, NULL) },
                               .limit = listing_limit(&call->query),
                               .taker = taker };

    if (listing_choose_revision(&listing) < 0 || listing_read(&listing) < 0)
        return -1;

    bool is_counted = listing.more && selection_is_empty(&listing.selection);

    *ret = (struct list_end){
        .revision = listing.range.revision,
        .continue_token = listing.more ? listing_make_token(&listing, listing.range.after) : "",
        .remaining = is_counted ? (int64_t)listing.remaining : -1,
    };
    return 0;
}

static int listing_write_item(void *ctx, struct arena *arena, const struct kv_value *value,
                              cJSON *tree)
{
    return list_writer_add(ctx, arena, value, tree);
}

static void listing_forget_items(void *ctx)
{
    list_writer_forget(ctx);
}

int call_list(struct api_call *call)
{
    CLEANUP(list_writer_releasep) struct list_writer writer;
    const struct list_taker taker = { listing_write_item, listing_forget_items, &writer };
    struct selection selection;
    struct list_end end;

    if (list_writer_begin(&writer, call) < 0 || call_select(call, &selection) < 0 ||
        list_read(call, &selection, &taker, &end) < 0)
        return -1;
    return list_writer_end(&writer, &end);
}
