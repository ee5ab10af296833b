/* The garbage collector with many dependents: what is left at the end, in a bounded number of looks, while others
 * are served. */
#include <poll.h>
#include <string.h>

#include "common/base/str.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"
#include "standalone/api/collector_internal.h"
#include "standalone/tests/api_fixture.h"

/* More than two batches. */
#define DEPENDENTS 600
/* Each of which holds a deletion up until it is let go on its own. */
#define HELD 100
/* For each dependent: as it comes, as its owner goes, its owner with it, as it ends, and the one that waits for
 * that end; anything that looks at all of them for each needs hundreds. */
#define LOOKS_EACH ((size_t)12)
#define PATIENCE_MS 120000

#define FARM "/api/v1/namespaces/farm"
#define KEYS "/registry/core/configmaps/default/"
#define EVENTS "/api/v1/namespaces/default/events"
/* More than two pages; the last name is d999. */
#define EVENTS_LEN 1100

static const char *uid_of(const char *path)
{
    return meta(ask("GET", path, NULL, 200), "uid");
}

static void put(const char *collection, const char *name, const char *more)
{
    (void)ask("POST", collection,
              arena_printf(test_arena, "{\"metadata\":{\"name\":\"%s\"%s}}", name, more), 201);
}

static const char *name_of(int i)
{
    return arena_printf(test_arena, "d%03d", i);
}

static void put_dependents_that(int len, const char *block, const char *more)
{
    const char *uid = uid_of(CONFIGMAPS "/owner");

    for (int i = 0; i < len; i++)
        put(CONFIGMAPS, name_of(i),
            arena_printf(test_arena,
                         ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                         "\"name\":\"owner\",\"uid\":\"%s\"%s}]%s",
                         uid, block, more));
}

/* ConfigMaps of this owner, who waits for them in the foreground. */
static void put_dependents(int len, const char *more)
{
    put_dependents_that(len, ",\"blockOwnerDeletion\":true", more);
}

static size_t count_of(const char *collection)
{
    return json_len(json_get(ask("GET", collection, NULL, 200), "items"));
}

static size_t looks(void)
{
    return collector_looked_at(api->collector);
}

/* Until it has looked at something since then. */
static void await_look(size_t since)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    while (looks() == since && clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms)
        (void)poll(NULL, 0, 1);
    ck_assert_uint_gt(looks(), since);
}

/* Each end is seen on its own. */
static void let_go(const char *collection, int len)
{
    for (int i = 0; i < len; i++) {
        size_t before = looks();

        (void)ask_patch(arena_printf(test_arena, "%s/%s", collection, name_of(i)),
                        "merge-patch+json", "{\"metadata\":{\"finalizers\":null}}", 200);
        await_look(before);
    }
}

/* Until all of them are being deleted. */
static void await_marks(const char *collection, size_t len)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;
    size_t marked;

    do {
        const cJSON *list = ask("GET", collection, NULL, 200);

        marked = 0;
        json_for_each (item, json_get(list, "items"))
            marked += *meta(item, "deletionTimestamp") != '\0';
        ck_assert(clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms);
    } while (marked < len);
}

static const char *const POLICIES[] = { "Background", "Foreground" };

TEST_GROUP("all", api_setup, api_teardown);

TEST_EACH(all_dependents_go_with_their_owner, POLICIES)
{
    static const char last[] = CONFIGMAPS "/d599";

    api_collect();
    put(CONFIGMAPS, "owner", "");
    put(CONFIGMAPS, "other", "");
    put_dependents(DEPENDENTS, "");

    size_t before = looks();

    (void)ask("DELETE",
              arena_printf(test_arena, CONFIGMAPS "/owner?propagationPolicy=%s", POLICIES[_i]),
              NULL, 200);
    await_gone(CONFIGMAPS "/owner");
    await_gone(last);
    for (int i = 0; i < DEPENDENTS; i++)
        await_gone(arena_printf(test_arena, CONFIGMAPS "/%s", name_of(i)));
    ck_assert_uint_eq(count_of(CONFIGMAPS), 1); /* the other one */
    ck_assert_uint_le(looks() - before, LOOKS_EACH * DEPENDENTS);
}

/* For HELD dependents that others hold. */
static size_t looks_once_owner_waits(void)
{
    api_collect();
    put(CONFIGMAPS, "owner", "");
    put_dependents(HELD, ",\"finalizers\":[\"a.example/held\"]");
    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Foreground", NULL, 200);
    await_marks(CONFIGMAPS, HELD + 1);
    return looks();
}

TEST(an_owner_does_not_look_at_all_dependents_for_each_that_ends)
{
    size_t before = looks_once_owner_waits();

    let_go(CONFIGMAPS, HELD);
    await_gone(CONFIGMAPS "/owner");
    ck_assert_uint_eq(count_of(CONFIGMAPS), 0);
    ck_assert_uint_le(looks() - before, LOOKS_EACH * HELD);
}

TEST(all_orphans_stay)
{
    api_collect();
    put(CONFIGMAPS, "owner", "");
    put_dependents(DEPENDENTS, "");

    size_t before = looks();

    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Orphan", NULL, 200);
    await_gone(CONFIGMAPS "/owner");

    const cJSON *items = json_get(ask("GET", CONFIGMAPS, NULL, 200), "items");

    ck_assert_uint_eq(json_len(items), DEPENDENTS);
    json_for_each (item, items)
        ck_assert_ptr_null(json_path(item, "metadata", "ownerReferences", NULL));
    ck_assert_uint_le(looks() - before, LOOKS_EACH * DEPENDENTS);
}

#define MISSING                                                                                    \
    "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"nope\","        \
    "\"uid\":\"nope\"}]"

/* When the second one is gone, all that was noted beside the first one was looked at. */
static void collect_two(void)
{
    put(CONFIGMAPS, "first", "," MISSING);
    await_gone(CONFIGMAPS "/first");
    put(CONFIGMAPS, "second", "," MISSING);
    await_gone(CONFIGMAPS "/second");
}

/* Two references to one owner, of which one holds it: in either order. */
TEST_TIMES(any_reference_that_holds_an_owner_does, 2)
{
    static const char *const BLOCKS[] = { ",\"blockOwnerDeletion\":true", "" };
    const char *uid;
    size_t before;

    api_collect();
    put(CONFIGMAPS, "owner", "");
    uid = uid_of(CONFIGMAPS "/owner");
    for (int i = 0; i < DEPENDENTS / 2; i++)
        put(CONFIGMAPS, name_of(i),
            arena_printf(test_arena,
                         ",\"finalizers\":[\"a.example/held\"],\"ownerReferences\":["
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\","
                         "\"uid\":\"%s\"%s},"
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\","
                         "\"uid\":\"%s\"%s}]",
                         uid, BLOCKS[_i], uid, BLOCKS[!_i]));
    before = looks();
    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Foreground", NULL, 200);
    await_marks(CONFIGMAPS, DEPENDENTS / 2 + 1);
    collect_two();
    (void)ask("GET", CONFIGMAPS "/owner", NULL, 200);
    ck_assert_uint_le(looks() - before, LOOKS_EACH * DEPENDENTS / 2);
    let_go(CONFIGMAPS, DEPENDENTS / 2);
    await_gone(CONFIGMAPS "/owner");
}

TEST_TIMES(an_owner_does_not_wait_for_who_holds_it_no_more, 2)
{
    api_collect();
    put(CONFIGMAPS, "owner", "");
    put_dependents(1, ",\"finalizers\":[\"a.example/held\"]");

    const char *uid = uid_of(CONFIGMAPS "/owner");

    (void)ask("DELETE", CONFIGMAPS "/owner?propagationPolicy=Foreground", NULL, 200);
    await_marks(CONFIGMAPS, 2);
    (void)ask_patch(CONFIGMAPS "/d000", "merge-patch+json",
                    _i == 0
                        ? "{\"metadata\":{\"ownerReferences\":null}}"
                        : arena_printf(test_arena,
                                       "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\","
                                       "\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"%s\","
                                       "\"blockOwnerDeletion\":false}]}}",
                                       uid),
                    200);
    await_gone(CONFIGMAPS "/owner");
    (void)ask("GET", CONFIGMAPS "/d000", NULL, 200);
}

/* Metadata of who is waited for by this ConfigMap. */
static const char *owned_by(const char *collection, const char *owner)
{
    return arena_printf(test_arena,
                        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                        "\"name\":\"%s\",\"uid\":\"%s\",\"blockOwnerDeletion\":true}]",
                        owner, uid_of(arena_printf(test_arena, "%s/%s", collection, owner)));
}

static void give(const char *collection, const char *name, const char *owner)
{
    (void)ask_patch(
        arena_printf(test_arena, "%s/%s", collection, name), "merge-patch+json",
        arena_printf(test_arena, "{\"metadata\":{%s}}", owned_by(collection, owner) + 1), 200);
}

static void delete_in_foreground(const char *name)
{
    (void)ask("DELETE",
              arena_printf(test_arena, FARM "/configmaps/%s?propagationPolicy=Foreground", name),
              NULL, 200);
}

/* As on a cluster: nobody in a namespace that goes waits for anybody. _i: it goes before they wait. */
TEST_TIMES(owners_who_wait_for_one_another_go_with_their_namespace, 2)
{
    static const char *const NAMES[] = { "d000", "d001" };

    put("/api/v1/namespaces", "farm", "");
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        put(FARM "/configmaps", NAMES[i], ",\"finalizers\":[\"a.example/held\"]");
    give(FARM "/configmaps", "d000", "d001");
    give(FARM "/configmaps", "d001", "d000");
    if (_i) {
        api_collect();
        (void)ask("DELETE", FARM, NULL, 200);
        await_marks(FARM "/configmaps", 2);
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        delete_in_foreground(NAMES[i]);
    if (!_i) {
        api_collect();
        (void)ask("DELETE", FARM, NULL, 200);
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) /* that finalizer alone */
        (void)ask_patch(arena_printf(test_arena, FARM "/configmaps/%s", NAMES[i]),
                        "json-patch+json",
                        "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers/0\"}]", 200);
    await_gone(FARM);
}

TEST(a_namespace_does_not_look_at_all_that_is_left_for_each_that_ends)
{
    api_collect();
    put("/api/v1/namespaces", "farm", "");
    for (int i = 0; i < DEPENDENTS; i++)
        put(FARM "/configmaps", name_of(i), i < HELD ? ",\"finalizers\":[\"a.example/held\"]" : "");

    size_t first = looks();

    (void)ask("DELETE", FARM, NULL, 200);
    for (int i = HELD; i < DEPENDENTS; i++)
        await_gone(arena_printf(test_arena, FARM "/configmaps/%s", name_of(i)));
    await_marks(FARM "/configmaps", HELD);
    ck_assert_uint_le(looks() - first, LOOKS_EACH * DEPENDENTS);

    size_t before = looks();

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

TEST(events_of_long_ago_go_however_many_they_are)
{
    api_collect();
    for (int i = 0; i < EVENTS_LEN; i++)
        put_event(name_of(i));
    fake_clock_advance(&api_store.clock, 120 * MINUTE_MS);
    put_event("a-new-one");
    put_event("new-one");
    await_gone(arena_printf(test_arena, EVENTS "/%s", name_of(999)));
    ck_assert_uint_eq(count_of(EVENTS), 2);
}

TEST_TIMES(an_hour_of_an_event_is_no_step_of_the_clock, 2)
{
    const int64_t day_ms = (_i ? -1 : 1) * 24 * 60 * MINUTE_MS;

    api_collect();
    put_event("old");
    fake_clock_advance(&api_store.clock, 30 * MINUTE_MS);
    put_event("a-young");
    fake_clock_step(&api_store.clock, day_ms);
    fake_clock_advance(&api_store.clock, 31 * MINUTE_MS);
    put_event("new"); /* wakes the collector */
    await_gone(EVENTS "/old");
    ck_assert_uint_eq(count_of(EVENTS), 2);
}
