#include "common/kube/rate_limit.h"

#include <assert.h>
#include <pthread.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"

/* A client waits no longer for its slot. */
#define MAX_WAIT_MS (60u * 60 * 1000)

struct rate_limit {
    double interval_ms;
    double burst_ms; /* how far slots may be taken ahead of their time */
    const struct clock *clock;

    pthread_mutex_t lock; /* leaf: guards what follows */
    pthread_cond_t canceled_changed;
    double next_ms; /* when the next slot begins if no burst is used */
    bool canceled;
};

struct rate_limit *rate_limit_create(double qps, unsigned burst, const struct clock *clock)
{
    struct rate_limit *limit = xcalloc(1, sizeof(*limit));

    assert(qps > 0 && burst > 0);
    limit->interval_ms = 1000 / qps;
    limit->burst_ms = limit->interval_ms * (burst - 1);
    limit->clock = clock;
    (void)pthread_mutex_init(&limit->lock, NULL);
    cond_init(&limit->canceled_changed);
    return limit;
}

void rate_limit_destroy(struct rate_limit *limit)
{
    if (!limit)
        return;

    pthread_cond_destroy(&limit->canceled_changed);
    pthread_mutex_destroy(&limit->lock);
    free(limit);
}

/* With the lock. */
static uint32_t reserve(struct rate_limit *limit)
{
    double now_ms = (double)clock_monotonic_ms(limit->clock);

    if (limit->next_ms < now_ms)
        limit->next_ms = now_ms;
    double wait_ms = limit->next_ms - limit->burst_ms - now_ms;
    if (wait_ms > MAX_WAIT_MS)
        return MAX_WAIT_MS;
    limit->next_ms += limit->interval_ms;
    return wait_ms > 0 ? (uint32_t)wait_ms : 0;
}

uint32_t rate_limit_reserve(struct rate_limit *limit)
{
    pthread_mutex_lock(&limit->lock);
    uint32_t wait_ms = reserve(limit);
    pthread_mutex_unlock(&limit->lock);
    return wait_ms;
}

int rate_limit_wait(struct rate_limit *limit, struct error *err)
{
    pthread_mutex_lock(&limit->lock);
    const struct timespec deadline = cond_deadline(reserve(limit));
    while (!limit->canceled && cond_wait_until(&limit->canceled_changed, &limit->lock, &deadline))
        continue;
    bool canceled = limit->canceled;
    pthread_mutex_unlock(&limit->lock);
    return canceled ? error_set(err, ERROR_CANCELED, "canceled, this process is stopping") : 0;
}

void rate_limit_cancel(struct rate_limit *limit)
{
    pthread_mutex_lock(&limit->lock);
    limit->canceled = true;
    pthread_cond_broadcast(&limit->canceled_changed);
    pthread_mutex_unlock(&limit->lock);
}
