#include "controller/bridge/update_mail.h"

#include "common/api/kinds.h"
#include "common/base/str.h"
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

TEST_GROUP("update_mail", set_up, federated_stage_tear_down);

static const char *answer(const char *round, const char *identity)
{
    const char *uid = NULL, *id = NULL;
    const char *reason = update_find_task(informer_store(federated.round.tasks),
                                          informer_store(federated.round.proplets), federated.arena,
                                          round, identity, &uid, &id);

    return reason ? reason : id;
}

TEST(an_update_is_for_the_task_of_its_sender_in_this_round)
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

static void put(struct store *store, const char *ns, const char *text)
{
    struct error err = { 0 };
    struct kube_object *object;
    cJSON *json = json_copy(parsed(federated.arena, text));
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(json, "metadata");

    json_set_string(metadata, "namespace", ns);
    json_set_string(metadata, "resourceVersion", "999999");
    ck_assert_int_eq(kube_object_create(json, &object, &err), 0);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
    json_free(json);
}

/* In namespaces before and behind that of the round, by name. */
static const char *const FOREIGN[] = { "aaa", "zzz" };

TEST_EACH(a_task_of_another_namespace_takes_no_part_in_a_round, FOREIGN)
{
    const char *before = answer(round_uid, "device-a");

    put(informer_store(federated.round.proplets), FOREIGN[_i],
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"p\"},\"spec\":{\"connectionConfig\":"
        "{\"clientId\":\"device-a\"}}}");
    put(informer_store(federated.round.tasks), FOREIGN[_i],
        arena_printf(federated.arena,
                     "{\"metadata\":{\"name\":\"forged\",\"uid\":\"t\","
                     "\"creationTimestamp\":\"2030-01-01T00:00:00Z\",\"ownerReferences\":["
                     "{\"controller\":true,\"uid\":\"%s\"}]},\"status\":{\"phase\":\"running\","
                     "\"assignedProplet\":\"a\"}}",
                     round_uid));
    ck_assert_str_eq(answer(round_uid, "device-a"), before);
    ck_assert_str_eq(answer(round_uid, "device-c"), "other_proplet");
}
