#include "controller/tests/bridge_rig.h"

#include "common/tests/parsed.h"
#include "common/tests/process.h"
#include "controller/cache/indexes.h"

#define ENOUGH_QUESTIONS 10

const struct kube_name RIG_TASK = { .ns = "ns", .name = "one" };
const struct mailbox_limits RIG_ROOMY = { 16, 64, 1 << 20 };

struct rig rig;

static bool may_act(void *ctx)
{
    ck_assert_ptr_eq(ctx, &rig.asked);
    atomic_fetch_add(&rig.asked, 1);
    return atomic_load(&rig.holds_lease);
}

void rig_put(struct store *store, const char *text)
{
    struct kube_object *object;
    struct error err = { 0 };

    ck_assert_int_eq(kube_object_create(parsed(rig.arena, text), &object, &err), 0);
    ck_assert(store_put(store, object, NULL));
    kube_object_unref(object);
}

void rig_begin(const struct mailbox_limits *limits)
{
    struct error err = { 0 };

    rig.options.mailbox = mailbox_create(limits);
    rig.bridge = bridge_create(&rig.options);
    bridge_set_queues(rig.bridge, rig.task_queue, rig.proplet_queue);
    ck_assert_int_eq(bridge_start(rig.bridge, &err), 0);
}

void rig_end(void)
{
    bridge_stop(rig.bridge);
    bridge_destroy(rig.bridge);
    mailbox_destroy(rig.options.mailbox);
    rig.bridge = NULL;
}

void rig_set_up(void)
{
    json_init();
    rig.arena = arena_create();
    rig.broker = broker_create();
    broker_start(rig.broker);
    atomic_init(&rig.holds_lease, true);
    rig.options = (struct bridge_options){
        .connection = probe_options(rig.broker, NULL),
        .client_id = "controller",
        .qos = 1,
        .timeout_ms = 10000,
        .own_channel = "d/c",
        .tasks = store_create(),
        .proplets = store_create(),
        .fleet = fleet_create(),
        .attempts = attempts_create(),
        .clock = &CLOCK_SYSTEM,
    };
    rig.options.connection.may_act = may_act;
    rig.options.connection.may_act_ctx = &rig.asked;
    indexes_add_task(rig.options.tasks);
    indexes_add_proplet(rig.options.proplets);
    rig_put(rig.options.tasks,
            "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"one\",\"uid\":\"uid-one\","
            "\"resourceVersion\":\"5\"},\"status\":{\"phase\":\"running\","
            "\"assignedProplet\":\"p\"}}");
    rig.task_queue = workqueue_create("task", &CLOCK_SYSTEM);
    rig.proplet_queue = workqueue_create("proplet", &CLOCK_SYSTEM);

    struct mqtt_options sender = probe_options(rig.broker, "device-1");
    rig.device = probe_create(&sender, false);
    probe_start(rig.device);
}

void rig_tear_down(void)
{
    probe_destroy(rig.device);
    workqueue_destroy(rig.task_queue);
    workqueue_destroy(rig.proplet_queue);
    attempts_destroy(rig.options.attempts);
    fleet_destroy(rig.options.fleet);
    store_destroy(rig.options.tasks);
    store_destroy(rig.options.proplets);
    broker_destroy(rig.broker);
    arena_destroy(rig.arena);
}

size_t rig_logged(const char *line)
{
    char *log = temp_file_read(broker_dir(rig.broker), "log");
    size_t count = 0;

    for (const char *at = strstr(log, line); at; at = strstr(at + 1, line))
        count++;
    free(log);
    return count;
}

void rig_wait_asked(void)
{
    unsigned before = atomic_load(&rig.asked);

    poll_until(atomic_load(&rig.asked) - before >= ENOUGH_QUESTIONS);
}
