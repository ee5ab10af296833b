#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/kv_fixture.h"

static const char *const KEYS[] = { "/a/1", "/a/2", "/a/3", "/a/4", "/b/1", "/b/2", "/b/3", "/c" };
static const char *const PREFIXES[] = { "/", "/a/", "/b/", "/c", "/a/3", "" };

TEST_GROUP("model", kv_store_begin, kv_store_end);

/* --- the model --- */

/* Of each revision the write, and nothing of what is compacted. */
struct model_write {
    const char *key;  /* NULL: no such revision */
    const char *text; /* NULL: deleted */
};

struct model {
    struct model_write *writes; /* by revision */
    uint64_t head;
};

static struct model *model_create(struct arena *arena, size_t max_writes)
{
    struct model *model = arena_new(arena, struct model);

    model->writes = arena_array(arena, struct model_write, max_writes + 2);
    model->head = 1;
    return model;
}

static void model_set(struct model *model, uint64_t revision, const char *key, const char *text)
{
    ck_assert_uint_gt(revision, 1);
    ck_assert_ptr_null(model->writes[revision].key); /* a revision is given once */
    model->writes[revision] = (struct model_write){ .key = key, .text = text };
    if (revision > model->head)
        model->head = revision;
}

static uint64_t model_find(const struct model *model, const char *key, uint64_t revision)
{
    for (; revision > 1; revision--) {
        const struct model_write *write = &model->writes[revision];
        if (str_equal(write->key, key))
            return write->text ? revision : 0;
    }
    return 0;
}

static uint64_t model_next(const struct model *model, const char *prefix, uint64_t revision)
{
    while (++revision <= model->head) {
        if (str_has_prefix(model->writes[revision].key, prefix))
            return revision;
    }
    return 0;
}

static void model_check_value(const struct model *model, const struct kv_value *value,
                              uint64_t revision)
{
    const struct model_write *write = &model->writes[revision];

    ck_assert_uint_eq(value->revision, revision);
    ck_assert_str_eq(value->key, write->key);
    ck_assert_str_eq(value->text, write->text);
}

static void model_check_event(const struct model *model, const struct kv_event *event,
                              uint64_t revision)
{
    const struct model_write *write = &model->writes[revision];
    uint64_t previous = model_find(model, write->key, revision - 1);

    ck_assert_uint_eq(event->value.revision, revision);
    ck_assert_int_eq(event->type, write->text ? KV_PUT : KV_DELETE);
    if (write->text)
        model_check_value(model, &event->value, revision);
    else
        ck_assert_str_eq(event->value.key, write->key);
    ck_assert_uint_eq(event->previous.revision, previous);
    if (previous)
        model_check_value(model, &event->previous, previous);
}

static void model_check_list(const struct model *model, struct kv *kv, const char *prefix,
                             uint64_t revision)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_range range = { .prefix = prefix, .revision = revision };
    struct kv_page page;
    struct error err;
    size_t len = 0;
    int r = kv_list(kv, arena, &range, &page, &err);

    ck_assert_msg(r == 0, "list '%s': %s", prefix, err.message);
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++) {
        uint64_t found = model_find(model, KEYS[i], revision);
        if (!found || !str_has_prefix(KEYS[i], prefix))
            continue;
        ck_assert_uint_lt(len, page.len);
        model_check_value(model, &page.items[len++], found);
    }
    ck_assert_uint_eq(page.len, len);
}

/* --- one thread, random operations --- */

#define STEPS 1000
#define WATCHES 6

struct followed {
    struct kv_watch *watch;
    const char *prefix;
    uint64_t cursor;
};

struct player {
    struct model *model;
    uint64_t random;
    struct followed followed[WATCHES];
};

static uint64_t pick(struct player *player, uint64_t below)
{
    return random_below(&player->random, below);
}

static uint64_t pick_expected(struct player *player, uint64_t present)
{
    switch (pick(player, 6)) {
    case 0:
        return KV_ANY;
    case 1:
        return 0;
    case 2:
        return 2 + pick(player, player->model->head);
    default:
        return present;
    }
}

static int expected_outcome(uint64_t expected, uint64_t present, bool is_put)
{
    if (expected == KV_ANY)
        return is_put || present ? 0 : -ERROR_NOT_FOUND;
    if (expected == 0 && is_put)
        return present ? -ERROR_EXISTS : 0;
    if (!present)
        return -ERROR_NOT_FOUND;
    return expected == present ? 0 : -ERROR_CONFLICT;
}

static void play_write(struct player *player)
{
    struct model *model = player->model;
    const char *key = KEYS[pick(player, ARRAY_LEN(KEYS))];
    uint64_t present = model_find(model, key, model->head);
    uint64_t expected = pick_expected(player, present), revision = 0;
    const char *text = NULL;
    int r;

    if (pick(player, 3)) {
        text = arena_printf(kv_store.arena, "%0*u", 1 + (int)pick(player, 200),
                            (unsigned)pick(player, 1000000));
        r = kv_put(kv_store.kv, key, text, strlen(text), expected, &revision, &kv_store.err);
    } else {
        r = kv_delete(kv_store.kv, key, expected, &revision, &kv_store.err);
    }
    ck_assert_int_eq(r, expected_outcome(expected, present, text != NULL));
    if (r < 0)
        return;
    ck_assert_uint_eq(revision, model->head + 1);
    model_set(model, revision, key, text);
}

/* Compaction goes on while it is read: a revision that was there may be gone, none comes back. */
static void play_read(struct player *player)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *key = KEYS[pick(player, ARRAY_LEN(KEYS))];
    uint64_t revision = 1 + pick(player, player->model->head);
    uint64_t compacted = kv_compacted(kv_store.kv);
    struct kv_value value;
    int r = kv_get(kv_store.kv, arena, key, revision, &value, &kv_store.err);

    if (r == -ERROR_GONE) {
        ck_assert_uint_lt(revision, kv_compacted(kv_store.kv));
        return;
    }
    ck_assert_uint_ge(revision, compacted);
    uint64_t found = model_find(player->model, key, revision);
    ck_assert_int_eq(r, found ? 0 : -ERROR_NOT_FOUND);
    if (found)
        model_check_value(player->model, &value, found);
}

static void play_list(struct player *player)
{
    uint64_t head = player->model->head;
    uint64_t revision = head - (head > 20 ? pick(player, 20) : 0);

    model_check_list(player->model, kv_store.kv, PREFIXES[pick(player, ARRAY_LEN(PREFIXES))],
                     revision);
}

static void play_open(struct player *player)
{
    struct followed *followed = &player->followed[pick(player, WATCHES)];
    const char *prefix = PREFIXES[pick(player, ARRAY_LEN(PREFIXES))];
    uint64_t after = 1 + pick(player, player->model->head);

    kv_watch_close(followed->watch);
    *followed = (struct followed){ .prefix = prefix, .cursor = after };
    int r = kv_watch(kv_store.kv, prefix, after, &followed->watch, &kv_store.err);
    if (r < 0) {
        ck_assert_int_eq(r, -ERROR_GONE);
        ck_assert_uint_lt(after, kv_compacted(kv_store.kv));
    }
}

static void play_watch(struct player *player)
{
    struct followed *followed = &player->followed[pick(player, WATCHES)];
    uint64_t steps = 1 + pick(player, 40);

    while (followed->watch && steps--) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        uint64_t next = model_next(player->model, followed->prefix, followed->cursor);
        struct kv_event event;
        int r = kv_watch_next(followed->watch, arena, &event, &kv_store.err);
        if (r == -ERROR_GONE) {
            ck_assert_uint_lt(followed->cursor, kv_compacted(kv_store.kv));
            kv_watch_close(followed->watch);
            followed->watch = NULL;
            return;
        }
        ck_assert_int_eq(r, next != 0);
        followed->cursor = next ? next : player->model->head;
        uint64_t progress = kv_watch_progress(followed->watch);
        ck_assert_uint_ge(progress, followed->cursor);
        next = model_next(player->model, followed->prefix, followed->cursor);
        ck_assert(!next || progress < next);
        if (r > 0)
            model_check_event(player->model, &event, followed->cursor);
    }
}

static void reopen(struct player *player)
{
    for (size_t i = 0; i < WATCHES; i++) {
        kv_watch_close(player->followed[i].watch);
        player->followed[i].watch = NULL;
    }
    kv_fixture_close(&kv_store);
    kv_fixture_open(&kv_store);
}

TEST_TIMES(the_store_agrees_with_a_model_through_random_operations, 6)
{
    struct player player = { .model = model_create(kv_store.arena, STEPS),
                             .random = 0x9e3779b97f4a7c15u + (uint64_t)_i };

    kv_store.options.history_revisions = _i % 2 ? 60 : 0;
    kv_fixture_open(&kv_store);
    for (int step = 0; step < STEPS; step++) {
        switch (pick(&player, 8)) {
        case 0:
            play_read(&player);
            break;
        case 1:
            play_list(&player);
            break;
        case 2:
            play_watch(&player);
            break;
        case 3:
            if (pick(&player, 10) == 0)
                play_open(&player);
            else if (pick(&player, 30) == 0)
                reopen(&player);
            break;
        default:
            play_write(&player);
        }
    }
    ck_assert_uint_eq(kv_revision(kv_store.kv), player.model->head);
    for (size_t i = 0; i < WATCHES; i++)
        kv_watch_close(player.followed[i].watch);
}

/* --- several writers and watches at once --- */

#define WRITERS 4
#define FOLLOWERS 3
#define WRITES 250

struct written {
    uint64_t revision;
    const char *key;
    const char *text;
};

struct writer {
    pthread_t thread;
    struct arena *arena;
    uint64_t random;
    struct written written[WRITES];
};

/* Replaces what it has read, as any client would; what another one has changed is read again. */
static void *write_some(void *ctx)
{
    struct writer *self = ctx;

    for (size_t n = 0; n < WRITES;) {
        const char *key = KEYS[random_below(&self->random, ARRAY_LEN(KEYS))];
        struct kv_value value = { 0 };
        struct written *written = &self->written[n];
        struct error err;
        int r = kv_get(kv_store.kv, self->arena, key, 0, &value, &err);
        ck_assert(r == 0 || r == -ERROR_NOT_FOUND);
        *written = (struct written){ .key = key };
        if (r == 0 && random_below(&self->random, 3) == 0) {
            r = kv_delete(kv_store.kv, key, value.revision, &written->revision, &err);
        } else {
            written->text = arena_printf(self->arena, "%p %zu", ctx, n);
            r = kv_put(kv_store.kv, key, written->text, strlen(written->text), value.revision,
                       &written->revision, &err);
        }
        ck_assert_msg(r == 0 || r == -ERROR_CONFLICT || r == -ERROR_EXISTS || r == -ERROR_NOT_FOUND,
                      "%s", err.message);
        if (r < 0)
            continue;
        ck_assert_uint_ge(kv_revision(kv_store.kv), written->revision);
        ck_assert_int_eq(kv_get(kv_store.kv, self->arena, key, written->revision, &value, &err),
                         written->text ? 0 : -ERROR_NOT_FOUND);
        n++;
    }
    return NULL;
}

struct follower {
    pthread_t thread;
    struct arena *arena;
    const char *prefix;
    uint64_t after;
    struct kv_event events[WRITERS * WRITES];
    size_t len;
};

static atomic_bool all_written;

/* It reads what there is when it comes to it, and now and then lets it pile up. */
static void *follow(void *ctx)
{
    struct follower *self = ctx;
    struct kv_watch *watch = kv_fixture_watch(self->prefix, self->after);
    struct error err;

    for (;;) {
        bool last = atomic_load(&all_written);
        int r = kv_watch_next(watch, self->arena, &self->events[self->len], &err);
        ck_assert_msg(r >= 0, "%s", err.message);
        self->len += (size_t)r;
        if (r == 0 && last)
            break;
        if (r == 0 || self->len % 50 == 0)
            (void)sched_yield();
    }
    ck_assert_uint_eq(kv_watch_progress(watch), kv_revision(kv_store.kv));
    kv_watch_close(watch);
    return NULL;
}

static void check_follower(const struct model *model, const struct follower *follower)
{
    uint64_t revision = follower->after;

    for (size_t i = 0; i < follower->len; i++) {
        revision = model_next(model, follower->prefix, revision);
        ck_assert_uint_ne(revision, 0);
        model_check_event(model, &follower->events[i], revision);
    }
    ck_assert_uint_eq(model_next(model, follower->prefix, revision), 0);
}

TEST_TIMES(writers_at_once_make_one_history_that_watches_and_reads_agree_on, 4)
{
    static struct writer writers[WRITERS];
    static struct follower followers[FOLLOWERS];
    struct model *model = model_create(kv_store.arena, WRITERS * WRITES);

    kv_fixture_open(&kv_store);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        followers[i] =
            (struct follower){ .arena = arena_create(), .prefix = PREFIXES[i], .after = 1 + i };
        ck_assert_int_eq(pthread_create(&followers[i].thread, NULL, follow, &followers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .arena = arena_create(), .random = 77 + i + (size_t)_i * 9 };
        ck_assert_int_eq(pthread_create(&writers[i].thread, NULL, write_some, &writers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        for (size_t n = 0; n < WRITES; n++) {
            const struct written *written = &writers[i].written[n];
            if (n)
                ck_assert_uint_gt(written->revision, writers[i].written[n - 1].revision);
            model_set(model, written->revision, written->key, written->text);
        }
    }
    ck_assert_uint_eq(model->head, WRITERS * WRITES + 1); /* none is missing */
    ck_assert_uint_eq(kv_revision(kv_store.kv), model->head);
    atomic_store(&all_written, true);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        pthread_join(followers[i].thread, NULL);
        check_follower(model, &followers[i]);
        arena_destroy(followers[i].arena);
    }
    for (uint64_t revision = 1; revision <= model->head; revision += 13)
        model_check_list(model, kv_store.kv, "/", revision);
    for (size_t i = 0; i < WRITERS; i++)
        arena_destroy(writers[i].arena);
}
