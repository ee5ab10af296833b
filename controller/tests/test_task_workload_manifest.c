#include "controller/workload/task_workload_manifest.h"

#include <string.h>

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/tests/fixture.h"

TEST_GROUP("task_workload_manifest", arena_set_up, arena_tear_down);

static int make(const cJSON *task, int64_t attempt, const cJSON *pod_template,
                struct task_workload_manifest *ret, struct error *err)
{
    struct task decoded = { 0 };
    const struct task_workload_request request = {
        .task = task,
        .spec = &decoded.spec,
        .attempt = attempt,
        .proplet = "alpha",
        .pod_template = pod_template,
    };

    ck_assert_int_eq(task_decode(arena, task, &decoded, NULL), 0);
    return task_workload_manifest(arena, &request, ret, err);
}

static const cJSON *task_of(const char *name, const char *spec)
{
    return parsed(arena, arena_printf(arena,
                                      "{\"metadata\":{\"namespace\":\"lab\",\"name\":\"%s\","
                                      "\"uid\":\"u-1\"},\"spec\":%s}",
                                      name, spec));
}

/* A file has the Task, its attempt, the Proplet's podTemplate, and what they become. */
static void compare(void *ctx UNUSED, const char *name)
{
    size_t len;
    const cJSON *file = parsed(arena, fixture_read(arena, name, &len));
    const cJSON *wanted = json_get(file, "becomes");
    struct task_workload_manifest manifest;
    struct error err = { 0 };
    int r = make(json_get(file, "task"), json_int(json_get(file, "attempt"), 1),
                 json_get(file, "podTemplate"), &manifest, &err);

    ck_assert_msg(r == 0, "%s: %s", name, err.message);
    ck_assert_msg(json_equal(manifest.config_map, json_get(wanted, "configMap")), "%s: %s", name,
                  json_text(arena, manifest.config_map, NULL));
    ck_assert_msg(json_equal(manifest.workload, json_get(wanted, "workload")), "%s: %s", name,
                  json_text(arena, manifest.workload, NULL));
}

TEST(a_task_becomes_what_its_file_says)
{
    ck_assert_uint_ge(fixture_for_each("workloads", compare, NULL), 4);
}

TEST(each_attempt_has_a_job_of_its_own_and_a_daemon_one_deployment)
{
    const struct task_spec job = { 0 };
    const struct task_spec daemon = { .daemon = true };
    const char *name = "a-task-of-a-name-that-is-as-long-as-a-name-of-a-job-can-be-at-most";

    ck_assert_str_eq(task_workload_name(arena, "add", &job, 1), "add-job");
    ck_assert_str_eq(task_workload_name(arena, "add", &job, 12), "add-job-12");
    ck_assert_str_eq(task_workload_name(arena, "add", &daemon, 12), "add-daemon");
    ck_assert_str_eq(task_workload_config_name(arena, "add"), "add-config");
    ck_assert_str_eq(task_workload_result_name(arena, "add-job-12"), "add-job-12-result");
    ck_assert_uint_le(strlen(task_workload_name(arena, name, &job, 1)), 63);
    ck_assert_str_ne(task_workload_name(arena, name, &job, 1),
                     task_workload_name(arena, name, &job, 2));
    ck_assert_ptr_eq(task_workload_kind(&job), &KIND_JOB);
    ck_assert_ptr_eq(task_workload_kind(&daemon), &KIND_DEPLOYMENT);
}

TEST(only_an_image_that_a_node_can_pull_makes_a_pod)
{
    static const struct {
        const char *image;
        bool is;
    } IMAGES[] = { { NULL, false },
                   { "", false },
                   { "http://files/a.wasm", false },
                   { "https://files/a.wasm", false },
                   { "registry/a:1", true },
                   { "https.example/a:1", true } };

    for (size_t i = 0; i < ARRAY_LEN(IMAGES); i++) {
        const struct task_spec spec = { .image_url = IMAGES[i].image };
        ck_assert_int_eq(task_workload_is_for(&spec), IMAGES[i].is);
    }
}

static int with_value(size_t len, struct error *err)
{
    struct task_workload_manifest manifest;
    char *value = arena_alloc(arena, len + 1, 1);

    memset(value, 'v', len);
    return make(
        task_of("t", arena_printf(arena, "{\"imageUrl\":\"i\",\"env\":{\"A\":\"%s\"}}", value)), 1,
        NULL, &manifest, err);
}

TEST(more_than_a_config_map_holds_is_refused_with_both_numbers)
{
    const size_t function_name = strlen("t");
    struct error err = { 0 };

    ck_assert_int_eq(with_value(WORKLOAD_CONFIG_MAX - function_name, &err), 0);
    ck_assert_int_eq(with_value(WORKLOAD_CONFIG_MAX, &err), -ERROR_TOO_LARGE);
    ck_assert_str_eq(err.message, "ConfigMap 't-config' would hold 1048577 bytes of file, env and "
                                  "inputs; 1048576 are allowed");
}
