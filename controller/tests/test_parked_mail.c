/* A Task that alone cannot be written: whom its result holds up, and for how long. */
#include "controller/shared/parked_mail.h"

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/passed_over.h"
#include "common/tests/observe.h"
#include "controller/tests/fake_bridge.h"

#define STEP_MS 20000
/* Ten minutes. */
#define STEPS 30

/* Whose writes are answered with 500; "" for all, NULL for none. */
static const char *failing;

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    static const char BODY[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":500}";

    if (!failing || !request->body || !strstr(request->path, failing))
        return outside_roundtrip(ctx, arena, request, ret, err);
    *ret = (struct http_response){ .status = 500, .body = BODY, .body_len = strlen(BODY) };
    return 0;
}

static void set_up(void)
{
    failing = NULL;
    outside_reset();
    stage_set_up(roundtrip, outside_between);
    stage_run();
    stage_put_task("{\"name\":\"one\",\"file\":\"AGFzbQEAAAA=\"}");
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "running");
}

static void tear_down(void)
{
    stage_tear_down();
}

static bool is_acknowledged(void)
{
    return outside.acknowledged == outside.message_count;
}

/* Devices are alive, so that the Proplets have something to write. */
static void step(void)
{
    stage_wait_ms(STEP_MS);
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-1\",\"status\":\"alive\"}");
    stage_receive("proplet/alive", "{\"proplet_id\":\"device-2\",\"status\":\"alive\"}");
    stage_turns(30);
}

START_TEST(result_of_a_task_that_alone_is_not_written_holds_up_others_for_some_minutes)
{
    failing = "/tasks/one/status";
    outside_answer("\"results\":\"42\",\"error\":null");
    for (int64_t ms = 0; ms + STEP_MS < PASSED_OVER_MS; ms += STEP_MS) {
        step();
        ck_assert(!is_acknowledged());
    }
    for (int i = 0; i < STEPS && !is_acknowledged(); i++)
        step();
    ck_assert(is_acknowledged());
    ck_assert_uint_eq(mailbox_parked(stage.shared.mailbox), 1);
    ck_metric("propeller_mail_parked_total 1");
    mail_tell_oldest(&stage.shared);
    ck_assert_int_ge(clock_monotonic_ms(&stage.clock.clock) -
                         mailbox_oldest_ms(stage.shared.mailbox),
                     PASSED_OVER_MS);

    failing = NULL;
    stage_run();
    ck_assert_str_eq(stage_task_string("phase"), "completed");
    ck_assert_str_eq(stage_task_string("results"), "42");
    ck_assert_uint_eq(mailbox_len(stage.shared.mailbox), 0);
    ck_assert_uint_eq(outside.starts, 1);
    mail_tell_oldest(&stage.shared);
    ck_metric("propeller_mail_oldest_seconds 0");
}
END_TEST

START_TEST(api_server_that_writes_nothing_leaves_every_result_to_the_broker)
{
    failing = "";
    outside_answer("\"results\":\"42\",\"error\":null");
    for (int i = 0; i < STEPS; i++) {
        step();
        ck_assert(!is_acknowledged());
    }
    failing = NULL;
    stage_run();
    ck_assert_str_eq(stage_task_string("results"), "42");
    ck_assert(is_acknowledged());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parked mail");
    TCase *tcase = tcase_create("parked mail");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase,
                   result_of_a_task_that_alone_is_not_written_holds_up_others_for_some_minutes);
    tcase_add_test(tcase, api_server_that_writes_nothing_leaves_every_result_to_the_broker);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
