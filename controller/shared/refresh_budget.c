#include "controller/shared/refresh_budget.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

/* So much of the rate may be made up for after a pause: workers are not always on time. */
#define CATCH_UP_US 1000000

enum lane { LANE_REFRESHES, LANE_NEWS, LANES };

struct slot {
    int64_t at_us;
    bool news;
    bool granted;
};

struct refresh_budget {
    pthread_mutex_t lock;
    struct map *slots;
    int64_t next_us[LANES]; /* the first slot that is free; finer than ms, so that rates are kept */
    int64_t paid_until_us;  /* every write moves it on by 1/qps */
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
    pthread_mutex_destroy(&budget->lock);
    free(budget);
}

static int64_t gap_us(const struct refresh_limits *limits)
{
    return (int64_t)(1000000 / limits->qps) + 1;
}

static int64_t next_slot(struct refresh_budget *budget, enum lane lane,
                         const struct refresh_limits *limits, int64_t now_us)
{
    int64_t at_us = now_us + limits->interval_ms * 1000;

    if (at_us < budget->next_us[lane])
        at_us = budget->next_us[lane];
    budget->next_us[lane] = at_us + gap_us(limits);
    return at_us;
}

static struct slot *slot_of(struct refresh_budget *budget, const char *key, bool news,
                            const struct refresh_limits *limits, int64_t now_us)
{
    struct slot *slot = map_get(budget->slots, key);

    if (!slot) {
        slot = xcalloc(1, sizeof(*slot));
        slot->at_us = next_slot(budget, news ? LANE_NEWS : LANE_REFRESHES, limits, now_us);
        slot->news = news;
        map_set(budget->slots, key, slot);
    } else if (news && !slot->news) {
        int64_t at_us = next_slot(budget, LANE_NEWS, limits, now_us);
        if (at_us < slot->at_us)
            slot->at_us = at_us;
        slot->news = true;
    }
    return slot;
}

/* Its time has come; whoever went before it may have used it up. */
static void claim(struct refresh_budget *budget, struct slot *slot,
                  const struct refresh_limits *limits, int64_t now_us)
{
    if (budget->paid_until_us < now_us - CATCH_UP_US)
        budget->paid_until_us = now_us - CATCH_UP_US;
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
    map_remove(budget->slots, key);
    pthread_mutex_unlock(&budget->lock);
}
