/* The pods that a drain waits for, the order of evictions, and the answers of the API server. */
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/machine/drain_plan.h"

TEST_GROUP("drain", arena_set_up, arena_tear_down);

#define NOW_MS INT64_C(1000000)
#define DEADLINE_MS (NOW_MS + 60000)

static const struct {
    const char *pod;
    bool counts;
} PODS[] = {
    { "{\"status\":{\"phase\":\"Running\"}}", true },
    { "{\"status\":{\"phase\":\"Pending\"}}", true },
    { "{\"status\":{\"phase\":\"Unknown\"}}", true },
    { "{}", true },
    { "{\"status\":{\"phase\":\"Succeeded\"}}", false },
    { "{\"status\":{\"phase\":\"Failed\"}}", false },
    { "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":\"\"}}}", false },
    { "{\"metadata\":{\"ownerReferences\":[{\"kind\":\"ReplicaSet\"},{\"kind\":\"DaemonSet\"}]}}",
      false },
    { "{\"metadata\":{\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]}}",
      true },
    { "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/drain\":\"skip\"}}}", false },
    { "{\"metadata\":{\"labels\":{\"cluster.x-k8s.io/drain\":\"Skip\"}}}", true },
};

TEST_EACH(drain_waits_for_pods_that_go_elsewhere, PODS)
{
    ck_assert_int_eq(drain_counts(parsed(arena, PODS[_i].pod)), PODS[_i].counts);
}

static struct drain_pod pod(const char *name)
{
    return (struct drain_pod){ .ns = "default", .name = name, .uid = name };
}

TEST(one_blocked_pod_holds_up_no_other)
{
    struct drain_pod pods[] = { pod("going"), pod("blocked"), pod("a"), pod("b") };

    pods[0].deleting = true;
    pods[1].not_before_ms = NOW_MS + 2000;
    const struct drain_plan plan = drain_plan(arena, pods, 4, DEADLINE_MS, NOW_MS);

    ck_assert(!plan.done);
    ck_assert_uint_eq(plan.evict_len, 2);
    ck_assert_ptr_eq(plan.evict[0], &pods[2]);
    ck_assert_ptr_eq(plan.evict[1], &pods[3]);
    ck_assert_int_eq(plan.again_ms, NOW_MS + 2000);
}

TEST(blocked_pod_is_tried_again_at_its_time)
{
    struct drain_pod pods[] = { pod("blocked") };

    pods[0].not_before_ms = NOW_MS;
    ck_assert_uint_eq(drain_plan(arena, pods, 1, DEADLINE_MS, NOW_MS).evict_len, 1);
    pods[0].not_before_ms = NOW_MS + 1;
    ck_assert_uint_eq(drain_plan(arena, pods, 1, DEADLINE_MS, NOW_MS).evict_len, 0);
}

TEST(drain_is_done_when_none_is_left_or_the_time_is_over)
{
    struct drain_pod pods[12];

    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        pods[i] = pod("p");
    ck_assert(drain_plan(arena, pods, 0, DEADLINE_MS, NOW_MS).done);
    ck_assert_ptr_null(drain_plan(arena, pods, 0, DEADLINE_MS, DEADLINE_MS).left);

    struct drain_plan plan = drain_plan(arena, pods, 12, DEADLINE_MS, DEADLINE_MS - 1);
    ck_assert(!plan.done);
    ck_assert_int_eq(plan.again_ms, DEADLINE_MS);
    plan = drain_plan(arena, pods, 12, DEADLINE_MS, DEADLINE_MS);
    ck_assert(plan.done);
    ck_assert_uint_eq(plan.evict_len, 0);
    ck_assert(str_has_prefix(plan.left, "default/p, default/p"));
    ck_assert(str_has_suffix(plan.left, " and 2 more"));
}

TEST(one_turn_evicts_a_limited_number)
{
    struct drain_pod pods[100];

    for (size_t i = 0; i < ARRAY_LEN(pods); i++)
        pods[i] = pod("p");
    const struct drain_plan plan = drain_plan(arena, pods, 100, DEADLINE_MS, NOW_MS);
    ck_assert_uint_eq(plan.evict_len, DRAIN_MAX_EVICTIONS);
    ck_assert_int_eq(plan.again_ms, NOW_MS + DRAIN_AGAIN_MS);
}

static const struct {
    int status;
    uint32_t retry_after_ms;
    enum eviction_result result;
    int64_t wait_ms;
} ANSWERS[] = {
    { 200, 0, EVICTION_DONE, 0 },        { 201, 0, EVICTION_DONE, 0 },
    { 404, 0, EVICTION_GONE, 0 },        { 409, 0, EVICTION_GONE, 0 },
    { 429, 0, EVICTION_BLOCKED, 5000 },  { 429, 10000, EVICTION_BLOCKED, 10000 },
    { 500, 0, EVICTION_FAILED, 30000 },  { 503, 1000, EVICTION_FAILED, 30000 },
    { 403, 0, EVICTION_REFUSED, 30000 }, { 401, 0, EVICTION_REFUSED, 30000 },
    { 0, 0, EVICTION_FAILED, 30000 },
};

TEST_EACH(each_answer_to_an_eviction_has_a_meaning_and_a_wait, ANSWERS)
{
    ck_assert_int_eq(eviction_result(ANSWERS[_i].status), ANSWERS[_i].result);
    ck_assert_int_eq(eviction_wait_ms(ANSWERS[_i].result, ANSWERS[_i].retry_after_ms),
                     ANSWERS[_i].wait_ms);
}
