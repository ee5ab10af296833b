#include "common/api/proplet.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct proplet decoded(const char *text)
{
    struct proplet proplet;
    struct error err = { 0 };
    int r = proplet_decode(arena, parsed(arena, text), &proplet, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return proplet;
}

static const char FULL_SPEC[] =
    "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\",\"logLevel\":\"warn\",\"replicas\":0,"
    "\"pluginDir\":\"/p\",\"indexedClientIds\":true,\"podTemplate\":{\"spec\":{}}},"
    "\"external\":{\"deviceType\":\"t\",\"capabilities\":[\"a\",\"b\"],"
    "\"dialect\":\"embedded\",\"maxTasks\":4,\"heartbeatTimeout\":\"90s\"},\"resources\":{\"cpu\":"
    "1,\"memory\":\"1Gi\"},"
    "\"connectionConfig\":{\"mqttAddress\":\"tcp://b:1883\",\"domainId\":\"d\","
    "\"channelId\":\"c\",\"clientId\":\"id\",\"clientKey\":\"k\",\"clientKeySecretRef\":"
    "{\"name\":\"s\",\"key\":\"k\",\"optional\":true},\"mqttQos\":0,\"mqttTimeout\":\"5s\"},"
    "\"unschedulable\":true,\"killSwitch\":true,\"availability\":{\"schedule\":{\"timezone\":\"z\","
    "\"enabled\":false,\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"9\"],\"windows\":[{\"days\":["
    "\"sun\"],"
    "\"from\":\"01:00\",\"until\":\"02:00\"}]},\"override\":{\"state\":\"Open\","
    "\"until\":\"2026-11-21T10:00:00Z\"},\"gracefulShutdownTimeout\":\"1m\"}}";

static const char FULL_STATUS[] =
    "{\"phase\":\"Offline\",\"alive\":true,\"lastSeen\":\"2026-11-21T10:00:00Z\","
    "\"offlineSince\":\"2026-11-21T10:00:30Z\","
    "\"aliveHistory\":[\"2026-11-21T09:59:50Z\",\"2026-11-21T10:00:00Z\"],\"taskCount\":3,"
    "\"activeTaskCount\":1,\"availableResources\":{\"cpu\":\"2\",\"memory\":\"4Gi\","
    "\"custom\":{\"gpu\":1}},\"k8sStatus\":{\"readyReplicas\":1,\"availableReplicas\":0},"
    "\"metadata\":{\"os\":\"linux\"},\"latestMetrics\":{\"memoryBytes\":1},"
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"availability\":{"
    "\"state\":\"Draining\",\"reason\":\"OutsideWindow\",\"inWindow\":false,"
    "\"since\":\"2026-11-21T10:00:00Z\",\"stopAt\":\"2026-11-21T10:05:00Z\","
    "\"nextTransition\":\"2026-11-22T10:00:00Z\"},\"observedGeneration\":2}";

TEST_GROUP("proplet_api", arena_set_up, arena_tear_down);

TEST(a_spec_with_every_field_comes_back_as_it_was)
{
    struct proplet proplet = decoded(arena_printf(arena, "{\"spec\":%s}", FULL_SPEC));

    ck_assert_str_eq(json_text(arena, json_encode(arena, &PROPLET_SPEC, &proplet.spec), NULL),
                     FULL_SPEC);
    ck_assert_uint_eq(json_len(parsed(arena, FULL_SPEC)), PROPLET_SPEC.len);
}

TEST(a_status_with_every_field_comes_back_as_it_was)
{
    struct proplet proplet = decoded(arena_printf(arena, "{\"status\":%s}", FULL_STATUS));

    ck_assert_str_eq(json_text(arena, proplet_status_encode(arena, &proplet.status), NULL),
                     FULL_STATUS);
    ck_assert_uint_eq(json_len(parsed(arena, FULL_STATUS)), PROPLET_STATUS.len);
}

TEST(not_being_alive_is_written_too)
{
    struct proplet proplet = decoded("{}");
    const cJSON *status = proplet_status_encode(arena, &proplet.status);

    ck_assert_ptr_nonnull(json_get(status, "alive"));
    ck_assert(!json_bool(json_get(status, "alive"), true));
    ck_assert_str_eq(json_string(json_get(status, "phase"), ""), "Initializing");
}

TEST(absent_fields_mean_their_defaults)
{
    struct proplet_spec spec = decoded("{\"spec\":{\"type\":\"k8s\",\"k8s\":{}}}").spec;

    ck_assert_int_eq(proplet_replicas(&spec), 1);
    ck_assert_int_eq(proplet_mqtt_qos(&spec), 1);
    ck_assert_int_eq(proplet_mqtt_timeout_ms(&spec), 30000);
    ck_assert_int_eq(proplet_dialect(&spec), DIALECT_STANDARD);
    ck_assert_int_eq(spec.k8s->log_level, PROPLET_LOG_INFO);
    ck_assert_ptr_null(spec.connection_config->client_id);
}

TEST(what_is_written_wins_over_the_defaults_also_zero)
{
    struct proplet_spec spec = decoded(arena_printf(arena, "{\"spec\":%s}", FULL_SPEC)).spec;

    ck_assert_int_eq(proplet_heartbeat_timeout_ms(&spec, 30000), 30000); /* of type k8s */
    ck_assert_int_eq(proplet_replicas(&spec), 0);
    ck_assert_int_eq(proplet_mqtt_qos(&spec), 0);
    ck_assert_int_eq(proplet_mqtt_timeout_ms(&spec), 5000);
    ck_assert_int_eq(proplet_dialect(&spec), DIALECT_EMBEDDED);
    ck_assert_int_eq(spec.type, PROPLET_K8S);
    ck_assert_int_eq(spec.k8s->log_level, PROPLET_LOG_WARN);
}

static const char *const UNUSABLE_TIMEOUTS[] = { "0s", "-5s", "soon", "" };

TEST_EACH(an_unusable_timeout_counts_as_absent, UNUSABLE_TIMEOUTS)
{
    struct connection_config config = { .mqtt_timeout = UNUSABLE_TIMEOUTS[_i] };
    struct proplet_spec spec = { .connection_config = &config };

    ck_assert_int_eq(proplet_mqtt_timeout_ms(&spec), 30000);
}

TEST(an_error_does_not_repeat_the_key)
{
    struct proplet proplet;
    struct error err = { 0 };
    const char *text = "{\"spec\":{\"connectionConfig\":{\"clientKey\":[\"planted\"]}}}";

    ck_assert_int_eq(proplet_decode(arena, parsed(arena, text), &proplet, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "spec.connectionConfig.clientKey: must be a string");
}

static const struct {
    const char *text; /* as in a Proplet that no webhook has seen */
    int64_t ms;
} HEARTBEATS[] = { { "\"90s\"", 90000 },    { "\"2m\"", 120000 }, { "\"5s\"", 5000 },
                   { "\"24h\"", 86400000 }, { "\"4s\"", 30000 },  { "\"25h\"", 30000 },
                   { "\"soon\"", 30000 },   { "null", 30000 } };

TEST_EACH(a_heartbeat_timeout_outside_of_its_limits_does_not_count, HEARTBEATS)
{
    struct proplet_spec spec =
        decoded(arena_printf(
                    arena,
                    "{\"spec\":{\"type\":\"external\",\"external\":{\"heartbeatTimeout\":%s}}}",
                    HEARTBEATS[_i].text))
            .spec;

    ck_assert_int_eq(proplet_heartbeat_timeout_ms(&spec, 30000), HEARTBEATS[_i].ms);
}
