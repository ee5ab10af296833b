#include "controller/federated/training_update.h"

#include "common/api/kinds.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "controller/federated/training_task.h"
#include "controller/task/task_observe.h"
#include "controller/tests/federated_stage.h"

#define TASK "round-1-job-a"

static struct observed_result results[4];
static struct task_observed observed;
static struct reconcile rc;
static struct error error;

static void put_job(const char *more)
{
    federated_stage_put(arena_printf(
        federated.arena,
        "{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":[{\"propletId\":"
        "\"a\"},{\"propletId\":\"b\"}],\"rounds\":{\"total\":2},\"hyperparams\":{\"numSamples\":"
        "{\"a\":7}}%s}",
        more));
    federated_stage_run();
}

/* The Task of "a" in its second attempt, running on device-a. */
static void set_up(void)
{
    federated_stage_set_up();
    memset(results, 0, sizeof(results));
    rc = (struct reconcile){ .arena = federated.arena,
                             .client = federated.user,
                             .clock = &federated.clock.clock };
    kube_name_set(&rc.name, "default", TASK);
}

TEST_GROUP("updates", set_up, federated_stage_tear_down);

static const cJSON *task_json(void)
{
    return federated_stage_get(&KIND_TASK, TASK);
}

static void observe(size_t count)
{
    struct error err = { 0 };

    observed = (struct task_observed){ .uid = "uid-1",
                                       .has_updates = true,
                                       .max_result_bytes = 100,
                                       .results = results,
                                       .result_count = count };
    ck_assert_int_eq(task_decode(federated.arena, task_json(), &observed.task, NULL), 0);
    if (observed.task.status.phase == TASK_PENDING)
        observed.task.status.phase = TASK_RUNNING;
    observed.task.status.attempt = 2;
    observed.proplet.client_id = "device-a";
    int r = TRAININGROUND_OWNER.read_results(&federated.round, &rc, task_json(), &observed, &err);
    ck_assert_msg(r == 0, "%s", err.message);
}

/* By HTTP or on a topic. */
static void hand_over(size_t i, const char *body)
{
    const struct mail mail = {
        .sequence = i + 1, .source = "uid-1.2#5", .body = body, .body_len = strlen(body)
    };

    task_observe_update(federated.arena, &mail, &observed.proplet, &results[i]);
}

/* Inside the results message. */
static void answer(size_t i, const char *json)
{
    results[i] = (struct observed_result){
        .sequence = i + 1,
        .message = { .task_id = "uid-1.2", .results = parsed(federated.arena, json) },
    };
}

/* "results", "error REASON" or "refused VERDICT" */
static const char *told(size_t i)
{
    const struct observed_result *result = &results[i];

    if (result->verdict != RESULT_ACCEPTED)
        return arena_printf(federated.arena, "refused %s", RESULT_VERDICT_NAMES[result->verdict]);
    if (result->message.error)
        return arena_printf(federated.arena, "error %s",
                            result->reason ? reason_text(result->reason) : "-");
    return json_text(federated.arena, result->message.results, NULL);
}

/* W.. is [1,2] in base64 */
#define ENVELOPE(more) "{\"update_b64\":\"WzEsMl0=\"" more "}"
#define STORED(samples)                                                                            \
    "{\"format\":\"json-f64\",\"numSamples\":" #samples ",\"update_b64\":\"WzEsMl0=\"}"

static const struct {
    bool http;
    const char *body;
    const char *told;
} UPDATES[] = {
    { false, ENVELOPE(""), STORED(7) },
    { false, ENVELOPE(",\"num_samples\":3"), STORED(3) },
    { false, ENVELOPE(",\"num_samples\":3,\"proplet_id\":\"device-a\",\"round_id\":\"else\""),
      STORED(3) },
    { true, "[1,2]", STORED(7) },
    { true, "{\"update\":[1,2],\"num_samples\":4}", STORED(4) },
    { false, ENVELOPE(",\"proplet_id\":\"device-b\""), "error InvalidUpdate" },
    { true, "{\"update\":[1,2],\"proplet_id\":\"device-b\"}", "refused invalid_update" },
    { false, ENVELOPE(",\"num_samples\":0"), "error InvalidUpdate" },
    { false, "{\"update_b64\":\"%%\"}", "error InvalidUpdate" },
    { false, "{\"update\":[1,\"x\"]}", "error InvalidUpdate" },
    { true, "[1,\"x\"]", "refused invalid_update" },
    { true, "NaN", "refused invalid_update" },
    { false, "{}", "error InvalidUpdate" },
};

TEST_EACH(both_ways_of_an_update_say_the_same, UPDATES)
{
    put_job("");
    if (UPDATES[_i].http)
        hand_over(0, UPDATES[_i].body);
    else
        answer(0, UPDATES[_i].body);
    observe(1);
    ck_assert_str_eq(told(0), UPDATES[_i].told);
}

TEST(a_microcontroller_fails_by_its_only_message_but_not_by_a_forged_one)
{
    put_job("");
    observed.proplet.dialect = DIALECT_EMBEDDED;
    hand_over(0, "{\"num_samples\":0,\"update\":{},\"error\":\"by HTTP\"}");
    hand_over(1, "{\"num_samples\":0,\"update\":{},\"error\":\"trap\"}");
    hand_over(2, "{\"update\":[\"x\"],\"proplet_id\":\"device-b\"}");
    hand_over(3, "{\"update\":[\"x\"],\"proplet_id\":7}");
    results[1].asker = results[2].asker = results[3].asker = NULL; /* on the topic */
    observe(0);
    observed.proplet.dialect = DIALECT_EMBEDDED;
    observed.result_count = 4;
    ck_assert_int_eq(
        TRAININGROUND_OWNER.read_results(&federated.round, &rc, task_json(), &observed, &error), 0);
    ck_assert_str_eq(told(0), "refused invalid_update");
    ck_assert_str_eq(told(1), "error InvalidUpdate");
    ck_assert_str_eq(told(2), "refused other_proplet");
    ck_assert_str_eq(told(3), "refused other_proplet");
}

TEST(what_comes_after_the_update_is_a_duplicate_and_unread)
{
    put_job("");
    federated_stage_end_task(TASK, "[1,2]", 1);
    answer(0, "{\"nonsense\":1}");
    hand_over(1, "[3]");
    observe(2);
    ck_assert_str_eq(told(0), "refused duplicate");
    ck_assert_str_eq(told(1), "refused duplicate");
}

TEST(an_update_of_another_attempt_is_not_looked_at)
{
    put_job("");
    answer(0, "{\"nonsense\":1}");
    results[0].message.task_id = "uid-1";
    observe(1);
    ck_assert_str_eq(told(0), "{\"nonsense\":1}"); /* the plan refuses it by its id */
}

/* The Task is newer than all that the watch of the rounds has told. */
static const cJSON *newer_task(void)
{
    cJSON *later = json_copy(task_json());

    json_set_string((cJSON *)(uintptr_t)json_get(later, "metadata"), "resourceVersion", "999999");
    return arena_own(federated.arena, later, json_free);
}

static int observe_running(const cJSON *task)
{
    observed = (struct task_observed){
        .uid = "uid-1", .has_updates = true, .results = results, .result_count = 1
    };
    ck_assert_int_eq(task_decode(federated.arena, task, &observed.task, NULL), 0);
    observed.task.status.phase = TASK_RUNNING;
    observed.task.status.attempt = 2;
    observed.proplet.client_id = "device-a";
    return TRAININGROUND_OWNER.read_results(&federated.round, &rc, task, &observed, &error);
}

TEST(an_update_does_not_wait_for_its_round_to_come_into_the_cache)
{
    const struct kube_name round = { .ns = "default", .name = "round-1-job" };
    struct store *rounds = informer_store(federated.round.rounds);

    put_job("");
    kube_object_unref(store_remove(rounds, &round, "999998"));
    answer(0, ENVELOPE(""));
    ck_assert_int_eq(observe_running(newer_task()), 0);
    ck_assert_str_eq(told(0), STORED(7));
}

TEST(an_update_of_a_deleted_round_does_not_wait_for_the_watch_to_say_so)
{
    const cJSON *task;

    put_job("");
    task = newer_task();
    federated_stage_delete(&KIND_TRAININGROUND, "round-1-job");
    answer(0, ENVELOPE(""));
    ck_assert_int_eq(observe_running(task), 0);
    ck_assert_str_eq(told(0), "refused not_running");
}

static const char *numbers(size_t count)
{
    char *text = arena_alloc(federated.arena, 2 * count + 2, 1);

    for (size_t i = 0; i < count; i++) {
        text[2 * i] = i ? ',' : '[';
        text[2 * i + 1] = '1';
    }
    text[2 * count] = ']';
    return text;
}

TEST(a_large_update_is_named_in_the_status_and_stored_before_it)
{
    struct task_plan plan = { 0 };
    const char *bytes;
    size_t len;

    put_job("");
    hand_over(0, numbers(50000));
    observe(1);
    const char *ref = json_string(json_get(results[0].message.results, "ref"), "");
    ck_assert_ptr_nonnull(model_reference_digest(ref));
    ck_assert_int_eq(json_int(json_get(results[0].message.results, "numSamples"), 0), 7);

    const cJSON *round = federated_stage_get(&KIND_TRAININGROUND, "round-1-job");
    const struct model_scope scope = { .uid = json_string(json_path(round, "metadata", "uid", NULL),
                                                          "") };
    struct model_store *store = federated.round.models;
    ck_assert_int_eq(model_store_get(store, federated.arena, &scope, ref, &bytes, &len, &error),
                     -ERROR_NOT_FOUND);
    plan.status.results = results[0].message.results;
    ck_assert_int_eq(TRAININGROUND_OWNER.before_write(&federated.round, &rc, task_json(), &observed,
                                                      &plan, &error),
                     0);
    ck_assert_int_eq(model_store_get(store, federated.arena, &scope, ref, &bytes, &len, &error), 0);
    ck_assert_uint_gt(len, 8 * 50000);
}

TEST(what_was_not_accepted_is_not_stored)
{
    struct task_plan plan = { 0 };
    unsigned steps;

    put_job("");
    hand_over(0, numbers(50000));
    observe(1);
    steps = federated.steps;
    ck_assert_int_eq(TRAININGROUND_OWNER.before_write(&federated.round, &rc, task_json(), &observed,
                                                      &plan, &error),
                     0);
    ck_assert_uint_eq(federated.steps, steps);
}

TEST(an_update_too_large_for_its_way_fails_the_participant)
{
    put_job("");
    const char *text = numbers(400000);
    answer(0, arena_printf(federated.arena, "{\"update_b64\":\"%s\"}",
                           base64_encode(federated.arena, text, strlen(text))));
    observe(1);
    ck_assert_str_eq(told(0), "error UpdateTooLarge");
}

TEST(an_update_of_another_shape_than_the_model_fails_the_participant)
{
    put_job("");
    federated_stage_end_task(TASK, "[1,2]", 1);
    federated_stage_end_task("round-1-job-b", "[1,2]", 1);
    federated_stage_run();
    kube_name_set(&rc.name, "default", "round-2-job-a");
    const cJSON *task = federated_stage_get(&KIND_TASK, "round-2-job-a");
    ck_assert_ptr_nonnull(task);
    answer(0, ENVELOPE(""));
    answer(1, "{\"update_b64\":\"WzFd\"}");
    observed = (struct task_observed){
        .uid = "uid-1", .has_updates = true, .results = results, .result_count = 2
    };
    ck_assert_int_eq(task_decode(federated.arena, task, &observed.task, NULL), 0);
    observed.task.status.phase = TASK_RUNNING;
    observed.task.status.attempt = 2;
    ck_assert_int_eq(
        TRAININGROUND_OWNER.read_results(&federated.round, &rc, task, &observed, &error), 0);
    ck_assert_str_eq(told(0), STORED(7));
    ck_assert_str_eq(told(1), "error InvalidUpdate");
}

TEST(training_tasks_carry_what_devices_need)
{
    put_job(",\"aggregator\":{\"algorithm\":\"fedavg\",\"config\":{\"mu\":0.01}}");
    const cJSON *env = json_path(task_json(), "spec", "env", NULL);
    const cJSON *round = federated_stage_get(&KIND_TRAININGROUND, "round-1-job");

    ck_assert_str_eq(json_string(json_get(env, "ROUND_ID"), ""),
                     json_string(json_path(round, "metadata", "uid", NULL), "-"));
    ck_assert_str_eq(json_string(json_get(env, "FL_FORMAT"), ""), "json-f64");
    ck_assert_str_eq(json_string(json_get(env, "FL_NUM_SAMPLES"), ""), "7");
    ck_assert_str_eq(json_string(json_get(env, "FL_PROXIMAL_MU"), ""), "0.01");
    ck_assert_str_eq(json_string(json_get(env, "HYPERPARAMS"), ""), "{\"numSamples\":{\"a\":7}}");
    ck_assert_ptr_null(json_get(env, "MODEL_URI")); /* without a registry it would end in silence */
    ck_assert_str_eq(json_string(json_path(task_json(), "spec", "kind", NULL), ""), "federated");
    ck_assert_str_eq(json_string(json_path(task_json(), "spec", "mode", NULL), ""), "train");
    ck_assert_str_eq(
        json_string(json_path(task_json(), "spec", "propletSelector", "propletId", NULL), ""), "a");
}
