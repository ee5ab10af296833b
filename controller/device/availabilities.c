#include "controller/device/availabilities.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

struct availabilities {
    pthread_mutex_t lock;
    struct map *items; /* uid -> struct availability */
    struct map *cuts;  /* uid -> int64_t, not 0 */
    availabilities_fn *function;
    void *ctx;
};

struct availabilities *availabilities_create(void)
{
    struct availabilities *availabilities = xcalloc(1, sizeof(*availabilities));

    pthread_mutex_init(&availabilities->lock, NULL);
    availabilities->items = map_create(free);
    availabilities->cuts = map_create(free);
    return availabilities;
}

void availabilities_destroy(struct availabilities *availabilities)
{
    if (!availabilities)
        return;

    map_destroy(availabilities->items);
    map_destroy(availabilities->cuts);
    pthread_mutex_destroy(&availabilities->lock);
    free(availabilities);
}

/* With the lock. */
static struct availability item_of(const struct availabilities *availabilities, const char *uid)
{
    const struct availability *item = map_get(availabilities->items, uid);

    return item ? *item : (struct availability){ .state = AVAILABILITY_UNSET };
}

/* With the lock. */
static void item_put(struct availabilities *availabilities, const char *uid,
                     const struct availability *is)
{
    struct availability *item = map_get(availabilities->items, uid);

    if (is->state == AVAILABILITY_UNSET) {
        map_remove(availabilities->items, uid);
        return;
    }
    if (!item) {
        item = xcalloc(1, sizeof(*item));
        map_set(availabilities->items, uid, item);
    }
    *item = *is;
}

static bool is_later(int64_t close_us, int64_t before_us)
{
    return before_us && (!close_us || close_us > before_us);
}

/* A Task may fit that did not, or has to end at another time. */
static bool matters(const struct availability *before, const struct availability *is,
                    int64_t now_us)
{
    if (availability_is_open(before) != availability_is_open(is) ||
        availability_is_open_at(before, now_us) != availability_is_open_at(is, now_us))
        return true;
    if (availability_is_open(is))
        return is_later(is->next_us, before->next_us);
    return is->stop_us != before->stop_us || is->since_us != before->since_us;
}

bool availabilities_set(struct availabilities *availabilities, const char *uid,
                        const struct availability *is, int64_t now_us)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability before = item_of(availabilities, uid);
    item_put(availabilities, uid, is);
    pthread_mutex_unlock(&availabilities->lock);
    return matters(&before, is, now_us);
}

struct availability availabilities_get(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability ret = item_of(availabilities, uid);
    pthread_mutex_unlock(&availabilities->lock);
    return ret;
}

bool availabilities_is_empty(struct availabilities *availabilities)
{
    pthread_mutex_lock(&availabilities->lock);
    bool ret = !map_len(availabilities->items) && !map_len(availabilities->cuts);
    pthread_mutex_unlock(&availabilities->lock);
    return ret;
}

void availabilities_cut(struct availabilities *availabilities, const char *uid, int64_t count)
{
    pthread_mutex_lock(&availabilities->lock);
    int64_t *cuts = map_get(availabilities->cuts, uid);
    if (!cuts) {
        cuts = xcalloc(1, sizeof(*cuts));
        map_set(availabilities->cuts, uid, cuts);
    }
    *cuts += count;
    if (!*cuts)
        map_remove(availabilities->cuts, uid);
    pthread_mutex_unlock(&availabilities->lock);
}

int64_t availabilities_take_cuts(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    const int64_t *cuts = map_get(availabilities->cuts, uid);
    int64_t ret = cuts && *cuts > 0 ? *cuts : 0;
    if (ret)
        map_remove(availabilities->cuts, uid);
    pthread_mutex_unlock(&availabilities->lock);
    return ret;
}

void availabilities_remove(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    map_remove(availabilities->items, uid);
    map_remove(availabilities->cuts, uid);
    pthread_mutex_unlock(&availabilities->lock);
}

void availabilities_subscribe(struct availabilities *availabilities, availabilities_fn *function,
                              void *ctx)
{
    availabilities->function = function;
    availabilities->ctx = ctx;
}

void availabilities_report(struct availabilities *availabilities, const struct kube_name *proplet,
                           bool open)
{
    if (availabilities->function)
        availabilities->function(availabilities->ctx, proplet, open);
}
