#include "controller/tests/hub.h"

#include "common/tests/parsed.h"
#include "controller/cache/indexes.h"

struct hub hub;

static void on_marker(void *ctx UNUSED, const char *nonce, size_t len)
{
    hub.marker = arena_strndup(hub.arena, nonce, len);
}

static void put(struct store *store, const char *json)
{
    struct error err = { 0 };
    struct kube_object *object;
    int r = kube_object_create(parsed(hub.arena, json), &object, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

void hub_put_task(const char *name, const char *status)
{
    put(hub.sink.tasks, arena_printf(hub.arena,
                                     "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
                                     "\"uid\":\"uid-%s\",\"resourceVersion\":\"5\"},\"status\":%s}",
                                     name, name, status));
}

static void put_proplet(const char *name, const char *client, const char *spec)
{
    put(hub.sink.proplets,
        arena_printf(hub.arena,
                     "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                     "\"resourceVersion\":\"5\"},\"spec\":{%s\"connectionConfig\":{\"domainId\":"
                     "\"dom-1\",\"channelId\":\"chan-1\",\"clientId\":\"%s\"}}}",
                     name, name, spec, client));
}

void hub_put_proplet(const char *name, const char *client)
{
    put_proplet(name, client, "\"type\":\"external\",");
}

void hub_put_pool(const char *name, const char *client)
{
    put_proplet(name, client,
                "\"type\":\"k8s\",\"k8s\":{\"indexedClientIds\":true,\"replicas\":2},");
}

void hub_set_up(void)
{
    const struct mailbox_limits limits = { .key_messages = 3,
                                           .total_messages = 2,
                                           .total_bytes = 1 << 20 };

    json_init();
    hub.arena = arena_create();
    fake_clock_init(&hub.clock);
    hub.sink = (struct bridge_sink){
        .tasks = store_create(),
        .proplets = store_create(),
        .fleet = fleet_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&limits),
        .clock = &hub.clock.clock,
        .task_queue = workqueue_create("task", &hub.clock.clock),
        .proplet_queue = workqueue_create("proplet", &hub.clock.clock),
        .enrollments = store_create(),
        .enrollment_queue = workqueue_create("enrollment", &hub.clock.clock),
        .marker = on_marker,
    };
    hub.marker = NULL;
    indexes_add_task(hub.sink.tasks);
    indexes_add_proplet(hub.sink.proplets);
    indexes_add_enrollment(hub.sink.enrollments);
    hub_put_task("one", "{\"phase\":\"running\",\"assignedProplet\":\"alpha\",\"attempt\":2}");
    hub_put_proplet("alpha", "device-1");
}

void hub_tear_down(void)
{
    workqueue_destroy(hub.sink.task_queue);
    workqueue_destroy(hub.sink.proplet_queue);
    workqueue_destroy(hub.sink.enrollment_queue);
    mailbox_destroy(hub.sink.mailbox);
    attempts_destroy(hub.sink.attempts);
    fleet_destroy(hub.sink.fleet);
    store_destroy(hub.sink.tasks);
    store_destroy(hub.sink.proplets);
    store_destroy(hub.sink.enrollments);
    arena_destroy(hub.arena);
}

void hub_listen(const char *name, const char *where)
{
    put(hub.sink.enrollments,
        arena_printf(hub.arena,
                     "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                     "\"resourceVersion\":\"5\"},\"spec\":{\"domainId\":\"dom-1\",%s}}",
                     name, name, where));
}

void hub_receive(const char *topic, const char *payload)
{
    bridge_message(&hub.sink, topic, payload, strlen(payload));
}

const char *hub_woken(struct workqueue *queue)
{
    const char *names = "";
    struct kube_name name;

    while (workqueue_len(queue)) {
        ck_assert(workqueue_get(queue, &name));
        names = arena_printf(hub.arena, "%s%s%s", names, *names ? " " : "", name.name);
        workqueue_done(queue, &name);
    }
    return names;
}

void hub_expect_nothing(void)
{
    ck_assert_str_eq(hub_woken(hub.sink.task_queue), "");
    ck_assert_str_eq(hub_woken(hub.sink.proplet_queue), "");
    ck_assert_uint_eq(mailbox_len(hub.sink.mailbox), 0);
    ck_assert(bridge_sink_settled(&hub.sink));
}

struct fleet_device hub_device(const char *key)
{
    struct fleet_device ret;

    fleet_get(hub.sink.fleet, hub.arena, key, &ret);
    return ret;
}
