#include "controller/bridge/update_mail.h"

#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "controller/device/messages.h"
#include "controller/tests/federated_stage.h"

static const char *round_uid;

static void put_device(const char *proplet, const char *client_id)
{
    fake_api_put(federated.api, &KIND_PROPLET,
                 parsed(federated.arena,
                        arena_printf(federated.arena,
                                     "{\"kind\":\"Proplet\",\"metadata\":{\"namespace\":"
                                     "\"default\",\"name\":\"%s\"},\"spec\":{\"type\":"
                                     "\"external\",\"connectionConfig\":{\"clientId\":\"%s\"}},"
                                     "\"status\":{\"phase\":\"Running\"}}",
                                     proplet, client_id)));
}

static void put_task(const char *proplet, const char *phase)
{
    federated_stage_set_task(arena_printf(federated.arena, "round-1-job-%s", proplet),
                             arena_printf(federated.arena,
                                          "{\"phase\":\"%s\",\"attempt\":2,\"assignedProplet\":"
                                          "\"%s\"}",
                                          phase, proplet));
}

static void set_up(void)
{
    federated_stage_set_up();
    federated_stage_put("{\"experimentId\":\"x\",\"taskWasmImage\":\"http://w\",\"participants\":[{"
                        "\"propletId\":\"a\"},{\"propletId\":\"b\"},{\"propletId\":\"c\"},{"
                        "\"propletId\":\"d\"}],\"rounds\":{\"total\":2}}");
    federated_stage_run();
    put_device("a", "device-a");
    put_device("b", "device-b");
    put_device("c", "device-c");
    put_device("d", "device-c");
    put_task("a", "running");
    put_task("b", "completed");
    put_task("c", "running");
    put_task("d", "running");
    round_uid = json_string(
        json_path(federated_stage_get(&KIND_TRAININGROUND, "round-1-job"), "metadata", "uid", NULL),
        "");
}

static const char *answer(const char *round, const char *identity)
{
    const char *uid = NULL, *id = NULL;
    const char *reason = update_find_task(informer_store(federated.shared.tasks),
                                          informer_store(federated.shared.proplets),
                                          federated.arena, round, identity, &uid, &id);

    return reason ? reason : id;
}

START_TEST(an_update_is_for_the_task_of_its_sender_in_this_round)
{
    const cJSON *task = federated_stage_get(&KIND_TASK, "round-1-job-a");

    ck_assert_str_eq(
        answer(round_uid, "device-a"),
        message_id(federated.arena, json_string(json_path(task, "metadata", "uid", NULL), ""), 2));
    ck_assert_str_eq(answer(round_uid, "device-b"), "duplicate");
    ck_assert_str_eq(answer(round_uid, "device-c"), "other_proplet"); /* on two channels */
    ck_assert_str_eq(answer(round_uid, "stranger"), "other_proplet");
    ck_assert_str_eq(answer("another", "device-a"), "unknown_task");
    put_task("a", "failed");
    ck_assert_str_eq(answer(round_uid, "device-a"), "not_running");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("update_mail");
    TCase *tcase = tcase_create("update_mail");

    tcase_add_checked_fixture(tcase, set_up, federated_stage_tear_down);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, an_update_is_for_the_task_of_its_sender_in_this_round);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
