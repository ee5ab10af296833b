#include "controller/job/propellerjob_tasks.h"

#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/tests/job_text.h"

TEST_GROUP("tasks", arena_set_up, arena_tear_down);

static struct job_tasks tasks_of(const char *mode, const char *text)
{
    struct propellerjob job = { 0 };
    const cJSON *object =
        parsed(arena, arena_printf(arena, "{\"spec\":{\"executionMode\":\"%s\",%s}}", mode,
                                   job_text_tasks(arena, text)));

    ck_assert_int_eq(propellerjob_decode(arena, object, &job, NULL), 0);
    return job_tasks_of(arena, "job", &job.spec);
}

/* "a b<a c<a,b": who waits for whom, as it was understood. */
static const char *understood(const struct job_tasks *tasks)
{
    const char *text = "";

    for (size_t i = 0; i < tasks->owned; i++) {
        const struct job_task *task = &tasks->items[i];
        text = arena_printf(arena, "%s%s%s", text, i ? " " : "", task->name);
        for (size_t j = 0; j < task->needs_len; j++)
            text = arena_printf(arena, "%s%s%s", text, j ? "," : "<",
                                tasks->items[task->needs[j]].name);
    }
    return text;
}

static const struct {
    const char *tasks; /* "b!a": b waits for a and is for failures */
    const char *configurable;
    const char *sequential;
} MODES[] = {
    { "a b c", "a b c", "a b<a c<b" },
    { "a b<a c<a", "a b<a c<a", "a b<a c<a,b" },
    { "a b!a c", "a b<a c", "a b<a c<a" },
    { "a f!a g!a b", "a f<a g<a b", "a f<a g<a,f b<a" },
    { "a b f! g! c", "a b f g c", "a b<a f<b g<b,f c<b" },
    { "f! a b", "f a b", "f a<f b<a" },
    { "", "", "" },
};

TEST_EACH(dependencies_hold_in_every_mode_and_a_sequence_adds_its_chain, MODES)
{
    const struct job_tasks configurable = tasks_of("configurable", MODES[_i].tasks);
    const struct job_tasks parallel = tasks_of("parallel", MODES[_i].tasks);
    const struct job_tasks sequential = tasks_of("sequential", MODES[_i].tasks);

    ck_assert_str_eq(understood(&configurable), MODES[_i].configurable);
    ck_assert_str_eq(understood(&parallel), MODES[_i].configurable);
    ck_assert_str_eq(understood(&sequential), MODES[_i].sequential);
    ck_assert_ptr_null(sequential.problem);
}

static const char *order_of(const struct job_tasks *tasks)
{
    const char *text = "";

    for (size_t i = 0; i < tasks->owned; i++)
        text = arena_printf(arena, "%s%s", text, tasks->items[tasks->order[i]].name);
    return text;
}

TEST(nobody_is_made_before_whom_it_waits_for)
{
    const struct job_tasks backwards = tasks_of("configurable", "a<b b<c c<d d");
    const struct job_tasks diamond = tasks_of("configurable", "d<b,c b<a c<a a");

    ck_assert_str_eq(order_of(&backwards), "dcba");
    ck_assert_str_eq(order_of(&diamond), "abcd");
}

static const struct {
    const char *mode;
    const char *tasks;
    const char *problem;
} PROBLEMS[] = {
    { "configurable", "a<b b<a", "tasks wait for each other in a circle: a -> b -> a" },
    { "parallel", "a<b b<c c<a", "tasks wait for each other in a circle: a -> b -> c -> a" },
    { "configurable", "a<a", "task 'a' depends on 'a', which is itself" },
    { "configurable", "a b<x", "task 'b' depends on 'x', which is no task of this job" },
    { "sequential", "a<b b", "task 'a' depends on 'b', which comes later in a sequential job" },
    { "configurable", "a<b b", NULL },
};

TEST_EACH(what_can_never_run_is_named, PROBLEMS)
{
    const struct job_tasks tasks = tasks_of(PROBLEMS[_i].mode, PROBLEMS[_i].tasks);

    if (PROBLEMS[_i].problem)
        ck_assert_str_eq(tasks.problem, PROBLEMS[_i].problem);
    else
        ck_assert_ptr_null(tasks.problem);
}

TEST(each_object_is_looked_at_once)
{
    struct propellerjob job = { 0 };
    const cJSON *object =
        parsed(arena, "{\"spec\":{\"tasks\":[{\"name\":\"one\"},{\"name\":\"Two_2\"}],"
                      "\"taskRefs\":[\"late\",\"job-one\",\"late\",\"other\"]}}");

    ck_assert_int_eq(propellerjob_decode(arena, object, &job, NULL), 0);
    const struct job_tasks tasks = job_tasks_of(arena, "job", &job.spec);
    ck_assert_uint_eq(tasks.owned, 2);
    ck_assert_uint_eq(tasks.len, 4);
    ck_assert_str_eq(tasks.items[0].object, "job-one");
    ck_assert_int_eq(strncmp(tasks.items[1].object, "job-two-2-", 10), 0);
    ck_assert_str_eq(tasks.items[2].object, "late");
    ck_assert_str_eq(tasks.items[3].object, "other");
    ck_assert(tasks.items[3].is_ref && !tasks.items[1].is_ref);
}

/* Two jobs may claim one name, which is why the owner is looked at. */
TEST(only_names_of_one_job_are_its_own)
{
    ck_assert_str_ne(job_child_name(arena, "job", "a_b"), job_child_name(arena, "job", "a-b"));
    ck_assert_str_eq(job_child_name(arena, "a-b", "c"), job_child_name(arena, "a", "b-c"));
}
