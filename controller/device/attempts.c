#include "controller/device/attempts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

struct attempts {
    pthread_mutex_t lock;
    struct map *by_uid;
};

struct attempts *attempts_create(void)
{
    struct attempts *attempts = xcalloc(1, sizeof(*attempts));

    pthread_mutex_init(&attempts->lock, NULL);
    attempts->by_uid = map_create(free);
    return attempts;
}

void attempts_destroy(struct attempts *attempts)
{
    if (!attempts)
        return;

    map_destroy(attempts->by_uid);
    pthread_mutex_destroy(&attempts->lock);
    free(attempts);
}

/* The lock is held. */
static struct attempt *current(struct attempts *attempts, const char *uid, int64_t number,
                               int64_t now_ms)
{
    struct attempt *attempt = map_get(attempts->by_uid, uid);

    if (!attempt) {
        attempt = xcalloc(1, sizeof(*attempt));
        map_set(attempts->by_uid, uid, attempt);
    }
    if (attempt->number != number || !attempt->first_seen_ms)
        *attempt = (struct attempt){ .number = number,
                                     .first_seen_ms = now_ms,
                                     .deleting_ms = attempt->deleting_ms,
                                     .targets = attempt->targets };
    return attempt;
}

struct attempt attempts_get(struct attempts *attempts, const char *uid, int64_t number,
                            int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt ret = *current(attempts, uid, number, now_ms);
    pthread_mutex_unlock(&attempts->lock);
    return ret;
}

void attempts_chosen(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    current(attempts, uid, number, now_ms)->chosen_here = true;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_published(struct attempts *attempts, const char *uid, int64_t number,
                        int64_t began_ms, int64_t acknowledged_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, began_ms);
    attempt->began_ms = began_ms;
    if (acknowledged_ms)
        attempt->published_ms = acknowledged_ms;
    attempt->stop_sent_ms = 0;
    attempt->publishes++;
    pthread_mutex_unlock(&attempts->lock);
}

bool attempts_is_published(struct attempts *attempts, const char *uid)
{
    pthread_mutex_lock(&attempts->lock);
    const struct attempt *attempt = map_get(attempts->by_uid, uid);
    bool ret = attempt && attempt->published_ms;
    pthread_mutex_unlock(&attempts->lock);
    return ret;
}

bool attempts_is_unconfirmed(struct attempts *attempts, const char *uid, int64_t number)
{
    pthread_mutex_lock(&attempts->lock);
    const struct attempt *attempt = map_get(attempts->by_uid, uid);
    bool ret =
        attempt && attempt->number == number && attempt->published_ms && !attempt->confirmed_ms;
    pthread_mutex_unlock(&attempts->lock);
    return ret;
}

void attempts_stop_sent(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    current(attempts, uid, number, now_ms)->stop_sent_ms = now_ms;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_ended(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    current(attempts, uid, number, now_ms)->ended = true;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_deleting(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, now_ms);
    if (!attempt->deleting_ms)
        attempt->deleting_ms = now_ms;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_ordered(struct attempts *attempts, const char *uid, int64_t number, bool ordered,
                      int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, now_ms);
    if (!ordered)
        attempt->ordered_ms = 0;
    else if (!attempt->ordered_ms)
        attempt->ordered_ms = now_ms;
    pthread_mutex_unlock(&attempts->lock);
}

struct attempt attempts_cut(struct attempts *attempts, const char *uid, int64_t number,
                            enum reason reason, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, now_ms);
    bool got_stop = attempt->cut_ms && attempt->stop_sent_ms >= attempt->cut_ms;
    if (!got_stop)
        attempt->cut_reason = reason;
    if (reason && !attempt->cut_ms)
        attempt->cut_ms = now_ms;
    else if (!reason && !got_stop)
        attempt->cut_ms = 0;
    struct attempt ret = *attempt;
    pthread_mutex_unlock(&attempts->lock);
    return ret;
}

bool attempts_confirmed(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    bool first = false;

    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = map_get(attempts->by_uid, uid);
    if (attempt && attempt->number == number) {
        first = !attempt->confirmed_ms;
        attempt->confirmed_ms = now_ms;
        if (attempt->publishes > 1)
            attempt->publishes = 1;
    }
    pthread_mutex_unlock(&attempts->lock);
    return first;
}

bool attempts_sampled(struct attempts *attempts, const char *uid, int64_t number,
                      const struct sample *sample, int64_t now_us)
{
    bool first = false;

    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = map_get(attempts->by_uid, uid);
    if (attempt && attempt->number == number) {
        first = !attempt->sample_us;
        attempt->sample = *sample;
        attempt->sample_us = now_us;
    }
    pthread_mutex_unlock(&attempts->lock);
    return first;
}

void attempts_sample_written(struct attempts *attempts, const char *uid, int64_t sample_us)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = map_get(attempts->by_uid, uid);
    if (attempt && attempt->sample_us == sample_us)
        attempt->sample_us = 0;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_forbidden(struct attempts *attempts, const char *uid, int64_t number, int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, now_ms);
    if (!attempt->forbidden_ms)
        attempt->forbidden_ms = now_ms;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_not_forbidden(struct attempts *attempts, const char *uid)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = map_get(attempts->by_uid, uid);
    if (attempt)
        attempt->forbidden_ms = 0;
    pthread_mutex_unlock(&attempts->lock);
}

size_t attempts_forbidden_count(struct attempts *attempts, int64_t *ret_since_ms)
{
    int64_t since_ms = 0;
    size_t count = 0;
    const char *uid;
    void *value;

    pthread_mutex_lock(&attempts->lock);
    for (size_t i = 0; map_next(attempts->by_uid, &i, &uid, &value);) {
        int64_t forbidden_ms = ((const struct attempt *)value)->forbidden_ms;

        count += forbidden_ms > 0;
        if (forbidden_ms && (!since_ms || forbidden_ms < since_ms))
            since_ms = forbidden_ms;
    }
    pthread_mutex_unlock(&attempts->lock);
    *ret_since_ms = since_ms;
    return count;
}

const char *attempts_key(struct arena *arena, const char *uid, int64_t index)
{
    return arena_printf(arena, "%s/%" PRId64, uid, index);
}

void attempts_targets(struct attempts *attempts, const char *uid, int64_t number, int64_t count,
                      int64_t now_ms)
{
    pthread_mutex_lock(&attempts->lock);
    struct attempt *attempt = current(attempts, uid, number, now_ms);
    if (attempt->targets < count)
        attempt->targets = count;
    pthread_mutex_unlock(&attempts->lock);
}

void attempts_remove(struct attempts *attempts, const char *uid)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    pthread_mutex_lock(&attempts->lock);
    const struct attempt *attempt = map_get(attempts->by_uid, uid);
    for (int64_t i = 0; attempt && i < attempt->targets; i++)
        map_remove(attempts->by_uid, attempts_key(arena, uid, i));
    map_remove(attempts->by_uid, uid);
    pthread_mutex_unlock(&attempts->lock);
}
