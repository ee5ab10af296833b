#include "controller/workload/task_workload_result.h"

#include <string.h>

#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define RESULT "propeller.propeller.abstractmachines.fr/result"

static struct arena *arena;

/* What each channel holds; NULL: nothing. */
struct channels {
    const char *job, *message, *config_map, *secret, *pod;
};

/* What the API server has under `<job>-result`, and how often it was asked. */
static struct {
    const char *config_map, *secret;
    const char *made; /* of both */
    const char *written;
    unsigned asked;
    bool fails;
} outside;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    outside.config_map = outside.secret = outside.written = NULL;
    outside.made = "2026-01-01T00:00:10Z";
    outside.asked = 0;
    outside.fails = false;
}

static void tear_down(void)
{
    arena_destroy(arena);
}

TEST_GROUP("task_workload_result", set_up, tear_down);

static int fetch(void *ctx UNUSED, enum result_source source, const cJSON **ret, struct error *err)
{
    const char *value = source == RESULT_SECRET ? outside.secret : outside.config_map;

    outside.asked++;
    if (outside.fails)
        return error_set(err, ERROR_UNAVAILABLE, "away");
    *ret = NULL;
    if (!value)
        return 0;

    cJSON *object = json_object(arena);
    cJSON *metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "creationTimestamp", outside.made);
    if (outside.written)
        json_set_string(json_add_object(json_set_array(metadata, "managedFields")), "time",
                        outside.written);
    json_set_string(json_set_object(object, "data"), "result", value);
    *ret = object;
    return 0;
}

static cJSON *annotated(const char *value)
{
    cJSON *object = json_object(arena);
    cJSON *metadata = json_set_object(object, "metadata");

    json_set_string(metadata, "creationTimestamp", "2026-01-01T00:00:10Z");
    json_set_string(json_set_object(metadata, "annotations"), RESULT, value);
    return object;
}

static cJSON *pod_of(const struct channels *channels)
{
    cJSON *pod = annotated(channels->pod);
    cJSON *list = json_set_array(json_set_object(pod, "status"), "containerStatuses");
    cJSON *sidecar = json_add_object(list);
    cJSON *status = json_add_object(list);

    json_set_string(sidecar, "name", "sidecar");
    json_set_string(json_set_object(json_set_object(sidecar, "state"), "terminated"), "message",
                    "noise");
    json_set_string(status, "name", "task");
    json_set_string(json_set_object(json_set_object(status, "state"), "terminated"), "message",
                    channels->message);
    return pod;
}

static const char *result_of(const struct channels *channels, const cJSON *pod)
{
    struct task_workload_result value;
    struct error err = { 0 };

    outside.config_map = channels->config_map;
    outside.secret = channels->secret;
    int r =
        task_workload_result(arena, annotated(channels->job), &pod, 1, fetch, NULL, &value, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert(!value.value || !value.cut);
    return value.value ? json_text(arena, value.value, NULL) : value.cut ? "cut" : "none";
}

static const char *result(const struct channels *channels)
{
    return result_of(channels, pod_of(channels));
}

static const struct {
    struct channels channels;
    const char *result;
    unsigned asked;
} ORDER[] = {
    { { "\"job\"", "\"message\"", "\"map\"", "InNlY3JldCI=", "\"pod\"" }, "\"job\"", 0 },
    { { NULL, "\"message\"", "\"map\"", "InNlY3JldCI=", "\"pod\"" }, "\"message\"", 0 },
    { { NULL, NULL, "\"map\"", "InNlY3JldCI=", "\"pod\"" }, "\"map\"", 1 },
    { { NULL, NULL, NULL, "InNlY3JldCI=", "\"pod\"" }, "\"secret\"", 2 },
    { { NULL, NULL, NULL, NULL, "\"pod\"" }, "\"pod\"", 2 },
    { { NULL, NULL, NULL, NULL, NULL }, "none", 2 },
    { { "", " \n", "", "", "\"pod\"" }, "\"pod\"", 2 },
    { { NULL, NULL, NULL, "!", "\"pod\"" }, "\"pod\"", 2 },
};

TEST_EACH(the_first_channel_that_holds_something_counts, ORDER)
{
    ck_assert_str_eq(result(&ORDER[_i].channels), ORDER[_i].result);
    ck_assert_uint_eq(outside.asked, ORDER[_i].asked);
}

static const struct {
    const char *text;
    const char *stored;
} VALUES[] = {
    { "42", "42" },
    { "42\n", "42" },
    { "{\"a\":9007199254740993}", "{\"a\":9007199254740993}" },
    { "null", "null" },
    { "ready when you are", "\"ready when you are\"" },
    { "{\"a\":", "\"{\\\"a\\\":\"" },
    { "1 2", "\"1 2\"" },
};

TEST_EACH(json_is_stored_as_such_and_anything_else_as_a_string, VALUES)
{
    const struct channels channels = { .message = VALUES[_i].text };

    ck_assert_str_eq(result(&channels), VALUES[_i].stored);
}

TEST(what_an_earlier_task_of_the_name_left_is_no_result)
{
    const struct channels channels = { .config_map = "1", .secret = "Mg==" };

    outside.made = "2026-01-01T00:00:09Z";
    ck_assert_str_eq(result(&channels), "none");
    outside.written = "2026-01-01T00:00:09Z";
    ck_assert_str_eq(result(&channels), "none");
    outside.written = "2026-01-01T00:00:11Z"; /* by this one, over the other's */
    ck_assert_str_eq(result(&channels), "1");
    outside.written = NULL;
    outside.made = "2026-01-01T00:00:10Z";
    ck_assert_str_eq(result(&channels), "1");
}

TEST(what_cannot_be_asked_for_is_no_answer)
{
    const cJSON *job = annotated(NULL);
    struct task_workload_result value = { 0 };

    outside.fails = true;
    ck_assert_int_eq(task_workload_result(arena, job, NULL, 0, fetch, NULL, &value, NULL),
                     -ERROR_UNAVAILABLE);
    ck_assert_ptr_null(value.value);
}

/* As the kubelet leaves a longer one: its last bytes. */
static const char *message_of(size_t len)
{
    char *text = arena_alloc(arena, len + 1, 1);

    memset(text, '7', len);
    text[len] = '\0';
    return text;
}

TEST(a_message_that_may_have_lost_its_beginning_is_no_result)
{
    struct channels channels = { .message = message_of(4095) };

    ck_assert_str_ne(result(&channels), "cut");
    channels.message = message_of(4096);
    ck_assert_str_eq(result(&channels), "cut");
    channels.pod = "\"pod\"";
    ck_assert_str_eq(result(&channels), "\"pod\"");
    channels.config_map = "\"map\"";
    ck_assert_str_eq(result(&channels), "\"map\"");
    channels.job = "\"job\"";
    ck_assert_str_eq(result(&channels), "\"job\"");
}

TEST(containers_of_a_pod_share_the_room_for_messages)
{
    const struct channels channels = { .message = message_of(3072) };
    cJSON *pod = pod_of(&channels);

    ck_assert_str_ne(result_of(&channels, pod), "cut");
    cJSON *status = (cJSON *)json_get(pod, "status");
    cJSON *others = json_set_array(status, "initContainerStatuses");
    json_add_object(others);
    ck_assert_str_ne(result_of(&channels, pod), "cut");
    json_add_object(others); /* four: 12 KiB / 4 */
    ck_assert_str_eq(result_of(&channels, pod), "cut");
}
