#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define T0 INT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */
#define T1 (T0 + 60 * INT64_C(1000000))

static struct arena *arena;
static cJSON *conditions;

static void setup(void)
{
    json_init();
    arena = arena_create();
    conditions = json_array(arena);
}

static void teardown(void)
{
    arena_destroy(arena);
}

TEST_GROUP("conditions", setup, teardown);

static struct condition ready(enum condition_status status)
{
    return (struct condition){ .type = "Ready",
                               .status = status,
                               .reason = "Because",
                               .message = "all is well",
                               .observed_generation = 3 };
}

static const char *member(const char *type, const char *key)
{
    return json_string(json_get(condition_get(conditions, type), key), "absent");
}

TEST(a_new_condition_has_every_field)
{
    struct condition condition = ready(CONDITION_TRUE);

    ck_assert(condition_set(conditions, &condition, T0));
    ck_assert_str_eq(json_text(arena, conditions, NULL),
                     "[{\"type\":\"Ready\",\"status\":\"True\",\"observedGeneration\":3,"
                     "\"lastTransitionTime\":\"2026-11-21T10:00:00Z\",\"reason\":\"Because\","
                     "\"message\":\"all is well\"}]");
}

TEST(the_same_again_changes_nothing)
{
    struct condition condition = ready(CONDITION_UNKNOWN);

    ck_assert(condition_set(conditions, &condition, T0));
    const char *before = json_text(arena, conditions, NULL);
    ck_assert(!condition_set(conditions, &condition, T1));
    ck_assert_str_eq(json_text(arena, conditions, NULL), before);
}

TEST(transition_time_moves_only_with_status)
{
    struct condition condition = ready(CONDITION_TRUE);
    ck_assert(condition_set(conditions, &condition, T0));

    condition.message = "still well";
    ck_assert(condition_set(conditions, &condition, T1));
    ck_assert_str_eq(member("Ready", "message"), "still well");
    ck_assert_str_eq(member("Ready", "lastTransitionTime"), "2026-11-21T10:00:00Z");

    condition.reason = "Other";
    ck_assert(condition_set(conditions, &condition, T1));
    ck_assert_str_eq(member("Ready", "reason"), "Other");
    ck_assert_str_eq(member("Ready", "lastTransitionTime"), "2026-11-21T10:00:00Z");

    condition.observed_generation = 4;
    ck_assert(condition_set(conditions, &condition, T1));
    ck_assert_int_eq(json_int(json_get(conditions->child, "observedGeneration"), 0), 4);
    ck_assert_str_eq(member("Ready", "lastTransitionTime"), "2026-11-21T10:00:00Z");

    condition.status = CONDITION_FALSE;
    ck_assert(condition_set(conditions, &condition, T1));
    ck_assert_str_eq(member("Ready", "status"), "False");
    ck_assert_str_eq(member("Ready", "lastTransitionTime"), "2026-11-21T10:01:00Z");
}

TEST(a_condition_of_others_without_optional_fields_is_completed)
{
    conditions = parsed(arena, "{\"c\":[{\"type\":\"Ready\",\"status\":\"True\"}]}")->child;
    struct condition condition = ready(CONDITION_TRUE);

    ck_assert(condition_set(conditions, &condition, T0));
    ck_assert_str_eq(member("Ready", "lastTransitionTime"), "2026-11-21T10:00:00Z");
    ck_assert(!condition_set(conditions, &condition, T1));
}

TEST(each_type_has_one_entry)
{
    struct condition first = ready(CONDITION_TRUE);
    struct condition second = { .type = "Stalled", .status = CONDITION_FALSE, .reason = "Fine" };
    ck_assert(condition_set(conditions, &first, T0));
    ck_assert(condition_set(conditions, &second, T0));
    first.status = CONDITION_FALSE;
    ck_assert(condition_set(conditions, &first, T1));

    ck_assert_uint_eq(json_len(conditions), 2);
    ck_assert_str_eq(member("Stalled", "message"), "");
    ck_assert(condition_is(conditions, "Ready", CONDITION_FALSE));
    ck_assert(!condition_is(conditions, "Ready", CONDITION_TRUE));
    ck_assert(!condition_is(conditions, "ready", CONDITION_FALSE));
    ck_assert(!condition_is(NULL, "Ready", CONDITION_FALSE));
}

TEST(removing_leaves_the_others)
{
    struct condition first = ready(CONDITION_TRUE);
    struct condition second = { .type = "Stalled", .status = CONDITION_FALSE, .reason = "Fine" };
    ck_assert(condition_set(conditions, &first, T0));
    ck_assert(condition_set(conditions, &second, T0));

    condition_remove(conditions, "Ready");
    condition_remove(conditions, "Nowhere");
    ck_assert_ptr_null(condition_get(conditions, "Ready"));
    ck_assert_ptr_nonnull(condition_get(conditions, "Stalled"));
    ck_assert_uint_eq(json_len(conditions), 1);
}
