#include "controller/page/feed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/cache/indexes.h"
#include "controller/device/fleet.h"

/* Between the informers and the feeds of one list. */
struct source {
    struct feeds *feeds;
    size_t list;
};

struct feeds {
    struct feeds_options options;
    struct source sources[PAGE_LISTS];
    atomic_size_t len;
    pthread_mutex_t lock; /* of what follows, and of `dirty` of each feed */
    struct feed *items[FEEDS_MAX];
};

struct feed {
    struct feeds *feeds;
    struct viewer *viewer;
    size_t list;
    char *ns;                            /* NULL: all namespaces */
    int64_t sent_ms, beat_ms, pinged_ms; /* the last events; 0: never */
    struct map *devices;                 /* Proplets: name -> struct device */
    char counted[SHA256_HEX_LEN];        /* the digest of the last counts; "": none */
    bool is_over;

    /* With the lock of the feeds: */
    struct map *dirty; /* names that changed; NULL: all of them */
    void (*notify)(void *ctx);
    void *notify_ctx;
};

/* The device of a Proplet, as the fleet knows it. */
struct device {
    int64_t told_s;
    char key[];
};

/* --- changes --- */

/* With the lock. */
static void mark(struct feed *feed, const char *key)
{
    bool was_clean = feed->dirty && map_len(feed->dirty) == 0;

    if (!feed->dirty)
        return;
    if (map_len(feed->dirty) == FEED_MAX_DIRTY) {
        map_destroy(feed->dirty);
        feed->dirty = NULL;
        return;
    }
    map_set(feed->dirty, key, feed);
    if (was_clean && feed->notify)
        feed->notify(feed->notify_ctx);
}

static void on_change(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct source *source = ctx;
    struct feeds *feeds = source->feeds;
    const struct kube_object *object = current ? current : old;
    char key[KUBE_KEY_LEN];

    if (!atomic_load(&feeds->len))
        return;
    kube_object_key(object, key);
    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < FEEDS_MAX; i++) {
        struct feed *feed = feeds->items[i];

        if (feed && feed->list == source->list && (!feed->ns || str_equal(feed->ns, object->ns)))
            mark(feed, key);
    }
    pthread_mutex_unlock(&feeds->lock);
}

/* --- events --- */

static void event(struct arena *arena, const char *name, const cJSON *data, const char **ret,
                  size_t *ret_len)
{
    *ret = arena_printf(arena, "event: %s\ndata: %s\n\n", name, json_text(arena, data, NULL));
    *ret_len = strlen(*ret);
}

static struct store *store_of(const struct feed *feed)
{
    return informer_store(feed->feeds->options.informers[feed->list]);
}

/* Remembers under which key the fleet knows the device of a Proplet. */
static void note_device(struct feed *feed, const char *key, const cJSON *json)
{
    char identity[FLEET_KEY_LEN];

    if (PAGE_LIST[feed->list].kind != &KIND_PROPLET)
        return;
    map_remove(feed->devices, key);
    if (!proplet_identity_of(json, NULL, identity))
        return;

    size_t size = strlen(identity) + 1;
    struct device *device = xcalloc(1, sizeof(*device) + size);
    memcpy(device->key, identity, size);
    map_set(feed->devices, key, device);
}

static void add_row(struct feed *feed, const struct kube_object *object, cJSON *rows)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *json = kube_object_json(arena, object);
    char key[KUBE_KEY_LEN];

    note_device(feed, kube_object_key(object, key), json);
    page_row(PAGE_LIST[feed->list].kind, json, json_add_object(rows));
}

static void snapshot(struct feed *feed, struct arena *arena, const char **ret, size_t *ret_len)
{
    cJSON *data = json_object(arena);
    cJSON *rows = json_set_array(data, "rows");
    struct object_list list = store_list(store_of(feed), arena, feed->ns);

    for (size_t i = 0; i < list.len; i++)
        add_row(feed, list.items[i], rows);
    event(arena, "snapshot", data, ret, ret_len);
}

static void changes(struct feed *feed, struct arena *arena, struct map *dirty, const char **ret,
                    size_t *ret_len)
{
    cJSON *data = json_object(arena);
    cJSON *rows = json_set_array(data, "rows"), *gone = json_set_array(data, "gone");
    const char *key;
    void *unused;

    for (size_t i = 0; map_next(dirty, &i, &key, &unused);) {
        const char *slash = strchr(key, '/');
        struct kube_name name = { 0 };

        if (!kube_name_set(&name, slash ? arena_strndup(arena, key, (size_t)(slash - key)) : "",
                           slash ? slash + 1 : key))
            continue;
        CLEANUP(kube_object_unrefp) struct kube_object *object = store_get(store_of(feed), &name);
        if (object) {
            add_row(feed, object, rows);
            continue;
        }
        map_remove(feed->devices, key);
        json_add_string(gone, key);
    }
    event(arena, "change", data, ret, ret_len);
}

static bool beats(struct feed *feed, struct arena *arena, const char **ret, size_t *ret_len)
{
    cJSON *data = json_object(arena);
    const char *key;
    void *value;

    for (size_t i = 0; map_next(feed->devices, &i, &key, &value);) {
        CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
        struct device *device = value;
        struct fleet_device live;

        fleet_get(feed->feeds->options.fleet, scratch, device->key, &live);
        if (live.last_seen_us / 1000000 <= device->told_s)
            continue;
        device->told_s = live.last_seen_us / 1000000;
        json_set_int(data, key, device->told_s);
    }
    if (!json_len(data))
        return false;
    event(arena, "beat", data, ret, ret_len);
    return true;
}

/* An API server that does not answer changes nothing: the last answer counts, or `unknown` if there was none. */
static bool may_list(struct feed *feed, size_t list, bool unknown)
{
    bool may = unknown;
    struct error err = { 0 };

    if (viewer_may(feed->viewer, PAGE_LIST[list].kind, feed->ns, &may, &err) < 0)
        return may || unknown;
    return may;
}

/* false: they are as they were. */
static bool counts(struct feed *feed, struct arena *arena, const char **ret, size_t *ret_len)
{
    cJSON *data = json_object(arena);
    char digest[SHA256_HEX_LEN];

    feed->feeds->options.count(feed->feeds->options.ctx, arena, feed->ns, data);
    for (size_t i = 0; i < PAGE_LISTS; i++) {
        if (!may_list(feed, i, false))
            json_remove_path(data, arena_printf(arena, "kinds.%s", PAGE_LIST[i].kind->plural));
    }
    event(arena, "counts", data, ret, ret_len);
    if (str_equal(sha256_hex(*ret, *ret_len, digest), feed->counted))
        return false;
    memcpy(feed->counted, digest, sizeof(digest));
    return true;
}

static void ping(const struct feed *feed, struct arena *arena, const char **ret, size_t *ret_len)
{
    cJSON *data = json_object(arena);

    json_set_int(data, "now", clock_wall_us(feed->feeds->options.clock) / 1000);
    event(arena, "ping", data, ret, ret_len);
}

/* Why it may not go on; NULL: it may. */
static const char *objection(struct feed *feed)
{
    bool may = feed->list != FEED_FLEET && may_list(feed, feed->list, true);

    for (size_t i = 0; feed->list == FEED_FLEET && i < PAGE_LISTS && !may; i++)
        may = may_list(feed, i, true);
    if (viewer_has_ended(feed->viewer))
        return "the login has ended";
    return may ? NULL : "you may not list these objects any more";
}

static int end(struct feed *feed, struct arena *arena, const char *why, const char **ret,
               size_t *ret_len)
{
    cJSON *data = json_object(arena);

    json_set_string(data, "why", why);
    json_set_bool(data, "login", viewer_has_ended(feed->viewer));
    event(arena, "end", data, ret, ret_len);
    feed->is_over = true;
    return 1;
}

/* Takes the names that changed; false: there are none. *ret NULL: everything is to be sent. */
static bool take_dirty(struct feed *feed, struct map **ret)
{
    pthread_mutex_lock(&feed->feeds->lock);
    bool any = !feed->dirty || map_len(feed->dirty);
    if (any) {
        *ret = feed->dirty;
        feed->dirty = map_create(NULL);
    }
    pthread_mutex_unlock(&feed->feeds->lock);
    return any;
}

static int next_rows(struct feed *feed, struct arena *arena, int64_t now_ms, const char **ret,
                     size_t *ret_len)
{
    struct map *dirty = NULL;

    if (now_ms - feed->sent_ms >= FEED_GATHER_MS && take_dirty(feed, &dirty)) {
        feed->sent_ms = now_ms;
        if (dirty)
            changes(feed, arena, dirty, ret, ret_len);
        else
            snapshot(feed, arena, ret, ret_len);
        map_destroy(dirty);
        return 1;
    }
    if (now_ms - feed->beat_ms < FEED_BEAT_MS || !map_len(feed->devices))
        return 0;
    feed->beat_ms = now_ms;
    return beats(feed, arena, ret, ret_len);
}

static int next(void *ctx, struct arena *arena, const char **ret, size_t *ret_len)
{
    struct feed *feed = ctx;
    int64_t now_ms = clock_monotonic_ms(feed->feeds->options.clock);
    const char *why = feed->is_over ? NULL : objection(feed);

    if (feed->is_over)
        return -1;
    if (why)
        return end(feed, arena, why, ret, ret_len);
    if (feed->list != FEED_FLEET && next_rows(feed, arena, now_ms, ret, ret_len))
        return 1;
    if (feed->list == FEED_FLEET && now_ms - feed->sent_ms >= FEED_COUNTS_MS) {
        feed->sent_ms = now_ms;
        if (counts(feed, arena, ret, ret_len))
            return 1;
    }
    if (now_ms - feed->pinged_ms < FEED_PING_MS)
        return 0;
    feed->pinged_ms = now_ms;
    ping(feed, arena, ret, ret_len);
    return 1;
}

/* Short, so that a login that ends and gathered changes are not late; a wait costs nothing but a look. */
static uint32_t wait_ms(void *ctx UNUSED)
{
    return FEED_GATHER_MS;
}

static void set_notify(void *ctx, void (*notify)(void *notify_ctx), void *notify_ctx)
{
    struct feed *feed = ctx;

    pthread_mutex_lock(&feed->feeds->lock);
    feed->notify = notify;
    feed->notify_ctx = notify_ctx;
    pthread_mutex_unlock(&feed->feeds->lock);
    notify(notify_ctx);
}

static void close_feed(void *ctx)
{
    struct feed *feed = ctx;
    struct feeds *feeds = feed->feeds;

    pthread_mutex_lock(&feeds->lock);
    for (size_t i = 0; i < FEEDS_MAX; i++) {
        if (feeds->items[i] == feed)
            feeds->items[i] = NULL;
    }
    pthread_mutex_unlock(&feeds->lock);
    atomic_fetch_sub(&feeds->len, 1);
    viewer_unref(feed->viewer);
    map_destroy(feed->dirty);
    map_destroy(feed->devices);
    free(feed->ns);
    free(feed);
}

/* --- all of them --- */

struct feeds *feeds_create(const struct feeds_options *options)
{
    struct feeds *feeds = xcalloc(1, sizeof(*feeds));

    feeds->options = *options;
    pthread_mutex_init(&feeds->lock, NULL);
    for (size_t i = 0; i < PAGE_LISTS; i++) {
        feeds->sources[i] = (struct source){ feeds, i };
        informer_subscribe(options->informers[i], on_change, &feeds->sources[i]);
    }
    return feeds;
}

void feeds_destroy(struct feeds *feeds)
{
    if (!feeds)
        return;
    pthread_mutex_destroy(&feeds->lock);
    free(feeds);
}

/* With the lock: a place for one more of this viewer; NULL: there is none. */
static struct feed **find_place(struct feeds *feeds, const struct viewer *viewer)
{
    struct feed **place = NULL;
    size_t own = 0, of_user = 0;

    for (size_t i = 0; i < FEEDS_MAX; i++) {
        const struct feed *feed = feeds->items[i];

        if (!feed) {
            place = &feeds->items[i];
            continue;
        }
        own += feed->viewer == viewer;
        of_user += str_equal(viewer_name(feed->viewer), viewer_name(viewer));
    }
    return own < FEEDS_OF_A_VIEWER && of_user < FEEDS_OF_A_USER ? place : NULL;
}

const struct http_stream *feed_open(struct feeds *feeds, struct arena *arena, struct viewer *viewer,
                                    size_t list, const char *ns)
{
    struct http_stream *ret = arena_new(arena, struct http_stream);
    struct feed *feed = xcalloc(1, sizeof(*feed));

    feed->feeds = feeds;
    feed->viewer = viewer_ref(viewer);
    feed->list = list;
    feed->ns = ns ? xstrdup(ns) : NULL;
    feed->devices = map_create(free);
    feed->pinged_ms = clock_monotonic_ms(feeds->options.clock);
    feed->sent_ms = feed->beat_ms = feed->pinged_ms - FEED_BEAT_MS;
    atomic_fetch_add(&feeds->len, 1); /* before it is listed: no change is missed */
    pthread_mutex_lock(&feeds->lock);
    struct feed **place = find_place(feeds, viewer);
    if (place)
        *place = feed;
    pthread_mutex_unlock(&feeds->lock);
    if (!place) {
        close_feed(feed);
        return NULL;
    }
    *ret = (struct http_stream){
        .ctx = feed, .next = next, .wait_ms = wait_ms, .set_notify = set_notify, .close = close_feed
    };
    return ret;
}
