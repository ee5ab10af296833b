/* Power that goes at any moment: between any two writes and syncs of the files. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "standalone/tests/fault_vfs.h"
#include "standalone/tests/kv_fixture.h"
#include "standalone/tests/kv_oracle.h"

#define WRITERS 8
#define WRITES 150
#define LOSSES 120
/* About so many writes and syncs lie between two of them. */
#define EVERY 20

static struct kv_fixture fixture;

/* What was acknowledged when the power went, and what had been begun. */
struct loss {
    const char *path;
    struct kv_known known[WRITERS];
};

struct scene {
    pthread_mutex_t lock;
    struct kv_known known[WRITERS];
    const char *folder;
    struct loss losses[LOSSES];
    size_t len;
    uint64_t random;
};

static struct scene scene;

static void begin(void)
{
    kv_fixture_begin(&fixture);
    fault_vfs_install();
    fixture.options.vfs = "fault";
    (void)pthread_mutex_init(&scene.lock, NULL);
    scene.folder = temp_dir(fixture.arena);
}

static void end(void)
{
    fault_vfs_set_hook(NULL, NULL);
    kv_fixture_end(&fixture);
}

TEST_GROUP("power", begin, end);

static void copy_known(struct kv_known *ret)
{
    (void)pthread_mutex_lock(&scene.lock);
    memcpy(ret, scene.known, sizeof(scene.known));
    (void)pthread_mutex_unlock(&scene.lock);
}

/* Of revisions it knows all that is acknowledged: the worst for a store that has lost one of them. It is synced
 * with nothing, so the disk may have all of it. */
static void keep_mark(const char *to_path)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char text[256];
    FILE *from = fopen(arena_printf(arena, "%s-lock", fixture.options.path), "re");
    FILE *to = fopen(arena_printf(arena, "%s-lock", to_path), "we");

    ck_assert_ptr_nonnull(from);
    ck_assert_ptr_nonnull(to);
    size_t len = fread(text, 1, sizeof(text), from);
    ck_assert_uint_lt(len, sizeof(text));
    ck_assert_uint_eq(fwrite(text, 1, len, to), len);
    ck_assert_int_eq(fclose(from), 0);
    ck_assert_int_eq(fclose(to), 0);
}

/* On the store's writing thread, which acknowledges nothing meanwhile. */
static void lose_power_sometimes(void *ctx)
{
    struct kv_known later[WRITERS];
    (void)ctx;

    if (scene.len == LOSSES || random_below(&scene.random, EVERY))
        return;
    struct loss *loss = &scene.losses[scene.len++];
    copy_known(loss->known);
    fault_vfs_lose_power(fixture.options.path, loss->path, &scene.random);
    keep_mark(loss->path);
    copy_known(later);
    for (size_t i = 0; i < WRITERS; i++)
        loss->known[i].asked = later[i].asked;
}

static void *write_some(void *ctx)
{
    size_t key = (size_t)((struct kv_known *)ctx - scene.known);

    for (uint64_t n = 1; n <= WRITES; n++) {
        uint64_t revision;
        struct error err;
        (void)pthread_mutex_lock(&scene.lock);
        scene.known[key].asked = n;
        (void)pthread_mutex_unlock(&scene.lock);
        int r = kv_oracle_write(fixture.kv, key, n, &revision, &err);
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
        kv_oracle_check(kv, key, &loss->known[key]);
    }
    ck_assert_int_eq(kv_put(kv, "/after", "x", 1, 0, NULL, &err), 0);
}

TEST_TIMES(nothing_acknowledged_is_lost_with_the_power, power_count(1, 3, 20))
{
    pthread_t threads[WRITERS];

    scene.random = 99 + (uint64_t)_i;
    for (size_t i = 0; i < LOSSES; i++)
        scene.losses[i].path = arena_printf(fixture.arena, "%s/%zu.db", scene.folder, i);
    fixture.options.history_revisions = 200;
    fault_vfs_set_hook(lose_power_sometimes, NULL);
    kv_fixture_open(&fixture);
    for (size_t i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_some, &scene.known[i]), 0);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    kv_fixture_close(&fixture);
    fault_vfs_set_hook(NULL, NULL);
    ck_assert_uint_gt(scene.len, LOSSES / 4);
    for (size_t i = 0; i < scene.len; i++)
        check_loss(&scene.losses[i]);
}
