#include "controller/device/availabilities.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/map.h"
#include "common/base/str.h"

#define UID_BYTES 16
/* A full table grows by an eighth, so that little of it is unused. */
#define GROWTH(len) ((len) / 8 + 8)

/* Numbers of items begin at 1, 0 is none. */
struct item {
    unsigned char uid[UID_BYTES];
    uint32_t next; /* in the bucket */
    struct availability is;
};
static_assert(sizeof(struct item) <= 80, "a fleet has 10,000 of them");

struct availabilities {
    pthread_mutex_t lock;
    struct item *items; /* without gaps */
    size_t len, cap;
    uint32_t *buckets;   /* the first item of each */
    size_t bucket_count; /* a power of two, at least cap */
    struct map *cuts;    /* uid -> int64_t, not 0 */
    availabilities_fn *function;
    void *ctx;
};

struct availabilities *availabilities_create(void)
{
    struct availabilities *availabilities = xcalloc(1, sizeof(*availabilities));

    pthread_mutex_init(&availabilities->lock, NULL);
    availabilities->bucket_count = 1;
    availabilities->buckets = xcalloc(1, sizeof(*availabilities->buckets));
    availabilities->cuts = map_create(free);
    return availabilities;
}

void availabilities_destroy(struct availabilities *availabilities)
{
    if (!availabilities)
        return;

    free(availabilities->items);
    free(availabilities->buckets);
    map_destroy(availabilities->cuts);
    pthread_mutex_destroy(&availabilities->lock);
    free(availabilities);
}

/* --- the table, with the lock ------------------------------------------------------------------ */

/* Every API server makes uids of this form. */
static bool read_uuid(const char *uid, unsigned char ret[static UID_BYTES])
{
    static const char FORM[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t digits = 0;

    memset(ret, 0, UID_BYTES);
    for (size_t i = 0; i < sizeof(FORM); i++) {
        int digit = FORM[i] == 'x' ? str_hex_digit(uid[i]) : -1;

        if (FORM[i] == 'x' ? digit < 0 : uid[i] != FORM[i])
            return false;
        if (digit < 0)
            continue;
        ret[digits / 2] = (unsigned char)(ret[digits / 2] << 4 | digit);
        digits++;
    }
    return true;
}

static void uid_bytes(const char *uid, unsigned char ret[static UID_BYTES])
{
    char digest[SHA256_HEX_LEN];

    if (!read_uuid(uid, ret))
        memcpy(ret, sha256_hex(uid, strlen(uid), digest), UID_BYTES);
}

static uint32_t *bucket_of(const struct availabilities *table, const unsigned char *uid)
{
    uint32_t first, last;

    memcpy(&first, uid, sizeof(first));
    memcpy(&last, uid + UID_BYTES - sizeof(last), sizeof(last));
    return &table->buckets[(first ^ last) & (table->bucket_count - 1)];
}

/* The place that holds the number of this uid's item, or the end of its bucket. */
static uint32_t *link_of(const struct availabilities *table, const unsigned char *uid)
{
    uint32_t *link = bucket_of(table, uid);

    while (*link && memcmp(table->items[*link - 1].uid, uid, UID_BYTES) != 0)
        link = &table->items[*link - 1].next;
    return link;
}

static void link_item(struct availabilities *table, size_t i)
{
    uint32_t *bucket = bucket_of(table, table->items[i].uid);

    table->items[i].next = *bucket;
    *bucket = (uint32_t)i + 1;
}

static void grow(struct availabilities *table)
{
    table->cap += GROWTH(table->cap);
    table->items = xrealloc(table->items, table->cap * sizeof(*table->items));
    if (table->cap <= table->bucket_count)
        return;

    while (table->bucket_count < table->cap)
        table->bucket_count *= 2;
    free(table->buckets);
    table->buckets = xcalloc(table->bucket_count, sizeof(*table->buckets));
    for (size_t i = 0; i < table->len; i++)
        link_item(table, i);
}

/* The last item takes its place. */
static void item_remove(struct availabilities *table, uint32_t *link)
{
    uint32_t number = *link;
    struct item *item = &table->items[number - 1];

    *link = item->next;

    const struct item *last = &table->items[--table->len];
    if (last == item)
        return;
    *link_of(table, last->uid) = number;
    *item = *last;
}

static struct availability item_get(const struct availabilities *table, const char *uid)
{
    unsigned char key[UID_BYTES];

    uid_bytes(uid, key);
    uint32_t number = *link_of(table, key);
    return number ? table->items[number - 1].is
                  : (struct availability){ .state = AVAILABILITY_UNSET };
}

static void item_put(struct availabilities *table, const char *uid, const struct availability *is)
{
    unsigned char key[UID_BYTES];

    uid_bytes(uid, key);
    uint32_t *link = link_of(table, key);
    if (is->state == AVAILABILITY_UNSET) {
        if (*link)
            item_remove(table, link);
        return;
    }
    if (*link) {
        table->items[*link - 1].is = *is;
        return;
    }
    if (table->len == table->cap)
        grow(table);

    struct item *item = &table->items[table->len];
    memcpy(item->uid, key, UID_BYTES);
    item->is = *is;
    link_item(table, table->len++);
}

/* --- what changes ------------------------------------------------------------------------------ */

/* A Task may fit that did not, or has to end at another time. */
static bool matters(const struct availability *before, const struct availability *is,
                    int64_t now_us)
{
    if (availability_is_open(before) != availability_is_open(is) ||
        availability_is_open_at(before, now_us) != availability_is_open_at(is, now_us))
        return true;
    if (is->stop_us != before->stop_us)
        return true;
    return availability_is_open(is) ? is->next_us != before->next_us
                                    : is->since_us != before->since_us;
}

bool availabilities_set(struct availabilities *availabilities, const char *uid,
                        const struct availability *is, int64_t now_us)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability before = item_get(availabilities, uid);
    item_put(availabilities, uid, is);
    pthread_mutex_unlock(&availabilities->lock);
    return matters(&before, is, now_us);
}

struct availability availabilities_get(struct availabilities *availabilities, const char *uid)
{
    pthread_mutex_lock(&availabilities->lock);
    const struct availability ret = item_get(availabilities, uid);
    pthread_mutex_unlock(&availabilities->lock);
    return ret;
}

bool availabilities_is_empty(struct availabilities *availabilities)
{
    pthread_mutex_lock(&availabilities->lock);
    bool ret = !availabilities->len && !map_len(availabilities->cuts);
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
    item_put(availabilities, uid, &(struct availability){ .state = AVAILABILITY_UNSET });
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
