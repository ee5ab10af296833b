#include "common/base/timeline.h"

#include <pthread.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/log.h"

/* Timestamps are cut to whole seconds, and small differences are part of an epoch. */
#define SLACK_US (TIMELINE_STEP_US + 1000000)
/* Between the two clocks this thread may have been paused; then they are read again, so often. */
#define MAX_PAUSE_MS 100
#define MAX_READS 3

struct timeline {
    const struct clock *clock;
    pthread_mutex_t lock; /* guards view */
    struct timeline_view view;
};

/* The wall clock at the end of an epoch. */
static int64_t end_of(const struct timeline_view *view, size_t i, int64_t now_us)
{
    const struct timeline_epoch *epoch = &view->epochs[i];

    return i + 1 < view->len ? epoch->wall_us + (epoch[1].steady_us - epoch->steady_us) : now_us;
}

int64_t timeline_steady_us(const struct timeline_view *view, int64_t now_us, int64_t since_us)
{
    if (!view->len)
        return since_us;
    for (size_t i = view->len; i-- > 0;) {
        const struct timeline_epoch *epoch = &view->epochs[i];
        int64_t end_us = end_of(view, i, now_us);

        if (since_us < epoch->wall_us - SLACK_US || since_us > end_us + SLACK_US)
            continue;
        if (since_us > end_us)
            since_us = end_us;
        return epoch->steady_us + (since_us > epoch->wall_us ? since_us - epoch->wall_us : 0);
    }
    if (since_us < view->epochs[0].wall_us)
        return view->epochs[0].steady_us - (view->epochs[0].wall_us - since_us);

    /* A time that this process never saw on its clock: another one wrote it. */
    int64_t steady_us = view->epochs[view->len - 1].steady_us;
    return steady_us > view->from_us ? steady_us : view->from_us;
}

int64_t timeline_age_us(const struct timeline_view *view, int64_t now_us, int64_t since_us)
{
    if (!view->len)
        return now_us - since_us;

    const struct timeline_epoch *last = &view->epochs[view->len - 1];
    int64_t steady_us = timeline_steady_us(view, now_us, since_us);
    if (steady_us < view->epochs[0].steady_us)
        steady_us = view->epochs[0].steady_us;
    return last->steady_us + (now_us - last->wall_us) - steady_us;
}

static struct timeline_epoch read_both(const struct clock *clock)
{
    struct timeline_epoch ret = { 0 };

    for (int reads = 0; reads < MAX_READS; reads++) {
        int64_t before_ms = clock_boot_ms(clock);
        ret.wall_us = clock_wall_us(clock);
        ret.steady_us = before_ms * 1000;
        if (clock_boot_ms(clock) - before_ms <= MAX_PAUSE_MS)
            break;
    }
    return ret;
}

struct timeline *timeline_create(const struct clock *clock)
{
    struct timeline *timeline = xcalloc(1, sizeof(*timeline));

    timeline->clock = clock;
    pthread_mutex_init(&timeline->lock, NULL);
    timeline->view = (struct timeline_view){ .epochs = { read_both(clock) }, .len = 1 };
    timeline->view.from_us = timeline->view.epochs[0].steady_us;
    return timeline;
}

void timeline_destroy(struct timeline *timeline)
{
    if (!timeline)
        return;

    pthread_mutex_destroy(&timeline->lock);
    free(timeline);
}

/* Locked. How far the wall clock went since the last epoch began, beyond the steady one. */
static int64_t note_step(struct timeline *timeline, const struct timeline_epoch *now)
{
    struct timeline_view *view = &timeline->view;
    const struct timeline_epoch *last = &view->epochs[view->len - 1];
    int64_t step_us = (now->wall_us - last->wall_us) - (now->steady_us - last->steady_us);

    if (step_us >= -TIMELINE_STEP_US && step_us <= TIMELINE_STEP_US)
        return 0;
    if (view->len == TIMELINE_MAX_EPOCHS)
        memmove(&view->epochs[0], &view->epochs[1], --view->len * sizeof(view->epochs[0]));
    view->epochs[view->len++] = *now;
    return step_us;
}

int64_t timeline_now_us(struct timeline *timeline, struct timeline_view *ret_view)
{
    pthread_mutex_lock(&timeline->lock);
    struct timeline_epoch now = read_both(timeline->clock);
    int64_t step_us = note_step(timeline, &now);
    if (ret_view)
        *ret_view = timeline->view;
    pthread_mutex_unlock(&timeline->lock);

    if (step_us)
        log_warn("the wall clock made a step, what waits is counted by the steady clock", "seconds",
                 LOG_INT(step_us / 1000000), NULL);
    return now.wall_us;
}

void timeline_take_over(struct timeline *timeline, int64_t since_us)
{
    pthread_mutex_lock(&timeline->lock);
    struct timeline_epoch now = read_both(timeline->clock);
    timeline->view = (struct timeline_view){
        .epochs = { { since_us, now.steady_us - (now.wall_us - since_us) } },
        .len = 1,
        .from_us = now.steady_us,
    };
    pthread_mutex_unlock(&timeline->lock);
}

int64_t timeline_since_us(struct timeline *timeline)
{
    struct timeline_view view;

    (void)timeline_now_us(timeline, &view);
    return view.epochs[view.len - 1].wall_us;
}
