#include "common/runtime/workqueue.h"

#include <assert.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/map.h"
#include "common/runtime/backoff.h"
#include "common/runtime/metrics.h"

#define BACKOFF_BASE_MS 5
#define BACKOFF_MAX_MS (5 * 60 * 1000)
#define BACKOFF_LOW_PERCENT 90
#define BACKOFF_HIGH_PERCENT 110

#define NOBODY_WATCHES INT64_MAX

/* Names of client-go. Depth counts what is due, not what waits for its time. */
static struct metric depth_metric = { .type = METRIC_GAUGE,
                                      .name = "workqueue_depth",
                                      .help = "Number of items that are due and not yet processed.",
                                      .labels = { "name" } };
static struct metric adds_metric = { .type = METRIC_COUNTER,
                                     .name = "workqueue_adds_total",
                                     .help = "Number of items added that were not waiting already.",
                                     .labels = { "name" } };
static struct metric waited_metric = {
    .type = METRIC_HISTOGRAM,
    .name = "workqueue_queue_duration_seconds",
    .help = "Time for which an item that is due waits for a worker.",
    .labels = { "name" },
};
static struct metric retries_metric = { .type = METRIC_COUNTER,
                                        .name = "workqueue_retries_total",
                                        .help = "Number of items added again after a failure.",
                                        .labels = { "name" } };

/*
 *                 add_after               due
 *      ITEM_IDLE ----------> ITEM_DELAYED -----> ITEM_READY --get--> ITEM_IDLE + processing
 *          |  \                                      ^                      | add_after
 *          |   +-----------------add-----------------+                      v
 *        freed, if it has not failed                              ITEM_AGAIN + processing
 *                                                                           | done
 *                                                                           v
 *                                                                 ITEM_DELAYED or ITEM_READY
 */
enum item_place { ITEM_IDLE, ITEM_DELAYED, ITEM_READY, ITEM_AGAIN };

struct item {
    enum item_place place;
    bool processing;
    uint32_t failures;
    int64_t due_ms;
    uint64_t sequence; /* first come, first served among those due at the same time */
    size_t heap_index; /* of ITEM_DELAYED */
    struct item *next; /* of ITEM_READY */
    size_t ns_len;     /* key is "ns/name", or "name" if this is 0 */
    char key[];
};

struct workqueue {
    char *name;
    const struct clock *clock;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct map *items;  /* by key, owned */
    struct item **heap; /* ITEM_DELAYED, the earliest first */
    size_t heap_len, heap_cap;
    struct item *ready; /* ITEM_READY, in the order they became due */
    struct item **ready_end;
    size_t ready_len;
    uint64_t sequence;
    int64_t watched_ms; /* a worker sleeps until then at most, for all who sleep without a time */
    bool shutdown;
};

/* What happened under the lock, counted after it: the metrics have a lock of their own. */
struct tally {
    size_t ready_before, ready_after;
    bool added, retried, taken;
    int64_t waited_ms; /* taken: since it was due */
};

static void report(struct workqueue *queue, const struct tally *tally)
{
    if (tally->ready_after != tally->ready_before)
        metric_add(&depth_metric, (double)tally->ready_after - (double)tally->ready_before,
                   queue->name, NULL);
    if (tally->added)
        metric_add(&adds_metric, 1, queue->name, NULL);
    if (tally->retried)
        metric_add(&retries_metric, 1, queue->name, NULL);
    if (tally->taken)
        metric_observe(&waited_metric, (double)tally->waited_ms / 1000, queue->name, NULL);
}

struct workqueue *workqueue_create(const char *name, const struct clock *clock)
{
    struct workqueue *queue = xcalloc(1, sizeof(*queue));

    queue->name = xstrdup(name);
    queue->clock = clock;
    (void)pthread_mutex_init(&queue->lock, NULL);
    cond_init(&queue->changed);
    queue->items = map_create(free);
    queue->ready_end = &queue->ready;
    queue->watched_ms = NOBODY_WATCHES;
    metric_add(&depth_metric, 0, name, NULL);
    metric_add(&adds_metric, 0, name, NULL);
    metric_add(&retries_metric, 0, name, NULL);
    metric_add(&waited_metric, 0, name, NULL);
    return queue;
}

void workqueue_destroy(struct workqueue *queue)
{
    if (!queue)
        return;
    workqueue_shutdown(queue);
    map_destroy(queue->items);
    free(queue->heap);
    (void)pthread_cond_destroy(&queue->changed);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue->name);
    free(queue);
}

static bool is_before(const struct item *a, const struct item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->sequence < b->sequence;
}

static void heap_place(struct workqueue *queue, struct item *item, size_t index)
{
    queue->heap[index] = item;
    item->heap_index = index;
}

static void heap_up(struct workqueue *queue, struct item *item)
{
    size_t index = item->heap_index;

    while (index > 0 && is_before(item, queue->heap[(index - 1) / 2])) {
        heap_place(queue, queue->heap[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    heap_place(queue, item, index);
}

static void heap_down(struct workqueue *queue, struct item *item)
{
    size_t index = item->heap_index;

    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= queue->heap_len)
            break;
        if (child + 1 < queue->heap_len && is_before(queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!is_before(queue->heap[child], item))
            break;
        heap_place(queue, queue->heap[child], index);
        index = child;
    }
    heap_place(queue, item, index);
}

static void heap_push(struct workqueue *queue, struct item *item)
{
    if (queue->heap_len == queue->heap_cap) {
        queue->heap_cap = queue->heap_cap ? 2 * queue->heap_cap : 16;
        queue->heap = xrealloc(queue->heap, queue->heap_cap * sizeof(struct item *));
    }
    item->place = ITEM_DELAYED;
    item->sequence = queue->sequence++;
    item->heap_index = queue->heap_len++;
    heap_up(queue, item);
}

static struct item *heap_pop(struct workqueue *queue)
{
    struct item *first = queue->heap[0];
    struct item *last = queue->heap[--queue->heap_len];

    if (last != first) {
        last->heap_index = 0;
        heap_down(queue, last);
    }
    return first;
}

/* Moves what has become due from the heap to the end of the ready list. */
static void promote(struct workqueue *queue)
{
    int64_t now = clock_monotonic_ms(queue->clock);

    while (queue->heap_len && queue->heap[0]->due_ms <= now) {
        struct item *item = heap_pop(queue);

        item->place = ITEM_READY;
        item->next = NULL;
        *queue->ready_end = item;
        queue->ready_end = &item->next;
        queue->ready_len++;
    }
}

/* The item of the heap is due at another time than before: tells one who sleeps if that is news. */
static void tell_of(struct workqueue *queue, const struct item *item)
{
    bool is_next = queue->heap[0] == item;

    promote(queue);
    if (is_next || queue->ready)
        (void)pthread_cond_signal(&queue->changed);
}

static struct item *item_of(struct workqueue *queue, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    return map_get(queue->items, kube_name_key(name, key));
}

static struct item *item_make(struct workqueue *queue, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];
    struct item *item = map_get(queue->items, kube_name_key(name, key));

    if (item)
        return item;

    size_t size = strlen(key) + 1;

    item = xcalloc(1, sizeof(*item) + size);
    item->ns_len = strlen(name->ns);
    memcpy(item->key, key, size);
    map_set(queue->items, key, item);
    return item;
}

/* Forgets a name of which nothing needs to be known. */
static void item_drop_if_unused(struct workqueue *queue, const struct item *item)
{
    if (item->place == ITEM_IDLE && !item->processing && !item->failures)
        (void)map_remove(queue->items, item->key);
}

/* Invariants 1 and 3. true: it did not wait before. */
static bool add_at(struct workqueue *queue, struct item *item, int64_t due_ms)
{
    bool is_earlier = due_ms < item->due_ms;

    switch (item->place) {
    case ITEM_READY:
        return false;
    case ITEM_AGAIN:
        if (is_earlier)
            item->due_ms = due_ms;
        return false;
    case ITEM_DELAYED:
        if (!is_earlier)
            return false;
        item->due_ms = due_ms;
        heap_up(queue, item);
        tell_of(queue, item);
        return false;
    case ITEM_IDLE:
        break;
    }
    item->due_ms = due_ms;
    if (item->processing) {
        item->place = ITEM_AGAIN;
        return true;
    }
    heap_push(queue, item);
    tell_of(queue, item);
    return true;
}

void workqueue_add(struct workqueue *queue, const struct kube_name *name)
{
    workqueue_add_after(queue, name, 0);
}

void workqueue_add_object(struct workqueue *queue, const struct kube_object *object)
{
    const struct kube_name name = kube_object_name(object);

    workqueue_add(queue, &name);
}

void workqueue_add_after(struct workqueue *queue, const struct kube_name *name, uint32_t delay_ms)
{
    struct tally tally = { 0 };

    pthread_mutex_lock(&queue->lock);
    tally.ready_before = queue->ready_len;
    if (!queue->shutdown)
        tally.added =
            add_at(queue, item_make(queue, name), clock_monotonic_ms(queue->clock) + delay_ms);
    tally.ready_after = queue->ready_len;
    pthread_mutex_unlock(&queue->lock);
    report(queue, &tally);
}

void workqueue_retry(struct workqueue *queue, const struct kube_name *name, uint32_t min_delay_ms)
{
    struct tally tally = { 0 };

    pthread_mutex_lock(&queue->lock);
    tally.ready_before = queue->ready_len;
    if (!queue->shutdown) {
        struct item *item = item_make(queue, name);

        if (item->failures < UINT32_MAX)
            item->failures++;

        uint32_t delay = jitter_ms(backoff_ms(BACKOFF_BASE_MS, BACKOFF_MAX_MS, item->failures),
                                   BACKOFF_LOW_PERCENT, BACKOFF_HIGH_PERCENT);
        if (delay < min_delay_ms)
            delay = min_delay_ms;
        tally.added = add_at(queue, item, clock_monotonic_ms(queue->clock) + delay);
        tally.retried = true;
    }
    tally.ready_after = queue->ready_len;
    pthread_mutex_unlock(&queue->lock);
    report(queue, &tally);
}

void workqueue_forget(struct workqueue *queue, const struct kube_name *name)
{
    pthread_mutex_lock(&queue->lock);

    struct item *item = item_of(queue, name);
    if (item) {
        item->failures = 0;
        item_drop_if_unused(queue, item);
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Sleeps until something changes; one of those who sleep also wakes at the next due time. */
static void sleep_until_changed(struct workqueue *queue)
{
    int64_t next_ms = queue->heap_len ? queue->heap[0]->due_ms : NOBODY_WATCHES;

    if (next_ms >= queue->watched_ms) {
        (void)pthread_cond_wait(&queue->changed, &queue->lock);
        return;
    }
    queue->watched_ms = next_ms;

    /* promote() has just left only what is due later; no delay is longer than uint32_t */
    int64_t delay_ms = next_ms - clock_monotonic_ms(queue->clock);
    struct timespec deadline = cond_deadline(delay_ms > 0 ? (uint32_t)delay_ms : 0);

    (void)cond_wait_until(&queue->changed, &queue->lock, &deadline);
    if (queue->watched_ms == next_ms)
        queue->watched_ms = NOBODY_WATCHES; /* unless another watches an earlier one by now */
}

static void take_ready(struct workqueue *queue, struct kube_name *ret)
{
    struct item *item = queue->ready;

    queue->ready = item->next;
    if (!queue->ready)
        queue->ready_end = &queue->ready;
    queue->ready_len--;
    item->place = ITEM_IDLE;
    item->processing = true;

    size_t skip = item->ns_len ? item->ns_len + 1 : 0;
    memcpy(ret->ns, item->key, item->ns_len);
    ret->ns[item->ns_len] = '\0';
    memcpy(ret->name, item->key + skip, strlen(item->key + skip) + 1);
}

bool workqueue_get(struct workqueue *queue, struct kube_name *ret)
{
    struct tally tally = { 0 };

    pthread_mutex_lock(&queue->lock);
    for (;;) {
        tally.ready_before = queue->ready_len;
        promote(queue);
        if (queue->shutdown || queue->ready)
            break;
        sleep_until_changed(queue);
    }

    bool got = !queue->shutdown;
    if (got) {
        tally.taken = true;
        tally.waited_ms = clock_monotonic_ms(queue->clock) - queue->ready->due_ms;
        take_ready(queue, ret);
    }
    if (queue->ready || queue->heap_len) /* pass the baton: the next worker looks after the rest */
        (void)pthread_cond_signal(&queue->changed);
    tally.ready_after = queue->ready_len;
    pthread_mutex_unlock(&queue->lock);
    report(queue, &tally);
    return got;
}

void workqueue_done(struct workqueue *queue, const struct kube_name *name)
{
    struct tally tally = { 0 };

    pthread_mutex_lock(&queue->lock);
    tally.ready_before = queue->ready_len;

    struct item *item = item_of(queue, name);
    assert(item && item->processing); /* done without get: a bug in the worker loop */
    item->processing = false;
    if (item->place == ITEM_AGAIN && !queue->shutdown) {
        heap_push(queue, item);
        tell_of(queue, item);
    } else {
        item->place = ITEM_IDLE;
        item_drop_if_unused(queue, item);
    }
    tally.ready_after = queue->ready_len;
    pthread_mutex_unlock(&queue->lock);
    report(queue, &tally);
}

void workqueue_shutdown(struct workqueue *queue)
{
    struct tally tally = { 0 };

    pthread_mutex_lock(&queue->lock);
    tally.ready_before = queue->ready_len;
    queue->shutdown = true;
    for (struct item *item = queue->ready, *next; item; item = next) {
        next = item->next;
        (void)map_remove(queue->items, item->key);
    }
    for (size_t i = 0; i < queue->heap_len; i++)
        (void)map_remove(queue->items, queue->heap[i]->key);
    queue->ready = NULL;
    queue->ready_end = &queue->ready;
    queue->ready_len = 0;
    queue->heap_len = 0;
    (void)pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    report(queue, &tally);
}

size_t workqueue_len(struct workqueue *queue)
{
    pthread_mutex_lock(&queue->lock);
    size_t len = queue->ready_len + queue->heap_len;
    pthread_mutex_unlock(&queue->lock);
    return len;
}

void workqueue_poke(struct workqueue *queue)
{
    pthread_mutex_lock(&queue->lock);
    (void)pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}
