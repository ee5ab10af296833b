/* The garbage collector while the disk cannot be read: it tries again, and what it does not know it does not act
 * on. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "common/tests/suite.h"
#include "standalone/tests/api_fixture.h"
#include "standalone/tests/fault_vfs.h"

/* One is more than a connection has in memory, two more than a page of the first look at the store, all more than
 * the ring of events. */
#define LARGE ((size_t)600 << 10)
#define MANY 10
#define NOTE ((size_t)200 << 10)
#define PAGE 4096 /* of the file */
#define TOGETHER 8
/* Of each kind of deletion. */
#define GROUPS ((int)power_count(3, 4, 12))
#define DEPENDENTS 4
#define FAILURES 60
#define PATIENCE_MS 120000

static pthread_t tester, writer;
static atomic_int failed;
static char large[LARGE + 1];

/* --- the collector's reads ---------------------------------------------------------------------- */

static void note_writer(void *ctx)
{
    (void)ctx;
    writer = pthread_self();
}

/* Nor is it who looks whether the store can be read again. */
static bool is_collector(void)
{
    char name[16] = "";

    (void)pthread_getname_np(pthread_self(), name, sizeof(name));
    return !pthread_equal(pthread_self(), tester) && !pthread_equal(pthread_self(), writer) &&
           !str_equal(name, "store-health");
}

static bool fail_all(void *ctx)
{
    (void)ctx;
    if (!is_collector())
        return false;
    atomic_fetch_add(&failed, 1);
    return true;
}

static uint64_t one_in; /* reads fails */

static bool fail_some(void *ctx)
{
    return is_collector() && atomic_load(&failed) < FAILURES && random_below(ctx, one_in) == 0 &&
           fail_all(NULL);
}

static bool fail_once(void *ctx)
{
    (void)ctx;
    return atomic_load(&failed) == 0 && fail_all(NULL);
}

static void begin_failing(fault_vfs_judge_fn *function)
{
    static uint64_t random = 7; /* the collector's thread alone */

    atomic_store(&failed, 0);
    fault_vfs_set_unreadable(function, &random);
}

static void begin_failing_some(uint64_t of)
{
    one_in = of;
    begin_failing(fail_some);
}

static void end_failing(void)
{
    fault_vfs_set_unreadable(NULL, NULL);
}

static void await_failure(void)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    while (!atomic_load(&failed) && clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms)
        (void)poll(NULL, 0, 1);
    ck_assert_int_gt(atomic_load(&failed), 0);
}

static void setup(void)
{
    fault_vfs_install();
    memset(large, 'x', LARGE);
    tester = pthread_self();
    api_vfs = "fault";
    fault_vfs_set_hook(note_writer, NULL);
    api_setup();
    fault_vfs_set_hook(NULL, NULL);
}

static void teardown(void)
{
    end_failing();
    fault_vfs_set_read_hook(NULL, NULL);
    api_teardown();
}

TEST_GROUP("all", setup, teardown);

/* --- objects ------------------------------------------------------------------------------------ */

static const char *path_of(const char *collection, const char *name)
{
    return arena_printf(test_arena, "%s/%s", collection, name);
}

static const char *numbered(const char *word, int i)
{
    return arena_printf(test_arena, "%s%02d", word, i);
}

static void put(const char *collection, const char *name, const char *more, const char *data)
{
    (void)ask("POST", collection,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"%s},\"data\":{\"d\":\"%s\"}}",
                           name, more, data),
              201);
}

/* Metadata of who names this ConfigMap as its owner. */
static const char *owned_by(const char *collection, const char *owner)
{
    const char *uid = meta(ask("GET", path_of(collection, owner), NULL, 200), "uid");

    return arena_printf(test_arena,
                        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"name\":\"%s\",\"uid\":\"%s\",\"blockOwnerDeletion\":true}]",
                        owner, uid);
}

static void put_dependents(const char *word, int len, const char *owner, const char *data)
{
    const char *more = owned_by(CONFIGMAPS, owner);

    for (int i = 0; i < len; i++)
        put(CONFIGMAPS, numbered(word, i), more, data);
}

static void delete_with(const char *path, const char *policy)
{
    (void)ask("DELETE", arena_printf(test_arena, "%s?propagationPolicy=%s", path, policy), NULL,
              200);
}

static void await_all_gone(const char *word, int len)
{
    for (int i = 0; i < len; i++)
        await_gone(path_of(CONFIGMAPS, numbered(word, i)));
}

/* When it is gone, all that the collector had noted before was looked at. */
static void collect_one_more(const char *name)
{
    put(CONFIGMAPS, name,
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"nope\","
        "\"uid\":\"nope\"}]",
        "");
    await_gone(path_of(CONFIGMAPS, name));
}

static void expect_orphans(const char *word, int len)
{
    for (int i = 0; i < len; i++) {
        const cJSON *orphan = ask("GET", path_of(CONFIGMAPS, numbered(word, i)), NULL, 200);

        ck_assert_ptr_null(json_path(orphan, "metadata", "ownerReferences", NULL));
    }
}

/* --- one failure -------------------------------------------------------------------------------- */

TEST(who_could_not_be_looked_at_is_looked_at_again)
{
    api_collect();
    put(CONFIGMAPS, "owner", "", "");
    put_dependents("d", DEPENDENTS, "owner", "");
    collect_one_more("before");
    begin_failing(fail_all);
    delete_with(CONFIGMAPS "/owner", "Background");
    await_failure();
    end_failing();
    await_all_gone("d", DEPENDENTS);
}

TEST(a_first_look_that_fails_is_taken_again)
{
    put(CONFIGMAPS, "owner", "", "");
    put_dependents("d", DEPENDENTS, "owner", "");
    delete_with(CONFIGMAPS "/owner", "Background");
    begin_failing(fail_all);
    api_collect();
    await_failure();
    end_failing();
    await_all_gone("d", DEPENDENTS);
}

/* The first page of the first look was read. */
static void on_page(void *ctx)
{
    (void)ctx;
    if (!is_collector())
        return;
    fault_vfs_set_read_hook(NULL, NULL);
    begin_failing(fail_once);
}

/* Dependents that it has not seen yet would be orphans of an owner that is gone, which go, too. */
TEST(half_a_look_at_the_store_is_nothing_to_act_on)
{
    put(CONFIGMAPS, "a-owner", "", "");
    put_dependents("d", MANY, "a-owner", large);
    delete_with(CONFIGMAPS "/a-owner", "Orphan");
    fault_vfs_set_read_hook(on_page, NULL);
    api_collect();
    await_failure();
    await_gone(CONFIGMAPS "/a-owner");
    collect_one_more("first");
    collect_one_more("second");
    expect_orphans("d", MANY);
}

/* --- what it has not seen ----------------------------------------------------------------------- */

static atomic_bool is_held;
static sem_t release;

static void hold_collector(void *ctx)
{
    (void)ctx;
    if (!is_collector())
        return;
    atomic_store(&is_held, true);
    while (sem_wait(&release) < 0)
        ;
}

/* It has looked at one object more. */
static void await_held(void)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    while (!atomic_load(&is_held) && clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms)
        (void)poll(NULL, 0, 1);
    ck_assert(atomic_load(&is_held));
    atomic_store(&is_held, false);
}

/* The next that it looks at, alone. */
static void begin_holding(void)
{
    put(CONFIGMAPS, "looked-at", ",\"finalizers\":[\"a.example/held\"]", "");
    collect_one_more("before");
    ck_assert_int_eq(sem_init(&release, 0, 0), 0);
    fault_vfs_set_read_hook(hold_collector, NULL);
    (void)ask("DELETE", CONFIGMAPS "/looked-at", NULL, 200);
    await_held();
}

static void hold_at_next(void)
{
    (void)sem_post(&release);
    await_held();
}

static void end_holding(void)
{
    fault_vfs_set_read_hook(NULL, NULL);
    (void)sem_post(&release);
}

TEST(events_that_could_not_be_read_are_read_again)
{
    api_collect();
    put(CONFIGMAPS, "owner", "", "");
    begin_holding();
    put_dependents("d", MANY, "owner", large); /* the collector is behind the newest events */
    delete_with(CONFIGMAPS "/owner", "Background");
    begin_failing(fail_all);
    end_holding();
    await_failure();
    end_failing();
    await_all_gone("d", MANY);
}

/* Of those that it looks at together each but the first begins to go, with a dependent that came just before. */
TEST(dependents_that_it_has_not_seen_are_orphans_too)
{
    api_collect();
    put(CONFIGMAPS, "root", "", "");
    begin_holding();
    put_dependents("o", TOGETHER, "root", "");
    hold_at_next();
    for (int i = 0; i < TOGETHER; i++) {
        put_dependents(numbered("d", i), 1, numbered("o", i), "");
        delete_with(path_of(CONFIGMAPS, numbered("o", i)), "Orphan");
    }
    end_holding();
    await_all_gone("o", TOGETHER);
    collect_one_more("first");
    collect_one_more("second");
    for (int i = 0; i < TOGETHER; i++)
        expect_orphans(numbered("d", i), 1);
}

/* --- many failures ------------------------------------------------------------------------------ */

static void give(const char *collection, const char *name, const char *owner)
{
    (void)ask_patch(
        path_of(collection, name), "merge-patch+json",
        arena_printf(test_arena, "{\"metadata\":{%s}}", owned_by(collection, owner) + 1), 200);
}

/* Two that wait for each other. */
static void put_circle(const char *collection, const char *one, const char *other, const char *more,
                       const char *data)
{
    put(collection, one, more, data);
    put(collection, other, more, "");
    give(collection, one, other);
    give(collection, other, one);
}

static const char *const POLICIES[] = { "Background", "Foreground", "Orphan" };

TEST_EACH(dependents_go_or_stay_whichever_read_fails, POLICIES)
{
    api_collect();
    begin_failing_some(4);
    for (int i = 0; i < GROUPS; i++) {
        put(CONFIGMAPS, numbered("owner", i), "", "");
        put_dependents(numbered("d", i), DEPENDENTS, numbered("owner", i), "");
        delete_with(path_of(CONFIGMAPS, numbered("owner", i)), POLICIES[_i]);
    }
    await_all_gone("owner", GROUPS);
    for (int i = 0; i < GROUPS && _i < 2; i++)
        await_all_gone(numbered("d", i), DEPENDENTS);
    end_failing();
    collect_one_more("first");
    collect_one_more("second");
    for (int i = 0; i < GROUPS && _i == 2; i++)
        expect_orphans(numbered("d", i), DEPENDENTS);
}

static const char *farm(int i)
{
    return arena_printf(test_arena, "/api/v1/namespaces/farm%02d", i);
}

static const char *place(int i)
{
    return arena_printf(test_arena, "%s/configmaps", farm(i));
}

static void await_marks(const char *collection)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;
    size_t marked;

    do {
        marked = 0;
        json_for_each (item, json_get(ask("GET", collection, NULL, 200), "items"))
            marked += *meta(item, "deletionTimestamp") != '\0';
        ck_assert(clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms);
    } while (marked < 2);
}

static void let_go(const char *path)
{
    (void)ask_patch(path, "json-patch+json",
                    "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers/0\"}]", 200);
}

/* Who empties the namespace was there before they began to wait for each other. It is its namespace that is hard to
 * read. */
TEST(namespaces_go_whichever_read_fails)
{
    static const char *const NAMES[] = { "one", "other" };
    const char *note = arena_printf(test_arena, ",\"annotations\":{\"a.example/note\":\"%s\"}",
                                    large + LARGE - NOTE);

    api_collect();
    for (int i = 0; i < GROUPS; i++) {
        put("/api/v1/namespaces", numbered("farm", i), note, "");
        put_circle(place(i), "one", "other", ",\"finalizers\":[\"a.example/held\"]", "");
        (void)ask("DELETE", farm(i), NULL, 200);
        await_marks(place(i));
    }
    begin_failing_some(NOTE / PAGE);
    for (int i = 0; i < GROUPS; i++) {
        for (size_t n = 0; n < ARRAY_LEN(NAMES); n++)
            delete_with(path_of(place(i), NAMES[n]), "Foreground");
        for (size_t n = 0; n < ARRAY_LEN(NAMES); n++)
            let_go(path_of(place(i), NAMES[n]));
    }
    for (int i = 0; i < GROUPS; i++)
        await_gone(farm(i));
}
