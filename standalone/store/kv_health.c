/*
 * Who waits for a client to complain knows too late that a store cannot be read. So a read that failed is said once,
 * and stays so until all of the store can be read again: other keys may well be readable meanwhile.
 */
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "standalone/store/kv_internal.h"

#define LOOK_MS 5000
/* A look reads everything: it has at most this share of the time. */
#define LOOK_SHARE 10

void kv_health_init(struct kv_health *health, uint32_t look_ms)
{
    (void)pthread_mutex_init(&health->lock, NULL);
    (void)pthread_mutex_init(&health->looking, NULL);
    health->look_ms = look_ms ? look_ms : LOOK_MS;
}

void kv_health_release(struct kv_health *health)
{
    (void)pthread_mutex_destroy(&health->looking);
    (void)pthread_mutex_destroy(&health->lock);
}

/* --- a look at everything --- */

/* SQLite's own look at pages, trees and the index. */
static int check_pages(struct kv_connection *connection, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_CHECK_PAGES, &statement, err);
    if (r == 0)
        r = kv_step(connection, statement, "check", err);
    const char *verdict = r > 0 ? (const char *)sqlite3_column_text(statement, 0) : NULL;
    if (r >= 0 && !str_equal(verdict, "ok"))
        r = error_set(err, ERROR_INTERNAL, "%s", verdict ? verdict : "no verdict");
    return r < 0 ? r : 0;
}

/* That each row says what was written. */
static int check_rows(struct kv_connection *connection, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    struct kv_row row;

    int r = kv_prepare(connection, KV_CHECK_ROWS, &statement, err);
    if (r == 0)
        r = kv_step(connection, statement, "check", err);
    while (r > 0) {
        r = kv_row_read(connection, statement, &row, err);
        if (r == 0)
            r = kv_step(connection, statement, "check", err);
    }
    return r;
}

/* To SQLite's look a page that the disk does not give is damaged as any other, but a read says why: nobody is to
 * restore a backup because a disk was away. */
int kv_check(struct kv_connection *connection, struct error *err)
{
    int r = check_pages(connection, err);

    if (r == -ERROR_INTERNAL) {
        struct error why;
        int64_t ignored;
        int cause = check_rows(connection, &why);

        if (cause == 0)
            cause =
                kv_ask(connection,
                       "SELECT (SELECT COUNT(*) FROM history INDEXED BY newest WHERE key <> ''),"
                       " (SELECT COUNT(*) FROM state)",
                       &ignored, &why);
        if (cause < 0 && cause != -ERROR_INTERNAL) {
            *err = why;
            return cause;
        }
    }
    return r < 0 ? r : check_rows(connection, err);
}

/* --- whether it can be read again --- */

/* Through a connection that knows nothing of before. Nothing that was acknowledged is missing: another file, in the
 * place of this one, may be sound. */
static int look(struct kv *kv, struct error *err)
{
    struct kv_connection connection = { 0 };
    struct kv_snapshot snapshot = { .connection = &connection };
    uint64_t acknowledged = kv_revision(kv);

    int r = kv_connect(kv->path, kv->vfs, true, &connection, err);
    if (r < 0)
        return r;
    r = kv_snapshot_take(&snapshot, err);
    if (r == 0 && snapshot.revision < acknowledged)
        r = error_set(err, ERROR_INTERNAL,
                      "'%s' is another file: it is at version %" PRIu64 ", %" PRIu64
                      " was acknowledged",
                      kv->path, snapshot.revision, acknowledged);
    if (r == 0)
        r = kv_check(&connection, err);
    kv_disconnect(&connection);
    return r;
}

/* Of several threads one looks, if it is time. */
static void look_again(struct kv *kv)
{
    struct kv_health *health = &kv->health;
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
    struct error err;

    if (pthread_mutex_trylock(&health->looking) != 0)
        return;
    if (begin_ms >= atomic_load(&health->next_look_ms)) {
        int r = look(kv, &err);
        int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

        atomic_store(&health->next_look_ms,
                     end_ms + health->look_ms + (end_ms - begin_ms) * LOOK_SHARE);
        if (r == 0) {
            log_info("the store can be read again", "file", kv->path, NULL);
            atomic_fetch_add(&health->generation, 1);
            atomic_store(&health->is_broken, false);
        }
    }
    (void)pthread_mutex_unlock(&health->looking);
}

int kv_health(struct kv *kv, struct error *err)
{
    struct kv_health *health = &kv->health;
    int r = 0;

    if (!atomic_load(&health->is_broken))
        return 0;
    look_again(kv);
    (void)pthread_mutex_lock(&health->lock);
    if (atomic_load(&health->is_broken))
        r = error_set(err, health->why.code, "%s", health->why.message);
    (void)pthread_mutex_unlock(&health->lock);
    return r;
}

int kv_health_note(struct kv *kv, int r, const struct error *why)
{
    struct kv_health *health = &kv->health;
    struct error untold = { .code = ERROR_INTERNAL };

    if (r != -ERROR_INTERNAL && r != -ERROR_UNAVAILABLE)
        return r;
    if (!why)
        why = &untold;
    (void)pthread_mutex_lock(&health->lock);
    if (!atomic_load(&health->is_broken)) {
        log_error("the store cannot be read", "error", ERROR_TEXT(why), NULL);
        health->why = *why;
        atomic_store(&health->next_look_ms, clock_monotonic_ms(&CLOCK_SYSTEM) + health->look_ms);
        atomic_store(&health->is_broken, true);
    }
    (void)pthread_mutex_unlock(&health->lock);
    return r;
}
