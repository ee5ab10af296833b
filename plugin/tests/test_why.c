/* Why an object waits: the document, and that it names what the controller's own status names. */
#include "plugin/why/why.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/random.h"
#include "common/view/state.h"
#include "controller/tests/fake_bridge.h"

TEST_GROUP("document", arena_set_up, arena_tear_down);

#define TASK(name, spec, status)                                                                   \
    "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"" name "\",\"uid\":\"u-" name                 \
    "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{" spec "},\"status\":{" status   \
    "}}"
#define WAITS(reason, message)                                                                     \
    "\"phase\":\"pending\",\"reason\":\"" reason "\",\"conditions\":[{\"type\":\"Reconciling\","   \
    "\"status\":\"True\",\"reason\":\"" reason "\",\"message\":\"" message                         \
    "\",\"lastTransitionTime\":\"2026-01-01T00:00:05Z\"}]"

static struct snapshot *snapshot_of(struct arena *in, const cJSON *tasks, const cJSON *proplets)
{
    struct snapshot *snapshot = snapshot_create(in);

    json_for_each (task, tasks)
        snapshot_add(snapshot, &KIND_TASK, task);
    json_for_each (proplet, proplets)
        snapshot_add(snapshot, &KIND_PROPLET, proplet);
    return snapshot;
}

/* The document for the first of these Tasks, without its head. */
static const cJSON *explained(const char *tasks, const char *proplets)
{
    const cJSON *list = parsed(arena, tasks);
    const struct why_input input = { .kind = &KIND_TASK,
                                     .object = json_first(list),
                                     .snapshot = snapshot_of(arena, list, parsed(arena, proplets)),
                                     .now_us = INT64_C(1800000000000000) };
    cJSON *document = json_object(arena);

    why_explain(arena, &input, document);
    return document;
}

static const char *text(const cJSON *document, const char *key)
{
    return json_text(arena, json_get(document, key), NULL);
}

TEST(a_waiting_task_has_reason_meaning_and_remedy)
{
    const cJSON *document =
        explained("[" TASK("one", "", WAITS("Suspended", "spec.suspend is true")) "]", "[]");

    ck_assert_str_eq(text(document, "reason"), "\"Suspended\"");
    ck_assert_str_eq(text(document, "message"), "\"spec.suspend is true\"");
    ck_assert_str_eq(text(document, "since"), "\"2026-01-01T00:00:05Z\"");
    ck_assert_str_eq(text(document, "remedy"),
                     "\"Set spec.suspend to false, on the object or on its owner.\"");
}

TEST(each_proplet_has_the_filter_that_it_fails)
{
    const cJSON *document = explained(
        "[" TASK("one", "\"propletSelector\":{\"matchLabels\":{\"site\":\"lab\"}}",
                 WAITS("NoCandidates", "none")) "]",
        "[{\"metadata\":{\"namespace\":\"lab\",\"name\":\"a\",\"labels\":{\"site\":\"roof\"}},"
        "\"spec\":{\"type\":\"external\"}},"
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"b\",\"labels\":{\"site\":\"lab\"}},"
        "\"spec\":{\"type\":\"external\",\"unschedulable\":true}}]");

    ck_assert_str_eq(
        text(document, "proplets"),
        "[{\"object\":\"proplet/a\",\"proplet\":\"a\",\"fits\":false,\"active\":0,"
        "\"verdict\":\"lacks label site=lab\"},{\"object\":\"proplet/b\",\"proplet\":\"b\","
        "\"fits\":false,\"active\":0,\"verdict\":\"is cordoned\"}]");
    ck_assert_str_eq(
        text(document, "scheduler"),
        "{\"reason\":\"NoCandidates\","
        "\"message\":\"none of 2 Proplets fits: 1 lacks label site=lab, 1 is cordoned\"}");
    ck_assert_str_eq(text(document, "rank"), "{\"position\":1,\"waiting\":1}");
}

TEST(proplet_that_is_closed_by_its_status_does_not_fit)
{
    const cJSON *document = explained("[" TASK("one", "\"propletSelector\":{\"propletId\":\"a\"}",
                                               WAITS("PropletUnavailable", "none")) "]",
                                      "[{\"metadata\":{\"namespace\":\"lab\",\"name\":\"a\"},"
                                      "\"spec\":{\"type\":\"external\",\"killSwitch\":true},"
                                      "\"status\":{\"availability\":{\"state\":\"Closed\"}}}]");

    ck_assert_str_eq(text(document, "proplets"),
                     "[{\"object\":\"proplet/a\",\"proplet\":\"a\",\"fits\":false,\"active\":0,"
                     "\"verdict\":\"is closed\"}]");
    ck_assert_str_eq(text(document, "scheduler"), "{\"reason\":\"PropletUnavailable\","
                                                  "\"message\":\"Proplet 'a' is closed\"}");
    ck_assert_str_eq(text(document, "rank"), "{\"position\":1,\"waiting\":1}");
}

TEST(a_start_that_does_not_go_out_points_to_the_broker)
{
    const cJSON *document = explained(
        "[" TASK("one", "",
                 "\"phase\":\"scheduled\",\"scheduledAt\":\"2027-01-15T07:59:48.5Z\"") "]",
        "[]");

    /* 1,800,000,000 s are 2027-01-15T08:00:00Z */
    ck_assert_str_eq(text(document, "message"), "\", but the start has not gone out for 11 s\"");
    ck_assert_ptr_nonnull(strstr(text(document, "remedy"), "broker"));
    document = explained(
        "[" TASK("one", "", "\"phase\":\"scheduled\",\"scheduledAt\":\"2027-01-15T07:59:51Z\"") "]",
        "[]");
    ck_assert_str_eq(text(document, "message"), "\"\"");
}

TEST(a_broadcast_is_for_all_that_fit)
{
#define PROPLET(name, more)                                                                        \
    "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"" name                                        \
    "\"},\"spec\":{\"type\":\"external\"" more                                                     \
    "},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}"
    struct snapshot *snapshot =
        snapshot_of(arena, NULL,
                    parsed(arena, "[" PROPLET("a", "") "," PROPLET(
                                      "b", ",\"unschedulable\":true") "," PROPLET("c", "") "]"));
    const cJSON *task = parsed(arena, TASK("one", "\"broadcast\":true", ""));

    ck_assert_str_eq(why_schedule(arena, task, snapshot, "round-robin", 0, json_object(arena)),
                     "a,c");
}

TEST(a_task_that_has_ended_looks_at_no_proplet)
{
    const cJSON *document = explained("[" TASK("one", "", "\"phase\":\"completed\"") "]", "[]");

    ck_assert_ptr_null(json_get(document, "proplets"));
    ck_assert_ptr_null(json_get(document, "rank"));
}

TEST(dependencies_are_a_tree_in_which_each_task_stands_once)
{
    const cJSON *document = explained(
        "[" TASK("one", "\"dependsOn\":[\"left\",\"right\",\"absent\"]",
                 WAITS("WaitingForDependencies",
                       "x")) "," TASK("left", "\"dependsOn\":[\"root\"]",
                                      "") "," TASK("right", "\"dependsOn\":[\"root\"]",
                                                   "\"phase\":\"running\"") "," TASK("root",
                                                                                     "\"dependsOn\""
                                                                                     ":[\"one\"]",
                                                                                     "\"phase\":"
                                                                                     "\"failed\","
                                                                                     "\"reason\":"
                                                                                     "\"DeviceError"
                                                                                     "\"") "]",
        "[]");
    const char *tree = "";

    json_for_each (row, json_get(document, "dependencies"))
        tree = arena_printf(
            arena, "%s%lld %s %s %s;", tree, (long long)json_int(json_get(row, "depth"), -1),
            json_string(json_get(row, "task"), ""), json_string(json_get(row, "phase"), ""),
            json_string(json_get(row, "reason"), ""));
    ck_assert_str_eq(tree, "0 left pending ;1 root failed DeviceError;2 one pending "
                           "WaitingForDependencies;3 left pending see above;3 right running ;"
                           "4 root failed see above;3 absent missing ;0 right running see above;"
                           "0 absent missing see above;");
}

#define SAVES "\"checkpoint\":{}"
#define TAKEN(status, reason, message)                                                             \
    "\"phase\":\"running\",\"conditions\":[{\"type\":\"Checkpointing\",\"status\":\"" status       \
    "\",\"reason\":\"" reason "\",\"message\":\"" message "\"}]"

static const struct {
    const char *status;
    const char *checkpoint;
} SAVERS[] = {
    { "\"phase\":\"pending\"", "{\"message\":\"no attempt has run with it yet\"}" },
    { TAKEN("True", "Ready", "checkpoints are taken") ",\"lastCheckpoint\":{\"step\":7,\"time\":"
                                                      "\"2026-01-01T00:00:00Z\",\"proplet\":\"a\","
                                                      "\"attempt\":1,\"sha256\":\"0\"}",
      "{\"message\":\"checkpoints are taken\",\"step\":7,\"time\":\"2026-01-01T00:00:00Z\","
      "\"proplet\":\"a\"}" },
    { TAKEN("False", "NoCoordinator", "none"),
      "{\"message\":\"none\",\"remedy\":\"Start the controller with --coordinator-url and "
      "--coordinator-bind-address.\"}" },
};

TEST_EACH(a_task_with_checkpoints_says_whether_they_are_taken, SAVERS)
{
    const cJSON *document = explained(
        arena_printf(arena,
                     "[{\"metadata\":{\"namespace\":\"lab\",\"name\":\"one\",\"uid\":\"u\"},"
                     "\"spec\":{" SAVES "},\"status\":{%s}}]",
                     SAVERS[_i].status),
        "[]");

    ck_assert_str_eq(text(document, "checkpoint"), SAVERS[_i].checkpoint);
}

TEST(a_task_without_checkpoints_says_nothing_of_them)
{
    ck_assert_ptr_null(json_get(explained("[" TASK("one", "", "") "]", "[]"), "checkpoint"));
}

TEST(the_rank_counts_those_that_wait_for_room_by_age_and_priority)
{
#define LATE "\"creationTimestamp\":\"2026-01-01T00:00:00Z\""
    const cJSON *document = explained(
        "[" TASK("middle", "", WAITS("InsufficientCapacity", "x")) "," TASK(
            "urgent", "\"priority\":90",
            WAITS("InsufficientCapacity",
                  "x")) "," TASK("later", "",
                                 WAITS(
                                     "InsufficientCapacity",
                                     "x")) "," TASK("asleep", "",
                                                    WAITS(
                                                        "Suspended",
                                                        "x")) "," TASK("busy", "",
                                                                       "\"phase\":\"running\"") "]",
        "[]");

    /* "later" is as old as "middle", and behind it by name. */
    ck_assert_str_eq(text(document, "rank"), "{\"position\":3,\"waiting\":3}");
}

TEST(a_job_shows_its_parts_that_have_not_succeeded)
{
#define OWNED                                                                                      \
    "\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\",\"ownerReferences\":[{\"uid\":\"j\","     \
    "\"controller\":true}]}"
    const char *tasks = arena_printf(
        arena,
        "[{" OWNED ",\"status\":{\"phase\":\"completed\"}},"
        "{" OWNED
        ",\"status\":{\"phase\":\"failed\",\"reason\":\"DeviceError\",\"error\":\"trap\"}},"
        "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"other\"},\"status\":{\"phase\":\"failed\"}"
        "}]",
        "done", "bad");
    const struct why_input input = {
        .kind = &KIND_PROPELLERJOB,
        .object = parsed(arena, "{\"metadata\":{\"namespace\":\"lab\",\"uid\":\"j\"}}"),
        .snapshot = snapshot_of(arena, parsed(arena, tasks), NULL),
    };
    cJSON *document = json_object(arena);

    why_explain(arena, &input, document);
    ck_assert_str_eq(text(document, "parts"),
                     "[{\"object\":\"task/bad\",\"phase\":\"failed\",\"reason\":\"DeviceError\","
                     "\"message\":\"trap\"}]");
}

/* The controller and the command look at the same cluster. */

static void set_up_stage(void)
{
    outside_set_up();
}

TEST_GROUP("agreement", set_up_stage, stage_tear_down);

static uint64_t seed;

static bool chance(uint64_t of)
{
    return random_below(&seed, of) == 0;
}

static const char *random_proplet(unsigned i)
{
    return arena_printf(
        stage.arena,
        "{\"type\":\"external\",\"external\":{\"deviceType\":\"%s\",\"capabilities\":[%s]%s}%s,"
        "\"connectionConfig\":{\"mqttAddress\":\"tcp://broker\",\"domainId\":\"d\","
        "\"channelId\":\"c\",\"clientId\":\"device-%u\"}}",
        chance(2) ? "pi" : "mcu", chance(2) ? "\"gpu\"" : "", chance(2) ? ",\"maxTasks\":1" : "",
        chance(3) ? ",\"unschedulable\":true" : "", i);
}

static const char *random_task(void)
{
    const char *selector = chance(3)   ? "\"propletId\":\"alpha\""
                           : chance(3) ? "\"propletId\":\"nowhere\""
                           : chance(2) ? "\"matchCapabilities\":[\"gpu\"]"
                                       : "\"matchDeviceTypes\":[\"pi\"]";

    return arena_printf(
        stage.arena, "{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":{%s}%s}",
        chance(4) ? "" : selector, chance(4) ? ",\"preferredPropletType\":\"k8s\"" : "");
}

static cJSON *all(struct informer *informer)
{
    struct object_list list = store_list(informer_store(informer), stage.arena, NULL);
    cJSON *array = json_array(stage.arena);

    for (size_t i = 0; i < list.len; i++)
        json_add(array, json_copy(kube_object_json(stage.arena, list.items[i])));
    return array;
}

/* Tasks that wait, whose reason was compared. */
static unsigned compare_all(void)
{
    const cJSON *tasks = all(stage.task.tasks), *proplets = all(stage.task.proplets);
    const struct snapshot *snapshot = snapshot_of(stage.arena, tasks, proplets);
    unsigned compared = 0;

    json_for_each (task, tasks) {
        const struct why_input input = { .kind = &KIND_TASK, .object = task, .snapshot = snapshot };
        cJSON *document = json_object(stage.arena);
        struct state state = state_of(&KIND_TASK, task);

        if (!str_equal(state.phase, "pending"))
            continue;
        why_explain(stage.arena, &input, document);
        ck_assert_str_eq(json_string(json_path(document, "scheduler", "reason", NULL), "it fits"),
                         state.reason);
        ck_assert_str_eq(json_string(json_path(document, "scheduler", "message", NULL), ""),
                         state.message);
        compared++;
    }
    return compared;
}

TEST_TIMES(why_names_what_the_controller_names, 200)
{
    seed = (uint64_t)_i * 7919 + 1;
    stage_put_proplet("alpha", random_proplet(1));
    stage_put_proplet("beta", random_proplet(2));
    stage_run();
    for (int i = 0; i < 6; i++)
        stage_put(&KIND_TASK, arena_printf(stage.arena, "task-%d", i), random_task());
    stage_put(&KIND_TASK, "never",
              "{\"name\":\"n\",\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":"
              "{\"matchDeviceTypes\":[\"other\"]}}");
    stage_run();
    ck_assert_uint_ge(compare_all(), 1);
}
