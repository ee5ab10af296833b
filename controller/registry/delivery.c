#include "controller/registry/delivery.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/base/alloc.h"
#include "common/base/arena.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"
#include "controller/device/messages.h"
#include "controller/device/payload.h"
#include "controller/registry/delivery_plan.h"

/* The broker or the disk does not do its part: looked at again then. */
#define RETRY_MS 1000
/* Floors move with the time, so that nothing waits for longer without a look. */
#define LOOK_MS 5000
/* Channels whose rate is remembered. */
#define MAX_PACES ((size_t)2 * DELIVERY_MAX)

/* An attempt on a channel whose start needs the module of a delivery. */
struct waiting {
    TAILQ_ENTRY(waiting) entry;
    char *key;
    char *client_id;
    struct kube_name task;
    int64_t attempt;
    int64_t fresh_ms;
    bool wanted;              /* its start waits */
    int64_t pass_ms;          /* the first part that was sent meanwhile; 0: none */
    int64_t started_ms;       /* its start went out; 0: not yet */
    int64_t request_ms;       /* a request that is not judged yet; 0: none */
    int64_t request_floor_ms; /* of one that is served now; 0: none */
    bool has_parts;           /* parts were sent since it began to wait */
    int passes;               /* that its device caused */
};
TAILQ_HEAD(waiting_list, waiting);

/* One module on one channel. */
struct delivery {
    TAILQ_ENTRY(delivery) entry;
    char channel[CHANNEL_KEY_LEN];
    char *digest;
    int64_t bytes;
    size_t parts;
    int64_t *sent_ms; /* see delivery_observed */
    int64_t done_ms;  /* the last part was acknowledged */
    int64_t used_ms;
    struct map *starts; /* client id -> int64_t: the last start with this module */
    struct waiting_list waiting;
    size_t waiting_count;
    struct map *by_key; /* key -> struct waiting: owns them */
    size_t unjudged;    /* requests */
    bool is_busy;       /* a part of it is on its way */
};
TAILQ_HEAD(delivery_list, delivery);

/* How fast parts go out on one channel. */
struct pace {
    int64_t next_ms; /* the rate allows the next part then */
    int64_t last_ms;
};

struct deliveries {
    struct deliveries_host host;
    pthread_t thread;
    bool is_started;

    pthread_mutex_t lock; /* leaf: guards what follows */
    pthread_cond_t changed;
    bool has_changed, stopping;
    struct delivery_list list;
    size_t delivery_count;
    struct map *paces; /* channel -> struct pace */
};

static struct metric PARTS = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_chunks_sent_total",
    .help = "Number of parts of modules that the broker acknowledged.",
};
static struct metric BYTES = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_chunk_bytes_sent_total",
    .help = "Number of bytes of messages with parts of modules that the broker acknowledged.",
};
static struct metric REQUESTS = {
    .type = METRIC_COUNTER,
    .name = "propeller_module_requests_total",
    .help = "Number of requests of devices for modules.",
    .labels = { "result" },
};

static int64_t now_of(const struct deliveries *deliveries)
{
    return clock_monotonic_ms(deliveries->host.clock);
}

static void waiting_release(void *value)
{
    struct waiting *waiting = value;

    free(waiting->key);
    free(waiting->client_id);
    free(waiting);
}

static void waiting_free(struct delivery *delivery, struct waiting *waiting)
{
    TAILQ_REMOVE(&delivery->waiting, waiting, entry);
    delivery->waiting_count--;
    (void)map_remove(delivery->by_key, waiting->key);
}

static void delivery_free(struct deliveries *deliveries, struct delivery *delivery)
{
    TAILQ_REMOVE(&deliveries->list, delivery, entry);
    deliveries->delivery_count--;
    map_destroy(delivery->starts);
    map_destroy(delivery->by_key);
    free(delivery->sent_ms);
    free(delivery->digest);
    free(delivery);
}

struct deliveries *deliveries_create(const struct deliveries_host *host)
{
    static const char *const RESULTS[] = { "served", "confirmed", "unknown", "malformed",
                                           "limited" };
    struct deliveries *deliveries = xcalloc(1, sizeof(*deliveries));

    deliveries->host = *host;
    deliveries->paces = map_create(free);
    TAILQ_INIT(&deliveries->list);
    pthread_mutex_init(&deliveries->lock, NULL);
    cond_init(&deliveries->changed);
    metric_add(&PARTS, 0, NULL);
    metric_add(&BYTES, 0, NULL);
    for (size_t i = 0; i < ARRAY_LEN(RESULTS); i++)
        metric_add(&REQUESTS, 0, RESULTS[i], NULL);
    return deliveries;
}

void deliveries_destroy(struct deliveries *deliveries)
{
    struct delivery *delivery = deliveries ? TAILQ_FIRST(&deliveries->list) : NULL, *next;

    if (!deliveries)
        return;
    for (; delivery; delivery = next) {
        next = TAILQ_NEXT(delivery, entry);
        delivery_free(deliveries, delivery);
    }
    map_destroy(deliveries->paces);
    pthread_cond_destroy(&deliveries->changed);
    pthread_mutex_destroy(&deliveries->lock);
    free(deliveries);
}

/* Locked. */
static void tell_thread(struct deliveries *deliveries)
{
    deliveries->has_changed = true;
    pthread_cond_signal(&deliveries->changed);
}

/* --- what waits --- */

/* Locked, like all below that take a delivery. */
static struct delivery *find_delivery(struct deliveries *deliveries, const char *channel,
                                      const char *digest)
{
    struct delivery *delivery;

    for (delivery = TAILQ_FIRST(&deliveries->list); delivery;
         delivery = TAILQ_NEXT(delivery, entry)) {
        if (str_equal(delivery->digest, digest) && str_equal(delivery->channel, channel))
            return delivery;
    }
    return NULL;
}

/* Its start went out, and the device may still look. */
static bool may_lack(const struct waiting *waiting, int64_t now_ms)
{
    return waiting->started_ms && !waiting->wanted &&
           now_ms - waiting->started_ms < DELIVERY_LOOK_MS;
}

/* Else it only remembers what its device caused. */
static bool is_active(const struct waiting *waiting, int64_t now_ms)
{
    return waiting->wanted || waiting->pass_ms || waiting->request_floor_ms ||
           may_lack(waiting, now_ms);
}

static bool is_idle(const struct delivery *delivery, int64_t now_ms)
{
    const struct waiting *waiting;

    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        if (is_active(waiting, now_ms))
            return false;
    }
    return !delivery->is_busy;
}

/* false: something waits for each delivery. */
static bool make_room(struct deliveries *deliveries)
{
    struct delivery *delivery, *oldest = NULL;
    int64_t now_ms = now_of(deliveries);

    for (delivery = TAILQ_FIRST(&deliveries->list); delivery;
         delivery = TAILQ_NEXT(delivery, entry)) {
        if ((!oldest || delivery->used_ms < oldest->used_ms) && is_idle(delivery, now_ms))
            oldest = delivery;
    }
    if (oldest)
        delivery_free(deliveries, oldest);
    return oldest;
}

static struct delivery *use_delivery(struct deliveries *deliveries,
                                     const struct delivery_wish *wish)
{
    struct delivery *delivery = find_delivery(deliveries, wish->channel, wish->digest);

    if (delivery || (deliveries->delivery_count >= DELIVERY_MAX && !make_room(deliveries)))
        return delivery;
    delivery = xcalloc(1, sizeof(*delivery));
    if (!str_copy(delivery->channel, sizeof(delivery->channel), wish->channel)) {
        free(delivery);
        return NULL;
    }
    delivery->digest = xstrdup(wish->digest);
    delivery->bytes = wish->bytes;
    delivery->parts = ((size_t)wish->bytes + PAYLOAD_PART_BYTES - 1) / PAYLOAD_PART_BYTES;
    delivery->sent_ms = xcalloc(delivery->parts + 1, sizeof(*delivery->sent_ms));
    delivery->starts = map_create(free);
    delivery->by_key = map_create(waiting_release);
    TAILQ_INIT(&delivery->waiting);
    TAILQ_INSERT_TAIL(&deliveries->list, delivery, entry);
    deliveries->delivery_count++;
    return delivery;
}

/* The oldest one that is not active gives way. false: there is none. */
static bool make_place(struct delivery *delivery, int64_t now_ms)
{
    struct waiting *waiting = TAILQ_FIRST(&delivery->waiting);

    while (waiting && is_active(waiting, now_ms))
        waiting = TAILQ_NEXT(waiting, entry);
    if (waiting)
        waiting_free(delivery, waiting);
    return waiting;
}

/* NULL: too many wait. */
static struct waiting *use_waiting(struct delivery *delivery, const struct delivery_wish *wish,
                                   int64_t now_ms)
{
    struct waiting *waiting = map_get(delivery->by_key, wish->key);

    if (waiting && waiting->attempt == wish->attempt &&
        str_equal(waiting->client_id, wish->client_id))
        return waiting;
    if (waiting)
        waiting_free(delivery, waiting);
    if (delivery->waiting_count >= DELIVERY_MAX_WAITING && !make_place(delivery, now_ms))
        return NULL;
    waiting = xcalloc(1, sizeof(*waiting));
    waiting->key = xstrdup(wish->key);
    waiting->client_id = xstrdup(wish->client_id);
    waiting->attempt = wish->attempt;
    waiting->task = wish->task;
    waiting->fresh_ms = wish->fresh_ms;
    map_set(delivery->by_key, waiting->key, waiting);
    TAILQ_INSERT_TAIL(&delivery->waiting, waiting, entry);
    delivery->waiting_count++;
    return waiting;
}

/* A device that comes up again lacks what was sent before. One that does so too often gets its start all the same. */
static void note_fresh(struct waiting *waiting, int64_t fresh_ms)
{
    if (waiting->fresh_ms == fresh_ms)
        return;
    if (waiting->has_parts && waiting->passes >= DELIVERY_MAX_PASSES)
        return;
    waiting->passes += waiting->has_parts;
    waiting->has_parts = false;
    waiting->fresh_ms = fresh_ms;
}

static int64_t floor_of(const struct delivery *delivery, const struct waiting *waiting,
                        int64_t now_ms)
{
    const int64_t *started_ms = map_get(delivery->starts, waiting->client_id);

    return delivery_floor(started_ms ? *started_ms : 0, waiting->fresh_ms, now_ms);
}

/* The passes of others that wait for the same device start again. */
static void note_start(struct delivery *delivery, struct waiting *started, int64_t now_ms)
{
    struct waiting *waiting;
    int64_t *at_ms = map_get(delivery->starts, started->client_id);

    if (!at_ms && map_len(delivery->starts) >= DELIVERY_MAX_WAITING) {
        map_destroy(delivery->starts); /* each costs a request at most */
        delivery->starts = map_create(free);
    }
    if (!at_ms) {
        at_ms = xcalloc(1, sizeof(*at_ms));
        map_set(delivery->starts, started->client_id, at_ms);
    }
    *at_ms = now_ms;
    started->wanted = false;
    started->has_parts = false;
    started->started_ms = now_ms;
    started->request_ms = 0;
    started->request_floor_ms = 0;
    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        if (str_equal(waiting->client_id, started->client_id))
            waiting->pass_ms = 0;
    }
}

static enum delivery_state want(struct delivery *delivery, const struct delivery_wish *wish,
                                bool claims, int64_t now_ms, int64_t *ret_after_ms)
{
    struct waiting *waiting = use_waiting(delivery, wish, now_ms);

    if (!waiting)
        return DELIVERY_NO_ROOM;
    note_fresh(waiting, wish->fresh_ms);
    delivery->used_ms = now_ms;
    if (delivery_is_too_slow(waiting->pass_ms, now_ms)) {
        waiting_free(delivery, waiting);
        return DELIVERY_TOO_SLOW;
    }
    waiting->wanted = true;

    int64_t floor_ms = floor_of(delivery, waiting, now_ms);
    if (floor_ms >= now_ms || !delivery_reached(delivery->sent_ms, delivery->parts, floor_ms))
        return DELIVERY_WAITS;
    *ret_after_ms = delivery->done_ms + DELIVERY_SETTLE_MS - now_ms;
    if (*ret_after_ms > 0)
        return DELIVERY_WAITS;
    *ret_after_ms = 0;
    if (claims)
        note_start(delivery, waiting, now_ms);
    return DELIVERY_REACHED;
}

enum delivery_state deliveries_want(struct deliveries *deliveries, const struct delivery_wish *wish,
                                    bool claims, int64_t *ret_after_ms)
{
    enum delivery_state state = DELIVERY_NO_ROOM;

    *ret_after_ms = 0;
    pthread_mutex_lock(&deliveries->lock);
    struct delivery *delivery = use_delivery(deliveries, wish);
    if (delivery)
        state = want(delivery, wish, claims, now_of(deliveries), ret_after_ms);
    if (state == DELIVERY_WAITS)
        tell_thread(deliveries);
    pthread_mutex_unlock(&deliveries->lock);
    return state;
}

static bool is_of(const char *key, const char *uid)
{
    size_t len = strlen(uid);

    return strncmp(key, uid, len) == 0 && (!key[len] || key[len] == '/');
}

void deliveries_drop(struct deliveries *deliveries, const char *uid, bool ended)
{
    struct delivery *delivery;

    pthread_mutex_lock(&deliveries->lock);
    for (delivery = TAILQ_FIRST(&deliveries->list); delivery;
         delivery = TAILQ_NEXT(delivery, entry)) {
        struct waiting *waiting = TAILQ_FIRST(&delivery->waiting), *next;

        for (; waiting; waiting = next) {
            next = TAILQ_NEXT(waiting, entry);
            if (!is_of(waiting->key, uid))
                continue;
            waiting->wanted = false;
            waiting->pass_ms = 0;
            if (ended)
                waiting_free(delivery, waiting);
        }
    }
    pthread_mutex_unlock(&deliveries->lock);
}

/* --- requests of devices --- */

/* Returns why the request has no effect; NULL: it is judged later. */
static const char *take_request(struct delivery *delivery, int64_t now_ms)
{
    const char *refusal = "unknown";
    struct waiting *waiting;

    if (!delivery)
        return refusal;
    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        if (!may_lack(waiting, now_ms))
            continue;
        if (waiting->passes >= DELIVERY_MAX_PASSES) {
            refusal = refusal ? "limited" : NULL;
            continue;
        }
        if (!waiting->request_ms && !waiting->request_floor_ms)
            waiting->request_ms = now_ms;
        refusal = NULL;
    }
    if (!refusal)
        delivery->unjudged++;
    return refusal;
}

void deliveries_request(struct deliveries *deliveries, const char *channel, const char *payload,
                        size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name, *refusal;
    struct error err = { 0 };

    if (message_module_parse(arena, payload, len, &name, &err) < 0) {
        metric_add(&REQUESTS, 1, "malformed", NULL);
        return;
    }
    pthread_mutex_lock(&deliveries->lock);
    refusal = take_request(find_delivery(deliveries, channel, name), now_of(deliveries));
    if (!refusal)
        tell_thread(deliveries);
    pthread_mutex_unlock(&deliveries->lock);
    if (refusal)
        metric_add(&REQUESTS, 1, refusal, NULL);
}

/* An attempt with a request that is due. */
struct due {
    const char *key;
    int64_t attempt, request_ms;
};

static struct due *due_of(struct arena *arena, const struct delivery *delivery, int64_t now_ms,
                          size_t *ret_len)
{
    struct due *due = arena_array(arena, struct due, delivery->waiting_count + 1);
    const struct waiting *waiting;

    *ret_len = 0;
    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        if (waiting->request_ms && now_ms - waiting->request_ms >= DELIVERY_REQUEST_MS)
            due[(*ret_len)++] = (struct due){ arena_strdup(arena, waiting->key), waiting->attempt,
                                              waiting->request_ms };
    }
    return due;
}

/* true: it is to be served. */
static bool judge(struct delivery *delivery, const struct due *due, bool unconfirmed)
{
    struct waiting *waiting = map_get(delivery->by_key, due->key);

    if (!waiting || waiting->attempt != due->attempt || waiting->request_ms != due->request_ms)
        return false;
    waiting->request_ms = 0;
    if (!unconfirmed || waiting->passes >= DELIVERY_MAX_PASSES)
        return false;
    waiting->request_floor_ms = due->request_ms;
    waiting->passes++;
    return true;
}

/* All requests of a delivery that are due are judged together, as they do not say of which device they are. */
static void judge_requests(struct deliveries *deliveries, struct arena *arena,
                           struct delivery *delivery)
{
    size_t len;
    bool served = false;

    pthread_mutex_lock(&deliveries->lock);
    struct due *due = due_of(arena, delivery, now_of(deliveries), &len);
    pthread_mutex_unlock(&deliveries->lock);
    if (!len)
        return;
    for (size_t i = 0; i < len; i++) {
        bool unconfirmed =
            deliveries->host.is_unconfirmed(deliveries->host.ctx, due[i].key, due[i].attempt);

        pthread_mutex_lock(&deliveries->lock);
        served = judge(delivery, &due[i], unconfirmed) || served;
        pthread_mutex_unlock(&deliveries->lock);
    }
    pthread_mutex_lock(&deliveries->lock);
    size_t requests = delivery->unjudged;
    delivery->unjudged = 0;
    pthread_mutex_unlock(&deliveries->lock);
    metric_add(&REQUESTS, (double)requests, served ? "served" : "confirmed", NULL);
}

/* --- sending --- */

struct choice {
    struct delivery *delivery; /* NULL: nothing is to be sent now */
    struct pace *pace;
    size_t part;
    int64_t wait_ms; /* look again then; INT64_MAX: nothing waits */
};

static void look_in(struct choice *choice, int64_t ms)
{
    if (ms < 1)
        ms = 1;
    if (ms < choice->wait_ms)
        choice->wait_ms = ms;
}

/* The floors of those that wait; those that have waited too long are told. */
static int64_t *floors_of(struct arena *arena, const struct delivery *delivery, int64_t now_ms,
                          struct choice *choice, size_t *ret_len)
{
    int64_t *floors_ms = arena_array(arena, int64_t, 2 * delivery->waiting_count + 1);
    const struct waiting *waiting;

    *ret_len = 0;
    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        int64_t floor_ms = floor_of(delivery, waiting, now_ms);

        if (waiting->wanted)
            floors_ms[(*ret_len)++] = floor_ms;
        if (waiting->wanted)
            look_in(choice, floor_ms >= now_ms ? floor_ms + 1 - now_ms : LOOK_MS);
        if (waiting->request_floor_ms)
            floors_ms[(*ret_len)++] = waiting->request_floor_ms;
        if (waiting->request_ms)
            look_in(choice, waiting->request_ms + DELIVERY_REQUEST_MS - now_ms);
    }
    return floors_ms;
}

static struct pace *pace_of(struct deliveries *deliveries, const char *channel)
{
    struct pace *pace = map_get(deliveries->paces, channel);

    if (!pace) {
        pace = xcalloc(1, sizeof(*pace));
        map_set(deliveries->paces, channel, pace);
    }
    return pace;
}

static void consider(struct deliveries *deliveries, struct arena *arena, struct delivery *delivery,
                     int64_t now_ms, struct choice *choice)
{
    struct delivery_observed observed = { .sent_ms = delivery->sent_ms,
                                          .parts = delivery->parts,
                                          .now_ms = now_ms };

    observed.floors_ms = floors_of(arena, delivery, now_ms, choice, &observed.floor_count);
    size_t part = delivery_next(&observed);
    if (part == DELIVERY_NONE)
        return;

    struct pace *pace = pace_of(deliveries, delivery->channel);
    if (pace->next_ms > now_ms) {
        look_in(choice, pace->next_ms - now_ms);
        return;
    }
    if (!choice->delivery || pace->last_ms < choice->pace->last_ms) {
        choice->delivery = delivery;
        choice->pace = pace;
        choice->part = part;
    }
}

/* Nothing of it counts for any device any more. */
static bool is_forgotten(const struct delivery *delivery, int64_t now_ms)
{
    return now_ms - delivery->used_ms > DELIVERY_KEPT_MS &&
           now_ms - delivery->done_ms > DELIVERY_KEPT_MS && is_idle(delivery, now_ms);
}

/* Returns whether nothing is left of the delivery. */
static bool forget_old(struct deliveries *deliveries, struct delivery *delivery, int64_t now_ms)
{
    struct waiting *waiting = TAILQ_FIRST(&delivery->waiting), *next;

    for (; waiting; waiting = next) {
        next = TAILQ_NEXT(waiting, entry);
        if (!is_active(waiting, now_ms) && !waiting->has_parts && !waiting->passes)
            waiting_free(delivery, waiting);
    }
    if (!is_forgotten(delivery, now_ms))
        return false;
    delivery_free(deliveries, delivery);
    return true;
}

static void forget_paces(struct deliveries *deliveries)
{
    if (map_len(deliveries->paces) <= MAX_PACES)
        return;
    map_destroy(deliveries->paces); /* the rate of a moment */
    deliveries->paces = map_create(free);
}

static struct choice choose(struct deliveries *deliveries, struct arena *arena)
{
    struct choice choice = { .wait_ms = INT64_MAX };
    struct delivery *delivery, *next;

    pthread_mutex_lock(&deliveries->lock);
    int64_t now_ms = now_of(deliveries);
    deliveries->has_changed = false;
    forget_paces(deliveries);
    for (delivery = TAILQ_FIRST(&deliveries->list); delivery; delivery = next) {
        next = TAILQ_NEXT(delivery, entry);
        if (!forget_old(deliveries, delivery, now_ms))
            consider(deliveries, arena, delivery, now_ms, &choice);
    }
    if (choice.delivery)
        choice.delivery->is_busy = true;
    pthread_mutex_unlock(&deliveries->lock);
    return choice;
}

static size_t part_len(const struct delivery *delivery, size_t part)
{
    size_t left = (size_t)delivery->bytes - part * PAYLOAD_PART_BYTES;

    return left < PAYLOAD_PART_BYTES ? left : PAYLOAD_PART_BYTES;
}

/* digest, channel and size of a delivery never change, and a busy delivery stays. *ret_read: the failure is the broker's. */
static int send_part(struct deliveries *deliveries, struct arena *arena,
                     const struct delivery *delivery, size_t index, size_t *ret_len, bool *ret_read,
                     struct error *err)
{
    struct module_part part = { .name = delivery->digest,
                                .index = index,
                                .total = delivery->parts,
                                .len = part_len(delivery, index) };
    void *bytes = arena_alloc(arena, part.len, 1);
    int r = deliveries->host.read(deliveries->host.ctx, delivery->digest,
                                  (int64_t)(index * PAYLOAD_PART_BYTES), bytes, part.len, err);

    *ret_read = r == 0;
    if (r < 0)
        return r;
    part.bytes = bytes;

    const char *text = payload_part(arena, &part, ret_len);
    return deliveries->host.publish(deliveries->host.ctx, delivery->channel, text, *ret_len, err);
}

/* The Tasks to wake when the lock is released. */
struct woken {
    struct kube_name *names;
    size_t len;
};

static void note_sent(struct deliveries *deliveries, const struct choice *choice, int64_t began_ms,
                      struct woken *woken)
{
    struct delivery *delivery = choice->delivery;
    int64_t now_ms = now_of(deliveries);
    int64_t before_ms = delivery->sent_ms[choice->part];
    struct waiting *waiting;

    delivery->sent_ms[choice->part] = began_ms;
    delivery->done_ms = now_ms;
    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        int64_t floor_ms = floor_of(delivery, waiting, now_ms);

        waiting->has_parts |= waiting->wanted;
        if (waiting->wanted && !waiting->pass_ms)
            waiting->pass_ms = began_ms;
        if (waiting->wanted && before_ms <= floor_ms &&
            delivery_reached(delivery->sent_ms, delivery->parts, floor_ms))
            woken->names[woken->len++] = waiting->task;
        if (waiting->request_floor_ms &&
            delivery_reached(delivery->sent_ms, delivery->parts, waiting->request_floor_ms))
            waiting->request_floor_ms = 0;
        if (waiting->wanted && delivery_is_too_slow(waiting->pass_ms, now_ms)) {
            waiting->wanted = false; /* its next turn says so */
            woken->names[woken->len++] = waiting->task;
        }
    }
}

/* Floors stay. The parts that were sent may be too old when the pass goes on. */
static void note_pause(struct deliveries *deliveries)
{
    struct delivery *delivery;
    struct waiting *waiting;

    for (delivery = TAILQ_FIRST(&deliveries->list); delivery;
         delivery = TAILQ_NEXT(delivery, entry)) {
        for (waiting = TAILQ_FIRST(&delivery->waiting); waiting;
             waiting = TAILQ_NEXT(waiting, entry)) {
            waiting->pass_ms = 0;
        }
    }
}

/* Those that wait ask for the module again. */
static void note_missing(struct delivery *delivery, struct woken *woken)
{
    struct waiting *waiting;

    for (waiting = TAILQ_FIRST(&delivery->waiting); waiting; waiting = TAILQ_NEXT(waiting, entry)) {
        if (waiting->wanted)
            woken->names[woken->len++] = waiting->task;
        waiting->wanted = false;
        waiting->pass_ms = 0;
        waiting->request_floor_ms = 0;
    }
}

/* After a pass it is the turn of the next delivery of its channel. A delivery in turn after each part would let all of them last
 * for too long together. */
static void end_turn(struct deliveries *deliveries, struct delivery *delivery)
{
    TAILQ_REMOVE(&deliveries->list, delivery, entry);
    TAILQ_INSERT_TAIL(&deliveries->list, delivery, entry);
}

static struct woken conclude(struct deliveries *deliveries, struct arena *arena,
                             const struct choice *choice, int64_t began_ms, int r, bool was_read)
{
    struct woken woken = { .names = NULL };

    pthread_mutex_lock(&deliveries->lock);
    woken.names = arena_array(arena, struct kube_name, 2 * choice->delivery->waiting_count + 1);
    choice->delivery->is_busy = false;
    choice->pace->last_ms = now_of(deliveries);
    if (r == 0) {
        choice->pace->next_ms = delivery_rate_ms(began_ms, part_len(choice->delivery, choice->part),
                                                 deliveries->host.bytes_per_s);
        note_sent(deliveries, choice, began_ms, &woken);
    } else if (was_read) {
        note_pause(deliveries);
    } else if (r == -ERROR_NOT_FOUND) {
        note_missing(choice->delivery, &woken);
    }
    if (r < 0 || choice->part + 1 == choice->delivery->parts)
        end_turn(deliveries, choice->delivery);
    pthread_mutex_unlock(&deliveries->lock);
    return woken;
}

static int64_t deliver(struct deliveries *deliveries, struct arena *arena,
                       const struct choice *choice)
{
    int64_t began_ms = now_of(deliveries);
    struct error err = { 0 };
    size_t len = 0;
    bool was_read;
    int r = send_part(deliveries, arena, choice->delivery, choice->part, &len, &was_read, &err);
    struct woken woken = conclude(deliveries, arena, choice, began_ms, r, was_read);

    for (size_t i = 0; i < woken.len; i++)
        deliveries->host.wake(deliveries->host.ctx, &woken.names[i],
                              r == 0 ? DELIVERY_SETTLE_MS : 0);
    if (r == 0) {
        metric_add(&PARTS, 1, NULL);
        metric_add(&BYTES, (double)len, NULL);
        return 0;
    }
    log_debug("part of a module not sent, trying again", "error", ERROR_TEXT(&err), NULL);
    return RETRY_MS;
}

int64_t deliveries_step(struct deliveries *deliveries)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct delivery *delivery;

    /* Deliveries are removed by this thread, or while they are idle. */
    pthread_mutex_lock(&deliveries->lock);
    size_t count = 0;
    struct delivery **list = arena_array(arena, struct delivery *, deliveries->delivery_count + 1);
    for (delivery = TAILQ_FIRST(&deliveries->list); delivery;
         delivery = TAILQ_NEXT(delivery, entry)) {
        if (delivery->unjudged) {
            delivery->is_busy = true;
            list[count++] = delivery;
        }
    }
    pthread_mutex_unlock(&deliveries->lock);
    for (size_t i = 0; i < count; i++)
        judge_requests(deliveries, arena, list[i]);
    pthread_mutex_lock(&deliveries->lock);
    for (size_t i = 0; i < count; i++)
        list[i]->is_busy = false;
    pthread_mutex_unlock(&deliveries->lock);

    struct choice choice = choose(deliveries, arena);
    if (!choice.delivery)
        return choice.wait_ms;
    return deliver(deliveries, arena, &choice);
}

/* --- thread --- */

static bool pause_for(struct deliveries *deliveries, int64_t ms)
{
    struct timespec deadline = cond_deadline(ms < LOOK_MS ? (uint32_t)ms : LOOK_MS);

    pthread_mutex_lock(&deliveries->lock);
    while (!deliveries->stopping && !deliveries->has_changed && ms > 0) {
        if (ms == INT64_MAX)
            pthread_cond_wait(&deliveries->changed, &deliveries->lock);
        else if (!cond_wait_until(&deliveries->changed, &deliveries->lock, &deadline))
            break;
    }
    bool ret = !deliveries->stopping;
    pthread_mutex_unlock(&deliveries->lock);
    return ret;
}

static void *run(void *ctx)
{
    struct deliveries *deliveries = ctx;

    while (pause_for(deliveries, deliveries_step(deliveries)))
        continue;
    return NULL;
}

int deliveries_start(struct deliveries *deliveries, struct error *err)
{
    int r = thread_start(&deliveries->thread, "delivery", run, deliveries, err);

    deliveries->is_started = r == 0;
    return r;
}

void deliveries_stop(struct deliveries *deliveries)
{
    if (!deliveries->is_started)
        return;
    pthread_mutex_lock(&deliveries->lock);
    deliveries->stopping = true;
    tell_thread(deliveries);
    pthread_mutex_unlock(&deliveries->lock);
    thread_join(deliveries->thread);
    deliveries->is_started = false;
}
