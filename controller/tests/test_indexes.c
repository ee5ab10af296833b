#include "controller/cache/indexes.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/task/plan/task_run_plan.h"

static struct arena *arena;
static struct store *store;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    store = store_create();
}

static void tear_down(void)
{
    store_destroy(store);
    arena_destroy(arena);
}

TEST_GROUP("indexes", set_up, tear_down);

static void put(const char *name, const char *rest)
{
    struct error err = { 0 };
    struct kube_object *object;
    const char *json = arena_printf(arena,
                                    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
                                    "\"uid\":\"uid-%s\",\"resourceVersion\":\"5\"}%s}",
                                    name, name, rest);
    int r = kube_object_create(parsed(arena, json), &object, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

enum index { ACTIVE = 1, WAITING = 2, DEPENDENT = 4 };

static const struct {
    const char *status; /* of the Task */
    int indexes;
} TASKS[] = {
    { "", WAITING },
    { ",\"status\":{}", WAITING },
    { ",\"status\":{\"phase\":\"pending\"}", WAITING },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"NoCandidates\"}", WAITING },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"InsufficientCapacity\"}", WAITING },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"WaitingForDependencies\"}", 0 },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"DependencyMissing\"}", 0 },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"DependencyCycle\"}", 0 },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"WaitingForSchedule\"}", 0 },
    { ",\"status\":{\"phase\":\"pending\",\"reason\":\"Suspended\"}", 0 },
    { ",\"spec\":{\"dependsOn\":[\"first\",\"second\"]}", WAITING | DEPENDENT },
    { ",\"spec\":{\"dependsOn\":[\"second\"]},\"status\":{\"phase\":\"pending\"}",
      WAITING | DEPENDENT },
    { ",\"spec\":{\"dependsOn\":[\"second\"]},\"status\":{\"phase\":\"scheduled\"}", WAITING },
    { ",\"spec\":{\"dependsOn\":[\"second\"]},\"status\":{\"phase\":\"skipped\"}", 0 },
    { ",\"status\":{\"phase\":\"scheduled\"}", WAITING },
    { ",\"status\":{\"phase\":\"scheduled\",\"assignedProplet\":\"\"}", WAITING },
    { ",\"status\":{\"phase\":\"scheduled\",\"reason\":\"InsufficientCapacity\"}", WAITING },
    { ",\"status\":{\"phase\":\"scheduled\",\"assignedProplet\":\"alpha\"}", ACTIVE },
    { ",\"status\":{\"phase\":\"running\",\"assignedProplet\":\"alpha\"}", ACTIVE },
    { ",\"status\":{\"phase\":\"completed\",\"assignedProplet\":\"alpha\"}", 0 },
    { ",\"status\":{\"phase\":\"failed\",\"assignedProplet\":\"alpha\","
      "\"reason\":\"InsufficientCapacity\"}",
      0 },
    { ",\"status\":{\"phase\":\"interrupted\",\"assignedProplet\":\"alpha\"}", 0 },
    { ",\"status\":{\"phase\":\"skipped\"}", 0 },
    { ",\"status\":{\"phase\":\"scheduled\",\"broadcastResults\":[{\"proplet\":\"alpha\",\"phase\":"
      "\"scheduled\"},{\"proplet\":\"beta\",\"phase\":\"scheduled\"}]}",
      ACTIVE },
    { ",\"status\":{\"phase\":\"running\",\"broadcastResults\":[{\"proplet\":\"alpha\",\"phase\":"
      "\"running\"},{\"proplet\":\"beta\",\"phase\":\"completed\"}]}",
      ACTIVE },
    { ",\"status\":{\"phase\":\"completed\",\"broadcastResults\":[{\"proplet\":\"alpha\",\"phase\":"
      "\"interrupted\"}]}",
      0 },
};

TEST(broadcast_is_found_by_those_that_it_waits_for)
{
    indexes_add_task(store);
    put("all", ",\"status\":{\"phase\":\"running\",\"broadcastResults\":["
               "{\"proplet\":\"alpha\",\"phase\":\"completed\"},"
               "{\"proplet\":\"beta\",\"phase\":\"running\"},"
               "{\"proplet\":\"delta\",\"phase\":\"failed\"},"
               "{\"proplet\":\"gamma\",\"phase\":\"scheduled\"}]}");
    ck_assert_uint_eq(store_count(store, INDEX_ACTIVE, ""), 1);
    ck_assert_uint_eq(store_count(store, INDEX_ASSIGNED, "default/alpha"), 0);
    ck_assert_uint_eq(store_count(store, INDEX_ASSIGNED, "default/beta"), 1);
    ck_assert_uint_eq(store_count(store, INDEX_ASSIGNED, "default/delta"), 0);
    ck_assert_uint_eq(store_count(store, INDEX_ASSIGNED, "default/gamma"), 1);
}

TEST_EACH(task_is_found_by_what_it_does, TASKS)
{
    int indexes = TASKS[_i].indexes;

    indexes_add_task(store);
    put("one", TASKS[_i].status);
    ck_assert_uint_eq(store_count(store, INDEX_ACTIVE, ""), !!(indexes & ACTIVE));
    ck_assert_uint_eq(store_count(store, INDEX_ASSIGNED, "default/alpha"), !!(indexes & ACTIVE));
    ck_assert_uint_eq(store_count(store, INDEX_WAITING, "default"), !!(indexes & WAITING));
    ck_assert_uint_eq(store_count(store, INDEX_DEPENDENTS, "default/second"),
                      !!(indexes & DEPENDENT));
}

static const struct {
    const char *spec; /* of the Proplet */
    const char *channel;
    const char *identity;
    bool embedded;
} PROPLETS[] = {
    { "{\"connectionConfig\":{\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"i\"}}", "d/c",
      "d/c/i", false },
    { "{\"external\":{\"dialect\":\"standard\"},\"connectionConfig\":{\"domainId\":\"d\","
      "\"channelId\":\"c\",\"clientId\":\"i\"}}",
      "d/c", "d/c/i", false },
    { "{\"external\":{\"dialect\":\"embedded\"},\"connectionConfig\":{\"domainId\":\"d\","
      "\"channelId\":\"c\",\"clientId\":\"i\"}}",
      "d/c", "d/c/i", true },
    { "{\"connectionConfig\":{\"channelId\":\"c\",\"clientId\":\"i\"}}", NULL, NULL, false },
    { "{\"connectionConfig\":{\"domainId\":\"\",\"channelId\":\"c\"}}", NULL, NULL, false },
    { "{}", NULL, NULL, false },
};

TEST_EACH(proplet_is_found_by_channel_and_identity, PROPLETS)
{
    char channel[CHANNEL_KEY_LEN];
    char identity[FLEET_KEY_LEN];
    const char *spec = PROPLETS[_i].spec;

    indexes_add_proplet(store);
    put("alpha", arena_printf(arena, ",\"spec\":%s", spec));
    ck_assert_uint_eq(store_count(store, INDEX_CHANNEL, "d/c"), PROPLETS[_i].channel != NULL);
    ck_assert_uint_eq(store_count(store, INDEX_IDENTITY, "d/c/i"), PROPLETS[_i].identity != NULL);
    ck_assert_uint_eq(store_count(store, INDEX_EMBEDDED, "d/c"), PROPLETS[_i].embedded);

    const cJSON *json = parsed(arena, arena_printf(arena, "{\"spec\":%s}", spec));
    ck_assert_int_eq(proplet_channel_of(json, channel), PROPLETS[_i].channel != NULL);
    ck_assert_int_eq(proplet_identity_of(json, NULL, identity), PROPLETS[_i].identity != NULL);
    if (PROPLETS[_i].identity) {
        ck_assert_str_eq(channel, PROPLETS[_i].channel);
        ck_assert_str_eq(identity, PROPLETS[_i].identity);
    }
}

TEST(each_pod_with_a_client_id_of_its_own_is_found_by_it)
{
    indexes_add_proplet(store);
    put("alpha", ",\"spec\":{\"type\":\"k8s\",\"k8s\":{\"indexedClientIds\":true,"
                 "\"replicas\":2},\"connectionConfig\":{\"domainId\":\"d\","
                 "\"channelId\":\"c\",\"clientId\":\"i\"}}");
    ck_assert_uint_eq(store_count(store, INDEX_IDENTITY, "d/c/i-0"), 1);
    ck_assert_uint_eq(store_count(store, INDEX_IDENTITY, "d/c/i-1"), 1);
    ck_assert_uint_eq(store_count(store, INDEX_IDENTITY, "d/c/i-2"), 0);
    ck_assert_uint_eq(store_count(store, INDEX_IDENTITY, "d/c/i"), 0);
}

/* Whether what nobody reads was left out before there was a tree, or not. */
static const char *projected(watch_project_fn *project, const char *text)
{
    const char *const *unread = project == project_task ? UNREAD_OF_TASK : UNREAD_OF_PROPLET;
    cJSON *object = arena_own(arena, json_copy(parsed(arena, text)), json_free);
    const cJSON *without;

    ck_assert_int_eq(json_parse_with(arena, text, strlen(text),
                                     &(struct json_reading){ .unread = unread }, &without, NULL),
                     0);
    project(object);
    project((cJSON *)(uintptr_t)without);
    ck_assert_str_eq(json_text(arena, without, NULL), json_text(arena, object, NULL));
    return json_text(arena, object, NULL);
}

TEST(cache_holds_no_modules_results_or_environments)
{
    ck_assert_str_eq(
        projected(
            project_task,
            "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\"},\"annotations\":{\"a\":\"b\"}},"
            "\"spec\":{\"name\":\"n\",\"file\":\"AGFzbQ\",\"env\":{\"A\":\"b\"},"
            "\"imageUrl\":\"x\",\"inputs\":[-1],\"cliArgs\":[\"a\"],\"metadata\":[0]},"
            "\"status\":{\"phase\":\"failed\",\"results\":1,\"error\":\"e\","
            "\"history\":[],\"broadcastResults\":[{\"proplet\":\"p\",\"index\":1,\"results\":1,"
            "\"error\":\"e\"}],\"latestMetrics\":{},\"attempt\":2}}"),
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"name\":\"n\",\"imageUrl\":\"x\",\"inputs\":[-1]"
        "},"
        "\"status\":{\"phase\":\"failed\",\"broadcastResults\":[{\"proplet\":\"p\",\"index\":1}],"
        "\"attempt\":2}}");
    ck_assert_str_eq(projected(project_task, "{}"), "{}");
}

TEST(cache_holds_the_annotation_that_asks_for_a_restart_and_of_a_long_one_a_digest)
{
    char value[RESTART_VALUE_MAX + 2];

    ck_assert_str_eq(
        projected(project_task, "{\"metadata\":{\"annotations\":{\"a\":\"b\",\"" ANNOTATION_RESTART
                                "\":\"2026-11-21T17:00:00Z\"}}}"),
        "{\"metadata\":{\"annotations\":{\"" ANNOTATION_RESTART "\":\"2026-11-21T17:00:00Z\"}}}");
    for (size_t len = RESTART_VALUE_MAX; len <= RESTART_VALUE_MAX + 1; len++) {
        memset(value, 'x', len);
        value[len] = '\0';
        const char *kept = projected(
            project_task, arena_printf(arena, "{\"metadata\":{\"annotations\":{\"%s\":\"%s\"}}}",
                                       ANNOTATION_RESTART, value));
        ck_assert_int_eq(strstr(kept, value) != NULL, len == RESTART_VALUE_MAX);
        ck_assert_uint_le(strlen(kept), strlen(ANNOTATION_RESTART) + RESTART_VALUE_MAX + 40);
    }
}

TEST(cache_holds_no_client_keys)
{
    ck_assert_str_eq(
        projected(
            project_proplet,
            "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\"},\"annotations\":"
            "{\"last-applied\":\"hunter2\"}},\"spec\":{\"connectionConfig\":{\"clientId\":\"i\","
            "\"clientKey\":\"hunter2\"}}}"),
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"connectionConfig\":"
        "{\"clientId\":\"i\"}}}");
    ck_assert_str_eq(projected(project_proplet, "{}"), "{}");
}

TEST(cache_holds_that_the_owner_wants_the_machine_back)
{
    const char *asked = "{\"metadata\":{\"annotations\":{\"" ANNOTATION_RECLAIM "\":\"true\"}}}";

    ck_assert_str_eq(projected(project_proplet, asked), asked);
    ck_assert_str_eq(projected(project_proplet,
                               "{\"metadata\":{\"annotations\":{\"a\":\"b\",\"" ANNOTATION_RECLAIM
                               "\":\"yes\"}}}"),
                     "{\"metadata\":{}}");
    ck_assert(!proplet_is_reclaimed(parsed(arena, "{}")));
}
