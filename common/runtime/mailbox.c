#include "common/runtime/mailbox.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/map.h"
#include "common/runtime/passed_over.h"

struct item {
    struct item *next;
    struct mail mail; /* kind, source and body point into bytes */
    size_t size;
    char bytes[];
};

struct box {
    struct item *oldest, *newest;
    size_t len;
    struct passed_over failing;
    bool parked;
};

struct mailbox {
    struct mailbox_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* nothing waits now, or woken */
    struct map *boxes;      /* key -> struct box; no empty box stays */
    size_t messages, bytes;
    size_t parked; /* of the messages */
    uint64_t last_sequence;
    uint64_t wakes;
};

static void box_destroy(void *value)
{
    struct box *box = value;

    while (box->oldest) {
        struct item *item = box->oldest;

        box->oldest = item->next;
        free(item);
    }
    free(box);
}

struct mailbox *mailbox_create(const struct mailbox_limits *limits)
{
    assert(limits->key_messages && limits->total_messages && limits->total_bytes);

    struct mailbox *mailbox = xcalloc(1, sizeof(*mailbox));

    mailbox->limits = *limits;
    mailbox->boxes = map_create(box_destroy);
    pthread_mutex_init(&mailbox->lock, NULL);
    cond_init(&mailbox->changed);
    return mailbox;
}

void mailbox_destroy(struct mailbox *mailbox)
{
    if (!mailbox)
        return;
    map_destroy(mailbox->boxes);
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

static const char *copy_string(char **position, const char *s, size_t len)
{
    char *copy = *position;

    if (len)
        memcpy(copy, s, len);
    copy[len] = '\0';
    *position += len + 1;
    return copy;
}

static struct item *item_create(const struct mail *mail)
{
    const char *source = mail->source ? mail->source : "";
    size_t kind_len = strlen(mail->kind);
    size_t source_len = strlen(source);
    size_t size = sizeof(struct item) + kind_len + source_len + mail->body_len + 3;
    struct item *item = xmalloc(size);
    char *position = item->bytes;

    item->next = NULL;
    item->size = size;
    item->mail.kind = copy_string(&position, mail->kind, kind_len);
    item->mail.source = copy_string(&position, source, source_len);
    item->mail.body = copy_string(&position, mail->body, mail->body_len);
    item->mail.body_len = mail->body_len;
    item->mail.came_ms = mail->came_ms;
    return item;
}

static bool has_room(const struct mailbox *mailbox, const struct box *box, size_t size)
{
    return mailbox->messages < mailbox->limits.total_messages &&
           size <= mailbox->limits.total_bytes - mailbox->bytes &&
           (!box || box->len < mailbox->limits.key_messages);
}

static void append(struct mailbox *mailbox, struct box *box, struct item *item)
{
    item->mail.sequence = ++mailbox->last_sequence;
    if (box->newest)
        box->newest->next = item;
    else
        box->oldest = item;
    box->newest = item;
    box->len++;
    mailbox->messages++;
    mailbox->parked += box->parked;
    mailbox->bytes += item->size;
}

bool mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                 uint64_t *ret_sequence)
{
    struct item *item = item_create(mail);

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);
    bool fits = has_room(mailbox, box, item->size);

    if (fits) {
        if (!box) {
            box = xcalloc(1, sizeof(*box));
            map_set(mailbox->boxes, key, box);
        }
        append(mailbox, box, item);
        if (ret_sequence)
            *ret_sequence = item->mail.sequence;
    }
    pthread_mutex_unlock(&mailbox->lock);

    if (!fits)
        free(item);
    return fits;
}

static void copy_mail(struct arena *arena, const struct mail *mail, struct mail *ret)
{
    ret->sequence = mail->sequence;
    ret->kind = arena_strdup(arena, mail->kind);
    ret->source = arena_strdup(arena, mail->source);
    ret->body = memcpy(arena_array(arena, char, mail->body_len + 1), mail->body, mail->body_len);
    ret->body_len = mail->body_len;
    ret->came_ms = mail->came_ms;
}

size_t mailbox_peek(struct mailbox *mailbox, struct arena *arena, const char *key,
                    struct mail **ret)
{
    size_t count = 0;

    *ret = NULL;
    pthread_mutex_lock(&mailbox->lock);

    const struct box *box = map_get(mailbox->boxes, key);

    if (box) {
        *ret = arena_array(arena, struct mail, box->len);
        for (const struct item *item = box->oldest; item; item = item->next)
            copy_mail(arena, &item->mail, &(*ret)[count++]);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

/* With the lock. */
static void tell_if_nothing_waits(struct mailbox *mailbox)
{
    if (mailbox->messages == mailbox->parked)
        pthread_cond_broadcast(&mailbox->changed);
}

void mailbox_ack(struct mailbox *mailbox, const char *key, uint64_t up_to_sequence)
{
    struct item *done = NULL; /* freed without the lock: bodies may be large */

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);

    while (box && box->oldest && box->oldest->mail.sequence <= up_to_sequence) {
        struct item *item = box->oldest;

        box->oldest = item->next;
        box->len--;
        box->failing = (struct passed_over){ 0 };
        mailbox->messages--;
        mailbox->parked -= box->parked;
        mailbox->bytes -= item->size;
        item->next = done;
        done = item;
    }
    if (box && !box->oldest)
        map_remove(mailbox->boxes, key);
    tell_if_nothing_waits(mailbox);
    pthread_mutex_unlock(&mailbox->lock);

    while (done) {
        struct item *item = done;

        done = item->next;
        free(item);
    }
}

void mailbox_drop_all(struct mailbox *mailbox)
{
    struct map *empty = map_create(box_destroy);

    pthread_mutex_lock(&mailbox->lock);

    struct map *boxes = mailbox->boxes;

    mailbox->boxes = empty;
    mailbox->messages = mailbox->parked = 0;
    mailbox->bytes = 0;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);

    map_destroy(boxes);
}

bool mailbox_failed(struct mailbox *mailbox, const char *key, int64_t now_ms, int64_t others_ms)
{
    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);
    bool parks = box && !box->parked && passed_over(&box->failing, now_ms, others_ms);

    if (parks) {
        box->parked = true;
        mailbox->parked += box->len;
        tell_if_nothing_waits(mailbox);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return parks;
}

static size_t read_count(struct mailbox *mailbox, const size_t *count)
{
    pthread_mutex_lock(&mailbox->lock);

    size_t ret = *count;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

size_t mailbox_len(struct mailbox *mailbox)
{
    return read_count(mailbox, &mailbox->messages);
}

size_t mailbox_parked(struct mailbox *mailbox)
{
    return read_count(mailbox, &mailbox->parked);
}

int64_t mailbox_oldest_ms(struct mailbox *mailbox)
{
    int64_t oldest_ms = 0;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);) {
        int64_t came_ms = ((const struct box *)value)->oldest->mail.came_ms;

        if (came_ms && (!oldest_ms || came_ms < oldest_ms))
            oldest_ms = came_ms;
    }
    pthread_mutex_unlock(&mailbox->lock);
    return oldest_ms;
}

bool mailbox_wait_empty(struct mailbox *mailbox, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);
    bool in_time = true;

    pthread_mutex_lock(&mailbox->lock);

    uint64_t wakes = mailbox->wakes;

    while (mailbox->messages != mailbox->parked && mailbox->wakes == wakes && in_time)
        in_time = cond_wait_until(&mailbox->changed, &mailbox->lock, &deadline);

    bool empty = mailbox->messages == mailbox->parked;

    pthread_mutex_unlock(&mailbox->lock);
    return empty;
}

void mailbox_wake(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->wakes++;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}
