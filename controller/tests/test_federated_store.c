/* FederatedJobs whose model store does not answer well, and what is left in it. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "controller/federated/round_order.h"
#include "controller/tests/federated_stage.h"

#define SPEC(total, k, more)                                                                       \
    "{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":["                    \
    "{\"propletId\":\"a\"},{\"propletId\":\"b\"},{\"propletId\":\"c\"}],\"kOfN\":" #k              \
    ",\"rounds\":{\"total\":" #total "}" more "}"

/* The store of the test, in which some verbs fail. */
static struct {
    const struct model_store_type *inner;
    struct model_store_type type;
    enum error_code get, gc; /* ERROR_NONE: they work */
    unsigned calls;          /* of get and find, while they fail */
    unsigned heals_at;       /* with this call; 0: never */
    void (*watch)(void);     /* at the third; NULL: nobody */
} broken;

static int fail_get(struct error *err)
{
    if (++broken.calls == 3 && broken.watch)
        broken.watch();
    if (broken.calls == broken.heals_at)
        broken.get = ERROR_NONE;
    return error_set(err, broken.get ? broken.get : ERROR_TIMEOUT, "the store does not answer");
}

static int broken_get(struct model_store *self, struct arena *arena,
                      const struct model_scope *scope, const char *digest, const char **ret,
                      size_t *ret_len, struct error *err)
{
    if (broken.get)
        return fail_get(err);
    return broken.inner->get(self, arena, scope, digest, ret, ret_len, err);
}

static int broken_find(struct model_store *self, struct arena *arena, const char *ns,
                       const char *digest, const char **ret, size_t *ret_len, struct error *err)
{
    if (broken.get)
        return fail_get(err);
    return broken.inner->find(self, arena, ns, digest, ret, ret_len, err);
}

static int broken_gc(struct model_store *self, const struct model_scope *scope,
                     const char *const *keep, size_t keep_len, struct error *err)
{
    if (broken.gc)
        return error_set(err, broken.gc, "the store does not delete");
    return broken.inner->gc(self, scope, keep, keep_len, err);
}

static void set_up(void)
{
    federated_stage_set_up();

    struct model_store *store = federated.job.models;
    broken.inner = store->type;
    broken.type = *store->type;
    broken.type.get = broken_get;
    broken.type.find = broken_find;
    broken.type.gc = broken_gc;
    broken.get = broken.gc = ERROR_NONE;
    broken.calls = broken.heals_at = 0;
    broken.watch = NULL;
    store->type = &broken.type;
}

TEST_GROUP("store", set_up, federated_stage_tear_down);

static void expect(const char *told)
{
    federated_stage_run();
    ck_assert_str_eq(federated_stage_told(), told);
}

static void pass_s(int seconds)
{
    federated_stage_wait_ms((int64_t)seconds * 1000);
    federated_stage_run();
}

/* "False StoreFailed the store does not answer" */
static const char *condition_of(const struct kube_kind *kind, const char *name, const char *type)
{
    const cJSON *condition = condition_get(
        json_path(federated_stage_get(kind, name), "status", "conditions", NULL), type);

    return arena_printf(federated.arena, "%s %s %s", json_string(json_get(condition, "status"), ""),
                        json_string(json_get(condition, "reason"), ""),
                        json_string(json_get(condition, "message"), ""));
}

static const char *job_condition(const char *type)
{
    return condition_of(&KIND_FEDERATEDJOB, "job", type);
}

static struct model_scope scope_of(const char *round)
{
    const cJSON *json = federated_stage_get(&KIND_TRAININGROUND, round);
    struct model_scope scope = {
        .kind = &KIND_TRAININGROUND,
        .uid = json_string(json_path(json, "metadata", "uid", NULL), ""),
    };

    ck_assert(kube_name_set(&scope.owner, "default", round));
    return scope;
}

/* The Task of a participant ends, with an update that is in the store. */
static void end_task_stored(const char *round, const char *proplet, const char *update)
{
    const struct model_scope scope = scope_of(round);
    char reference[MODEL_REFERENCE_LEN];
    struct error err = { 0 };

    ck_assert_int_eq(
        model_store_put(federated.round.models, &scope, update, strlen(update), reference, &err),
        0);
    federated_stage_set_task(
        arena_printf(federated.arena, "%s-%s", round, proplet),
        arena_printf(federated.arena,
                     "{\"phase\":\"completed\",\"results\":{\"format\":\"json-f64\","
                     "\"numSamples\":1,\"ref\":\"%s\"}}",
                     reference));
}

static bool is_stored(const struct model_scope *scope, const char *update)
{
    char reference[MODEL_REFERENCE_LEN];
    struct error err = { 0 };
    const char *bytes;
    size_t len;

    return model_store_get(federated.round.models, federated.arena, scope,
                           model_reference(update, strlen(update), reference), &bytes, &len,
                           &err) == 0;
}

TEST(a_store_that_deletes_nothing_holds_up_no_job_and_is_told_of)
{
    federated_stage_put(SPEC(2, 1, ""));
    federated_stage_run();
    broken.gc = ERROR_INVALID;
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    expect("Running 2 1 [1]; True RoundRunning");
    ck_assert_ptr_nonnull(strstr(job_condition("ModelsRemoved"), "False StoreFailed"));
    ck_assert_ptr_nonnull(strstr(job_condition("ModelsRemoved"), "the store does not delete"));
    federated_stage_end_task("round-2-job-a", "[2]", 1);
    expect("Completed 2 2 [2]; False RoundsCompleted");
    ck_assert_ptr_nonnull(strstr(job_condition("ModelsRemoved"), "False StoreFailed"));

    broken.gc = ERROR_NONE;
    pass_s(60);
    ck_assert_str_eq(job_condition("ModelsRemoved"), "True Removed ");
}

#define FIRST "model://sha256:0000000000000000000000000000000000000000000000000000000000000000"

static int64_t now_s(void)
{
    return clock_monotonic_ms(&federated.clock.clock) / 1000;
}

static void see_job_wait(void)
{
    ck_assert_str_eq(federated_stage_told(), "Running 1 0 -; False ModelUnavailable");
    ck_assert_ptr_nonnull(strstr(job_condition("ModelAvailable"), "the store does not answer"));
}

static const enum error_code ERRORS[] = { ERROR_UNAVAILABLE, ERROR_FORBIDDEN, ERROR_INTERNAL };
/* A first model may be made after its job. */
static const enum error_code FIRST_ERRORS[] = { ERROR_UNAVAILABLE, ERROR_FORBIDDEN, ERROR_INTERNAL,
                                                ERROR_NOT_FOUND };

TEST_EACH(a_first_model_that_cannot_be_read_is_told_of_and_ends_the_job_in_time, FIRST_ERRORS)
{
    int64_t begin_s = now_s();

    broken.get = FIRST_ERRORS[_i];
    broken.watch = see_job_wait;
    federated_stage_put(SPEC(1, 1, ",\"timeoutSeconds\":100,\"modelRef\":\"" FIRST "\""));
    expect("Failed 1 0 -; False ModelUnavailable");
    ck_assert_int_ge(now_s(), begin_s + 100);
    ck_assert_uint_ge(broken.calls, 3);
    ck_assert_uint_eq(federated.errors, 0);
}

/* After the first round, so that it is the round's own model. */
static void begin_second_round(const char *more)
{
    federated_stage_put(arena_printf(federated.arena, SPEC(2, 1, "%s"), more));
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[1]", 1);
}

static void see_round_wait(void)
{
    ck_assert_ptr_nonnull(strstr(federated_stage_round("round-2-job"), "Pending"));
    ck_assert_ptr_nonnull(strstr(condition_of(&KIND_TRAININGROUND, "round-2-job", "Progressing"),
                                 "False ModelUnavailable"));
}

TEST_EACH(a_round_whose_model_cannot_be_read_says_so_and_fails_in_time, ERRORS)
{
    begin_second_round(",\"timeoutSeconds\":100");
    int64_t begin_s = now_s();
    broken.get = ERRORS[_i];
    broken.watch = see_round_wait;
    federated_stage_run();
    ck_assert_int_ge(now_s(), begin_s + 100);
    ck_assert_uint_ge(broken.calls, 3);
    ck_assert_ptr_nonnull(strstr(condition_of(&KIND_TRAININGROUND, "round-2-job", "Failed"),
                                 "True ModelUnavailable"));
    ck_assert_ptr_nonnull(strstr(job_condition("Failed"), "True RoundFailed"));
}

TEST(a_round_whose_model_can_be_read_again_goes_on)
{
    begin_second_round("");
    broken.get = ERROR_UNAVAILABLE;
    broken.watch = see_round_wait;
    broken.heals_at = 5;
    federated_stage_run();
    ck_assert_str_eq(condition_of(&KIND_TRAININGROUND, "round-2-job", "ModelAvailable"),
                     "True Read ");
    federated_stage_end_task("round-2-job-a", "[2]", 1);
    expect("Completed 2 2 [2]; False RoundsCompleted");
}

static void see_aggregation_wait(void)
{
    ck_assert_ptr_nonnull(strstr(condition_of(&KIND_TRAININGROUND, "round-1-job", "Progressing"),
                                 "False ModelStoreFailed"));
}

TEST(an_aggregation_that_waits_for_the_store_says_so)
{
    federated_stage_put(SPEC(1, 1, ""));
    federated_stage_run();
    broken.get = ERROR_UNAVAILABLE;
    broken.watch = see_aggregation_wait;
    broken.heals_at = 5;
    end_task_stored("round-1-job", "a", "[1]");
    expect("Completed 1 1 [1]; False RoundsCompleted");
}

/* As fl_update_of another content under the same name would be. */
static int changed_get(struct model_store *self, struct arena *arena,
                       const struct model_scope *scope, const char *digest, const char **ret,
                       size_t *ret_len, struct error *err)
{
    int r = broken.inner->get(self, arena, scope, digest, ret, ret_len, err);

    if (r == 0 && str_equal(*ret, "[9]"))
        *ret = "[8]";
    return r;
}

TEST(a_stored_update_that_was_changed_is_the_participants_own)
{
    federated_stage_put(SPEC(1, 2, ""));
    federated_stage_run();
    broken.type.get = changed_get;
    end_task_stored("round-1-job", "a", "[9]");
    end_task_stored("round-1-job", "b", "[1]");
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-1-job"),
                     "Running 1/2 a=Rejected b=Received c=Training");
    end_task_stored("round-1-job", "c", "[3]");
    expect("Completed 1 1 [2]; False RoundsCompleted");
}

TEST(updates_go_as_soon_as_their_round_is_counted)
{
    federated_stage_put(SPEC(3, 2, ""));
    federated_stage_run();
    const struct model_scope first = scope_of("round-1-job");
    end_task_stored("round-1-job", "a", "[1]");
    ck_assert(is_stored(&first, "[1]"));
    end_task_stored("round-1-job", "b", "[3]");
    expect("Running 2 1 [2]; True RoundRunning");
    ck_assert(!is_stored(&first, "[1]") && !is_stored(&first, "[3]"));

    const struct model_scope second = scope_of("round-2-job");
    end_task_stored("round-2-job", "a", "[5]");
    federated_stage_end_task("round-2-job-b", NULL, 1);
    federated_stage_end_task("round-2-job-c", NULL, 1);
    expect("Failed 2 1 [2]; False RoundFailed");
    ck_assert(!is_stored(&second, "[5]"));
}

TEST(late_updates_stay_until_they_are_counted)
{
    federated_stage_put(SPEC(3, 1, ",\"lateUpdates\":\"StalenessWeighted\""));
    federated_stage_run();
    const struct model_scope first = scope_of("round-1-job");
    end_task_stored("round-1-job", "a", "[1]");
    federated_stage_run();
    end_task_stored("round-1-job", "b", "[5]"); /* late, while c still trains */
    federated_stage_end_task("round-1-job-c", NULL, 1);
    end_task_stored("round-2-job", "c", "[2]");
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-2-job"),
                     "Completed 2/1 a=Stopped b=Late! c=Received!");
    ck_assert(!is_stored(&first, "[1]") && !is_stored(&first, "[5]")); /* both counted, by now */
    federated_stage_end_task("round-3-job-a", "[3]", 1);
    expect("Completed 3 3 [3]; False RoundsCompleted");
}

TEST(a_late_update_that_does_not_fit_does_not_bar_the_participants_own)
{
    federated_stage_put(SPEC(2, 2, ",\"lateUpdates\":\"StalenessWeighted\""));
    federated_stage_run();
    federated_stage_end_task("round-1-job-b", "[1]", 1);
    federated_stage_end_task("round-1-job-c", "[1]", 1);
    federated_stage_run();
    federated_stage_end_task("round-1-job-a", "[9,9,9]", 1); /* late, and unfit */
    federated_stage_end_task("round-2-job-b", "[2]", 1);
    federated_stage_end_task("round-2-job-c", "[2,2]", 1); /* unfit, too */
    federated_stage_run();
    ck_assert_str_eq(federated_stage_round("round-2-job"),
                     "Running 1/2 a=Training b=Received c=Rejected");
    federated_stage_end_task("round-2-job-a", "[4]", 1);
    expect("Completed 2 2 [3]; False RoundsCompleted");
}

TEST(what_a_deleted_job_left_holds_up_no_job_of_its_name)
{
    federated_stage_put(SPEC(1, 2, ""));
    expect("Running 1 0 -; True RoundRunning");
    broken.gc = ERROR_FORBIDDEN;
    federated_stage_delete(&KIND_FEDERATEDJOB, "job");
    federated_stage_delete(&KIND_TRAININGROUND, "round-1-job");
    federated_stage_delete(&KIND_TASK, "round-1-job-a");
    federated_stage_delete(&KIND_TASK, "round-1-job-b");
    federated_stage_delete(&KIND_TASK, "round-1-job-c");
    federated_stage_put(SPEC(1, 2, ""));
    expect("Running 1 0 -; True RoundRunning");
    federated_stage_end_task("round-1-job-a", "[1]", 1);
    federated_stage_end_task("round-1-job-b", "[3]", 1);
    expect("Completed 1 1 [2]; False RoundsCompleted");
}

TEST(a_round_of_many_waits_longer_for_more_of_them)
{
    ck_assert_uint_eq(round_settle_ms(0), ROUND_SETTLE_MS);
    ck_assert_uint_eq(round_settle_ms(8), ROUND_SETTLE_MS);
    ck_assert_uint_eq(round_settle_ms(1000), 2000);
    ck_assert_uint_eq(round_settle_ms(100000), 5000);
}
