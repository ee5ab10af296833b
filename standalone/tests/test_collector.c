/* The garbage collector: what is left at the end, in a bounded number of looks; while the disk cannot be read it tries
 * again, and does not act on what it does not know. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/power.h"
#include "common/tests/random.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"
#include "standalone/tests/api_fixture.h"
#include "standalone/tests/fault_vfs.h"

/* More than two batches. */
#define DEPENDENTS 600
/* Each of which holds a deletion up until it is let go on its own. */
#define HELD 100
/* For each dependent: as it comes, as its owner goes, its owner with it, as it ends, and the one that waits for
 * that end; anything that looks at all of them for each needs hundreds. */
#define LOOKS_EACH ((size_t)12)

#define FARM "/api/v1/namespaces/farm"
#define EVENTS "/api/v1/namespaces/default/events"

/* One is more than a connection has in memory, two more than a page of the first look at the store. */
#define LARGE ((size_t)600 << 10)
#define MANY 10
#define NOTE ((size_t)200 << 10)
#define PAGE 4096 /* of the file */
#define TOGETHER 8
/* Of each kind of deletion. */
#define GROUPS ((int)power_count(3, 4, 12))
#define EACH 4
#define FAILURES 60

static pthread_t tester, writer;
static atomic_int failed;

/* --- the collector's reads ---------------------------------------------------------------------- */

static void note_writer(void *ctx)
{
    (void)ctx;
    writer = pthread_self();
}

static bool is_collector(void)
{
    return !pthread_equal(pthread_self(), tester) && !pthread_equal(pthread_self(), writer);
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

static void setup(void)
{
    fault_vfs_install();
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

/* --- objects ------------------------------------------------------------------------------------ */

static const char *path_of(const char *collection, const char *name)
{
    return arena_printf(test_arena, "%s/%s", collection, name);
}

static const char *numbered(const char *word, int i)
{
    return arena_printf(test_arena, "%s%03d", word, i);
}

static void put(const char *collection, const char *name, const char *more)
{
    (void)ask("POST", collection,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"%s}}", name, more), 201);
}

/* Metadata of an object that names this ConfigMap as its owner. */
static const char *owned_by(const char *collection, const char *owner)
{
    return arena_printf(test_arena,
                        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"name\":\"%s\",\"uid\":\"%s\",\"blockOwnerDeletion\":true}]",
                        owner, meta(ask("GET", path_of(collection, owner), NULL, 200), "uid"));
}

static void put_dependents(const char *word, int len, const char *owner, const char *more,
                           size_t bytes)
{
    const char *all = arena_printf(test_arena, "%s%s", owned_by(CONFIGMAPS, owner), more);

    for (int i = 0; i < len; i++)
        api_put(numbered(word, i), all, bytes);
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
        "\"uid\":\"nope\"}]");
    await_gone(path_of(CONFIGMAPS, name));
}

static void expect_orphans(const char *word, int len)
{
    for (int i = 0; i < len; i++) {
        const cJSON *orphan = ask("GET", path_of(CONFIGMAPS, numbered(word, i)), NULL, 200);

        ck_assert_ptr_null(json_path(orphan, "metadata", "ownerReferences", NULL));
    }
}

static void change(const char *path, const char *members)
{
    (void)ask_patch(path, "merge-patch+json",
                    arena_printf(test_arena, "{\"metadata\":{%s}}", members), 200);
}

static size_t count_of(const char *collection)
{
    return json_len(json_get(ask("GET", collection, NULL, 200), "items"));
}

static size_t looks(void)
{
    return collector_looked_at(api->collector);
}

/* Each end is seen on its own. */
static void let_go(const char *collection, int len)
{
    for (int i = 0; i < len; i++) {
        size_t before = looks();

        change(path_of(collection, numbered("d", i)), "\"finalizers\":null");
        AWAIT(looks() > before);
    }
}

static size_t count_marked(const char *collection)
{
    size_t marked = 0;

    json_for_each (item, json_get(ask("GET", collection, NULL, 200), "items"))
        marked += *meta(item, "deletionTimestamp") != '\0';
    return marked;
}

/* --- many dependents ---------------------------------------------------------------------------- */

TEST_GROUP("all", setup, teardown);

static const char *const POLICIES[] = { "Background", "Orphan" };

TEST_EACH(all_dependents_go_with_their_owner_or_stay, POLICIES)
{
    size_t before;

    api_collect();
    put(CONFIGMAPS, "owner", "");
    put(CONFIGMAPS, "other", "");
    put_dependents("d", DEPENDENTS, "owner", "", 1);
    before = looks();
    delete_with(CONFIGMAPS "/owner", POLICIES[_i]);
    await_gone(CONFIGMAPS "/owner");
    if (_i == 1)
        expect_orphans("d", DEPENDENTS);
    else
        await_all_gone("d", DEPENDENTS);
    (void)ask("GET", CONFIGMAPS "/other", NULL, 200);
    ck_assert_uint_le(looks() - before, LOOKS_EACH * DEPENDENTS);
}

/* An object with a finalizer, so large that the store does not take it with a deletionTimestamp. */
static void put_largest(const char *name, const char *more)
{
    const char *head = arena_printf(
        test_arena,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"%s\","
        "\"finalizers\":[\"a.example/held\"]%s},\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
        "\"data\":{\"a\":\"",
        name, name, more);
    size_t len = strlen(head);
    char *text = arena_alloc(test_arena, KV_MAX_TEXT + 1, 1);

    memset(text, 'x', KV_MAX_TEXT);
    memcpy(text, head, len);
    memcpy(text + KV_MAX_TEXT - 3, "\"}}", 4);
    ck_assert_int_eq(kv_put(kv_store.kv,
                            arena_printf(test_arena, "/registry/core/configmaps/default/%s", name),
                            text, KV_MAX_TEXT, 0, NULL, NULL),
                     0);
}

/* Some before and some behind them, in whatever order they are looked at. */
TEST(dependents_go_beside_some_that_cannot)
{
    api_collect();
    put(CONFIGMAPS, "owner", "");
    put_dependents("d", HELD, "owner", "", 1);
    put_largest("held-1", owned_by(CONFIGMAPS, "owner"));
    put_largest("held-2", owned_by(CONFIGMAPS, "owner"));
    delete_with(CONFIGMAPS "/owner", "Background");
    await_all_gone("d", HELD);
    ck_assert_uint_eq(count_of(CONFIGMAPS), 2);
}

TEST(a_namespace_does_not_look_at_all_that_is_left_for_each_that_ends)
{
    size_t first, before;

    api_collect();
    put("/api/v1/namespaces", "farm", "");
    for (int i = 0; i < DEPENDENTS; i++)
        put(FARM "/configmaps", numbered("d", i),
            i < HELD ? ",\"finalizers\":[\"a.example/held\"]" : "");
    first = looks();
    (void)ask("DELETE", FARM, NULL, 200);
    for (int i = HELD; i < DEPENDENTS; i++)
        await_gone(path_of(FARM "/configmaps", numbered("d", i)));
    AWAIT(count_marked(FARM "/configmaps") == HELD);
    ck_assert_uint_le(looks() - first, LOOKS_EACH * DEPENDENTS);
    before = looks();
    let_go(FARM "/configmaps", HELD);
    await_gone(FARM);
    ck_assert_uint_eq(count_of(FARM "/configmaps"), 0);
    ck_assert_uint_le(looks() - before, LOOKS_EACH * HELD);
}

/* --- Events ----------------------------------------------------------------------------------- */

#define MINUTE_MS (INT64_C(60) * 1000)

static void put_event(const char *name)
{
    put(EVENTS, name, "},\"involvedObject\":{\"namespace\":\"default\"");
}

TEST_TIMES(an_hour_of_an_event_is_no_step_of_the_clock, 2)
{
    const int64_t day_ms = (_i ? -1 : 1) * 24 * 60 * MINUTE_MS;

    api_collect();
    put_event("old");
    fake_clock_advance(&kv_store.clock, 30 * MINUTE_MS);
    put_event("a-young");
    fake_clock_step(&kv_store.clock, day_ms);
    fake_clock_advance(&kv_store.clock, 31 * MINUTE_MS);
    put_event("new"); /* wakes the collector */
    await_gone(EVENTS "/old");
    ck_assert_uint_eq(count_of(EVENTS), 2);
}

/* --- one read that fails -------------------------------------------------------------------------- */

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
    put(CONFIGMAPS, "a-owner", "");
    put_dependents("d", MANY, "a-owner", "", LARGE);
    delete_with(CONFIGMAPS "/a-owner", "Orphan");
    fault_vfs_set_read_hook(on_page, NULL);
    api_collect();
    AWAIT(atomic_load(&failed) > 0);
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
    AWAIT(atomic_load(&is_held));
    atomic_store(&is_held, false);
}

/* The next that it looks at, alone. */
static void begin_holding(void)
{
    put(CONFIGMAPS, "looked-at", ",\"finalizers\":[\"a.example/held\"]");
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

/* The objects that it looks at together begin to go, each but the first with a dependent that came just before. */
TEST(dependents_that_it_has_not_seen_are_orphans_too)
{
    size_t before;

    api_collect();
    put(CONFIGMAPS, "root", "");
    begin_holding();
    before = looks();
    put_dependents("o", TOGETHER, "root", "", 1);
    while (looks() == before) /* until it has taken their events, and begins to look at them */
        hold_at_next();
    for (int i = 0; i < TOGETHER; i++) {
        put_dependents(numbered("d", i), 1, numbered("o", i), "", 1);
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

TEST_EACH(dependents_go_or_stay_whichever_read_fails, POLICIES)
{
    api_collect();
    begin_failing_some(4);
    for (int i = 0; i < GROUPS; i++) {
        put(CONFIGMAPS, numbered("owner", i), "");
        put_dependents(numbered("d", i), EACH, numbered("owner", i), "", 1);
        delete_with(path_of(CONFIGMAPS, numbered("owner", i)), POLICIES[_i]);
    }
    await_all_gone("owner", GROUPS);
    for (int i = 0; i < GROUPS && _i < 1; i++)
        await_all_gone(numbered("d", i), EACH);
    end_failing();
    collect_one_more("first");
    collect_one_more("second");
    for (int i = 0; i < GROUPS && _i == 1; i++)
        expect_orphans(numbered("d", i), EACH);
}

TEST(namespaces_go_whichever_read_fails)
{
    const char *farm = NULL, *place = NULL;
    char *note = arena_alloc(test_arena, NOTE + 1, 1);

    memset(note, 'x', NOTE);
    api_collect();
    begin_failing_some(NOTE / PAGE);
    for (int i = 0; i < GROUPS; i++) {
        farm = path_of("/api/v1/namespaces", numbered("farm", i));
        place = path_of(farm, "configmaps");
        put("/api/v1/namespaces", numbered("farm", i),
            arena_printf(test_arena, ",\"annotations\":{\"a.example/note\":\"%s\"}", note));
        put(place, "one", "");
        put(place, "other", owned_by(place, "one"));
        delete_with(path_of(place, "one"), "Orphan");
        (void)ask("DELETE", farm, NULL, 200);
    }
    for (int i = 0; i < GROUPS; i++)
        await_gone(path_of("/api/v1/namespaces", numbered("farm", i)));
}
