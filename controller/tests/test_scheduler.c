#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/scheduler/scheduler.h"

#define MAX_CANDIDATES 100

static struct arena *arena;
static struct candidate candidates[MAX_CANDIDATES];
static struct schedule_context context;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    context = (struct schedule_context){ .candidates = candidates, .last_selected = "" };
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("filters", set_up, tear_down);

static struct task_spec task_spec(const char *text)
{
    struct task task = { 0 };
    struct error err = { 0 };
    int r =
        task_decode(arena, parsed(arena, arena_printf(arena, "{\"spec\":%s}", text)), &task, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return task.spec;
}

/* Appends a ready candidate. */
static struct candidate *candidate(const char *name, const char *labels, const char *type,
                                   const char *spec)
{
    struct proplet *proplet = arena_new(arena, struct proplet);
    struct candidate *ret = &candidates[context.len++];
    struct error err = { 0 };
    char *text = arena_printf(arena,
                              "{\"metadata\":{\"labels\":%s},\"spec\":{\"type\":\"%s\",%s"
                              "\"connectionConfig\":{}}}",
                              labels, type, spec);
    const cJSON *tree = parsed(arena, text);
    int r = proplet_decode(arena, tree, proplet, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    *ret = (struct candidate){ .name = name,
                               .proplet = proplet,
                               .labels = json_path(tree, "metadata", "labels", NULL),
                               .ready = true,
                               .connected = true };
    return ret;
}

static struct candidate *external(const char *name)
{
    return candidate(name, "{}", "external", "");
}

static const char *pick(const struct scheduler *scheduler, const struct task_spec *spec)
{
    struct schedule_refusal refusal = { 0 };
    const struct candidate *best = scheduler_pick(scheduler, arena, spec, &context, &refusal);

    return best ? best->name
                : arena_printf(arena, "%s: %s", reason_text(refusal.reason), refusal.message);
}

#define CAPABILITY(name) "\"" LABEL_CAPABILITY_PREFIX name "\":\"\""
#define SIXTY_THREE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SIXTY_FOUR SIXTY_THREE "a"

/* A selector against one Proplet named "alpha". */
static const struct {
    const char *task;
    const char *labels;
    const char *type;
    const char *proplet;
    enum schedule_filter filter;
} FILTERS[] = {
    { "{}", "{}", "external", "", FILTER_PASSED },
    { "{\"propletSelector\":{}}", "{}", "external", "", FILTER_PASSED },

    { "{\"propletSelector\":{\"propletId\":\"alpha\"}}", "{}", "external", "", FILTER_PASSED },
    { "{\"propletSelector\":{\"propletId\":\"Alpha\"}}", "{}", "external", "", FILTER_NAME },
    { "{\"propletSelector\":{\"propletId\":\"\"}}", "{}", "external", "", FILTER_PASSED },

    { "{\"preferredPropletType\":\"any\"}", "{}", "k8s", "", FILTER_PASSED },
    { "{\"preferredPropletType\":\"k8s\"}", "{}", "k8s", "", FILTER_PASSED },
    { "{\"preferredPropletType\":\"k8s\"}", "{}", "external", "", FILTER_TYPE },
    { "{\"preferredPropletType\":\"external\"}", "{}", "external", "", FILTER_PASSED },
    { "{\"preferredPropletType\":\"external\"}", "{}", "k8s", "", FILTER_TYPE },

    { "{\"propletSelector\":{\"matchLabels\":{\"zone\":\"a\"}}}", "{\"zone\":\"a\",\"x\":\"y\"}",
      "external", "", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchLabels\":{\"zone\":\"a\"}}}", "{\"zone\":\"b\"}", "external",
      "", FILTER_LABELS },
    { "{\"propletSelector\":{\"matchLabels\":{\"zone\":\"a\"}}}", "{\"Zone\":\"a\"}", "external",
      "", FILTER_LABELS },
    { "{\"propletSelector\":{\"matchLabels\":{\"zone\":\"a\",\"x\":\"y\"}}}", "{\"zone\":\"a\"}",
      "external", "", FILTER_LABELS },
    { "{\"propletSelector\":{\"matchLabels\":{\"zone\":\"\"}}}", "{}", "external", "",
      FILTER_LABELS },
    { "{\"propletSelector\":{\"matchLabels\":{}}}", "{}", "external", "", FILTER_PASSED },

    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"esp32\",\"pi\"]}}", "{}", "external",
      "\"external\":{\"deviceType\":\"pi\"},", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"esp32\"]}}", "{}", "external",
      "\"external\":{\"deviceType\":\"pi\"},", FILTER_DEVICE_TYPE },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"esp32\"]}}", "{}", "external",
      "\"external\":{},", FILTER_DEVICE_TYPE },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"esp32\"]}}", "{}", "external", "",
      FILTER_DEVICE_TYPE },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[\"esp32\"]}}", "{}", "k8s", "",
      FILTER_DEVICE_TYPE },
    { "{\"propletSelector\":{\"matchDeviceTypes\":[]}}", "{}", "k8s", "", FILTER_PASSED },

    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\"]}}", "{}", "external",
      "\"external\":{\"capabilities\":[\"tee\",\"gpu\"]},", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\",\"tee\"]}}", "{}", "external",
      "\"external\":{\"capabilities\":[\"tee\"]},", FILTER_CAPABILITIES },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\"]}}", "{}", "external", "",
      FILTER_CAPABILITIES },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\"]}}", "{}", "k8s", "",
      FILTER_CAPABILITIES },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\"]}}", "{" CAPABILITY("gpu") "}", "k8s",
      "", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"gpu\",\"tee\"]}}", "{" CAPABILITY("gpu") "}",
      "external", "\"external\":{\"capabilities\":[\"tee\"]},", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"" SIXTY_THREE "\"]}}",
      "{" CAPABILITY(SIXTY_THREE) "}", "k8s", "", FILTER_PASSED },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"" SIXTY_FOUR "\"]}}",
      "{" CAPABILITY(SIXTY_FOUR) "}", "k8s", "", FILTER_CAPABILITIES },
    { "{\"propletSelector\":{\"matchCapabilities\":[\"" SIXTY_FOUR "\"]}}", "{}", "external",
      "\"external\":{\"capabilities\":[\"" SIXTY_FOUR "\"]},", FILTER_PASSED },

    { "{\"inputs\":[\"7\"]}", "{}", "external", "\"external\":{\"dialect\":\"embedded\"},",
      FILTER_PASSED },
    { "{\"inputs\":[-7]}", "{}", "external", "\"external\":{\"dialect\":\"embedded\"},",
      FILTER_DIALECT },
    { "{\"inputs\":[-7]}", "{}", "external", "\"external\":{\"dialect\":\"standard\"},",
      FILTER_PASSED },
    { "{\"inputs\":[-7]}", "{}", "k8s", "", FILTER_PASSED },
    { "{\"inputs\":[-7],\"propletSelector\":{\"propletId\":\"alpha\"}}", "{}", "external",
      "\"external\":{\"dialect\":\"embedded\"},", FILTER_PASSED },

    { "{}", "{}", "external", "\"unschedulable\":true,", FILTER_CORDONED },
    { "{}", "{}", "external", "\"unschedulable\":false,", FILTER_PASSED },

    /* all of them together, and each of them missing */
    { "{\"preferredPropletType\":\"external\",\"propletSelector\":{\"propletId\":\"alpha\","
      "\"matchLabels\":{\"zone\":\"a\"},\"matchDeviceTypes\":[\"pi\"],"
      "\"matchCapabilities\":[\"gpu\"]}}",
      "{\"zone\":\"a\"}", "external",
      "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"]},", FILTER_PASSED },
    { "{\"preferredPropletType\":\"external\",\"propletSelector\":{\"propletId\":\"alpha\","
      "\"matchLabels\":{\"zone\":\"a\"},\"matchDeviceTypes\":[\"pi\"],"
      "\"matchCapabilities\":[\"gpu\"]}}",
      "{\"zone\":\"b\"}", "external",
      "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"]},", FILTER_LABELS },
    { "{\"preferredPropletType\":\"external\",\"propletSelector\":{\"propletId\":\"alpha\","
      "\"matchLabels\":{\"zone\":\"a\"},\"matchDeviceTypes\":[\"pi\"],"
      "\"matchCapabilities\":[\"gpu\"]}}",
      "{\"zone\":\"a\"}", "external",
      "\"external\":{\"deviceType\":\"pc\",\"capabilities\":[\"gpu\"]},", FILTER_DEVICE_TYPE },
    { "{\"preferredPropletType\":\"external\",\"propletSelector\":{\"propletId\":\"alpha\","
      "\"matchLabels\":{\"zone\":\"a\"},\"matchDeviceTypes\":[\"pi\"],"
      "\"matchCapabilities\":[\"gpu\"]}}",
      "{\"zone\":\"a\"}", "external",
      "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"tee\"]},", FILTER_CAPABILITIES },
};

TEST_EACH(selector_lets_through_what_has_all_it_names, FILTERS)
{
    const struct task_spec spec = task_spec(FILTERS[_i].task);
    const struct candidate *alpha =
        candidate("alpha", FILTERS[_i].labels, FILTERS[_i].type, FILTERS[_i].proplet);

    ck_assert_int_eq(schedule_filter(&spec, alpha), FILTERS[_i].filter);
}

#define SECOND_US INT64_C(1000000)

static const struct {
    int64_t need_s, close_us;
    bool closed;
    enum schedule_filter filter;
} ROOM[] = {
    { 0, 0, false, FILTER_PASSED },
    { 60, 0, false, FILTER_PASSED },
    { 0, 101 * SECOND_US, false, FILTER_PASSED },
    { 60, 160 * SECOND_US, false, FILTER_PASSED },
    { 60, 160 * SECOND_US - 1, false, FILTER_TOO_SHORT },
    { INT64_MAX, 160 * SECOND_US, false, FILTER_TOO_SHORT },
    { 60, 160 * SECOND_US, true, FILTER_CLOSED },
};

TEST_EACH(task_with_a_need_gets_no_proplet_that_closes_before, ROOM)
{
    const struct task_spec spec = { .need_s = ROOM[_i].need_s };
    struct candidate *alpha = external("alpha");

    alpha->now_us = 100 * SECOND_US;
    alpha->close_us = ROOM[_i].close_us;
    alpha->closed = ROOM[_i].closed;
    ck_assert_int_eq(schedule_filter(&spec, alpha), ROOM[_i].filter);
}

TEST(proplet_that_is_not_ready_gets_nothing)
{
    const struct task_spec spec = { 0 };
    struct candidate *alpha = external("alpha");

    alpha->ready = false;
    ck_assert_int_eq(schedule_filter(&spec, alpha), FILTER_NOT_READY);
}

TEST(pod_that_is_ready_gets_nothing_until_its_device_is_heard)
{
    const struct task_spec spec = { 0 };
    const struct task_spec with_image = { .image_url = "reg/image:1" };
    struct candidate *alpha = candidate("alpha", "{}", "k8s", "");

    alpha->connected = false;
    ck_assert_int_eq(schedule_filter(&spec, alpha), FILTER_NOT_READY);
    ck_assert_int_eq(schedule_filter(&with_image, alpha), FILTER_PASSED); /* a Job of its own */
    alpha->connected = true;
    ck_assert_int_eq(schedule_filter(&spec, alpha), FILTER_PASSED);
    alpha->ready = false;
    ck_assert_int_eq(schedule_filter(&spec, alpha), FILTER_NOT_READY);
}

/* Pods that are a device each, "d-0" and so on. */
static struct candidate_device devices[3];
static struct candidate *indexed(const char *name, size_t count)
{
    static const char *const IDS[] = { "d-0", "d-1", "d-2" };
    struct candidate *ret =
        candidate(name, "{}", "k8s", "\"k8s\":{\"indexedClientIds\":true,\"replicas\":3},");

    for (size_t i = 0; i < count; i++)
        devices[i] = (struct candidate_device){ .client_id = IDS[i] };
    ret->devices = devices;
    ret->device_count = count;
    return ret;
}

TEST(one_pod_that_is_heard_is_enough_for_a_task_over_mqtt)
{
    const struct task_spec over_mqtt = { .file = "AGFzbQ==" };
    const struct task_spec job = { .image_url = "registry/image" };
    struct candidate *pods = indexed("alpha", 1);

    pods->ready = false;
    ck_assert_int_eq(schedule_filter(&over_mqtt, pods), FILTER_PASSED);
    ck_assert_int_eq(schedule_filter(&job, pods), FILTER_NOT_READY);
    pods->ready = true;
    pods->device_count = 0;
    ck_assert_int_eq(schedule_filter(&over_mqtt, pods), FILTER_NOT_READY);
    ck_assert_int_eq(schedule_filter(&job, pods), FILTER_PASSED);
}

TEST(pod_with_the_fewest_tasks_gets_the_next_one)
{
    const struct task_spec over_mqtt = { .file = "AGFzbQ==" };
    const struct task_spec job = { .image_url = "registry/image" };
    struct candidate *pods = indexed("alpha", 3);

    ck_assert_str_eq(schedule_device(&over_mqtt, pods), "d-0");
    devices[0].total = 1;
    devices[1].active = devices[1].total = 1;
    ck_assert_str_eq(schedule_device(&over_mqtt, pods), "d-2"); /* nothing was there yet */
    devices[2].active = devices[2].total = 1;
    ck_assert_str_eq(schedule_device(&over_mqtt, pods), "d-0"); /* nothing is there now */
    devices[0].active = 2;
    ck_assert_str_eq(schedule_device(&over_mqtt, pods), "d-1");
    ck_assert_ptr_null(schedule_device(&job, pods));
    ck_assert_ptr_null(schedule_device(&over_mqtt, external("beta")));
}

TEST(least_loaded_counts_each_pod)
{
    const struct task_spec spec = { .file = "AGFzbQ==" };

    external("alpha")->active = 2;
    indexed("beta", 3)->active = 5;
    ck_assert_str_eq(pick(&SCHEDULER_LEAST_LOADED, &spec), "beta");
}

TEST(proplet_takes_as_many_tasks_as_it_says)
{
    const struct task_spec spec = { 0 };
    struct candidate *limited =
        candidate("alpha", "{}", "external", "\"external\":{\"maxTasks\":2},");
    struct candidate *unlimited = external("beta");

    limited->active = 1;
    ck_assert_int_eq(schedule_filter(&spec, limited), FILTER_PASSED);
    limited->active = 2;
    ck_assert_int_eq(schedule_filter(&spec, limited), FILTER_CAPACITY);
    unlimited->active = INT64_MAX;
    ck_assert_int_eq(schedule_filter(&spec, unlimited), FILTER_PASSED);
}

TEST(refusal_counts_why_each_is_out)
{
    const struct task_spec spec =
        task_spec("{\"preferredPropletType\":\"external\",\"propletSelector\":{"
                  "\"matchLabels\":{\"zone\":\"a\"},\"matchDeviceTypes\":[\"pi\"],"
                  "\"matchCapabilities\":[\"gpu\"]}}");

    candidate("a", "{}", "k8s", "");
    candidate("b", "{}", "external", "");
    candidate("c", "{}", "external", "");
    candidate("d", "{\"zone\":\"a\"}", "external", "");
    candidate("e", "{\"zone\":\"a\"}", "external", "\"external\":{\"deviceType\":\"pi\"},");
    candidate("f", "{\"zone\":\"a\"}", "external",
              "\"unschedulable\":true,"
              "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"]},");
    candidate("g", "{\"zone\":\"a\"}", "external",
              "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"]},")
        ->ready = false;
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoCandidates: none of 7 Proplets fits: 1 is not of type external, "
                     "2 lack label zone=a, 1 is not of device type pi, 1 lacks capability gpu, "
                     "1 is cordoned, 1 is not ready");
    for (int i = 0; i < 2; i++) {
        struct candidate *closed = /* and not ready, which says less */
            candidate(i ? "y" : "x", "{\"zone\":\"a\"}", "external",
                      "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"]},");
        closed->closed = true;
        closed->ready = false;
    }
    ck_assert(str_has_suffix(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                             "1 is cordoned, 2 are closed, 1 is not ready"));

    candidate("h", "{\"zone\":\"a\"}", "external",
              "\"external\":{\"deviceType\":\"pi\",\"capabilities\":[\"gpu\"],\"maxTasks\":1},")
        ->active = 1;
    ck_assert(str_has_prefix(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                             "InsufficientCapacity: none of 10 Proplets fits: "));
    ck_assert(
        str_has_suffix(pick(&SCHEDULER_ROUND_ROBIN, &spec), "1 is not ready, 1 is at maxTasks"));
}

TEST(task_that_is_pinned_to_a_closed_proplet_waits_for_it)
{
    const struct task_spec spec = task_spec("{\"propletSelector\":{\"propletId\":\"alpha\"}}");

    external("alpha")->closed = true;
    external("beta");
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "PropletUnavailable: Proplet 'alpha' is closed");
}

/* At most three values, and of each at most 64 bytes. */
TEST(refusal_names_the_first_values_of_what_the_task_asks_for)
{
    const char *wide = "0123456789012345678901234567890123456789012345678901234567890123";
    const struct task_spec spec =
        task_spec(arena_printf(arena,
                               "{\"propletSelector\":{\"matchLabels\":{\"a\":\"1\",\"b\":\"%s\","
                               "\"c\":\"3\",\"d\":\"4\"}}}",
                               wide));
    const struct task_spec two =
        task_spec("{\"propletSelector\":{\"matchCapabilities\":[\"gpu\",\"camera\"]}}");

    external("alpha");
    external("beta");
    ck_assert_str_eq(
        pick(&SCHEDULER_ROUND_ROBIN, &spec),
        arena_printf(arena,
                     "NoCandidates: none of 2 Proplets fits: 2 lack one of the labels a=1, "
                     "b=%.62s, c=3 and 1 more",
                     wide));
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &two),
                     "NoCandidates: none of 2 Proplets fits: 2 lack one of the capabilities gpu, "
                     "camera");
}

static const cJSON *ready_condition(const char *reason)
{
    return parsed(
        arena, arena_printf(arena, "[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"%s\"}]",
                            reason));
}

TEST(absence_names_the_identity_that_was_never_heard_or_since_when_it_is_offline)
{
    struct connection_config connection = { .domain_id = "demo",
                                            .channel_id = "workers",
                                            .client_id = "device-1" };
    struct proplet proplet = { .spec = { .type = PROPLET_EXTERNAL,
                                         .connection_config = &connection } };

    for (int told = 0; told < 2; told++) { /* its own reconciler has not looked at it, or has */
        proplet.status.conditions = told ? ready_condition("WaitingForHeartbeat") : NULL;
        ck_assert_str_eq(
            scheduler_absence(arena, "gateway", &proplet),
            "Proplet 'gateway' has sent no heartbeat yet: client id 'device-1' on channel "
            "'demo/workers'");
    }
    proplet.status.conditions = ready_condition("HeartbeatsStopped");
    proplet.status.offline_since_us = INT64_C(1795255200000000);
    ck_assert_str_eq(scheduler_absence(arena, "gateway", &proplet),
                     "Proplet 'gateway' is Offline since 2026-11-21T10:00:00Z");
    proplet.status.offline_since_us = 0;
    ck_assert_str_eq(scheduler_absence(arena, "gateway", &proplet),
                     "Proplet 'gateway' is not ready");
}

TEST(task_that_a_microcontroller_cannot_run_goes_to_another_device_or_waits)
{
    const struct task_spec spec = task_spec("{\"inputs\":[0.5]}");

    candidate("alpha", "{}", "external", "\"external\":{\"dialect\":\"embedded\"},");
    ck_assert_str_eq(
        pick(&SCHEDULER_ROUND_ROBIN, &spec),
        "NoCandidates: the only Proplet does not fit: it is embedded and cannot run it");
    external("beta");
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec), "beta");
}

TEST(refusal_by_the_only_proplet_says_what_its_absence_is)
{
    const struct task_spec spec = task_spec("{}");
    struct candidate *alpha = external("alpha");

    alpha->ready = false;
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoCandidates: the only Proplet does not fit: it is not ready");
    alpha->absence = "Proplet 'alpha' is Offline since yesterday";
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoCandidates: Proplet 'alpha' is Offline since yesterday");
    external("beta")->ready = false;
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoCandidates: none of 2 Proplets fits: 2 are not ready");
}

TEST(refusal_of_a_pinned_task_speaks_of_its_proplet)
{
    const struct task_spec spec = task_spec("{\"propletSelector\":{\"propletId\":\"beta\"}}");

    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoProplet: the namespace has no Proplet");
    external("alpha");
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "NoProplet: Proplet 'beta' does not exist");
    struct candidate *beta = candidate("beta", "{}", "external", "\"external\":{\"maxTasks\":1},");
    beta->ready = false;
    beta->absence = "Proplet 'beta' is not ready";
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec),
                     "PropletOffline: Proplet 'beta' is not ready");
    beta->ready = true;
    beta->active = 1;
    ck_assert_str_eq(
        pick(&SCHEDULER_ROUND_ROBIN, &spec),
        "InsufficientCapacity: none of 2 Proplets fits: 1 is not the selected propletId, "
        "1 is at maxTasks");
    beta->active = 0;
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec), "beta");
}

/* Three Proplets b, d, f; the next after the last selected one. */
static const struct {
    const char *last;
    const char *next;
} CIRCLE[] = {
    { "", "b" },  { "a", "b" }, { "b", "d" }, { "c", "d" },
    { "d", "f" }, { "e", "f" }, { "f", "b" }, { "g", "b" },
};

TEST_GROUP("strategies", set_up, tear_down);

TEST_EACH(round_robin_goes_on_after_the_last_selected_name, CIRCLE)
{
    const struct task_spec spec = { 0 };

    external("b");
    external("d");
    external("f");
    context.last_selected = CIRCLE[_i].last;
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec), CIRCLE[_i].next);
}

TEST(round_robin_skips_what_does_not_fit)
{
    const struct task_spec spec = { 0 };

    external("b");
    external("d")->ready = false;
    external("f");
    context.last_selected = "b";
    ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec), "f");
}

TEST(round_robin_spreads_evenly)
{
    const struct task_spec spec = { 0 };
    size_t counts[MAX_CANDIDATES] = { 0 };

    for (size_t i = 0; i < 10; i++)
        external(arena_printf(arena, "p-%zu", i));
    for (size_t i = 0; i < 200; i++) {
        context.last_selected = pick(&SCHEDULER_ROUND_ROBIN, &spec);
        counts[context.last_selected[2] - '0']++;
    }
    for (size_t i = 0; i < 10; i++)
        ck_assert_uint_eq(counts[i], 20);
}

TEST(round_robin_knows_neither_load_nor_number)
{
    const struct task_spec spec = { 0 };

    for (size_t i = 0; i < MAX_CANDIDATES; i++)
        external(arena_printf(arena, "p-%02zu", i))->active = 1000 - (int64_t)i;
    for (size_t i = 0; i + 1 < MAX_CANDIDATES; i++) {
        context.last_selected = candidates[i].name;
        ck_assert_str_eq(pick(&SCHEDULER_ROUND_ROBIN, &spec), candidates[i + 1].name);
    }
}

/* Two Proplets a and b: maxTasks (0: none) and active Tasks of each. */
static const struct {
    int64_t max[2];
    int64_t active[2];
    const char *picked;
} LOADS[] = {
    { { 0, 0 }, { 0, 0 }, "a" },     { { 0, 0 }, { 1, 0 }, "b" },  { { 0, 0 }, { 1, 1 }, "a" },
    { { 4, 2 }, { 1, 1 }, "a" },     { { 4, 8 }, { 1, 1 }, "b" },  { { 4, 8 }, { 1, 2 }, "a" },
    { { 5, 0 }, { 1, 1 }, "b" }, /* without maxTasks as if it were SCHEDULER_DEFAULT_CAPACITY */
    { { 20, 0 }, { 1, 1 }, "a" },    { { 10, 0 }, { 1, 1 }, "a" }, { { 1, 0 }, { 1, 50 }, "b" },
    { { 0, 0 }, { 500, 400 }, "b" },
};

TEST_EACH(least_loaded_compares_active_tasks_with_capacity, LOADS)
{
    const struct scheduler *const SCHEDULERS[] = { &SCHEDULER_LEAST_LOADED, &SCHEDULER_PRIORITY };
    const struct task_spec spec = { 0 };

    for (size_t i = 0; i < 2; i++) {
        const char *limit =
            LOADS[_i].max[i]
                ? arena_printf(arena, "\"external\":{\"maxTasks\":%d},", (int)LOADS[_i].max[i])
                : "";
        candidate(i ? "b" : "a", "{}", "external", limit)->active = LOADS[_i].active[i];
    }
    context.last_selected = "a";
    for (size_t i = 0; i < ARRAY_LEN(SCHEDULERS); i++)
        ck_assert_str_eq(pick(SCHEDULERS[i], &spec), LOADS[_i].picked);
}

TEST(every_scheduler_is_found_by_its_name)
{
    for (size_t i = 0; SCHEDULER_NAMES[i]; i++)
        ck_assert_str_eq(scheduler_by_name(SCHEDULER_NAMES[i])->name, SCHEDULER_NAMES[i]);
    ck_assert_ptr_null(scheduler_by_name("random"));
    ck_assert_ptr_null(scheduler_by_name(""));
}
