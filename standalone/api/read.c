/* get and list. */
#include <inttypes.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "standalone/api/options.h"
#include "standalone/api/present.h"
#include "standalone/api/selection.h"
#include "standalone/api/stored.h"

/* A page that is read from the store at once, when few of many are selected. */
#define MAX_CHUNK 500

/* ?resourceVersion= of a read that wants nothing older: false after a refusal. */
static bool is_not_of_the_future(struct api_call *call, uint64_t wanted)
{
    uint64_t current = kv_revision(call->api->kv);

    if (wanted <= current)
        return true;
    (void)call_fail_too_large_version(call, wanted, current);
    return false;
}

/* Of one object it is the storage that cannot read it, which is an error of the server. */
static int fail_version(struct api_call *call)
{
    const char *version = call->query.resource_version;
    const char *why = arena_printf(call->arena,
                                   "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: "
                                   "parsing \"%s\": invalid syntax",
                                   version, version);

    if (*call->route.name && !str_equal(call->resource->storage, "core/events"))
        return call_fail(call, 500, NULL, "%s", why);
    return call_fail(call, 400, "BadRequest", "invalid resource version: %s", why);
}

static int read_version(struct api_call *call, uint64_t *ret)
{
    int64_t version = 0;

    if (*call->query.resource_version &&
        (!str_to_int64(call->query.resource_version, &version) || version < 0))
        return fail_version(call);
    *ret = (uint64_t)version;
    return 0;
}

int call_get(struct api_call *call)
{
    struct kv_value value;
    struct error err;
    uint64_t version = 0;
    cJSON *tree = NULL;

    if (read_version(call, &version) < 0 || !is_not_of_the_future(call, version))
        return -1;

    const char *key = stored_key(call->arena, call->resource, call->route.ns, call->route.name);
    int r = kv_get(call->api->kv, call->arena, key, 0, &value, &err);
    if (r == -ERROR_NOT_FOUND)
        return call_fail_not_found(call, call->route.name);
    if (r == 0)
        r = stored_tree(call->arena, call->resource, &value, 0, &tree, &err);
    return r < 0 ? call_fail_store(call, &err) : present_object(call, 200, tree);
}

/* --- lists ------------------------------------------------------------------------------------ */

struct listing {
    struct api_call *call;
    struct selection selection;
    struct kv_range range;
    size_t limit; /* 0: all */
    struct listed *items;
    size_t len, room;
    size_t remaining;
    bool more;
};

/* A continue token: base64 of {"v":"meta.k8s.io/v1","rv":7,"start":"<key behind the prefix>"}. */
static const char *make_token(struct listing *listing, const char *last_key)
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

static int read_token(struct listing *listing, const char *text)
{
    struct api_call *call = listing->call;
    const cJSON *token = NULL;
    struct error err;
    size_t len;
    const char *json = base64_decode(call->arena, text, strlen(text), &len);

    if (!json || json_parse(call->arena, json, len, &token, &err) < 0 ||
        json_int(json_get(token, "rv"), 0) <= 0 ||
        str_is_empty(json_string(json_get(token, "start"), "")))
        return call_fail(call, 400, "BadRequest",
                         "invalid continue token: continue key is not valid: it cannot be read");
    listing->range.revision = (uint64_t)json_int(json_get(token, "rv"), 0);
    listing->range.after = arena_printf(call->arena, "%s%s", listing->range.prefix,
                                        json_string(json_get(token, "start"), ""));
    return 0;
}

/* Which revision is read: KEP-2523, "the meaning of resourceVersion". */
static int choose_revision(struct listing *listing)
{
    struct api_call *call = listing->call;
    const struct query *query = &call->query;
    uint64_t version = 0;

    if (read_version(call, &version) < 0)
        return -1;
    if (*query->continue_token) {
        if (version)
            return call_fail(call, 400, "BadRequest",
                             "specifying resource version is not allowed when using continue");
        return read_token(listing, query->continue_token);
    }
    if (!is_not_of_the_future(call, version))
        return -1;

    bool exact = str_equal(query->resource_version_match, "Exact") ||
                 (!*query->resource_version_match && query->limit > 0);

    listing->range.revision = exact ? version : 0;
    return 0;
}

static void keep(struct listing *listing, const struct kv_value *value, cJSON *tree)
{
    if (listing->len == listing->room) {
        size_t room = listing->room ? listing->room * 2 : 64;
        struct listed *items = arena_array(listing->call->arena, struct listed, room);

        if (listing->len)
            memcpy(items, listing->items, listing->len * sizeof(*items));
        listing->items = items;
        listing->room = room;
    }
    listing->items[listing->len++] = (struct listed){ value, tree };
}

/* Takes what is selected of a page, up to the limit. */
static int take(struct listing *listing, const struct kv_page *page)
{
    struct api_call *call = listing->call;

    for (size_t i = 0; i < page->len; i++) {
        cJSON *tree = NULL;
        struct error err;

        if (listing->limit && listing->len == listing->limit) {
            listing->more = true;
            listing->remaining = page->len - i + page->remaining;
            return 0;
        }
        listing->range.after = page->items[i].key;

        int r = selection_takes(&listing->selection, call->arena, &page->items[i], 0, &tree, &err);
        if (r < 0)
            return call_fail_store(call, &err);
        if (r)
            keep(listing, &page->items[i], tree);
    }
    listing->more = page->remaining > 0;
    listing->remaining = page->remaining;
    return 0;
}

static size_t next_chunk(const struct listing *listing)
{
    if (!listing->limit)
        return 0;
    if (selection_is_empty(&listing->selection))
        return listing->limit - listing->len;
    return MAX_CHUNK;
}

static int read_pages(struct listing *listing)
{
    struct api_call *call = listing->call;

    do {
        struct kv_page page;
        struct error err;

        listing->range.limit = next_chunk(listing);

        int r = kv_list(call->api->kv, call->arena, &listing->range, &page, &err);
        if (r == -ERROR_GONE)
            return call_fail_expired(call,
                                     *call->query.continue_token
                                         ? "The provided continue parameter is too old to "
                                           "display a consistent list result. You must start a "
                                           "new list without the continue parameter."
                                         : "The resourceVersion for the provided list is too "
                                           "old.");
        if (r < 0)
            return call_fail_store(call, &err);
        listing->range.revision = page.revision;
        if (take(listing, &page) < 0)
            return -1;
    } while (listing->more && (!listing->limit || listing->len < listing->limit));
    return 0;
}

int call_list(struct api_call *call)
{
    struct listing listing = { .call = call,
                               .range = { .prefix = stored_key(call->arena, call->resource,
                                                               call->route.ns, NULL) },
                               .limit = call->query.limit > 0 ? (size_t)call->query.limit : 0 };

    if (selection_read(call, &listing.selection) < 0 || choose_revision(&listing) < 0 ||
        read_pages(&listing) < 0)
        return -1;

    bool is_counted = listing.more && selection_is_empty(&listing.selection);
    const struct list_end end = {
        .revision = listing.range.revision,
        .continue_token = listing.more ? make_token(&listing, listing.range.after) : "",
        .remaining = is_counted ? (int64_t)listing.remaining : -1,
    };

    return present_list(call, listing.items, listing.len, &end);
}
