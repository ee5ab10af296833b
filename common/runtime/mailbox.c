#include "common/runtime/mailbox.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/hash_list.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* Copies of one source under one key that memory holds, at most: this part of key_messages. */
#define COPIES_PART 16

/* Copies that were asked for need time to come. */
#define RECALL_SOON_MS 1000

/* While memory is full. All copies come again with each recall, so not more often. */
#define RECALL_LATE_MS 60000

/* The messages of one source under one key. */
struct share {
    struct share *next;
    size_t here;   /* messages in memory that take capacity */
    size_t copies; /* of them, those that are held and have a copy */
    /* Names of copies; each copy may come more than once. */
    struct hash_list elsewhere; /* that came, or left memory, since the last recall */
    struct hash_list
        recalled; /* that were elsewhere when the last recall began, and did not come yet */
    char source[];
};

struct item {
    TAILQ_ENTRY(item) in_box, in_copies;
    struct box *box;
    struct share *share;
    struct mail mail; /* kind, source and body point into bytes */
    size_t size;
    bool held;
    bool shown;       /* by a peek */
    int64_t again_ms; /* see mailbox_overdue */
    char *copy;       /* name of the durable copy; NULL: none. Then it is held, and in copies */
    char bytes[];
};
TAILQ_HEAD(items, item);

struct box {
    struct items items; /* oldest first */
    size_t len;
    struct share *shares;
    size_t elsewhere; /* sums of its shares */
    size_t recalled;
    bool wanted;   /* the last recall chose it */
    uint64_t turn; /* rises over the mailbox: when a copy of it was held last; 0: never */
};

struct usage {
    size_t messages, bytes;
};

struct mailbox {
    struct mailbox_limits limits;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* nothing waits now, something waits now, released, or woken */
    struct map *boxes;      /* key -> struct box; only those of what is elsewhere may be empty */
    size_t messages;        /* in memory */
    size_t waiting;         /* of them */
    struct usage used;      /* by those that take capacity */
    struct usage held;      /* of them */
    struct items copies;    /* held ones with a copy, the one held for longest first */
    uint64_t last_turn;
    bool elsewhere; /* some of some box may be */
    bool expects_copies;
    int64_t recalled_ms;  /* the last recall began, or the last copy came that it was to bring */
    struct map *released; /* names of copies that are not needed any more */
    uint64_t last_sequence;
    uint64_t wakes;
};

static void item_destroy(struct item *item)
{
    if (item)
        free(item->copy);
    free(item);
}

static void items_destroy(struct items *items)
{
    struct item *item;

    while ((item = TAILQ_FIRST(items))) {
        TAILQ_REMOVE(items, item, in_box);
        item_destroy(item);
    }
}

static void box_destroy(void *value)
{
    struct box *box = value;

    items_destroy(&box->items);
    while (box->shares) {
        struct share *share = box->shares;

        box->shares = share->next;
        hash_list_release(&share->elsewhere);
        hash_list_release(&share->recalled);
        free(share);
    }
    free(box);
}

struct mailbox *mailbox_create(const struct mailbox_limits *limits)
{
    assert(limits->key_messages && limits->total_messages && limits->total_bytes);

    struct mailbox *mailbox = xcalloc(1, sizeof(*mailbox));

    mailbox->limits = *limits;
    mailbox->boxes = map_create(box_destroy);
    mailbox->released = map_create(NULL);
    mailbox->recalled_ms = -RECALL_LATE_MS;
    TAILQ_INIT(&mailbox->copies);
    pthread_mutex_init(&mailbox->lock, NULL);
    cond_init(&mailbox->changed);
    return mailbox;
}

void mailbox_destroy(struct mailbox *mailbox)
{
    if (!mailbox)
        return;
    map_destroy(mailbox->boxes);
    map_destroy(mailbox->released);
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
    item->mail.supersedes = mail->supersedes;
    return item;
}

/* With the lock, as all below up to mailbox_put. */
static struct share *share_of(struct box *box, const char *source)
{
    struct share *share = box->shares;

    while (share && !str_equal(share->source, source))
        share = share->next;
    if (!share) {
        size_t size = strlen(source) + 1;

        share = xcalloc(1, sizeof(*share) + size);
        memcpy(share->source, source, size);
        share->next = box->shares;
        box->shares = share;
    }
    return share;
}

static struct box *box_of(struct mailbox *mailbox, const char *key)
{
    struct box *box = map_get(mailbox->boxes, key);

    if (!box) {
        box = xcalloc(1, sizeof(*box));
        TAILQ_INIT(&box->items);
        map_set(mailbox->boxes, key, box);
    }
    return box;
}

static void remove_if_empty(struct mailbox *mailbox, const char *key, struct box *box)
{
    if (!box->len && !box->elsewhere && !box->recalled)
        (void)map_remove(mailbox->boxes, key);
}

/* sign: 1 or -1. */
static void tally(struct usage *usage, const struct item *item, int sign)
{
    usage->messages += (size_t)sign;
    usage->bytes += (size_t)sign * item->size;
}

static bool has_capacity(const struct mailbox *mailbox, size_t size)
{
    return mailbox->used.messages < mailbox->limits.total_messages &&
           size <= mailbox->limits.total_bytes - mailbox->used.bytes;
}

static bool may_hold(const struct mailbox *mailbox, size_t size)
{
    return mailbox->held.messages < mailbox->limits.total_messages / 2 &&
           mailbox->held.bytes + size <= mailbox->limits.total_bytes / 2;
}

static void set_held(struct mailbox *mailbox, struct item *item)
{
    if (item->held)
        return;
    item->held = true;
    mailbox->waiting--;
    if (!item->mail.supersedes)
        tally(&mailbox->held, item, 1);
    pthread_cond_broadcast(&mailbox->changed);
}

/* A held message gets its copy. */
static void set_copy(struct mailbox *mailbox, struct item *item, const char *copy)
{
    item->copy = xstrdup(copy);
    item->share->copies++;
    item->box->turn = ++mailbox->last_turn;
    TAILQ_INSERT_TAIL(&mailbox->copies, item, in_copies);
}

static void append(struct mailbox *mailbox, struct box *box, struct item *item)
{
    item->mail.sequence = ++mailbox->last_sequence;
    item->box = box;
    item->share = share_of(box, item->mail.source);
    TAILQ_INSERT_TAIL(&box->items, item, in_box);
    box->len++;
    mailbox->messages++;
    mailbox->waiting++;
    if (!item->mail.supersedes) {
        item->share->here++;
        tally(&mailbox->used, item, 1);
    }
    pthread_cond_broadcast(&mailbox->changed);
}

/* Takes it out of its box and the sums; the caller frees it. */
static struct item *detach(struct mailbox *mailbox, struct item *item)
{
    TAILQ_REMOVE(&item->box->items, item, in_box);
    item->box->len--;
    mailbox->messages--;
    mailbox->waiting -= !item->held;
    if (item->copy) {
        TAILQ_REMOVE(&mailbox->copies, item, in_copies);
        item->share->copies--;
    }
    if (!item->mail.supersedes) {
        item->share->here--;
        tally(&mailbox->used, item, -1);
        if (item->held)
            tally(&mailbox->held, item, -1);
    }
    return item;
}

/* Beyond key_messages they are not counted. */
static void add_elsewhere(struct mailbox *mailbox, struct box *box, struct share *share,
                          const char *copy)
{
    mailbox->elsewhere = true;
    pthread_cond_broadcast(&mailbox->changed);
    if (share->elsewhere.len < mailbox->limits.key_messages)
        box->elsewhere += hash_list_add(&share->elsewhere, map_hash(copy));
}

/* It came: it is not elsewhere, as far as is known. */
static void remove_elsewhere(struct mailbox *mailbox, struct box *box, struct share *share,
                             const char *copy, int64_t came_ms)
{
    uint64_t hash = map_hash(copy);

    box->elsewhere -= hash_list_remove(&share->elsewhere, hash);
    if (!hash_list_remove(&share->recalled, hash))
        return;
    box->recalled--;
    if (mailbox->recalled_ms < came_ms)
        mailbox->recalled_ms = came_ms;
}

/* Makes room for a copy of this size by moving those elsewhere that are held for the longest time. */
static bool make_room_to_hold(struct mailbox *mailbox, size_t size)
{
    if (size > mailbox->limits.total_bytes / 2)
        return false;
    while (!may_hold(mailbox, size)) {
        struct item *longest = TAILQ_FIRST(&mailbox->copies);

        if (!longest)
            return false;
        add_elsewhere(mailbox, longest->box, longest->share, longest->copy);
        item_destroy(detach(mailbox, longest));
    }
    return true;
}

static bool is_same(const struct mail *mail, const struct mail *other)
{
    if (!str_equal(mail->kind, other->kind) || !str_equal(mail->source, other->source))
        return false;
    return mail->supersedes || (mail->body_len == other->body_len &&
                                memcmp(mail->body, other->body, mail->body_len) == 0);
}

/* The message with the same content, or which this one supersedes; NULL: none. */
static struct item *find(struct box *box, const struct mail *mail)
{
    struct item *item = TAILQ_FIRST(&box->items);

    while (item && !is_same(mail, &item->mail))
        item = TAILQ_NEXT(item, in_box);
    return item;
}

static void supersede(struct mailbox *mailbox, struct item *older, struct item *item)
{
    item->mail.came_ms = older->mail.came_ms;
    item->again_ms = older->again_ms;
    if (older->held)
        set_held(mailbox, item);
    item_destroy(detach(mailbox, older));
}

/* Wherever they are. */
static size_t len_of(const struct share *share)
{
    return share->here + share->elsewhere.len + share->recalled.len;
}

static enum mailbox_verdict judge(const struct mailbox *mailbox, struct box *box,
                                  const struct item *item)
{
    const struct share *share = share_of(box, item->mail.source);

    if (item->mail.supersedes)
        return MAILBOX_TAKEN;
    if (len_of(share) >= mailbox->limits.key_messages)
        return MAILBOX_TOO_MANY;
    return has_capacity(mailbox, item->size) ? MAILBOX_TAKEN : MAILBOX_FULL;
}

enum mailbox_verdict mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                                 uint64_t *ret_sequence)
{
    struct item *item = item_create(mail);

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = box_of(mailbox, key);
    struct item *same = find(box, &item->mail);
    bool is_copied = same && same->copy;
    enum mailbox_verdict verdict = is_copied ? MAILBOX_TAKEN : judge(mailbox, box, item);

    if (verdict == MAILBOX_TAKEN && ret_sequence)
        *ret_sequence = is_copied ? same->mail.sequence : mailbox->last_sequence + 1;
    if (verdict == MAILBOX_TAKEN && !is_copied) {
        append(mailbox, box, item);
        if (same && mail->supersedes)
            supersede(mailbox, same, item);
        item = NULL;
    }
    remove_if_empty(mailbox, key, box);
    pthread_mutex_unlock(&mailbox->lock);

    item_destroy(item);
    return verdict;
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

static bool is_elsewhere(const struct box *box)
{
    return box->elsewhere || box->recalled;
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
        struct item *item = TAILQ_FIRST(&box->items);

        for (; item; item = TAILQ_NEXT(item, in_box)) {
            if (item->mail.supersedes && (is_elsewhere(box) || mailbox->expects_copies))
                continue;
            item->shown = true;
            copy_mail(arena, &item->mail, &(*ret)[count++]);
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
    return count;
}

/* With the lock. A copy for which there is no room here is released when it comes again. */
static void release(struct mailbox *mailbox, const char *copy)
{
    if (copy && map_len(mailbox->released) < mailbox->limits.total_messages)
        map_set(mailbox->released, copy, mailbox);
}

/* With the lock. */
static void take_up_to(struct mailbox *mailbox, struct box *box, uint64_t up_to_sequence,
                       struct items *ret)
{
    struct item *item = TAILQ_FIRST(&box->items);

    while (item && item->mail.sequence <= up_to_sequence) {
        struct item *next = TAILQ_NEXT(item, in_box);

        if (!item->mail.supersedes || item->shown || up_to_sequence == UINT64_MAX) {
            detach(mailbox, item);
            release(mailbox, item->copy);
            TAILQ_INSERT_TAIL(ret, item, in_box);
        }
        item = next;
    }
}

static void forget_elsewhere(struct box *box)
{
    for (struct share *share = box->shares; share; share = share->next)
        share->elsewhere.len = share->recalled.len = 0;
    box->elsewhere = box->recalled = 0;
}

void mailbox_ack(struct mailbox *mailbox, const char *key, uint64_t up_to_sequence)
{
    struct items done = TAILQ_HEAD_INITIALIZER(done); /* freed without the lock: may be large */

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = map_get(mailbox->boxes, key);

    if (box) {
        take_up_to(mailbox, box, up_to_sequence, &done);
        if (up_to_sequence == UINT64_MAX) /* a recall brings what is elsewhere to its end */
            forget_elsewhere(box);
        remove_if_empty(mailbox, key, box);
    }
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);

    items_destroy(&done);
}

void mailbox_forget_unknown(struct mailbox *mailbox, bool (*knows)(void *ctx, const char *key),
                            void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t len = 0;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    const char **keys = arena_array(arena, const char *, map_len(mailbox->boxes) + 1);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);)
        keys[len++] = arena_strdup(arena, key);
    pthread_mutex_unlock(&mailbox->lock);

    for (size_t i = 0; i < len; i++) {
        if (!knows(ctx, keys[i]))
            mailbox_ack(mailbox, keys[i], UINT64_MAX);
    }
}

/* A message behind a copy of the same source and key is due at once: its object is known to be stuck. */
static bool is_due(const struct item *item, int64_t before_ms, int64_t now_ms)
{
    return !item->held && (item->mail.came_ms <= before_ms || item->share->copies) &&
           item->again_ms <= now_ms;
}

bool mailbox_overdue(struct mailbox *mailbox, struct arena *arena, int64_t before_ms,
                     int64_t now_ms, int64_t again_ms, const char **ret_key, struct mail *ret)
{
    struct item *oldest = NULL;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0; mailbox->waiting && map_next(mailbox->boxes, &i, &key, &value);) {
        struct item *item = TAILQ_FIRST(&((struct box *)value)->items);

        while (item && !is_due(item, before_ms, now_ms))
            item = TAILQ_NEXT(item, in_box);
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
    struct box *box = map_get(mailbox->boxes, key);
    struct item *item = box ? TAILQ_FIRST(&box->items) : NULL;

    while (item && item->mail.sequence != sequence)
        item = TAILQ_NEXT(item, in_box);
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

static size_t copies_per_share(const struct mailbox *mailbox)
{
    size_t part = mailbox->limits.key_messages / COPIES_PART;

    return part ? part : 1;
}

/* With the lock. Makes room if it is this message's turn. same: it waits already, or NULL. */
static bool may_hold_copy(struct mailbox *mailbox, const struct box *box, const struct share *share,
                          const struct item *same, size_t size)
{
    if (share->copies >= copies_per_share(mailbox))
        return false;
    if (same || box->wanted)
        return make_room_to_hold(mailbox, size) && (same || has_capacity(mailbox, size));
    return may_hold(mailbox, size) && has_capacity(mailbox, size);
}

void mailbox_put_copy(struct mailbox *mailbox, const char *key, const struct mail *mail,
                      const char *copy)
{
    struct item *item = item_create(mail);

    pthread_mutex_lock(&mailbox->lock);

    struct box *box = box_of(mailbox, key);
    struct share *share = share_of(box, item->mail.source);
    struct item *same = find(box, &item->mail);
    bool has_copy = same && same->copy;

    remove_elsewhere(mailbox, box, share, copy, mail->came_ms);
    if (!has_copy &&
        ((same && same->held) || may_hold_copy(mailbox, box, share, same, item->size))) {
        if (!same) {
            same = TAKE(item);
            append(mailbox, box, same);
        }
        set_held(mailbox, same);
        set_copy(mailbox, same, copy);
    } else if (!has_copy) {
        add_elsewhere(mailbox, box, share, copy);
        if (same)
            item_destroy(detach(mailbox, same));
    }
    pthread_mutex_unlock(&mailbox->lock);

    item_destroy(item);
}

char *mailbox_take_released(struct mailbox *mailbox)
{
    const char *name;
    char *copy = NULL;
    size_t position = 0;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    if (map_next(mailbox->released, &position, &name, &value)) {
        copy = xstrdup(name);
        (void)map_remove(mailbox->released, copy);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return copy;
}

void mailbox_release(struct mailbox *mailbox, const char *copy)
{
    pthread_mutex_lock(&mailbox->lock);
    release(mailbox, copy);
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_is_elsewhere(struct mailbox *mailbox, const char *key)
{
    pthread_mutex_lock(&mailbox->lock);

    const struct box *box = map_get(mailbox->boxes, key);
    bool ret = box && is_elsewhere(box);

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

void mailbox_expect_copies(struct mailbox *mailbox, bool expects)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->expects_copies = expects;
    pthread_mutex_unlock(&mailbox->lock);
}

bool mailbox_expects_copies(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);

    bool ret = mailbox->expects_copies;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

bool mailbox_any_elsewhere(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);

    bool ret = mailbox->elsewhere;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

static int by_turn(const void *a, const void *b)
{
    const struct box *const *left = a, *const *right = b;

    return ((*left)->turn > (*right)->turn) - ((*left)->turn < (*right)->turn);
}

/* The copies that are elsewhere are expected now. Those that were expected and did not come are gone. */
static void recall(struct box *box)
{
    for (struct share *share = box->shares; share; share = share->next) {
        hash_list_release(&share->recalled);
        share->recalled = share->elsewhere;
        share->elsewhere = (struct hash_list){ 0 };
    }
    box->recalled = box->elsewhere;
    box->elsewhere = 0;
    box->wanted = false;
}

/* With the lock. Boxes whose turn was the longest ago are wanted, up to a quarter of the total. */
static void begin_recall(struct mailbox *mailbox, struct arena *arena)
{
    const char **keys = arena_array(arena, const char *, map_len(mailbox->boxes) + 1);
    struct box **boxes = arena_array(arena, struct box *, map_len(mailbox->boxes) + 1);
    size_t len = 0, empty = 0, wanted = 0;
    const char *key;
    void *value;

    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);) {
        struct box *box = value;

        recall(box);
        if (box->recalled)
            boxes[len++] = box;
        else if (!box->len)
            keys[empty++] = arena_strdup(arena, key);
    }
    for (size_t i = 0; i < empty; i++)
        (void)map_remove(mailbox->boxes, keys[i]);

    qsort(boxes, len, sizeof(struct box *), by_turn);
    for (size_t i = 0; i < len && wanted < mailbox->limits.total_messages / 4 + 1; i++) {
        size_t most = copies_per_share(mailbox);

        boxes[i]->wanted = true;
        wanted += boxes[i]->recalled < most ? boxes[i]->recalled : most;
    }
    mailbox->elsewhere = len > 0;
}

bool mailbox_recall(struct mailbox *mailbox, int64_t now_ms)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    pthread_mutex_lock(&mailbox->lock);

    bool has_room = mailbox->held.messages <= mailbox->limits.total_messages / 4 &&
                    mailbox->held.bytes <= mailbox->limits.total_bytes / 4;
    int64_t pause_ms = has_room ? RECALL_SOON_MS : RECALL_LATE_MS;
    bool due = mailbox->elsewhere && now_ms - mailbox->recalled_ms >= pause_ms;

    if (due) {
        mailbox->recalled_ms = now_ms;
        begin_recall(mailbox, arena);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return due;
}

void mailbox_copies_come(struct mailbox *mailbox, int64_t now_ms)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->recalled_ms = now_ms;
    pthread_mutex_unlock(&mailbox->lock);
}

size_t mailbox_len(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);

    size_t ret = mailbox->messages;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

size_t mailbox_held(struct mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);

    size_t ret = mailbox->messages - mailbox->waiting;

    pthread_mutex_unlock(&mailbox->lock);
    return ret;
}

size_t mailbox_len_of_source(struct mailbox *mailbox, const char *source, const char *except_key)
{
    const char *key;
    void *value;
    size_t len = 0;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);) {
        const struct share *share = ((const struct box *)value)->shares;

        while (share && !str_equal(share->source, source))
            share = share->next;
        if (share && !str_equal(key, except_key))
            len += len_of(share);
    }
    pthread_mutex_unlock(&mailbox->lock);
    return len;
}

int64_t mailbox_oldest_ms(struct mailbox *mailbox)
{
    int64_t oldest_ms = 0;
    const char *key;
    void *value;

    pthread_mutex_lock(&mailbox->lock);
    for (size_t i = 0; map_next(mailbox->boxes, &i, &key, &value);) {
        const struct item *oldest = TAILQ_FIRST(&((const struct box *)value)->items);
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

    while (mailbox->waiting && mailbox->wakes == wakes && in_time)
        in_time = cond_wait_until(&mailbox->changed, &mailbox->lock, &deadline);

    bool empty = !mailbox->waiting;

    pthread_mutex_unlock(&mailbox->lock);
    return empty;
}

void mailbox_wait_work(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms)
{
    struct timespec deadline = cond_deadline(timeout_ms);
    bool in_time = true;

    pthread_mutex_lock(&mailbox->lock);
    while (!mailbox->waiting && !map_len(mailbox->released) && mailbox->wakes == wakes && in_time)
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
