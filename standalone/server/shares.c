#include "standalone/server/shares.h"

#include "common/base/str.h"

struct share {
    struct shares *shares;
    struct share *next, *previous;
    uint64_t request_id;
    const char *who; /* NULL: unlimited */
    size_t bytes;    /* of its answer */
};

void shares_init(struct shares *shares)
{
    (void)pthread_mutex_init(&shares->lock, NULL);
}

void shares_release(struct shares *shares)
{
    (void)pthread_mutex_destroy(&shares->lock);
}

/* --- requests --------------------------------------------------------------------------------- */

static void share_leave(void *data)
{
    struct share *share = data;
    struct shares *shares = share->shares;

    (void)pthread_mutex_lock(&shares->lock);
    if (share->previous)
        share->previous->next = share->next;
    else
        shares->first = share->next;
    if (share->next)
        share->next->previous = share->previous;
    (void)pthread_mutex_unlock(&shares->lock);
}

static struct share *share_create(struct shares *shares, struct arena *arena, uint64_t request_id,
                                  const char *who)
{
    struct share *share = arena_new(arena, struct share);

    *share = (struct share){ .shares = shares,
                             .next = shares->first,
                             .request_id = request_id,
                             .who = arena_strdup(arena, who) };
    if (share->next)
        share->next->previous = share;
    shares->first = share;
    return arena_own(arena, share, share_leave);
}

static bool is_of(const struct share *share, const char *who)
{
    return share->who && who && str_equal(share->who, who);
}

struct share *share_take(struct shares *shares, struct arena *arena, uint64_t request_id,
                         const char *who)
{
    struct share *share;
    size_t others = 0;

    (void)pthread_mutex_lock(&shares->lock);
    for (share = shares->first; share && share->request_id != request_id; share = share->next)
        others += is_of(share, who);
    if (!share && others < shares->max_requests)
        share = share_create(shares, arena, request_id, who);
    (void)pthread_mutex_unlock(&shares->lock);
    return share;
}

/* --- bytes of answers; with the lock ---------------------------------------------------------- */

/* One user has so much. An answer that is larger counts as so much, and is the only such one: a client that reads it
 * slowly is in the way of nothing but its like. */
static size_t part_of(const struct shares *shares)
{
    return shares->max_answers / 2;
}

static size_t at_most(size_t len, size_t max)
{
    return len < max ? len : max;
}

struct held {
    size_t all, of_user;
    bool is_any_large; /* larger than a part */
};

static struct held held_by_others(const struct share *own)
{
    size_t part = part_of(own->shares);
    struct held held = { 0 };

    for (const struct share *share = own->shares->first; share; share = share->next) {
        if (share == own)
            continue;
        held.all += at_most(share->bytes, part);
        held.of_user += is_of(share, own->who) ? at_most(share->bytes, part) : 0;
        held.is_any_large = held.is_any_large || share->bytes > part;
    }
    return held;
}

static bool fits(const struct share *share, size_t len)
{
    const struct held held = held_by_others(share);
    size_t part = part_of(share->shares), counts = at_most(len, part);

    if (len > part && held.is_any_large)
        return false;
    return held.of_user + counts <= part && held.all + counts <= share->shares->max_answers;
}

static bool take_bytes(struct share *share, size_t len, bool is_owed)
{
    bool taken;

    if (!share)
        return true;
    if (len <= share->shares->small_answer)
        len = 0;
    (void)pthread_mutex_lock(&share->shares->lock);
    taken = is_owed || !share->who || len <= share->bytes || fits(share, len);
    if (taken)
        share->bytes = len;
    (void)pthread_mutex_unlock(&share->shares->lock);
    return taken;
}

bool share_has_room(struct share *share, size_t len)
{
    return take_bytes(share, len, false);
}

void share_set_owed(struct share *share, size_t len)
{
    (void)take_bytes(share, len, true);
}

bool share_may_answer(const struct share *share)
{
    bool may;

    if (!share || !share->who)
        return true;
    (void)pthread_mutex_lock(&share->shares->lock);
    may = held_by_others(share).of_user < part_of(share->shares);
    (void)pthread_mutex_unlock(&share->shares->lock);
    return may;
}
