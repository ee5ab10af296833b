/* watch: the store's events as a stream of lines (KEP-956 bookmarks, KEP-3157 initial events). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "standalone/api/call.h"
#include "standalone/api/selection.h"
#include "standalone/api/stored.h"

/* A watch without timeoutSeconds ends after 30 to 60 minutes, as there. */
#define MIN_TIMEOUT_S 1800
#define MAX_TIMEOUT_S (24 * 60 * 60)
#define BOOKMARK_MS 60000
/* Of one line: an object, or its row with the object. */
#define MAX_LINE ((size_t)16 << 20)
/* Initial events are read by pages: what a watcher that is slow has in memory. One text may be larger. */
#define PAGE 500
#define PAGE_BYTES ((size_t)256 << 10)

#define TOO_OLD "the version is older than the history"

enum watch_state {
    WATCH_STARTING, /* initial events are told */
    WATCH_RUNNING,
    WATCH_ENDED,
};

static struct metric WATCHES = {
    .type = METRIC_GAUGE,
    .name = "apiserver_longrunning_requests",
    .help = "Number of watches that are open.",
    .labels = { "verb", "resource" },
};

/*
 *   STARTING --all initial events told--> RUNNING --time over, or ERROR--> ENDED
 *
 * Without initial events it begins in RUNNING. A watch that begins behind the history has an ERROR as its only line:
 * after such an event, clients that watch again by themselves list first. A request that is refused they would repeat.
 */
struct api_watch {
    struct api *api;
    const struct resource *resource;
    struct arena *arena; /* as long as the watch */
    struct selection selection;
    struct format format;
    struct table_options table;
    struct kv_watch *events; /* NULL: it begins behind the history */
    enum watch_state state;
    struct kv_range initial;  /* with STARTING: what is still to be read, at one revision */
    struct kv_page page;      /* of it */
    struct arena *page_arena; /* NULL: there is none */
    size_t told;              /* of the page */
    bool tells_end;           /* sendInitialEvents: a bookmark says that these were all */
    bool bookmarks;
    uint64_t revision; /* everything up to it was told */
    int64_t next_bookmark_ms, end_ms;
    struct buf line; /* the one that is made; empty between two calls */
};

void api_watch_set_notify(struct api_watch *watch, void (*notify)(void *ctx), void *ctx)
{
    if (watch->events)
        kv_watch_set_notify(watch->events, notify, ctx);
    else
        notify(ctx);
}

void api_watch_close(struct api_watch *watch)
{
    if (!watch)
        return;
    metric_add(&WATCHES, -1, "WATCH", watch->resource->kind.plural, NULL);
    kv_watch_close(watch->events);
    arena_destroy(watch->page_arena);
    arena_destroy(watch->arena);
    buf_release(&watch->line);
    free(watch);
}

/* --- lines: true, and there is one; false: there is nothing to tell --------------------------- */

static bool watch_end_line(struct api_watch *watch, bool fits)
{
    fits = fits && buf_append_string(&watch->line, "}\n");
    if (!fits)
        buf_clear(&watch->line);
    return fits;
}

/* In the form that was asked for. tree may be NULL: then value is the object's. */
static bool watch_tell(struct api_watch *watch, struct arena *arena, const char *type, cJSON *tree,
                       const struct kv_value *value, uint64_t revision)
{
    struct error err;
    size_t len;
    bool fits = buf_printf(&watch->line, "{\"type\":\"%s\",\"object\":", type);

    if (watch->format.type == FORMAT_OBJECT && !tree)
        return watch_end_line(watch, fits && stored_append(arena, watch->resource, value, revision,
                                                           &watch->line, &err) == 0);
    if (!tree && stored_tree(arena, watch->resource, value, revision, &tree, &err) < 0)
        return watch_end_line(watch, false);
    watch->table.now_us = clock_wall_us(watch->api->clock);

    const cJSON *shown = present_tree(arena, &watch->format, watch->resource, &watch->table, tree);
    const char *text = json_text(arena, shown, &len);

    return watch_end_line(watch, fits && buf_append(&watch->line, text, len));
}

static bool watch_tell_bookmark(struct api_watch *watch, struct arena *arena, bool ends_initial)
{
    cJSON *object = json_object(arena), *metadata;

    json_set_string(object, "kind", watch->resource->kind.kind);
    json_set_string(object, "apiVersion", resource_api_version(arena, watch->resource));
    metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "resourceVersion", arena_printf(arena, "%" PRIu64, watch->revision));
    if (ends_initial)
        json_set_string(json_set_object(metadata, "annotations"), "k8s.io/initial-events-end",
                        "true");
    watch->next_bookmark_ms = clock_monotonic_ms(watch->api->clock) + BOOKMARK_MS;
    return watch_tell(watch, arena, "BOOKMARK", object, NULL, 0);
}

/* The last line: the client begins again. */
static bool watch_tell_failure(struct api_watch *watch, struct arena *arena,
                               const struct error *err)
{
    bool gone = err->code == ERROR_GONE;
    cJSON *status = gone ? call_status(arena, 410, "Expired", TOO_OLD)
                         : call_status(arena, 500, "InternalError", err->message);
    size_t len;

    watch->state = WATCH_ENDED;

    const char *text = json_text(arena, status, &len);

    return watch_end_line(watch,
                          buf_append_string(&watch->line, "{\"type\":\"ERROR\",\"object\":") &&
                              buf_append(&watch->line, text, len));
}

/* --- what is next ----------------------------------------------------------------------------- */

/* The page after this one, which is let go. */
static int watch_read_page(struct api_watch *watch, struct error *err)
{
    struct kv_range *range = &watch->initial;
    struct arena *arena = arena_create();
    struct kv_page page;

    int r = kv_list(watch->api->kv, arena, range, &page, err);
    if (r < 0) {
        arena_destroy(arena);
        return r;
    }
    range->after = page.len ? arena_strdup(watch->arena, page.items[page.len - 1].key) : NULL;
    range->revision = page.revision;
    arena_destroy(watch->page_arena);
    watch->page_arena = arena;
    watch->page = page;
    watch->told = 0;
    return 0;
}

static bool watch_next_initial(struct api_watch *watch, struct arena *arena)
{
    bool is_told = false;
    struct error err;
    int r = 0;

    while (!is_told && r == 0 && (watch->told < watch->page.len || watch->page.remaining)) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        cJSON *tree = NULL;

        if (watch->told == watch->page.len) {
            r = watch_read_page(watch, &err);
            continue;
        }

        const struct kv_value *value = &watch->page.items[watch->told++];

        is_told = selection_takes(&watch->selection, scratch, value, 0, &tree, &err) == 1 &&
                  watch_tell(watch, scratch, "ADDED", tree, value, 0);
    }
    if (watch->told == watch->page.len) { /* a slow client holds the line alone */
        arena_destroy(watch->page_arena);
        watch->page_arena = NULL;
        watch->page = (struct kv_page){ .remaining = watch->page.remaining };
        watch->told = 0;
    }
    if (is_told)
        return true;
    watch->state = WATCH_RUNNING;
    if (r < 0) /* the revision of the first page is older than the history */
        return watch_tell_failure(watch, arena, &err);
    return watch->tells_end && watch_tell_bookmark(watch, arena, true);
}

/* Whether an object was, or is, one of those that are watched; tree as in selection_takes. */
static bool watch_is_selected(struct api_watch *watch, struct arena *arena,
                              const struct kv_value *value, uint64_t revision, cJSON **tree)
{
    struct error err;

    return value->text &&
           selection_takes(&watch->selection, arena, value, revision, tree, &err) == 1;
}

static bool watch_next_event(struct api_watch *watch, struct arena *arena)
{
    struct error err = { .code = ERROR_GONE };
    int r = watch->events ? 1 : -ERROR_GONE;

    while (r > 0) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        cJSON *now = NULL, *then = NULL;
        struct kv_event event;

        r = kv_watch_next(watch->events, scratch, &event, &err);
        if (r <= 0)
            break;

        uint64_t revision = watch->revision = event.value.revision;
        bool is = event.type == KV_PUT && watch_is_selected(watch, scratch, &event.value, 0, &now);
        bool was = event.previous.revision &&
                   watch_is_selected(watch, scratch, &event.previous, revision, &then);

        if (is ? watch_tell(watch, scratch, was ? "MODIFIED" : "ADDED", now, &event.value, 0)
               : was && watch_tell(watch, scratch, "DELETED", then, &event.previous, revision))
            return true;
    }
    if (r < 0)
        return watch_tell_failure(watch, arena, &err);
    watch->revision = kv_watch_progress(watch->events);
    return false;
}

/* Before the store is where the watch was asked to begin, a bookmark would name a version that others get. */
static bool watch_next_bookmark(struct api_watch *watch, struct arena *arena)
{
    int64_t now_ms = clock_monotonic_ms(watch->api->clock);

    if (!watch->bookmarks || (now_ms < watch->next_bookmark_ms && now_ms < watch->end_ms))
        return false;
    watch->next_bookmark_ms = now_ms + BOOKMARK_MS;
    if (watch->revision > kv_revision(watch->api->kv))
        return false;
    if (now_ms >= watch->end_ms)
        watch->state = WATCH_ENDED;
    return watch_tell_bookmark(watch, arena, false);
}

int api_watch_next(struct api_watch *watch, struct arena *arena, const char **ret_line,
                   size_t *ret_len)
{
    if ((watch->state == WATCH_STARTING && watch_next_initial(watch, arena)) ||
        (watch->state == WATCH_RUNNING && watch_next_event(watch, arena)) ||
        (watch->state != WATCH_ENDED && watch_next_bookmark(watch, arena))) {
        *ret_line = arena_strndup(arena, watch->line.data, watch->line.len);
        *ret_len = watch->line.len;
        buf_release(&watch->line);
        return 1;
    }
    return watch->state == WATCH_ENDED || clock_monotonic_ms(watch->api->clock) >= watch->end_ms
               ? -1
               : 0;
}

uint32_t api_watch_wait_ms(const struct api_watch *watch)
{
    int64_t now_ms = clock_monotonic_ms(watch->api->clock);
    int64_t next_ms = watch->bookmarks && watch->next_bookmark_ms < watch->end_ms
                          ? watch->next_bookmark_ms
                          : watch->end_ms;

    return next_ms <= now_ms ? 0 : (uint32_t)(next_ms - now_ms);
}

/* --- its beginning ---------------------------------------------------------------------------- */

static int watch_open(struct api_call *call, struct api_watch *watch, bool initial)
{
    struct arena *arena = watch->arena;
    const char *prefix = stored_key(arena, call->resource, call->route.ns, NULL);
    uint64_t now = kv_revision(call->api->kv);
    struct error err = { 0 };
    int r = 0;

    if (initial && watch->revision > now)
        return call_fail_too_large_version(call, watch->revision);
    if (initial) {
        watch->initial = (struct kv_range){
            .prefix = prefix, .limit = PAGE, .max_bytes = PAGE_BYTES, .uncounted = true
        };
        r = watch_read_page(watch, &err);
        watch->revision = watch->initial.revision;
        watch->state = WATCH_STARTING;
    }
    if (r == 0)
        r = kv_watch(call->api->kv, prefix, watch->revision, &watch->events, &err);
    return r < 0 && r != -ERROR_GONE ? call_fail_error(call, &err) : 0;
}

static struct api_watch *watch_make(struct api_call *call)
{
    struct api_watch *watch = xcalloc(1, sizeof(*watch));
    int64_t timeout_s = call->query.timeout_s;
    int64_t now_ms = clock_monotonic_ms(call->api->clock);

    if (timeout_s <= 0)
        timeout_s = MIN_TIMEOUT_S + now_ms % MIN_TIMEOUT_S;
    if (timeout_s > MAX_TIMEOUT_S)
        timeout_s = MAX_TIMEOUT_S;
    watch->api = call->api;
    watch->resource = call->resource;
    watch->arena = arena_create();
    watch->format.type = call->format.type;
    watch->bookmarks = call->query.allow_bookmarks;
    watch->state = WATCH_RUNNING;
    watch->line = (struct buf)BUF_INIT(MAX_LINE);
    watch->end_ms = now_ms + timeout_s * 1000;
    watch->next_bookmark_ms = now_ms + BOOKMARK_MS;
    metric_add(&WATCHES, 1, "WATCH", watch->resource->kind.plural, NULL);
    return watch;
}

int call_watch(struct api_call *call)
{
    uint64_t version = 0;

    if (call_read_version(call, &version) < 0)
        return -1;

    struct api_watch *watch = watch_make(call);
    struct api_call own = *call; /* what it keeps of the query lives in its arena */
    bool initial =
        call->query.send_initial_events_set ? call->query.send_initial_events : version == 0;

    own.arena = watch->arena;
    watch->revision = version || initial ? version : kv_revision(call->api->kv);
    watch->tells_end = initial && call->query.allow_bookmarks;
    watch->table = present_options(&own);
    if (call_select(&own, &watch->selection) < 0 || watch_open(&own, watch, initial) < 0) {
        own.reply->body = arena_strndup(call->arena, own.reply->body, own.reply->body_len);
        api_watch_close(watch);
        return -1;
    }
    call->reply->status = 200;
    call->reply->content_type = "application/json";
    call->reply->watch = watch;
    return 0;
}
