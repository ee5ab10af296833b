#include "controller/shared/refresh_budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

/* So much of the rate may be made up for after a pause, unless the limits say otherwise: workers are not always on time. */
#define CATCH_UP_MS 1000

enum lane_name { LANE_REFRESHES, LANE_NEWS, LANES };

struct slot {
    int64_t at_us;
    enum lane_name lane;
    bool news; /* which may have the slot of a refresh, if that is earlier */
    bool granted;
};

/* Times are finer than ms, so that rates are kept. */
struct lane {
    int64_t next_us;     /* behind it all slots are free */
    int64_t *given_back; /* those before it that are, too: a heap, the earliest first */
    size_t len, room;
};

struct refresh_budget {
    pthread_mutex_t lock;
    struct map *slots;
    struct lane lanes[LANES];
    int64_t paid_until_us; /* every write moves it on by 1/qps */
};

struct refresh_budget *refresh_budget_create(void)
{
    struct refresh_budget *budget = xcalloc(1, sizeof(*budget));

    pthread_mutex_init(&budget->lock, NULL);
    budget->slots = map_create(free);
    return budget;
}

void refresh_budget_destroy(struct refresh_budget *budget)
{
    if (!budget)
        return;

    map_destroy(budget->slots);
    for (int lane = 0; lane < LANES; lane++)
        free(budget->lanes[lane].given_back);
    pthread_mutex_destroy(&budget->lock);
    free(budget);
}

static int64_t gap_us(const struct refresh_limits *limits)
{
    return (int64_t)(1000000 / limits->qps) + 1;
}

static void give_back(struct lane *lane, int64_t at_us)
{
    if (lane->len == lane->room) {
        lane->room = lane->room ? lane->room * 2 : 64;
        lane->given_back = xrealloc(lane->given_back, lane->room * sizeof(*lane->given_back));
    }

    size_t i = lane->len++;

    for (; i && at_us < lane->given_back[(i - 1) / 2]; i = (i - 1) / 2)
        lane->given_back[i] = lane->given_back[(i - 1) / 2];
    lane->given_back[i] = at_us;
}

static void drop_first(struct lane *lane)
{
    int64_t last_us = lane->given_back[--lane->len];
    size_t i = 0;

    for (size_t child = 1; child < lane->len; child = 2 * i + 1) {
        if (child + 1 < lane->len && lane->given_back[child + 1] < lane->given_back[child])
            child++;
        if (last_us <= lane->given_back[child])
            break;
        lane->given_back[i] = lane->given_back[child];
        i = child;
    }
    lane->given_back[i] = last_us;
}

/* The first free one that is not before. */
static int64_t next_slot(struct lane *lane, const struct refresh_limits *limits, int64_t now_us)
{
    int64_t earliest_us = now_us + limits->interval_ms * 1000;

    while (lane->len && lane->given_back[0] < earliest_us)
        drop_first(lane); /* too late for anybody */
    if (lane->len) {
        int64_t at_us = lane->given_back[0];

        drop_first(lane);
        return at_us;
    }
    if (lane->next_us < earliest_us)
        lane->next_us = earliest_us;

    int64_t at_us = lane->next_us;

    lane->next_us += gap_us(limits);
    return at_us;
}

static struct slot *slot_of(struct refresh_budget *budget, const char *key, bool news,
                            const struct refresh_limits *limits, int64_t now_us)
{
    struct slot *slot = map_get(budget->slots, key);

    if (!slot) {
        slot = xcalloc(1, sizeof(*slot));
        slot->lane = news ? LANE_NEWS : LANE_REFRESHES;
        slot->at_us = next_slot(&budget->lanes[slot->lane], limits, now_us);
        slot->news = news;
        map_set(budget->slots, key, slot);
    } else if (news && !slot->news) {
        struct slot other = { .at_us = next_slot(&budget->lanes[LANE_NEWS], limits, now_us),
                              .lane = LANE_NEWS,
                              .news = true };
        struct slot *later = other.at_us < slot->at_us ? slot : &other;

        give_back(&budget->lanes[later->lane], later->at_us);
        if (later == slot)
            *slot = other;
        slot->news = true;
    }
    return slot;
}

/* Its time has come; whoever went before it may have used it up. */
static void claim(struct refresh_budget *budget, struct slot *slot,
                  const struct refresh_limits *limits, int64_t now_us)
{
    int64_t catch_up_ms = limits->catch_up_ms ? limits->catch_up_ms : CATCH_UP_MS;

    if (budget->paid_until_us < now_us - catch_up_ms * 1000)
        budget->paid_until_us = now_us - catch_up_ms * 1000;
    if (budget->paid_until_us > now_us) {
        slot->at_us = budget->paid_until_us;
        return;
    }
    budget->paid_until_us += gap_us(limits);
    slot->granted = true;
}

int64_t refresh_budget_reserve(struct refresh_budget *budget, const char *key, bool news,
                               const struct refresh_limits *limits, int64_t now_ms)
{
    int64_t now_us = now_ms * 1000;

    pthread_mutex_lock(&budget->lock);
    struct slot *slot = slot_of(budget, key, news, limits, now_us);
    if (!slot->granted && slot->at_us <= now_us)
        claim(budget, slot, limits, now_us);
    int64_t at_ms = (slot->at_us + 999) / 1000;
    pthread_mutex_unlock(&budget->lock);
    return at_ms;
}

void refresh_budget_release(struct refresh_budget *budget, const char *key)
{
    pthread_mutex_lock(&budget->lock);
    const struct slot *slot = map_get(budget->slots, key);
    if (slot && !slot->granted)
        give_back(&budget->lanes[slot->lane], slot->at_us);
    map_remove(budget->slots, key);
    pthread_mutex_unlock(&budget->lock);
}
