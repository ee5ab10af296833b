#include "controller/scheduler/candidates.h"

#include <string.h>

#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define CONNECTION                                                                                 \
    "\"connectionConfig\":{\"mqttAddress\":\"tcp://b\",\"domainId\":\"d\",\"channelId\":\"c\","    \
    "\"clientId\":\"x\"}"
#define READY "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]"
#define EXTERNAL                                                                                   \
    "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\",\"camera\"],\"maxTasks\":3}"

static struct arena *arena;
static struct store *store;
static struct candidates *candidates;
static struct availabilities *availabilities;
static struct placements *placements;
static int version;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    store = store_create();
    availabilities = availabilities_create();
    placements = placements_create();
    candidates =
        candidates_create(&(struct candidate_sources){ store, placements, availabilities });
    version = 0;
}

static void tear_down(void)
{
    arena_destroy(arena);
    candidates_destroy(candidates);
    availabilities_destroy(availabilities);
    placements_destroy(placements);
    store_destroy(store);
}

TEST_GROUP("candidates", set_up, tear_down);

/* What the store has, without telling the candidates. */
static void store_only(const char *ns, const char *name, const char *metadata, const char *spec,
                       const char *status)
{
    const char *text =
        arena_printf(arena,
                     "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u-%s\","
                     "\"resourceVersion\":\"%d\"%s},\"spec\":{%s%s},\"status\":{%s}}",
                     ns, name, name, ++version, metadata,
                     strstr(spec, "\"type\"") ? "" : "\"type\":\"external\",", spec, status);
    struct kube_object *object;

    ck_assert_int_eq(kube_object_create(parsed(arena, text), &object, NULL), 0);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

static void put(const char *name, const char *metadata, const char *spec, const char *status)
{
    store_only("ns", name, metadata, spec, status);
    candidates_changed(candidates, "ns");
}

static void delete (const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, "ns", name));
    kube_object_unref(store_remove(store, &key, arena_printf(arena, "%d", ++version)));
    candidates_changed(candidates, "ns");
}

static const struct candidate_set *get(void)
{
    return candidates_get(candidates, arena, "ns");
}

static void expect_decoded(int count)
{
    ck_metric(arena_printf(arena, "propeller_candidates_decoded_total %d", count));
}

TEST(pods_that_are_heard_and_wanted_are_devices)
{
    const char *spec =
        "\"type\":\"k8s\",\"k8s\":{\"indexedClientIds\":true,\"replicas\":2}," CONNECTION;

    put("pool", "", spec,
        "\"k8sStatus\":{\"devices\":[{\"clientId\":\"x-0\"},"
        "{\"clientId\":\"x-1\",\"connected\":true},"
        "{\"clientId\":\"x-2\",\"connected\":true}]}"); /* scaled down, and not told yet */
    const struct candidate *pool = candidate_find(get(), "pool");
    ck_assert_uint_eq(pool->device_count, 1);
    ck_assert_str_eq(pool->devices[0].client_id, "x-1");
}

TEST(candidate_has_all_that_the_scheduler_looks_at)
{
    put("a", ",\"labels\":{\"zone\":\"east\"}", "\"unschedulable\":true," EXTERNAL "," CONNECTION,
        READY);
    const struct candidate_set *set = get();

    ck_assert_uint_eq(set->len, 1);
    const struct candidate *a = &set->items[0];
    ck_assert_str_eq(a->name, "a");
    ck_assert(a->ready);
    ck_assert_int_eq(a->active, 0);
    ck_assert_str_eq(json_string(json_get(a->labels, "zone"), ""), "east");
    ck_assert_int_eq(a->proplet->spec.type, PROPLET_EXTERNAL);
    ck_assert(a->proplet->spec.unschedulable);
    ck_assert_str_eq(a->proplet->spec.external->device_type, "pi");
    ck_assert_uint_eq(a->proplet->spec.external->capabilities.len, 2);
    ck_assert_str_eq(a->proplet->spec.external->capabilities.items[1], "camera");
    ck_assert_int_eq(a->proplet->spec.external->max_tasks.value, 3);
}

static void keep(const char *uid, enum availability_state state)
{
    const struct availability is = { .state = state };

    if (availabilities_set(availabilities, uid, &is, 7))
        candidates_opened(candidates, "ns");
}

static bool is_closed(struct candidates *of, const char *name, int64_t now_us)
{
    const struct candidate *found = candidate_find(candidates_get(of, arena, "ns"), name);

    return candidate_count(of, arena, found, "ns", 0, now_us).closed;
}

#define CLOSED_STATUS READY ",\"availability\":{\"state\":\"Closed\"}"
#define OPEN_STATUS READY ",\"availability\":{\"state\":\"Open\"}"
#define RECLAIMED                                                                                  \
    ",\"annotations\":{\"propeller.propeller.abstractmachines.fr/reclaim-requested\":\"true\"}"

TEST(what_is_kept_says_who_is_closed_and_not_the_status)
{
    put("a", "", "\"availability\":{}," CONNECTION, CLOSED_STATUS);
    put("b", "", "\"killSwitch\":true," CONNECTION, OPEN_STATUS);
    put("c", RECLAIMED, CONNECTION, OPEN_STATUS);
    put("d", "", CONNECTION, CLOSED_STATUS); /* its fields are gone, and this is still there */
    keep("u-a", AVAILABILITY_OPEN);
    keep("u-b", AVAILABILITY_CLOSED);
    put("e", "", CONNECTION, READY); /* its reconciler does not know yet that its fields are gone */
    keep("u-c", AVAILABILITY_DRAINING);
    keep("u-e", AVAILABILITY_CLOSED);
    ck_assert(!is_closed(candidates, "a", 7));
    ck_assert(is_closed(candidates, "b", 7));
    ck_assert(is_closed(candidates, "c", 7));
    ck_assert(!is_closed(candidates, "d", 7));
    ck_assert(is_closed(candidates, "e", 7));

    uint64_t before = get()->version;
    keep("u-b", AVAILABILITY_OPEN);
    keep("u-a", AVAILABILITY_UNKNOWN);
    ck_assert_uint_ne(get()->version, before);
    ck_assert(is_closed(candidates, "a", 7));
    ck_assert(!is_closed(candidates, "b", 7));
    expect_decoded(5);
}

TEST(candidate_has_the_time_at_which_it_closes)
{
    const struct availability open = { .state = AVAILABILITY_OPEN, .next_us = 1000 };
    const struct availability closed = { .state = AVAILABILITY_CLOSED, .next_us = 1000 };

    put("a", "", "\"availability\":{}," CONNECTION, OPEN_STATUS);
    const struct candidate *a = candidate_find(get(), "a");
    (void)availabilities_set(availabilities, "u-a", &open, 7);
    ck_assert_int_eq(candidate_count(candidates, arena, a, "ns", 0, 9).close_us, 1000);
    ck_assert_int_eq(candidate_count(candidates, arena, a, "ns", 0, 9).now_us, 9);
    (void)availabilities_set(availabilities, "u-a", &closed, 7); /* it opens then */
    ck_assert_int_eq(candidate_count(candidates, arena, a, "ns", 0, 9).close_us, 0);
}

/* Its reconciler may come later, as those of a whole fleet do. */
TEST(candidate_is_closed_from_the_second_on_at_which_it_closes)
{
    const struct availability is = { .state = AVAILABILITY_OPEN, .next_us = 1000 };

    put("a", "", "\"availability\":{}," CONNECTION, OPEN_STATUS);
    (void)availabilities_set(availabilities, "u-a", &is, 7);
    ck_assert(!is_closed(candidates, "a", 999));
    ck_assert(is_closed(candidates, "a", 1000));
}

TEST(where_nothing_is_kept_the_status_says_it)
{
    struct candidates *others =
        candidates_create(&(struct candidate_sources){ store, placements, NULL });

    put("a", "", "\"availability\":{}," CONNECTION, CLOSED_STATUS);
    put("b", "", "\"availability\":{}," CONNECTION, OPEN_STATUS);
    put("c", "", "\"availability\":{}," CONNECTION, READY);
    ck_assert(is_closed(others, "a", 0));
    ck_assert(!is_closed(others, "b", 0));
    ck_assert(!is_closed(others, "c", 0));
    candidates_destroy(others);
}

TEST(candidates_are_found_by_name_and_stand_in_its_order)
{
    put("c", "", CONNECTION, "");
    put("a", "", CONNECTION, READY);
    put("b", "", CONNECTION, "");
    store_only("other", "d", "", CONNECTION, "");
    const struct candidate_set *set = get();

    ck_assert_uint_eq(set->len, 3);
    ck_assert_str_eq(set->items[0].name, "a");
    ck_assert_str_eq(set->items[2].name, "c");
    ck_assert_ptr_eq(candidate_find(set, "b"), &set->items[1]);
    ck_assert_ptr_null(candidate_find(set, "d"));
    ck_assert(!set->items[1].ready);
    ck_assert_uint_eq(candidates_get(candidates, arena, "empty")->len, 0);
}

TEST(proplet_that_goes_or_cannot_be_read_is_none)
{
    put("a", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", CONNECTION, READY);
    put("b", "", "\"external\":7," CONNECTION, READY);
    put("c", "", CONNECTION, READY);
    ck_assert_uint_eq(get()->len, 1);
    delete ("c");
    ck_assert_uint_eq(get()->len, 0);
}

TEST(proplet_is_read_once_a_change_and_not_once_a_choice)
{
    for (int i = 0; i < 20; i++)
        put(arena_printf(arena, "p-%02d", i), "", CONNECTION, READY);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(get()->len, 20);
    expect_decoded(20);
    put("p-07", "", "\"unschedulable\":true," CONNECTION, READY);
    for (int i = 0; i < 100; i++)
        ck_assert(candidate_find(get(), "p-07")->proplet->spec.unschedulable);
    expect_decoded(21);
    delete ("p-03");
    ck_assert_uint_eq(get()->len, 19);
    expect_decoded(21);
    put("p-00a", "", CONNECTION, READY); /* between others */
    ck_assert_uint_eq(get()->len, 20);
    expect_decoded(22);
}

TEST(what_a_reader_holds_stays_as_it_was)
{
    put("a", "", CONNECTION, READY);
    const struct candidate_set *before = get();

    put("a", "", CONNECTION, "");
    delete ("a");
    put("b", "", CONNECTION, "");
    ck_assert(!get()->items[0].ready);
    ck_assert_uint_eq(before->len, 1);
    ck_assert_str_eq(before->items[0].name, "a");
    ck_assert(before->items[0].ready);
}

/* As deletion and creation under the same name look. */
TEST(proplet_that_was_made_again_is_read_again)
{
    put("a", "", EXTERNAL "," CONNECTION, READY);
    ck_assert_ptr_nonnull(get()->items[0].proplet->spec.external);
    delete ("a");
    put("a", "", CONNECTION, READY);
    ck_assert_ptr_null(get()->items[0].proplet->spec.external);
}
