#include "common/runtime/mailbox.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/map.h"
#include "common/base/str.h"

struct item {
    struct item *next;
    struct mail mail; /* kind, source and body point into bytes */
    size_t size;
    bool held;
    int64_t again_ms; /* see mailbox_overdue */
    char *copy;       /* name of the durable copy; NULL: none */
    char bytes[];
};

struct box {
    struct item *oldest, *newest;
    size_t len;
    bool elsewhere;
};

struct released {
    struct released *next;
    char *copy;
};

struct mailbox {
    struct mailbox_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* nothing waits now, something waits now, released, or woken */
    struct map *boxes;      /* key -> struct box; only those of what is elsewhere may be empty */
    size_t messages, bytes;
    size_t held, held_bytes; /* of them */
    bool elsewhere;          /* some of some box may be */
    struct released *released;
    size_t released_len;
    uint64_t last_sequence;
    uint64_t wakes;
};

static void item_destroy(struct item *item)
{
    free(item->copy);
    free(item);
}

static void box_destroy(void *value)
{
    struct box *box = value;

    while (box->oldest) {
        struct item *item = box->oldest;

        box->oldest = item->next;
        item_destroy(item);
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
    for (char *copy; (copy = mailbox_take_released(mailbox));)
        free(copy);
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

    *item = (struct item){ .size = size };
    item->mail.kind = copy_string(&position, mail->kind, kind_len);
    item->mail.source = copy_string(&position, source, source_len);
    item->mail.body = copy_string(&position, mail->body, mail->body_len);
    item->mail.body_len = mail->body_len;
    item->mail.came_ms = mail->came_ms;
    return item;
}

/* With the lock, as all below up to mailbox_put. */
static bool has_room(const struct mailbox *mailbox, const struct box *box, size_t size)
{
    return mailbox->messages < mailbox->limits.total_messages &&
           size <= mailbox->limits.total_bytes - mailbox->bytes &&
           (!box || box->len < mailbox->limits.key_messages);
}

static bool may_hold(const struct mailbox *mailbox, size_t size)
{
    return mailbox->held < mailbox->limits.total_messages / 2 &&
           mailbox->held_bytes + size <= mailbox->limits.total_bytes / 2;
}

static struct box *box_of(struct mailbox *mailbox, const char *key)
{
    struct box *box = map_get(mailbox->boxes, key);

    if (!box) {
        box = xcalloc(1, sizeof(*box));
        map_set(mailbox->boxes, key, box);
    }
    return box;
}

static void set_held(struct mailbox *mailbox, struct item *item)
{
    if (item->held)
        return;
    item->held = true;
    mailbox->held++;
    mailbox->held_bytes += item->size;
    pthread_cond_broadcast(&mailbox->changed);
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
    mailbox->bytes += item->size;
    pthread_cond_broadcast(&mailbox->changed);
}

/* The link that leads to it, or to NULL behind the last one. */
static struct item **find(struct box *box, const struct mail *mail)
{
    struct item **at = &box->oldest;

    for (; *at; at = &(*at)->next) {
        const struct mail *other = &(*at)->mail;
        if (other->body_len == mail->body_len && str_equal(other->kind, mail->kind) &&
            str_equal(other->source, mail->source) &&
            (!mail->body_len || memcmp(other->body, mail->body, mail->body_len) == 0))
            break;
    }
    return at;
}

/* Takes it out of the sums; the caller has unlinked it. */
static void uncount(struct mailbox *mailbox, struct box *box, const struct item *item)
{
    box->len--;
    mailbox->messages--;
    mailbox->bytes -= item->size;
    if (item->held) {
        mailbox->held--;
        mailbox->held_bytes -= item->size;
    }
}

static void unlink_item(struct mailbox *mailbox, struct box *box, struct item **at)
{
    struct item *item = *at;

    *at = item->next;
    if (box->newest == item) {
        box->newest = NULL;
        for (struct item *last = box->oldest; last; last = last->next)
            box->newest = last;
    }
    uncount(mailbox, box, item);
}

bool mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                 uint64_t *ret_sequence)
{
    struct item *item = item_create(mail);

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);
    struct item *same = box ? *find(box, &item->mail) : NULL;
    bool is_copied = same && same->copy;
    bool fits = is_copied || has_room(mailbox, box, item->size);

    if (fits && !is_copied)
        append(mailbox, box_of(mailbox, key), item);
    if (fits && ret_sequence)
        *ret_sequence = is_copied ? same->mail.sequence : item->mail.sequence;
    pthread_mutex_unlock(&mailbox->lock);

    if (!fits || is_copied)
        item_destroy(item);
    return fits;
}

bool mailbox_key_is_full(struct mailbox *mailbox, const char *key)
{
    pthread_mutex_lock(&mailbox->lock);

    const struct box *box = map_get(mailbox->boxes, key);
    bool full = box && box->len >= mailbox->limits.key_messages;

    pthread_mutex_unlock(&mailbox->lock);
    return full;
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

    if (box && box->len) {
        *ret = arena_array(arena, struct mail, box->len);
        for (const struct item *item = box->oldest; item; item = item->next)
            copy_mail(arena, &item->mail, &(*ret)[count++]);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

/* With the lock. The one who made the copy is told again by its next delivery if this is one too
 * many. */
static void release(struct mailbox *mailbox, char *copy)
{
    if (!copy || mailbox->released_len >= mailbox->limits.total_messages) {
        free(copy);
        return;
    }

    struct released *entry = xmalloc(sizeof(*entry));

    *entry = (struct released){ mailbox->released, copy };
    mailbox->released = entry;
    mailbox->released_len++;
}

/* With the lock. */
static struct item *take_up_to(struct mailbox *mailbox, struct box *box, uint64_t up_to_sequence)
{
    struct item *done = NULL;

    while (box->oldest && box->oldest->mail.sequence <= up_to_sequence) {
        struct item *item = box->oldest;

        unlink_item(mailbox, box, &box->oldest);
        release(mailbox, TAKE(item->copy));
        item->next = done;
        done = item;
    }
    return done;
}

void mailbox_ack(struct mailbox *mailbox, const char *key, uint64_t up_to_sequence)
{
    struct item *done = NULL; /* freed without the lock: bodies may be large */

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);

    if (box) {
        done = take_up_to(mailbox, box, up_to_sequence);
        box->elsewhere = box->elsewhere && up_to_sequence < UINT64_MAX;
        if (!box->oldest && !box->elsewhere)
            map_remove(mailbox->boxes, key);
    }
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);

    while (done) {
        struct item *item = done;

        done = item->next;
        item_destroy(item);
    }
}

void mailbox_drop_all(struct mailbox *mailbox)
{
    struct map *empty = map_create(box_destroy);

    pthread_mutex_lock(&mailbox->lock);

    struct map *boxes = mailbox->boxes;

    mailbox->boxes = empty;
    mailbox->messages = mailbox->held = 0;
    mailbox->bytes = mailbox->held_bytes = 0;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);

    map_destroy(boxes);
}

static size_t list_keys(struct mailbox *mailbox, struct arena *arena, const char ***ret)
{
    const char *key;
    void *value;
    size_t len = 0;

    pthread_mutex_lock(&mailbox->lock);
    *ret = arena_array(arena, const char *, map_len(mailbox->boxes) + 1);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);)
        (*ret)[len++] = arena_strdup(arena, key);
    pthread_mutex_unlock(&mailbox->lock);
    return len;
}

void mailbox_forget_unknown(struct mailbox *mailbox, bool (*knows)(void *ctx, const char *key),
                            void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char **keys;
    size_t len = list_keys(mailbox, arena, &keys);

    for (size_t i = 0; i < len; i++) {
        if (!knows(ctx, keys[i]))
            mailbox_ack(mailbox, keys[i], UINT64_MAX);
    }
}

static bool is_due(const struct item *item, int64_t before_ms, int64_t now_ms)
{
    return !item->held && item->mail.came_ms <= before_ms && item->again_ms <= now_ms;
}

bool mailbox_overdue(struct mailbox *mailbox, struct arena *arena, int64_t before_ms,
                     int64_t now_ms, int64_t again_ms, const char **ret_key, struct mail *ret)
{
    struct item *oldest = NULL;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0;
         mailbox->messages > mailbox->held && map_next(mailbox->boxes, &i, &key, &value);) {
        struct item *item = ((const struct box *)value)->oldest;

        while (item && !is_due(item, before_ms, now_ms))
            item = item->next;
        if (item && (!oldest || item->mail.sequence < oldest->mail.sequence)) {
            oldest = item;
            *ret_key = key;
        }
    }
    if (oldest) {
        oldest->again_ms = again_ms;
        *ret_key = arena_strdup(arena, *ret_key);
        copy_mail(arena, &oldest->mail, ret);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return oldest;
}

/* With the lock. */
static struct item *item_of(struct mailbox *mailbox, const char *key, uint64_t sequence)
{
    const struct box *box = map_get(mailbox->boxes, key);
    struct item *item = box ? box->oldest : NULL;

    while (item && item->mail.sequence != sequence)
        item = item->next;
    return item;
}

void mailbox_overdue_again(struct mailbox *mailbox, const char *key, uint64_t sequence)
{
    pthread_mutex_lock(&mailbox->lock);

    struct item *item = item_of(mailbox, key, sequence);

    if (item)
        item->again_ms = 0;
    pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_hold(struct mailbox *mailbox, const char *key, uint64_t sequence)
{
    pthread_mutex_lock(&mailbox->lock);

    struct item *item = item_of(mailbox, key, sequence);

    if (item)
        set_held(mailbox, item);
    pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_put_copy(struct mailbox *mailbox, const char *key, const struct mail *mail,
                      const char *copy)
{
    struct item *item = item_create(mail);

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = box_of(mailbox, key);
    struct item **at = find(box, &item->mail);
    struct item *same = *at;

    if (same && (same->held || may_hold(mailbox, same->size))) {
        if (!same->copy)
            same->copy = xstrdup(copy);
        set_held(mailbox, same);
    } else if (!same && may_hold(mailbox, item->size) && has_room(mailbox, box, item->size)) {
        item->copy = xstrdup(copy);
        append(mailbox, box, item);
        set_held(mailbox, TAKE(item));
    } else {
        box->elsewhere = mailbox->elsewhere = true;
        if (same)
            unlink_item(mailbox, box, at);
        pthread_cond_broadcast(&mailbox->changed);
    }
    bool gone = same && box->elsewhere && !same->held;
    pthread_mutex_unlock(&mailbox->lock);

    if (gone)
        item_destroy(same);
    if (item)
        item_destroy(item);
}

char *mailbox_take_released(struct mailbox *mailbox)
{
    char *copy = NULL;

    pthread_mutex_lock(&mailbox->lock);

    struct released *entry = mailbox->released;

    if (entry) {
        mailbox->released = entry->next;
        mailbox->released_len--;
        copy = entry->copy;
        free(entry);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return copy;
}

void mailbox_release(struct mailbox *mailbox, const char *copy)
{
    pthread_mutex_lock(&mailbox->lock);
    release(mailbox, xstrdup(copy));
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_is_elsewhere(struct mailbox *mailbox, const char *key)
{
    pthread_mutex_lock(&mailbox->lock);

    const struct box *box = map_get(mailbox->boxes, key);
    bool ret = box && box->elsewhere;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

bool mailbox_recall(struct mailbox *mailbox)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char **keys;

    pthread_mutex_lock(&mailbox->lock);

    bool due = mailbox->elsewhere && mailbox->held <= mailbox->limits.total_messages / 4 &&
               mailbox->held_bytes <= mailbox->limits.total_bytes / 4;

    if (due)
        mailbox->elsewhere = false;
    pthread_mutex_unlock(&mailbox->lock);

    size_t len = due ? list_keys(mailbox, arena, &keys) : 0;
    for (size_t i = 0; i < len; i++) {
        pthread_mutex_lock(&mailbox->lock);

        struct box *box = map_get(mailbox->boxes, keys[i]);

        if (box)
            box->elsewhere = false;
        if (box && !box->oldest)
            map_remove(mailbox->boxes, keys[i]);
        pthread_mutex_unlock(&mailbox->lock);
    }
    return due;
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

size_t mailbox_held(struct mailbox *mailbox)
{
    return read_count(mailbox, &mailbox->held);
}

int64_t mailbox_oldest_ms(struct mailbox *mailbox)
{
    int64_t oldest_ms = 0;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);) {
        const struct item *oldest = ((const struct box *)value)->oldest;
        int64_t came_ms = oldest ? oldest->mail.came_ms : 0;

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

    while (mailbox->messages != mailbox->held && mailbox->wakes == wakes && in_time)
        in_time = cond_wait_until(&mailbox->changed, &mailbox->lock, &deadline);

    bool empty = mailbox->messages == mailbox->held;

    pthread_mutex_unlock(&mailbox->lock);
    return empty;
}

void mailbox_wait_work(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);
    bool in_time = true;

    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->messages == mailbox->held && !mailbox->released && mailbox->wakes == wakes &&
           in_time)
        in_time = cond_wait_until(&mailbox->changed, &mailbox->lock, &deadline);
    pthread_mutex_unlock(&mailbox->lock);
}

void mailbox_wait_wake(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);

    pthread_mutex_lock(&mailbox->lock);
    while (mailbox->wakes == wakes && cond_wait_until(&mailbox->changed, &mailbox->lock, &deadline))
        ;
    pthread_mutex_unlock(&mailbox->lock);
}

uint64_t mailbox_wakes(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);

    uint64_t ret = mailbox->wakes;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

void mailbox_wake(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->wakes++;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}
