#include "standalone/store/kv_internal.h"

/* Revisions of one transaction that compacts. */
#define STEP_REVISIONS 512
/* More than this share of what may be kept is over before a limit of size is looked at: one
 * transaction for many writes. */
#define SLACK_SHARE 8
/* Between two looks at what may have become too old, and after a failure. */
#define LOOK_EVERY_MS 1000
#define LOOK_AT_LEAST_EVERY_MS 60000

/*
 * Ages are of the wall clock. A step ahead forgets history early, which costs no write: a watch or a list
 * that is behind gets 410 and begins again, as after many writes. After a step back the other two limits
 * bound the history.
 */
bool kv_history_is_due(const struct kv_history *history, const struct kv_point *point,
                       int64_t written_ms, int64_t now_ms)
{
    const struct kv_point *head = &history->head;

    /* The newest write stays: its revision is the store's. */
    return point->revision < head->revision &&
           (head->revision - point->revision >= history->limits.revisions ||
            head->weight - point->weight >= history->limits.bytes ||
            now_ms - written_ms >= history->limits.age_ms);
}

/* Whether it is worth a transaction. */
static bool is_time(const struct kv_history *history, int64_t now_ms)
{
    uint64_t revisions = history->head.revision - history->compacted.revision;
    uint64_t bytes = history->head.weight - history->compacted.weight;
    const struct kv_limits *limits = &history->limits;

    return revisions > 1 && (history->behind || now_ms >= history->due_at_ms ||
                             revisions > limits->revisions + limits->revisions / SLACK_SHARE ||
                             bytes > limits->bytes + limits->bytes / SLACK_SHARE);
}

uint32_t kv_history_wait_ms(const struct kv *kv)
{
    const struct kv_history *history = &kv->history;

    if (history->head.revision - history->compacted.revision <= 1)
        return UINT32_MAX;
    if (history->behind)
        return 0;
    int64_t wait_ms = history->due_at_ms - clock_wall_us(kv->clock) / 1000;
    if (wait_ms < LOOK_EVERY_MS)
        return LOOK_EVERY_MS;
    return wait_ms > LOOK_AT_LEAST_EVERY_MS ? LOOK_AT_LEAST_EVERY_MS : (uint32_t)wait_ms;
}

struct victim {
    uint64_t revision; /* its own row goes, too: it says that the key is deleted */
    uint64_t previous; /* the row that it replaced; 0: none */
    bool deleted;
};

/* The next revisions that are due, and the point behind them. */
static int find_due(struct kv *kv, struct victim victims[static STEP_REVISIONS], size_t *ret_len,
                    struct kv_point *ret, struct error *err)
{
    struct kv_history *history = &kv->history;
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;
    int64_t now_ms = clock_wall_us(kv->clock) / 1000;
    struct kv_point last = history->compacted;
    size_t len = 0;

    int r = kv_prepare(&kv->writer, KV_LATER, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, last.revision);
    (void)kv_bind_number(statement, 2, STEP_REVISIONS);
    while ((r = kv_step(&kv->writer, statement, "compact", err)) > 0) {
        struct kv_point point = { .revision = kv_column_number(statement, 0),
                                  .weight = kv_column_number(statement, 4) };
        int64_t written_ms = sqlite3_column_int64(statement, 3);
        if (!kv_history_is_due(history, &point, written_ms, now_ms)) {
            if (history->due_at_ms < written_ms + history->limits.age_ms)
                history->due_at_ms = written_ms + history->limits.age_ms;
            break;
        }
        victims[len++] = (struct victim){ .revision = point.revision,
                                          .previous = kv_column_number(statement, 1),
                                          .deleted = sqlite3_column_int(statement, 2) != 0 };
        last = point;
    }
    if (r < 0)
        return r;
    *ret_len = len;
    *ret = last;
    return 0;
}

static int forget(struct kv *kv, uint64_t revision, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_FORGET, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, revision);
    return kv_step(&kv->writer, statement, "compact", err);
}

static int write_compacted(struct kv *kv, const struct kv_point *point, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_COMPACTED, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, point->revision);
    (void)kv_bind_number(statement, 2, point->weight);
    return kv_step(&kv->writer, statement, "compact", err);
}

/* All of it, or nothing: who reads at a revision finds its rows, or that it is compacted. */
static int compact(struct kv *kv, const struct victim *victims, size_t len,
                   const struct kv_point *point, struct error *err)
{
    int r = kv_run(&kv->writer, KV_BEGIN_WRITE, err);

    for (size_t i = 0; r == 0 && i < len; i++) {
        if (victims[i].previous)
            r = forget(kv, victims[i].previous, err);
        if (r == 0 && victims[i].deleted)
            r = forget(kv, victims[i].revision, err);
    }
    if (r == 0)
        r = write_compacted(kv, point, err);
    if (r == 0)
        r = kv_run(&kv->writer, KV_COMMIT, err);
    if (r < 0 && !sqlite3_get_autocommit(kv->writer.db)) {
        struct error ignored;
        (void)!kv_run(&kv->writer, KV_ROLLBACK, &ignored);
    }
    return r;
}

int kv_history_step(struct kv *kv, struct error *err)
{
    struct kv_history *history = &kv->history;
    int64_t now_ms = clock_wall_us(kv->clock) / 1000;
    struct victim victims[STEP_REVISIONS];
    struct kv_point point;
    size_t len;

    if (!is_time(history, now_ms))
        return 0;
    history->behind = false;
    history->due_at_ms = now_ms + LOOK_EVERY_MS;
    int r = find_due(kv, victims, &len, &point, err);
    if (r < 0 || len == 0)
        return r;
    r = compact(kv, victims, len, &point, err);
    if (r < 0)
        return r;
    history->compacted = point;
    history->behind = len == STEP_REVISIONS;
    atomic_store(&kv->compacted, point.revision);
    return 0;
}

uint64_t kv_compacted(struct kv *kv)
{
    return atomic_load(&kv->compacted);
}
