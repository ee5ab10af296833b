#include "standalone/server/seats.h"

#include "common/base/cond.h"
#include "common/base/str.h"

void seats_init(struct seats *seats)
{
    TAILQ_INIT(&seats->all);
    seats->is_closed = false;
    (void)pthread_mutex_init(&seats->lock, NULL);
}

void seats_close(struct seats *seats)
{
    (void)pthread_mutex_lock(&seats->lock);
    seats->is_closed = true;
    for (struct seat *seat = TAILQ_FIRST(&seats->all); seat; seat = TAILQ_NEXT(seat, in_all))
        (void)pthread_cond_signal(&seat->changed);
    (void)pthread_mutex_unlock(&seats->lock);
}

void seats_release(struct seats *seats)
{
    (void)pthread_mutex_destroy(&seats->lock);
}

/* --- with the lock ----------------------------------------------------------------------------- */

/* Counts of all users together, and of one user. */
struct seat_counts {
    unsigned works, works_long;
    unsigned requests, watches, waits, has, has_long; /* of the user */
    size_t bytes;
};

static struct seat_counts seats_count(const struct seats *seats, const char *who)
{
    struct seat_counts ret = { 0 };

    for (const struct seat *seat = TAILQ_FIRST(&seats->all); seat;
         seat = TAILQ_NEXT(seat, in_all)) {
        bool is_own = str_equal(seat->who, who), is_long = seat->use == SEAT_LONG;
        bool works = seat->state == SEAT_WORKS;
        bool has = is_own && (works || seat->state == SEAT_UNREAD);

        ret.works += works;
        ret.works_long += works && is_long;
        ret.requests += is_own;
        ret.watches += is_own && seat->is_watch;
        ret.waits += is_own && seat->state == SEAT_WAITS;
        ret.has += has;
        ret.has_long += has && is_long;
        ret.bytes += seat->bytes;
    }
    return ret;
}

/* NULL: there is no seat, or no request that may have one. */
static struct seat *seats_choose_next(const struct seats *seats)
{
    unsigned fewest = SEATS_EACH;
    struct seat *next = NULL;

    for (struct seat *seat = TAILQ_FIRST(&seats->all); seat; seat = TAILQ_NEXT(seat, in_all)) {
        if (seat->state != SEAT_WAITS)
            continue;

        const struct seat_counts counts = seats_count(seats, seat->who);

        if (counts.works >= SEATS)
            return NULL;
        if (seat->use == SEAT_LONG &&
            (counts.works_long >= SEATS_LONG || counts.has_long >= SEATS_LONG_EACH))
            continue;
        if (counts.has < fewest) {
            fewest = counts.has;
            next = seat;
        }
    }
    return next;
}

static void seats_give_out(struct seats *seats)
{
    struct seat *next;

    while (!seats->is_closed && (next = seats_choose_next(seats))) {
        next->state = SEAT_WORKS;
        (void)pthread_cond_signal(&next->changed);
    }
}

static void seat_set_bytes(struct seat *seat, size_t len)
{
    size_t most = seat->seats->max_answers / 2;

    seat->bytes = len <= seat->seats->small_answer ? 0 : len < most ? len : most;
}

/* --- requests --------------------------------------------------------------------------------- */

static void seat_end(void *data)
{
    struct seat *seat = data;
    struct seats *seats = seat->seats;

    (void)pthread_mutex_lock(&seats->lock);
    TAILQ_REMOVE(&seats->all, seat, in_all);
    seats_give_out(seats);
    (void)pthread_mutex_unlock(&seats->lock);
    (void)pthread_cond_destroy(&seat->changed);
}

struct seat *seat_join(struct seats *seats, struct arena *arena, uint64_t request_id,
                       const char *who)
{
    (void)pthread_mutex_lock(&seats->lock);

    struct seat *seat = TAILQ_FIRST(&seats->all);

    while (seat && seat->request_id != request_id)
        seat = TAILQ_NEXT(seat, in_all);
    if (!seat && seats_count(seats, who).requests < seats->max_requests) {
        seat = arena_own(arena, arena_new(arena, struct seat), seat_end);
        *seat = (struct seat){ .seats = seats,
                               .request_id = request_id,
                               .who = arena_strdup(arena, who) };
        cond_init(&seat->changed);
        TAILQ_INSERT_TAIL(&seats->all, seat, in_all);
    }
    (void)pthread_mutex_unlock(&seats->lock);
    return seat;
}

bool seat_take(struct seat *seat, enum seat_use use)
{
    struct seats *seats = seat ? seat->seats : NULL;

    if (!seat)
        return true;
    (void)pthread_mutex_lock(&seats->lock);
    TAILQ_REMOVE(&seats->all, seat, in_all); /* its turn is that of now */
    TAILQ_INSERT_TAIL(&seats->all, seat, in_all);
    seat->use = use;
    seat->state = SEAT_WAITS;
    seats_give_out(seats);
    if (seats_count(seats, seat->who).waits > SEATS_QUEUE)
        seat->state = SEAT_NONE;
    while (seat->state == SEAT_WAITS && !seats->is_closed)
        (void)pthread_cond_wait(&seat->changed, &seats->lock);

    bool works = seat->state == SEAT_WORKS;

    if (!works)
        seat->state = SEAT_NONE;
    (void)pthread_mutex_unlock(&seats->lock);
    return works;
}

bool seat_watch(struct seat *seat)
{
    if (!seat)
        return true;
    (void)pthread_mutex_lock(&seat->seats->lock);
    seat->is_watch = seats_count(seat->seats, seat->who).watches < seat->seats->max_watches;
    (void)pthread_mutex_unlock(&seat->seats->lock);
    return seat->is_watch;
}

bool seat_has_room(struct seat *seat, size_t len)
{
    bool fits;

    if (!seat)
        return true;
    (void)pthread_mutex_lock(&seat->seats->lock);

    size_t before = seat->bytes;

    seat_set_bytes(seat, len);
    fits = seat->bytes <= before ||
           seats_count(seat->seats, seat->who).bytes <= seat->seats->max_answers;
    if (!fits)
        seat->bytes = before;
    (void)pthread_mutex_unlock(&seat->seats->lock);
    return fits;
}

void seat_leave(struct seat *seat, size_t answer_len)
{
    if (!seat)
        return;
    (void)pthread_mutex_lock(&seat->seats->lock);
    seat_set_bytes(seat, answer_len);
    seat->state = seat->bytes ? SEAT_UNREAD : SEAT_NONE;
    seats_give_out(seat->seats);
    (void)pthread_mutex_unlock(&seat->seats->lock);
}
