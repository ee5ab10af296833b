/* What the reconcilers share, as a module: made first, and the broker's connections with it. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "controller/shared/reconcilers.h"

#define MQTT_KEEP_ALIVE_S 20
#define MQTT_MAX_QOS1_IN_MAILBOX 4096

/* Half of the bytes is for a batch of the broker, the other for results that are held. */
static_assert((64u << 20) / 2 >= MQTT_BATCH_BYTES + RESULT_MAX_SENT, "a batch fits");
/* Of one channel for one Task: twice the results of a broadcast's targets (500). */
static const struct mailbox_limits MAILBOX_LIMITS = { .key_messages = 1024,
                                                      .total_messages = MQTT_MAX_QOS1_IN_MAILBOX,
                                                      .total_bytes = 64u << 20 };

struct plane {
    struct shared shared;
    struct module_host *host;
};

/* Of every namespace: one that may not be listed yet has Tasks that the cache lacks, and so has a list
 * in which one could not be read. */
static bool knows_all_tasks(void *ctx)
{
    return informer_complete(ctx);
}

static int make_bridge(struct module_host *host, struct shared *shared, struct error *err)
{
    const struct controller_settings *settings = host->settings;
    char *address;
    struct bridge_options options = {
        .client_id = settings->client_id,
        .qos = (int)settings->mqtt_qos,
        .timeout_ms = (uint32_t)settings->mqtt_timeout_ms,
        .tasks = informer_store(shared->tasks),
        .proplets = informer_store(shared->proplets),
        .fleet = shared->fleet,
        .attempts = shared->attempts,
        .mailbox = shared->mailbox,
        .knows_all = knows_all_tasks,
        .knows_all_ctx = shared->tasks,
        .clock = host->clock,
        .connection = { .user_name = settings->client_id,
                        .password = settings->client_key,
                        .password_file = settings->client_key_file,
                        .ca_file = settings->mqtt_ca_file,
                        .cert_file = settings->mqtt_cert_file,
                        .key_file = settings->mqtt_key_file,
                        .keep_alive_s = MQTT_KEEP_ALIVE_S,
                        .may_act = module_host_may_act,
                        .may_act_ctx = host },
    };
    int r = mqtt_address_parse(settings->mqtt_address, &address, &options.connection.port,
                               &options.connection.tls, err);
    if (r < 0)
        return error_wrap(err, "--mqtt-address");

    options.connection.host = arena_own(host->arena, address, free);
    if (settings->domain_id) {
        char *channel = arena_alloc(host->arena, 1, CHANNEL_KEY_LEN);
        if (!channel_key(settings->domain_id, settings->channel_id, channel))
            return error_set(err, ERROR_INVALID, "--domain-id and --channel-id: too long");
        options.own_channel = channel;
    }
    shared->bridge = bridge_create(&options);
    bridge_set_queues(shared->bridge, shared->task_queue, shared->proplet_queue);
    return 0;
}

static int start_bridge(void *bridge, struct error *err)
{
    return bridge_start(bridge, err);
}

static void join_bridge(void *bridge)
{
    bridge_stop(bridge);
}

static void cancel_bridge(void *bridge)
{
    bridge_cancel(bridge);
}

static int check_bridge(void *ctx, char *why, size_t size)
{
    const struct plane *plane = ctx;

    if (!module_host_is_leader(plane->host))
        return 1; /* a standby holds no connection */
    return bridge_connected(plane->shared.bridge, why, size);
}

static void destroy(void *self)
{
    struct plane *plane = self;
    struct shared *shared = &plane->shared;

    bridge_destroy(shared->bridge);
    mailbox_destroy(shared->mailbox);
    attempts_destroy(shared->attempts);
    wait_list_destroy(shared->waiting);
    candidates_destroy(shared->candidates);
    placements_destroy(shared->placements);
    refresh_budget_destroy(shared->budget);
    fleet_destroy(shared->fleet);
    fleet_brake_destroy(shared->brake);
    free(plane);
}

static int create(struct module_host *host, void **ret, struct error *err)
{
    struct plane *plane = xcalloc(1, sizeof(*plane));
    struct shared *shared = &plane->shared;
    int r = 0;

    plane->host = host;
    *shared = (struct shared){
        .settings = host->settings,
        .clock = host->clock,
        .timeline = host->timeline,
        .tasks = module_host_informer(host, &KIND_TASK),
        .proplets = module_host_informer(host, &KIND_PROPLET),
        .deployments = module_host_informer(host, &KIND_DEPLOYMENT),
        .pods = module_host_informer(host, &KIND_POD),
        .task_jobs = module_host_informer(host, &KIND_JOB),
        .fleet = fleet_create(),
        .brake = fleet_brake_create(),
        .budget = refresh_budget_create(),
        .placements = placements_create(),
        .waiting = wait_list_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&MAILBOX_LIMITS),
        .scheduler = scheduler_by_name(host->settings->scheduler),
        .task_queue = module_host_queue(host, &KIND_TASK),
        .proplet_queue = module_host_queue(host, &KIND_PROPLET),
    };
    shared->candidates = candidates_create(informer_store(shared->proplets));
    if (!str_is_empty(host->settings->mqtt_address))
        r = make_bridge(host, shared, err);
    if (r < 0) {
        destroy(plane);
        return r;
    }
    if (shared->bridge) {
        const struct runnable mqtt = { .name = "mqtt",
                                       .group = RUN_LEADER,
                                       .self = shared->bridge,
                                       .start = start_bridge,
                                       .join = join_bridge,
                                       .hurry = cancel_bridge };

        manager_add(host->manager, &mqtt);
        health_add_check(host->health, "mqtt", check_bridge, plane);
    }
    *ret = plane;
    return 0;
}

const struct module SHARED_MODULE = { .name = "shared", .create = create, .destroy = destroy };

struct shared *shared_of(const struct module_host *host)
{
    struct plane *plane = module_host_self(host, &SHARED_MODULE);

    return &plane->shared;
}
