/* States, loads and timelines of objects. */
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/view/load.h"
#include "common/view/means.h"
#include "common/view/state.h"
#include "common/view/timeline.h"

TEST_GROUP("view", arena_set_up, arena_tear_down);

static const struct {
    const struct kube_kind *kind;
    const char *object;
    const char *phase, *reason, *message;
    bool is_final, is_good;
} STATES[] = {
    { &KIND_TASK, "{}", "", "", "", false, false },
    { &KIND_TASK,
      "{\"status\":{\"phase\":\"pending\",\"conditions\":[{\"type\":\"Reconciling\","
      "\"status\":\"True\",\"reason\":\"NoProplet\",\"message\":\"m\"}]}}",
      "pending", "NoProplet", "m", false, false },
    { &KIND_TASK, "{\"status\":{\"phase\":\"completed\"}}", "completed", "", "", true, true },
    { &KIND_TASK,
      "{\"spec\":{\"schedule\":\"@daily\",\"isRecurring\":true},\"status\":{\"phase\":"
      "\"completed\"}}",
      "completed", "", "", false, false },
    { &KIND_TASK,
      "{\"status\":{\"phase\":\"failed\",\"reason\":\"DeviceError\",\"error\":\"trap\"}}", "failed",
      "DeviceError", "trap", true, false },
    { &KIND_TASK,
      "{\"status\":{\"phase\":\"failed\",\"reason\":\"DeviceError\","
      "\"nextRetry\":\"2026-01-01T00:00:00Z\"}}",
      "failed", "DeviceError", "", false, false },
    { &KIND_TASK, /* the controller has not seen this wish yet */
      "{\"metadata\":{\"annotations\":{\"" ANNOTATION_RESTART "\":\"2\"}},"
      "\"status\":{\"phase\":\"completed\",\"observedRestart\":\"1\"}}",
      "completed", "", "", false, false },
    { &KIND_TASK,
      "{\"metadata\":{\"annotations\":{\"" ANNOTATION_RESTART "\":\"2\"}},"
      "\"status\":{\"phase\":\"completed\",\"observedRestart\":\"2\"}}",
      "completed", "", "", true, true },
    { &KIND_TASK, "{\"status\":{\"phase\":\"skipped\"}}", "skipped", "", "", true, false },
    { &KIND_PROPELLERJOB, "{\"status\":{\"phase\":\"Completed\"}}", "Completed", "", "", true,
      true },
    { &KIND_FEDERATEDJOB,
      "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Stalled\",\"status\":\"True\","
      "\"reason\":\"RoundFailed\",\"message\":\"late\"}]}}",
      "Failed", "RoundFailed", "late", true, false },
    { &KIND_PROPLET,
      "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
      "\"reason\":\"Alive\",\"message\":\"\"}]}}",
      "Running", "Alive", "", false, true },
    { &KIND_ENROLLMENT,
      "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\","
      "\"reason\":\"NotAllowed\",\"message\":\"no right\"}]}}",
      "", "NotAllowed", "no right", false, false },
    { &KIND_ENROLLMENT,
      "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","
      "\"reason\":\"Listening\",\"message\":\"\"}]}}",
      "", "Listening", "", false, true },
};

TEST_EACH(all_kinds_have_a_state_in_the_same_words, STATES)
{
    struct state state = state_of(STATES[_i].kind, parsed(arena, STATES[_i].object));

    ck_assert_str_eq(state.phase, STATES[_i].phase);
    ck_assert_str_eq(state.reason, STATES[_i].reason);
    ck_assert_str_eq(state.message, STATES[_i].message);
    ck_assert_int_eq(state.is_final, STATES[_i].is_final);
    ck_assert_int_eq(state.is_good, STATES[_i].is_good);
}

TEST(a_task_waits_since_its_reason_began)
{
    struct state state = state_of(
        &KIND_TASK,
        parsed(arena, "{\"status\":{\"phase\":\"pending\",\"conditions\":["
                      "{\"type\":\"Reconciling\",\"status\":\"True\",\"reason\":\"NoProplet\","
                      "\"lastTransitionTime\":\"2026-01-02T00:00:00Z\"},"
                      "{\"type\":\"Scheduled\",\"status\":\"False\",\"reason\":\"NoProplet\","
                      "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}"));
    char text[RFC3339_LEN];

    ck_assert_str_eq(rfc3339_format(state.since_us, text), "2026-01-01T00:00:00Z");
}

#define PROPLET(name, active, metrics)                                                             \
    "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"" name                                        \
    "\"},\"status\":{\"phase\":\"Running\","                                                       \
    "\"activeTaskCount\":" active metrics "}}"
#define SAMPLE(cpu, memory)                                                                        \
    ",\"latestMetrics\":{\"cpuMilliPercent\":" cpu ",\"memoryBytes\":" memory "}"
#define PROPLETS                                                                                   \
    "[" PROPLET("b", "1", SAMPLE("2500", "1048576")) "," PROPLET("a", "0", "") "," PROPLET(        \
        "c", "7", SAMPLE("2500", "3145728")) "]"

static const struct {
    const char *sort_by, *names;
} ORDERS[] = { { "name", "abc" }, { "cpu", "bca" }, { "memory", "cba" }, { "active", "cba" } };

TEST_EACH(loads_are_sorted_with_the_largest_first, ORDERS)
{
    cJSON *rows = json_array(arena);
    const char *names = "";

    load_rows(arena, &KIND_PROPLET, parsed(arena, PROPLETS), ORDERS[_i].sort_by, rows);
    json_for_each (row, rows)
        names = arena_printf(arena, "%s%s", names, json_string(json_get(row, "name"), ""));
    ck_assert_str_eq(names, ORDERS[_i].names);
}

TEST(a_load_has_percent_and_mebibytes_where_there_is_a_sample)
{
    cJSON *rows = json_array(arena);

    load_rows(arena, &KIND_PROPLET, parsed(arena, PROPLETS), "name", rows);
    const cJSON *second = json_first(rows)->next;
    ck_assert_ptr_null(json_get(json_first(rows), "cpu"));
    ck_assert_str_eq(json_string(json_get(second, "cpu"), ""), "2.5%");
    ck_assert_str_eq(json_string(json_get(second, "memory"), ""), "1Mi");
}

TEST(only_active_tasks_have_a_load)
{
    cJSON *rows = json_array(arena);

    load_rows(arena, &KIND_TASK,
              parsed(arena,
                     "[{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"running\","
                     "\"assignedProplet\":\"p\"}},"
                     "{\"metadata\":{\"name\":\"b\"},\"status\":{\"phase\":\"completed\"}}]"),
              "name", rows);
    ck_assert_uint_eq(json_len(rows), 1);
    ck_assert_str_eq(json_string(json_get(json_first(rows), "proplet"), ""), "p");
}

TEST(a_timeline_is_in_the_order_of_time_with_events_of_this_object_alone)
{
    const cJSON *object = parsed(
        arena,
        "{\"metadata\":{\"uid\":\"u\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
        "\"status\":{\"scheduledAt\":\"2026-01-01T00:00:01.500000Z\",\"assignedProplet\":\"p\","
        "\"startedAt\":\"2026-01-01T00:00:01Z\",\"history\":[{\"run\":1,\"phase\":\"failed\","
        "\"finishedAt\":\"2025-12-31T00:00:00Z\",\"reason\":\"DeviceError\"}],"
        "\"conditions\":[{\"type\":\"Started\",\"status\":\"True\",\"reason\":\"R\","
        "\"message\":\"m\",\"lastTransitionTime\":\"2026-01-01T00:00:01Z\"},"
        "{\"type\":\"Broken\",\"lastTransitionTime\":\"never\"}]}}");
    const cJSON *events = parsed(
        arena,
        "[{\"regarding\":{\"uid\":\"u\"},\"reason\":\"B\",\"eventTime\":\"2026-01-01T00:00:01.7Z\"}"
        ","
        "{\"regarding\":{\"uid\":\"u\"},\"reason\":\"A\",\"eventTime\":\"2026-01-01T00:00:01.6Z\","
        "\"series\":{\"count\":3,\"lastObservedTime\":\"2026-01-01T00:00:01.6Z\"}},"
        "{\"regarding\":{\"uid\":\"other\"},\"reason\":\"C\",\"eventTime\":\"2026-01-01T00:00:"
        "01Z\"}]");
    cJSON *rows = json_array(arena);
    const char *order = "";

    timeline_rows(arena, object, events, rows);
    json_for_each (row, rows)
        order = arena_printf(arena, "%s%s %s;", order, json_string(json_get(row, "source"), ""),
                             json_string(json_get(row, "what"), ""));
    ck_assert_str_eq(order, "history run 1 failed;object created;status scheduled;status started;"
                            "condition Started=True R;event A (3 times);event B;");
}

TEST(means_of_a_round_are_weighted_by_samples)
{
    struct means *means = means_create(arena);
    cJSON *shown = json_object(arena);

    means_add(means, "r",
              parsed(arena, "{\"numSamples\":1,\"metrics\":{\"loss\":1,\"text\":\"x\"}}"));
    means_add(means, "r",
              parsed(arena, "{\"numSamples\":3,\"metrics\":{\"loss\":0.2,\"acc\":0.5}}"));
    means_add(means, "r", parsed(arena, "{\"metrics\":{\"loss\":100}}")); /* of no samples */
    means_add(means, "r", parsed(arena, "{\"numSamples\":1000,\"metrics\":{\"huge\":1e306}}"));
    means_add(means, "other", parsed(arena, "{\"numSamples\":1,\"metrics\":{\"loss\":9}}"));
    means_show(means, "r", shown);
    ck_assert_str_eq(json_text(arena, shown, NULL), "{\"loss\":0.4,\"acc\":0.5}");
}
