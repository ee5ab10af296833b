/*
 * Whoever watches remembers versions of the store that was lost, and a backup knows only those until it was
 * made. So one that begins as a store goes on far above, with nothing behind it that could be asked for: a
 * client of before is told that its version is compacted, and lists anew. As "etcdutl snapshot restore
 * --bump-revision --mark-compacted", but a table in the backup says that it has to be done.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "standalone/store/kv_internal.h"

/* What etcd proposes: a hundred writes a second for four months. */
#define STEP UINT64_C(1000000000)
/* The same backup may be restored again, after others have seen what the first restore led to. Nobody writes
 * each microsecond, so the time is above all of that; it is below what a JSON number can say (2^53)
 * until 2255, and a clock that says more than the half of that is not believed. */
#define MAX_TIME_US (INT64_C(1) << 52)

int kv_restore_mark(const char *path, struct error *err)
{
    struct kv_connect_options options = { .path = path, .cache_kib = KV_READER_CACHE_KIB };
    struct kv_connection connection = { 0 };

    int r = kv_connect(&options, &connection, err);
    if (r < 0)
        return r;
    r = kv_execute(&connection, "CREATE TABLE IF NOT EXISTS backup (only INTEGER PRIMARY KEY)",
                   err);
    kv_disconnect(&connection);
    return r;
}

static uint64_t choose_revision(uint64_t revision, int64_t now_us)
{
    uint64_t raised = revision + STEP;

    return now_us < MAX_TIME_US && now_us > (int64_t)raised ? (uint64_t)now_us : raised;
}

/* The mark goes with what it asks for, or stays for the next start. */
static int raise_revision(struct kv *kv, uint64_t revision, struct error *err)
{
    char sql[512];

    (void)snprintf(sql, sizeof(sql),
                   "BEGIN IMMEDIATE;"
                   "DELETE FROM history WHERE deleted OR revision NOT IN"
                   " (SELECT MAX(revision) FROM history INDEXED BY newest GROUP BY key);"
                   "UPDATE state SET compacted = %" PRIu64 ", compacted_weight = %" PRIu64 ";"
                   "DROP TABLE IF EXISTS backup;"
                   "COMMIT",
                   revision, kv->history.head.weight);
    return kv_execute(&kv->writer, sql, err);
}

enum raise_reason { RAISE_NOT, RAISE_BACKUP, RAISE_UNKNOWN, RAISE_LOSS };

static enum raise_reason why_raise(const struct kv *kv, bool is_backup)
{
    uint64_t revision = kv->history.head.revision;

    if (is_backup)
        return RAISE_BACKUP;
    if (!kv->mark.is_known && revision > 1) /* else nothing was written to it */
        return RAISE_UNKNOWN;
    return kv->goes_on && revision < kv->mark.revision ? RAISE_LOSS : RAISE_NOT;
}

static void log_raised(const struct kv *kv, enum raise_reason reason, uint64_t revision)
{
    const char *version = LOG_INT((int64_t)revision);

    if (reason == RAISE_BACKUP)
        log_info("the store was a backup, its versions go on above those that are lost", "version",
                 version, NULL);
    else if (reason == RAISE_UNKNOWN)
        log_warn(
            "the file beside the store does not say which versions it has given, they go on above "
            "all of them",
            "store", kv->path, "version", version, NULL);
    else
        log_error("the store has lost writes that were acknowledged: it goes on above them with "
                  "what is left",
                  "store", kv->path, "found", LOG_INT((int64_t)kv->loss.found), "acknowledged",
                  LOG_INT((int64_t)kv->loss.noted), "version", version, NULL);
}

int kv_restore(struct kv *kv, struct error *err)
{
    uint64_t before = kv->history.head.revision;
    int64_t marks = 0;

    int r = kv_ask(&kv->writer, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'backup'", &marks,
                   err);
    if (r < 0)
        return r;

    enum raise_reason reason = why_raise(kv, marks > 0);

    if (reason == RAISE_NOT)
        return 0;
    if (reason == RAISE_LOSS)
        kv->loss = (struct kv_loss){ .found = before, .noted = kv->mark.revision };
    if (before < kv->mark.revision)
        before = kv->mark.revision;
    uint64_t revision = choose_revision(before, clock_wall_us(kv->clock));
    r = raise_revision(kv, revision, err);
    if (r < 0)
        return r;
    log_raised(kv, reason, revision);
    return 1;
}

struct kv_loss kv_loss(const struct kv *kv)
{
    return kv->loss;
}
