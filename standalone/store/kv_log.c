#include "common/base/log.h"
#include "standalone/store/kv_internal.h"

/* Pages in the log: from the first number on it is moved into the file, as SQLite does by default;
 * from the second on readers wait until it can begin anew, or it would grow as long as there is
 * always one of them. 4 and 16 MiB. */
#define LOG_FRAMES 1000
#define LOG_MAX_FRAMES 4000

static void move_log(struct kv *kv, int mode)
{
    int frames = 0, moved = 0;
    int code = sqlite3_wal_checkpoint_v2(kv->writer.db, NULL, mode, &frames, &moved);

    /* What somebody still reads, or what the disk has no room for, stays in the log. */
    kv->log.try_frames = kv->log.frames + LOG_FRAMES;
    bool failed = code != SQLITE_OK && code != SQLITE_BUSY;
    if (failed && !kv->log.failed) {
        struct error err;
        (void)kv_sql_error(&kv->writer, "move the log of", &err);
        log_warn("the log stays as it is, trying again later", "error", ERROR_TEXT(&err), NULL);
    }
    kv->log.failed = failed;
}

int kv_log_note(void *pointer, sqlite3 *db, const char *name, int frames)
{
    struct kv_log *log = pointer;

    (void)db;
    (void)name;
    if (frames < log->frames)
        log->try_frames = LOG_FRAMES; /* it has begun anew */
    log->frames = frames;
    return SQLITE_OK;
}

void kv_log_step(struct kv *kv)
{
    if (kv->log.frames <= kv->log.try_frames)
        return;
    if (kv->log.frames < LOG_MAX_FRAMES) {
        move_log(kv, SQLITE_CHECKPOINT_PASSIVE);
        return;
    }
    kv_pool_pause(&kv->pool);
    (void)sqlite3_busy_timeout(kv->writer.db, 0); /* a backup reads for long, nobody waits for it */
    move_log(kv, SQLITE_CHECKPOINT_RESTART);
    (void)sqlite3_busy_timeout(kv->writer.db, KV_BUSY_MS);
    kv_pool_resume(&kv->pool);
}
