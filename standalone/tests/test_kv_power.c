/* Power that goes at any moment: between any two writes and syncs of the files. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"

#define WRITERS 8
#define WRITES 150
#define LOSSES 120
/* About so many writes and syncs lie between two of them. */
#define EVERY 20

/* --- numbered writes --- */

/* Writes of a key are numbered. After a crash the last acknowledged one must be there, or one that was begun after it,
 * with all of its text. */
struct known {
    uint64_t n;        /* of the last write that is known to be there; 0: none */
    uint64_t revision; /* its own; 0: it was not told */
    uint64_t asked;    /* the last one that was begun */
};

/* Every seventh write is a deletion, every fiftieth takes several pages. */
static bool deletes(uint64_t n)
{
    return n % 7 == 3;
}

/* Says which one it is, and is not right when a part is missing. */
static const char *text_of(struct arena *arena, size_t key, uint64_t n)
{
    uint64_t random = 1 + n * 1000 + key;
    size_t len = random_below(&random, n % 50 == 0 ? 40000 : 400);
    char *text = arena_printf(arena, "%zu %" PRIu64 " %0*d", key, n, (int)len + 1, 0);
    size_t end = strlen(text);

    for (size_t i = end - len; i < end; i++)
        text[i] = (char)('a' + (i * i + n) % 26);
    return text;
}

static const char *name_of(struct arena *arena, size_t key)
{
    return arena_printf(arena, "/registry/tasks/%02zu", key);
}

/* 0 with revision 0: there was nothing to delete. */
static int write_one(struct kv *kv, size_t key, uint64_t n, uint64_t *ret_revision,
                     struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = name_of(arena, key);

    *ret_revision = 0;
    if (!deletes(n)) {
        const char *text = text_of(arena, key, n);
        return kv_put(kv, name, text, strlen(text), KV_ANY, ret_revision, err);
    }
    int r = kv_delete(kv, name, KV_ANY, ret_revision, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

/* Which one it is, from the last acknowledged write to the last that was begun; 0: none of them. */
static uint64_t find_write(struct arena *arena, const struct kv_value *value, size_t key,
                           const struct known *known)
{
    const char *blank = strchr(value->text, ' ');
    uint64_t n = blank ? strtoull(blank, NULL, 10) : 0;
    bool is_one = n >= known->n && n <= known->asked && !deletes(n) &&
                  str_equal(value->text, text_of(arena, key, n));

    return is_one ? n : 0;
}

static uint64_t find_deletion(const struct known *known)
{
    for (uint64_t n = known->n; n <= known->asked; n++) {
        if (n == 0 || deletes(n))
            return n;
    }
    ck_assert_msg(false, "write %" PRIu64 " is lost", known->n);
    return 0;
}

/* Fails unless the key holds what it must; then *known is what it holds. */
static void check_key(struct kv *kv, size_t key, struct known *known)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_value value;
    struct error err;
    int r = kv_get(kv, arena, name_of(arena, key), 0, &value, &err);

    if (r == -ERROR_NOT_FOUND) {
        known->n = find_deletion(known);
        known->revision = 0;
        return;
    }
    ck_assert_msg(r == 0, "%s", err.message);
    uint64_t n = find_write(arena, &value, key, known);
    ck_assert_msg(n != 0, "'%s' holds none of the writes %" PRIu64 " to %" PRIu64 ": %.40s",
                  value.key, known->n, known->asked, value.text);
    if (n == known->n && known->revision)
        ck_assert_uint_eq(value.revision, known->revision);
    known->n = n;
    known->revision = value.revision;
}

/* --- power --- */

/* Writes that were acknowledged when the power went, and those that had begun. */
struct loss {
    const char *path;
    struct known known[WRITERS];
};

struct scene {
    pthread_mutex_t lock;
    struct known known[WRITERS];
    const char *folder;
    struct loss losses[LOSSES];
    size_t len;
    uint64_t random;
};

static struct scene scene;

static void begin(void)
{
    kv_store_begin();
    fault_vfs_install();
    kv_store.options.vfs = "fault";
    (void)pthread_mutex_init(&scene.lock, NULL);
    scene.folder = temp_dir(kv_store.arena);
}

static void end(void)
{
    fault_vfs_set_hook(NULL, NULL);
    kv_store_end();
}

TEST_GROUP("power", begin, end);

static void copy_known(struct known *ret)
{
    (void)pthread_mutex_lock(&scene.lock);
    memcpy(ret, scene.known, sizeof(scene.known));
    (void)pthread_mutex_unlock(&scene.lock);
}

/* Of revisions it knows all that is acknowledged: the worst for a store that has lost one of them. It is synced
 * with nothing, so the disk may have all of it. */
static void keep_mark(const char *to_path)
{
    struct kv_bytes mark = kv_fixture_read_file(kv_fixture_file("-lock"));

    kv_fixture_write_file(arena_printf(kv_store.arena, "%s-lock", to_path), mark.bytes, mark.len);
}

/* On the store's writing thread, which acknowledges nothing meanwhile. */
static void lose_power_sometimes(void *ctx)
{
    struct known later[WRITERS];
    (void)ctx;

    if (scene.len == LOSSES || random_below(&scene.random, EVERY))
        return;
    struct loss *loss = &scene.losses[scene.len++];
    copy_known(loss->known);
    fault_vfs_lose_power(kv_store.options.path, loss->path, &scene.random);
    keep_mark(loss->path);
    copy_known(later);
    for (size_t i = 0; i < WRITERS; i++)
        loss->known[i].asked = later[i].asked;
}

static void *write_some(void *ctx)
{
    size_t key = (size_t)((struct known *)ctx - scene.known);

    for (uint64_t n = 1; n <= WRITES; n++) {
        uint64_t revision;
        struct error err;
        (void)pthread_mutex_lock(&scene.lock);
        scene.known[key].asked = n;
        (void)pthread_mutex_unlock(&scene.lock);
        int r = write_one(kv_store.kv, key, n, &revision, &err);
        ck_assert_msg(r == 0, "%s", err.message);
        (void)pthread_mutex_lock(&scene.lock);
        scene.known[key].n = n;
        scene.known[key].revision = revision;
        (void)pthread_mutex_unlock(&scene.lock);
    }
    return NULL;
}

static void check_loss(struct loss *loss)
{
    struct kv_options options = { .path = loss->path, .vfs = "fault" };
    CLEANUP(kv_closep) struct kv *kv = NULL;
    struct error err;
    int r = kv_open(&options, &kv, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    for (size_t key = 0; key < WRITERS; key++) {
        uint64_t revision = loss->known[key].revision;
        ck_assert_uint_ge(kv_revision(kv), revision);
        check_key(kv, key, &loss->known[key]);
    }
    ck_assert_int_eq(kv_put(kv, "/after", "x", 1, 0, NULL, &err), 0);
}

TEST_TIMES(nothing_acknowledged_is_lost_with_the_power, power_count(1, 3, 20))
{
    pthread_t threads[WRITERS];

    scene.random = 99 + (uint64_t)_i;
    for (size_t i = 0; i < LOSSES; i++)
        scene.losses[i].path = arena_printf(kv_store.arena, "%s/%zu.db", scene.folder, i);
    kv_store.options.history_revisions = 200;
    fault_vfs_set_hook(lose_power_sometimes, NULL);
    kv_fixture_open(&kv_store);
    for (size_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_some, &scene.known[i]), 0);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    kv_fixture_close(&kv_store);
    fault_vfs_set_hook(NULL, NULL);
    ck_assert_uint_gt(scene.len, LOSSES / 4);
    for (size_t i = 0; i < scene.len; i++)
        check_loss(&scene.losses[i]);
}
