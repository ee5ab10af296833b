#include "controller/device/availabilities.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"

struct availabilities {
    pthread_mutex_t lock;
    struct map *items; /* uid -> struct availability */
    availabilities_fn *function;
    void *ctx;
};

struct availabilities *availabilities_create(void)
{
    struct availabilities *availabilities = xcalloc(1, sizeof(*availabilities));

    pthread_mutex_init(&availabilities->lock, NULL);
    availabilities->items = map_create(free);
    return availabilities;
}

void availabilities_destroy(struct availabilities *availabilities)
{
    if (!availabilities)
        return;

    map_destroy(availabilities->items);
    pthread_mutex_destroy(&availabilities->lock);
    free(availabilities);
}

/* With the lock. */
static struct availability item_of(const struct availabilities *availabilities, const char *uid)
{
    const struct availability *item = map_get(availabilities->items, uid);

    return item ? *item : (struct availability){ .state = AVAILABILITY_UNSET };
}

static bool is_open_at(const struct availability *is, int64_t now_us)
{
    return availability_is_open(is) && (!is->next_us || now_us < is->next_us);
}

bool availabilities_set(struct availabilities *availabilities, const char *uid,
                        const struct availability *is, int64_t now_us)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability before = item_of(availabilities, uid);
    if (is->state == AVAILABILITY_UNSET) {
        map_remove(availabilities->items, uid);
    } else {
        struct availability *item = xmalloc(sizeof(*item));

        *item = *is;
        map_set(availabilities->items, uid, item);
    }
    pthread_mutex_unlock(&availabilities->lock);
    return availability_is_open(&before) != availability_is_open(is) ||
           is_open_at(&before, now_us) != is_open_at(is, now_us);
}

struct availability availabilities_get(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability ret = item_of(availabilities, uid);
    pthread_mutex_unlock(&availabilities->lock);
    return ret;
}

bool availabilities_is_open(struct availabilities *availabilities, const char *uid, int64_t now_us)
{
    const struct availability is = availabilities_get(availabilities, uid);

    return is_open_at(&is, now_us);
}

void availabilities_remove(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    map_remove(availabilities->items, uid);
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
