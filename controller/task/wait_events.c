#include "controller/task/wait_events.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"

/* How often the entries are searched for those that can go, while the table is full. */
#define SWEEP_MS 1000
#define SHARE_MS (1000 / WAIT_EVENTS_PER_SECOND)

struct waiting {
    enum reason reason; /* REASON_NONE: it does not wait, and had an Event lately */
    enum reason told;   /* of the last Event; REASON_NONE: it had none */
    int64_t since_ms;   /* when it began to wait for this reason */
    int64_t told_ms;
};

struct wait_events {
    pthread_mutex_t lock;
    struct map *tasks; /* uid -> struct waiting, freed here */
    int64_t swept_ms;
    int64_t paid_until_ms; /* each Event moves it on by its share of a second */
    int64_t take_ms;       /* when the next wait_events_take was announced for; INT64_MAX: none */
};

static struct metric OMITTED = {
    .type = METRIC_COUNTER,
    .name = "propeller_wait_events_omitted_total",
    .help = "Number of times that a waiting Task was not followed, because too many Tasks wait.",
};

static int64_t pause_ends_ms(const struct waiting *waiting)
{
    return waiting->told == REASON_NONE ? INT64_MIN : waiting->told_ms + WAIT_EVENT_PAUSE_MS;
}

/* INT64_MAX: no Event is to come. */
static int64_t due_ms(const struct waiting *waiting)
{
    int64_t due = waiting->since_ms + WAIT_EVENT_AFTER_MS;

    if (waiting->reason == REASON_NONE || waiting->told == waiting->reason)
        return INT64_MAX;
    return due > pause_ends_ms(waiting) ? due : pause_ends_ms(waiting);
}

/* Frees the Tasks that do not wait and whose pause is over; INT64_MAX: all Tasks. */
static void sweep(struct wait_events *events, int64_t now_ms)
{
    struct map *kept = map_create(NULL);
    const char *key;
    void *value;

    for (size_t i = 0; map_next(events->tasks, &i, &key, &value);) {
        const struct waiting *waiting = value;
        if (now_ms == INT64_MAX ||
            (waiting->reason == REASON_NONE && now_ms >= pause_ends_ms(waiting)))
            free(value);
        else
            map_set(kept, key, value);
    }
    map_destroy(events->tasks);
    events->tasks = kept;
    events->swept_ms = now_ms;
}

struct wait_events *wait_events_create(void)
{
    struct wait_events *events = xcalloc(1, sizeof(*events));

    pthread_mutex_init(&events->lock, NULL);
    events->tasks = map_create(NULL);
    events->take_ms = INT64_MAX;
    return events;
}

void wait_events_destroy(struct wait_events *events)
{
    if (!events)
        return;

    sweep(events, INT64_MAX);
    map_destroy(events->tasks);
    pthread_mutex_destroy(&events->lock);
    free(events);
}

/* NULL: there is no room. */
static struct waiting *follow(struct wait_events *events, const char *uid, int64_t now_ms)
{
    struct waiting *waiting = map_get(events->tasks, uid);

    if (waiting)
        return waiting;
    if (map_len(events->tasks) >= WAIT_EVENTS_TASKS && now_ms - events->swept_ms >= SWEEP_MS)
        sweep(events, now_ms);
    if (map_len(events->tasks) >= WAIT_EVENTS_TASKS)
        return NULL;
    waiting = xcalloc(1, sizeof(*waiting));
    map_set(events->tasks, uid, waiting);
    return waiting;
}

/* NULL: it is not followed. */
static struct waiting *note(struct wait_events *events, const char *uid, enum reason reason,
                            int64_t now_ms)
{
    struct waiting *waiting =
        reason == REASON_NONE ? map_get(events->tasks, uid) : follow(events, uid, now_ms);

    if (!waiting)
        return NULL;
    if (waiting->reason != reason) {
        waiting->reason = reason;
        waiting->since_ms = now_ms;
    }
    if (reason != REASON_NONE || now_ms < pause_ends_ms(waiting))
        return waiting;
    free(map_take(events->tasks, uid));
    return NULL;
}

bool wait_events_note(struct wait_events *events, const char *uid, enum reason reason,
                      int64_t now_ms)
{
    pthread_mutex_lock(&events->lock);
    const struct waiting *waiting = note(events, uid, reason, now_ms);
    bool omitted = !waiting && reason != REASON_NONE;
    bool early = waiting && due_ms(waiting) < events->take_ms;
    if (early)
        events->take_ms = due_ms(waiting);
    pthread_mutex_unlock(&events->lock);

    if (omitted)
        metric_add(&OMITTED, 1, NULL);
    return early;
}

void wait_events_forget(struct wait_events *events, const char *uid)
{
    pthread_mutex_lock(&events->lock);
    free(map_take(events->tasks, uid));
    pthread_mutex_unlock(&events->lock);
}

/* NULL: there is none. */
static struct waiting *find_next(const struct wait_events *events, const char **ret_uid)
{
    struct waiting *next = NULL;
    const char *key;
    void *value;

    for (size_t i = 0; map_next(events->tasks, &i, &key, &value);) {
        if (due_ms(value) == INT64_MAX || (next && due_ms(next) <= due_ms(value)))
            continue;
        next = value;
        *ret_uid = key;
    }
    return next;
}

size_t wait_events_take(struct wait_events *events, int64_t now_ms,
                        struct wait_event ret[static WAIT_EVENTS_PER_SECOND], uint32_t *ret_next_ms)
{
    struct waiting *next;
    const char *uid;
    size_t len = 0;

    pthread_mutex_lock(&events->lock);
    if (events->paid_until_ms < now_ms - 1000)
        events->paid_until_ms = now_ms - 1000;
    while ((next = find_next(events, &uid)) && due_ms(next) <= now_ms &&
           events->paid_until_ms + SHARE_MS <= now_ms) {
        events->paid_until_ms += SHARE_MS;
        (void)str_copy(ret[len].uid, sizeof(ret[len].uid), uid);
        ret[len++].reason = next->reason;
        next->told = next->reason;
        next->told_ms = now_ms;
    }
    events->take_ms = next ? due_ms(next) : INT64_MAX;
    if (events->take_ms <= now_ms)
        events->take_ms = events->paid_until_ms + SHARE_MS;
    *ret_next_ms = next ? (uint32_t)(events->take_ms - now_ms) : 0;
    pthread_mutex_unlock(&events->lock);
    return len;
}
