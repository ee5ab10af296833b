#include "standalone/store/kv_internal.h"

/* Revisions of one transaction that compacts. */
#define STEP_REVISIONS 512
/* More than this share of what may be kept is over before a limit of size is looked at: one
 * transaction for many writes. */
#define SLACK_SHARE 8
/* Between two looks at what may have become too old, and after a failure. */
#define LOOK_EVERY_MS 10000

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
    bool now = history->behind || clock_wall_us(kv->clock) / 1000 >= history->due_at_ms;
    return now ? 0 : LOOK_EVERY_MS;
}

static uint64_t minus(uint64_t number, uint64_t limit)
{
    return number > limit ? number - limit : 0;
}

/*
 * The newest of the next revisions that is beyond a limit; what was written before it goes, too. The newest write
 * stays: its revision is the store's. Ages are of the wall clock. A step ahead forgets history early, which costs no
 * write: a watch or a list that is behind gets 410 and begins again, as after many writes. After a step back the other
 * two limits bound the history. *ret has revision 0 if none is due.
 */
static int find_due(struct kv *kv, int64_t now_ms, struct kv_point *ret, struct error *err)
{
    const struct kv_history *history = &kv->history;
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, KV_DUE, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, history->compacted.revision);
    (void)kv_bind_number(statement, 2, STEP_REVISIONS);
    (void)kv_bind_number(statement, 3, history->head.revision);
    (void)kv_bind_number(statement, 4, minus(history->head.revision, history->limits.revisions));
    (void)kv_bind_number(statement, 5, minus(history->head.weight, history->limits.bytes));
    (void)sqlite3_bind_int64(statement, 6, now_ms - history->limits.age_ms);
    r = kv_step(&kv->writer, statement, "compact", err);
    if (r < 0)
        return r;
    *ret = (struct kv_point){ .revision = kv_column_number(statement, 0),
                              .weight = kv_column_number(statement, 1) };
    return 0;
}

static int change(struct kv *kv, enum kv_statement id, uint64_t first, uint64_t second,
                  struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(&kv->writer, id, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, first);
    (void)kv_bind_number(statement, 2, second);
    return kv_step(&kv->writer, statement, "compact", err);
}

/* All of it, or nothing: who reads at a revision finds its rows, or that it is compacted. */
static int compact(struct kv *kv, const struct kv_point *point, struct error *err)
{
    int r = kv_run(&kv->writer, KV_BEGIN_WRITE, err);

    if (r == 0)
        r = change(kv, KV_FORGET, kv->history.compacted.revision, point->revision, err);
    if (r == 0)
        r = change(kv, KV_COMPACTED, point->revision, point->weight, err);
    if (r == 0)
        r = kv_run(&kv->writer, KV_COMMIT, err);
    if (r < 0)
        (void)kv_roll_back(&kv->writer);
    return r;
}

int kv_history_step(struct kv *kv, struct error *err)
{
    struct kv_history *history = &kv->history;
    int64_t now_ms = clock_wall_us(kv->clock) / 1000;
    struct kv_point point;

    if (!is_time(history, now_ms))
        return 0;
    history->behind = false;
    history->due_at_ms = now_ms + LOOK_EVERY_MS;
    int r = find_due(kv, now_ms, &point, err);
    if (r == 0 && point.revision)
        r = compact(kv, &point, err);
    if (r < 0 || !point.revision)
        return r;
    history->behind = point.revision - history->compacted.revision == STEP_REVISIONS;
    history->compacted = point;
    atomic_store(&kv->compacted, point.revision);
    return 0;
}

uint64_t kv_compacted(struct kv *kv)
{
    return atomic_load(&kv->compacted);
}
