#include "controller/shared/device_plane.h"

#include <assert.h>
#include <stdlib.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "controller/shared/options.h"

#define MQTT_KEEP_ALIVE_S 20
#define MQTT_MAX_QOS1_IN_MAILBOX 4096

/* Half of the bytes is for a batch of the broker, the other for results that are held. */
static_assert((64u << 20) / 2 >= MQTT_BATCH_BYTES + RESULT_MAX_SENT, "a batch fits");
/* Of one channel for one Task: twice the results of a broadcast's targets (500). */
static const struct mailbox_limits MAILBOX_LIMITS = { .key_messages = 1024,
                                                      .total_messages = MQTT_MAX_QOS1_IN_MAILBOX,
                                                      .total_bytes = 64u << 20 };

/* Of every namespace: one that may not be listed yet has Tasks that the cache lacks, and so has a list
 * in which one could not be read. */
static bool knows_all_tasks(void *ctx)
{
    return informer_complete(ctx);
}

static int make_bridge(struct module_host *host, struct device_plane *plane, struct error *err)
{
    const struct controller_settings *settings = host->settings;
    struct informer *tasks = module_host_informer(host, &KIND_TASK);
    struct informer *proplets = module_host_informer(host, &KIND_PROPLET);
    char *address;
    struct bridge_options options = {
        .client_id = settings->client_id,
        .qos = (int)settings->mqtt_qos,
        .timeout_ms = (uint32_t)settings->mqtt_timeout_ms,
        .tasks = informer_store(tasks),
        .proplets = informer_store(proplets),
        .fleet = plane->fleet,
        .attempts = plane->attempts,
        .mailbox = plane->mailbox,
        .knows_all = knows_all_tasks,
        .knows_all_ctx = tasks,
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
    plane->bridge = bridge_create(&options);
    bridge_set_queues(plane->bridge, module_host_queue(host, &KIND_TASK),
                      module_host_queue(host, &KIND_PROPLET));
    bridge_set_enrollments(plane->bridge,
                           informer_store(module_host_informer(host, &KIND_ENROLLMENT)),
                           module_host_queue(host, &KIND_ENROLLMENT));
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
    if (!module_host_is_leader(ctx))
        return 1; /* a standby holds no connection */
    return bridge_connected(device_plane_of(ctx)->bridge, why, size);
}

static void device_plane_destroy(void *self)
{
    struct device_plane *plane = self;

    bridge_destroy(plane->bridge);
    mailbox_destroy(plane->mailbox);
    attempts_destroy(plane->attempts);
    placements_destroy(plane->placements);
    refresh_budget_destroy(plane->openings);
    availabilities_destroy(plane->availabilities);
    refresh_budget_destroy(plane->budget);
    fleet_brake_destroy(plane->brake);
    fleet_destroy(plane->fleet);
}

static int device_plane_create(struct module_host *host, void **ret, struct error *err)
{
    struct device_plane *plane = arena_new(host->arena, struct device_plane);
    int r = 0;

    *plane = (struct device_plane){ .fleet = fleet_create(),
                                    .brake = fleet_brake_create(),
                                    .budget = refresh_budget_create(),
                                    .availabilities = availabilities_create(),
                                    .openings = refresh_budget_create(),
                                    .placements = placements_create(),
                                    .attempts = attempts_create(),
                                    .mailbox = mailbox_create(&MAILBOX_LIMITS) };
    if (!str_is_empty(host->settings->mqtt_address))
        r = make_bridge(host, plane, err);
    if (r < 0) {
        device_plane_destroy(plane);
        return r;
    }
    if (plane->bridge) {
        const struct runnable mqtt = { .name = "mqtt",
                                       .group = RUN_LEADER,
                                       .self = plane->bridge,
                                       .start = start_bridge,
                                       .join = join_bridge,
                                       .hurry = cancel_bridge };

        manager_add(host->manager, &mqtt);
        health_add_check(host->health, "mqtt", check_bridge, host);
    }
    *ret = plane;
    return 0;
}

const struct module DEVICE_PLANE_MODULE = { .create = device_plane_create,
                                            .destroy = device_plane_destroy };

const struct device_plane *device_plane_of(const struct module_host *host)
{
    return module_host_self(host, &DEVICE_PLANE_MODULE);
}
