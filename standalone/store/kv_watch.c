#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "standalone/store/kv_internal.h"

/* Writes that are looked at in one snapshot. */
#define WATCH_REVISIONS 1024

struct kv_watch {
    struct kv *kv;
    char *prefix;
    /* of the lock of all watches */
    kv_notify_fn *notify; /* set once */
    void *ctx;
    LIST_ENTRY(kv_watch) in_all;
    uint64_t cursor; /* everything up to here was taken */
    bool waits;      /* has taken everything, and is told of more */
    bool to_tell;    /* the last publish has something for it */
    bool telling;    /* notify runs */
};

void kv_watches_init(struct kv_watches *watches, uint64_t head)
{
    (void)pthread_mutex_init(&watches->lock, NULL);
    (void)pthread_cond_init(&watches->told, NULL);
    LIST_INIT(&watches->all);
    watches->head = head;
}

void kv_watches_release(struct kv_watches *watches)
{
    (void)pthread_cond_destroy(&watches->told);
    (void)pthread_mutex_destroy(&watches->lock);
}

/* --- what the writing thread tells --- */

void kv_watches_publish(struct kv_watches *watches, uint64_t revision, const char *key)
{
    (void)pthread_mutex_lock(&watches->lock);
    for (struct kv_watch *watch = LIST_FIRST(&watches->all); watch;
         watch = LIST_NEXT(watch, in_all)) {
        /* One that has taken everything stays so while others write, and is not behind the history
         * when its first event comes. */
        if (!watch->waits || watch->cursor >= revision)
            continue;
        if (str_has_prefix(key, watch->prefix)) {
            watch->waits = false;
            watch->to_tell = true;
        } else {
            watch->cursor = revision;
        }
    }
    watches->head = revision;
    (void)pthread_mutex_unlock(&watches->lock);
}

/* A watch that is being told stays in the list: its close waits. */
void kv_watches_notify(struct kv_watches *watches)
{
    (void)pthread_mutex_lock(&watches->lock);
    for (struct kv_watch *watch = LIST_FIRST(&watches->all); watch;
         watch = LIST_NEXT(watch, in_all)) {
        if (!watch->to_tell)
            continue;
        watch->to_tell = false;
        watch->telling = true;
        kv_notify_fn *notify = watch->notify;
        (void)pthread_mutex_unlock(&watches->lock);
        if (notify)
            notify(watch->ctx);
        (void)pthread_mutex_lock(&watches->lock);
        watch->telling = false;
        (void)pthread_cond_broadcast(&watches->told);
    }
    (void)pthread_mutex_unlock(&watches->lock);
}

uint64_t kv_revision(struct kv *kv)
{
    (void)pthread_mutex_lock(&kv->watches.lock);
    uint64_t head = kv->watches.head;
    (void)pthread_mutex_unlock(&kv->watches.lock);
    return head;
}

uint64_t kv_compacted(struct kv *kv)
{
    return atomic_load(&kv->compacted);
}

/* --- watches --- */

int kv_watch(struct kv *kv, const char *prefix, uint64_t after_revision, struct kv_watch **ret,
             struct error *err)
{
    uint64_t compacted = kv_compacted(kv);

    if (after_revision < compacted)
        return kv_too_old(after_revision, compacted, err);
    struct kv_watch *watch = xcalloc(1, sizeof(*watch));
    watch->kv = kv;
    watch->prefix = xstrdup(prefix);
    watch->cursor = after_revision;
    (void)pthread_mutex_lock(&kv->watches.lock);
    LIST_INSERT_HEAD(&kv->watches.all, watch, in_all);
    (void)pthread_mutex_unlock(&kv->watches.lock);
    *ret = watch;
    return 0;
}

void kv_watch_set_notify(struct kv_watch *watch, kv_notify_fn *notify, void *ctx)
{
    (void)pthread_mutex_lock(&watch->kv->watches.lock);
    watch->notify = notify;
    watch->ctx = ctx;
    (void)pthread_mutex_unlock(&watch->kv->watches.lock);
    notify(ctx);
}

void kv_watch_close(struct kv_watch *watch)
{
    if (!watch)
        return;
    struct kv_watches *watches = &watch->kv->watches;
    (void)pthread_mutex_lock(&watches->lock);
    while (watch->telling)
        (void)pthread_cond_wait(&watches->told, &watches->lock);
    LIST_REMOVE(watch, in_all);
    (void)pthread_mutex_unlock(&watches->lock);
    free(watch->prefix);
    free(watch);
}

uint64_t kv_watch_progress(struct kv_watch *watch)
{
    struct kv_watches *watches = &watch->kv->watches;
    (void)pthread_mutex_lock(&watches->lock);
    uint64_t cursor = watch->cursor;
    (void)pthread_mutex_unlock(&watches->lock);
    return cursor;
}

/* Whether there is something behind the cursor; if not, the watch waits from now on. */
static bool has_more(struct kv_watch *watch)
{
    struct kv_watches *watches = &watch->kv->watches;
    (void)pthread_mutex_lock(&watches->lock);
    watch->waits = watch->cursor >= watches->head;
    bool more = !watch->waits;
    (void)pthread_mutex_unlock(&watches->lock);
    return more;
}

static void set_cursor(struct kv_watch *watch, uint64_t cursor)
{
    struct kv_watches *watches = &watch->kv->watches;
    (void)pthread_mutex_lock(&watches->lock);
    watch->cursor = cursor;
    (void)pthread_mutex_unlock(&watches->lock);
}

/* --- events, from the file --- */

static int read_event(struct kv_connection *connection, struct arena *arena, uint64_t revision,
                      uint64_t previous, struct kv_event *ret, struct error *err)
{
    struct kv_event event = { .type = KV_PUT };

    int r = kv_value_read(connection, arena, revision, &event.value, err);
    if (r == 0 && previous)
        r = kv_value_read(connection, arena, previous, &event.previous, err);
    if (r < 0)
        return r;
    if (!event.value.text)
        event.type = KV_DELETE;
    *ret = event;
    return 0;
}

/* 1: an event; 0: there is none among those that were looked at. *cursor goes on to these. */
static int find_event(const struct kv_watch *watch, const struct kv_snapshot *snapshot,
                      struct arena *arena, uint64_t *cursor, struct kv_event *ret,
                      struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    if (*cursor < snapshot->compacted)
        return kv_too_old(*cursor, snapshot->compacted, err);
    int r = kv_prepare(snapshot->connection, KV_LATER, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, *cursor);
    (void)kv_bind_number(statement, 2, WATCH_REVISIONS);
    while ((r = kv_step(snapshot->connection, statement, "watch", err)) > 0) {
        uint64_t revision = kv_column_number(statement, 0);
        const char *key = (const char *)sqlite3_column_text(statement, 2);

        if (key && str_has_prefix(key, watch->prefix)) {
            r = read_event(snapshot->connection, arena, revision, kv_column_number(statement, 1),
                           ret, err);
            if (r < 0)
                return r;
            *cursor = revision;
            return 1;
        }
        *cursor = revision;
    }
    return r;
}

int kv_watch_next(struct kv_watch *watch, struct arena *arena, struct kv_event *ret,
                  struct error *err)
{
    struct kv *kv = watch->kv;
    int r = 0;

    while (r == 0 && has_more(watch)) {
        uint64_t cursor = kv_watch_progress(watch);
        struct kv_snapshot snapshot;

        r = kv_snapshot_begin(kv, &snapshot, err);
        if (r < 0)
            return r;
        r = kv_health_note(kv, find_event(watch, &snapshot, arena, &cursor, ret, err), err);
        kv_snapshot_end(kv, &snapshot);
        set_cursor(watch, cursor);
    }
    return r;
}
