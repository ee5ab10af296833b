#include "controller/device/fleet_brake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

/* Bursts are this long: a fleet of any size that goes at once is a handful of them. */
#define BURST_US INT64_C(10000000)

struct member {
    bool running;
    int64_t since_us; /* of its burst */
};

struct fleet_brake {
    pthread_mutex_t lock;
    struct map *members; /* Proplet key -> struct member */
    size_t running;
    struct brake_burst *bursts; /* the earliest first; none is empty */
    size_t len, cap;
    bool changed; /* since the plan was made */
    struct brake_plan plan;
    int64_t released_ms;
    bool told; /* that it holds */
};

struct fleet_brake *fleet_brake_create(void)
{
    struct fleet_brake *brake = xcalloc(1, sizeof(*brake));

    pthread_mutex_init(&brake->lock, NULL);
    brake->members = map_create(free);
    return brake;
}

void fleet_brake_destroy(struct fleet_brake *brake)
{
    if (!brake)
        return;

    map_destroy(brake->members);
    pthread_mutex_destroy(&brake->lock);
    free(brake->bursts);
    free(brake);
}

/* The first burst that is not before since_us. */
static size_t position_of(const struct fleet_brake *brake, int64_t since_us)
{
    size_t low = 0;
    size_t high = brake->len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (brake->bursts[middle].since_us < since_us)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void burst_add(struct fleet_brake *brake, int64_t since_us)
{
    size_t at = position_of(brake, since_us);

    if (at < brake->len && brake->bursts[at].since_us == since_us) {
        brake->bursts[at].count++;
        return;
    }
    if (brake->len == brake->cap) {
        brake->cap = brake->cap ? 2 * brake->cap : 16;
        brake->bursts = xrealloc(brake->bursts, brake->cap * sizeof(*brake->bursts));
    }
    memmove(&brake->bursts[at + 1], &brake->bursts[at],
            (brake->len++ - at) * sizeof(*brake->bursts));
    brake->bursts[at] = (struct brake_burst){ .since_us = since_us, .count = 1 };
}

static void burst_remove(struct fleet_brake *brake, int64_t since_us)
{
    size_t at = position_of(brake, since_us);

    if (--brake->bursts[at].count)
        return;
    memmove(&brake->bursts[at], &brake->bursts[at + 1],
            (--brake->len - at) * sizeof(*brake->bursts));
}

static void count_out(struct fleet_brake *brake, const struct member *member)
{
    if (member->running)
        brake->running--;
    else
        burst_remove(brake, member->since_us);
}

static void count_in(struct fleet_brake *brake, const struct member *member)
{
    if (member->running)
        brake->running++;
    else
        burst_add(brake, member->since_us);
}

/* Locked. true: it held, and does no more. */
static bool evaluate(struct fleet_brake *brake, int64_t now_us, int64_t now_ms)
{
    bool held = brake->plan.holds;

    if (!brake->changed && (!held || now_us < brake->plan.until_us))
        return false;

    const struct brake_observed observed = {
        .running = brake->running,
        .bursts = brake->bursts,
        .len = brake->len,
        .now_us = now_us,
    };
    brake->changed = false;
    brake->plan = brake_plan(&observed);
    if (!held || brake->plan.holds)
        return false;
    brake->released_ms = now_ms;
    return true;
}

bool fleet_brake_note(struct fleet_brake *brake, const struct kube_name *proplet,
                      enum brake_member kind, int64_t offline_since_us, int64_t now_us,
                      int64_t now_ms)
{
    struct member fresh = { .running = kind == BRAKE_RUNNING };
    char key[KUBE_KEY_LEN];

    kube_name_key(proplet, key);
    if (kind == BRAKE_OFFLINE)
        fresh.since_us = offline_since_us - offline_since_us % BURST_US;

    pthread_mutex_lock(&brake->lock);
    struct member *member = map_get(brake->members, key);
    bool released = false;
    bool same = member ? kind != BRAKE_NO_MEMBER && member->running == fresh.running &&
                             member->since_us == fresh.since_us
                       : kind == BRAKE_NO_MEMBER;
    if (!same) {
        if (member) {
            count_out(brake, member);
            map_remove(brake->members, key);
        }
        if (kind != BRAKE_NO_MEMBER) {
            member = xmalloc(sizeof(*member));
            *member = fresh;
            map_set(brake->members, key, member);
            count_in(brake, member);
        }
        brake->changed = true;
        released = evaluate(brake, now_us, now_ms);
    }
    pthread_mutex_unlock(&brake->lock);
    return released;
}

struct brake_state fleet_brake_state(struct fleet_brake *brake, int64_t now_us, int64_t now_ms)
{
    pthread_mutex_lock(&brake->lock);
    (void)evaluate(brake, now_us, now_ms); /* by time alone: each of its Tasks is due then itself */
    struct brake_state ret = { .plan = brake->plan, .released_ms = brake->released_ms };
    pthread_mutex_unlock(&brake->lock);
    return ret;
}

bool fleet_brake_news(struct fleet_brake *brake, int64_t now_us, int64_t now_ms,
                      struct brake_plan *ret)
{
    pthread_mutex_lock(&brake->lock);
    (void)evaluate(brake, now_us, now_ms);
    bool news = brake->told != brake->plan.holds;
    brake->told = brake->plan.holds;
    *ret = brake->plan;
    pthread_mutex_unlock(&brake->lock);
    return news;
}
