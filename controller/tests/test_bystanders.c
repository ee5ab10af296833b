/* One Task in trouble of every kind: the result of another, behind its own, is written all the same,
 * and its own is not lost. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/bridge/quarantine.h"
#include "controller/tests/fake_bridge.h"

#define SPEC "\"file\":\"AGFzbQEAAAA=\",\"propletSelector\":{\"propletId\":\"%s\"}"
#define MINUTES 10

/* How writes of Tasks whose names begin so are answered; 0: they are done. */
static int status;
static const char *whose;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (!status || !request->body || !strstr(request->path, whose))
        return outside_roundtrip(ctx, arena, request, ret, err);

    const char *body =
        arena_printf(arena, "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":%d}", status);
    *ret = (struct http_response){ .status = status, .body = body, .body_len = strlen(body) };
    return 0;
}

static void put(const char *name, const char *proplet, const char *more)
{
    stage_put(&KIND_TASK, name, arena_printf(stage.arena, "{" SPEC "%s}", proplet, more));
}

static void answer_with(int code)
{
    status = code;
}

static void make_unreadable(int unused UNUSED)
{
    put("one", "alpha", ",\"inputs\":7");
}

/* Its stop does not go out, and nothing else of it is written. */
static void delete_it(int code)
{
    stage_delete(&KIND_TASK, "one");
    status = code;
}

static const struct trouble {
    const char *name;
    void (*begin)(int argument);
    int argument;
    const char *phase; /* when it is over; "": the Task is gone */
} TROUBLES[] = {
    { "none", answer_with, 0, "completed" },
    { "not accepted", answer_with, 401, "completed" },
    { "forbidden", answer_with, 403, "completed" },
    { "not there", answer_with, 404, "completed" },
    { "in conflict", answer_with, 409, "completed" },
    { "throttled", answer_with, 429, "completed" },
    { "failing", answer_with, 500, "completed" },
    { "unavailable", answer_with, 503, "completed" },
    { "unreadable", make_unreadable, 0, "completed" },
    { "being deleted", delete_it, 0, "" },
    { "being deleted, forbidden", delete_it, 403, "" },
    { "being deleted, failing", delete_it, 500, "" },
};

static const char *phase_of(const char *name)
{
    return json_string(json_path(stage_get(&KIND_TASK, name), "status", "phase", NULL), "");
}

static void set_up(void)
{
    status = 0;
    whose = "/tasks/one";
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    put("one", "alpha", "");
    put("two", "beta", "");
    stage_run();
    ck_assert_str_eq(phase_of("one"), "running");
    ck_assert_str_eq(phase_of("two"), "running");
    outside.one_by_one = true;
}

TEST_GROUP("bystanders", set_up, stage_tear_down);

static const char *id_of(const char *name)
{
    return json_string(json_path(stage_get(&KIND_TASK, name), "metadata", "uid", NULL), "");
}

static void pass_minutes(void)
{
    for (int i = 0; i < MINUTES; i++) {
        stage_turns(30);
        stage_wait_ms(60000);
    }
}

TEST_TIMES(result_behind_that_of_a_task_in_trouble_is_written_and_neither_is_lost,
           3 * ARRAY_LEN(TROUBLES))
{
    const struct trouble *trouble = &TROUBLES[_i / 3];
    bool dies = _i % 3 > 0;      /* the process, in the middle */
    bool restarts = _i % 3 == 2; /* and its device, before there is another one */

    ck_assert(outside_answer_one(id_of("one")));
    ck_assert(outside_answer_one(id_of("two")));
    trouble->begin(trouble->argument);
    for (int i = 0; i < 3 && !str_equal(phase_of("two"), "completed"); i++) {
        stage_turns(30);
        stage_wait_ms(QUARANTINE_AFTER_MS);
    }
    ck_assert_msg(str_equal(phase_of("two"), "completed"), "%s: two is %s", trouble->name,
                  phase_of("two"));

    stage.dead = dies;
    if (restarts)
        outside_restart_one("device-1");
    pass_minutes();
    if (trouble->begin == make_unreadable)
        put("one", "alpha", "");
    status = 0;
    pass_minutes();
    stage_run();
    ck_assert_msg(str_equal(phase_of("one"), trouble->phase), "%s: one is %s", trouble->name,
                  phase_of("one"));
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert_uint_eq(outside.starts, 2);
}

/* Any device may publish this on its own channel, if the ACL of the broker allows it. */
TEST(copy_of_an_update_from_elsewhere_ends_no_task_that_does_not_train)
{
    stage_receive_bytes(arena_printf(stage.arena,
                                     "m/other/c/channel/control/" QUARANTINE_SUFFIX "/update/%s/0",
                                     id_of("one")),
                        "x", 1);
    stage_run();
    ck_assert_str_eq(phase_of("one"), "running");
    ck_assert_uint_eq(mailbox_len(stage.task.mailbox), 0);
    ck_assert(outside_answer_one(id_of("one")));
    stage_run();
    ck_assert_str_eq(phase_of("one"), "completed");
}

/* More than half of what the mailbox has room for. */
#define MANY 10

/* Their results are not here, so for the controller they are silent. */
TEST_TIMES(task_whose_result_is_in_the_broker_alone_is_neither_repeated_nor_overdue, 2)
{
    const char *names[MANY];

    outside.one_by_one = false;
    for (int i = 0; i < MANY; i++) {
        names[i] = arena_printf(stage.arena, "many-%d", i);
        put(names[i], "alpha", ",\"activeDeadlineSeconds\":30");
    }
    stage_run();
    for (int i = 0; i < MANY; i++)
        ck_assert(outside_answer_one(id_of(names[i])));
    whose = "/tasks/many";
    status = 403;
    pass_minutes();
    ck_assert_uint_eq(outside.acknowledged, MANY);
    ck_assert_uint_lt(mailbox_len(stage.task.mailbox), MANY);
    if (_i)
        outside_restart();
    pass_minutes();

    status = 0;
    pass_minutes();
    for (int i = 0; i < MANY; i++)
        ck_assert_msg(str_equal(phase_of(names[i]), "completed"), "%s is %s", names[i],
                      phase_of(names[i]));
    for (size_t i = 0; i < outside.run_count; i++)
        ck_assert_msg(outside.runs[i].executions == 1, "%s ran %d times", outside.runs[i].id,
                      outside.runs[i].executions);
}
