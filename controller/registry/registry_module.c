/* Modules from registries as a module of the process, which --module-registries turns on. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/client.h"
#include "common/kube/kinds.h"
#include "controller/module/module.h"
#include "controller/registry/gate.h"
#include "controller/shared/device_plane.h"

#define MAX_DELIVERY_S 120
#define MIN_MODULE (INT64_C(1) << 10)
#define MAX_MODULE (INT64_C(100) << 20)
#define MAX_CACHE (INT64_C(1) << 40)
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)

extern const struct module REGISTRY_MODULE;

struct registry_flags {
    struct wasm_modules_settings modules;
    int64_t pull_timeout_ms;
    int64_t rate;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct registry_flags, member)
static const struct option FLAG_TABLE[] = {
    { OPTION("module-registries", OPTION_STRINGS, modules.registries), .value_name = "LIST",
      .help = "registries from which modules of Tasks are pulled for devices, each HOST[/PREFIX], "
              "NAME=URL or http://HOST" },
    { OPTION("module-cache-dir", OPTION_STRING, modules.cache_dir),
      .fallback = "/var/cache/propeller", .value_name = "DIR",
      .help = "directory of pulled modules, which no other process uses" },
    { OPTION("module-cache-bytes", OPTION_INT, modules.cache_bytes), .fallback = "1073741824",
      .min = 2 * MIN_MODULE, .max = MAX_CACHE,
      .help = "size of that directory in bytes; at least twice --module-max-bytes" },
    { OPTION("module-max-bytes", OPTION_INT, modules.max_bytes), .fallback = "33554432",
      .min = MIN_MODULE, .max = MAX_MODULE, .help = "size of a module in bytes" },
    { OPTION("module-pull-timeout", OPTION_DURATION, pull_timeout_ms), .fallback = "5m",
      .min = 1000, .max = DAY_MS,
      .help = "time after the choice of a Proplet within which the module must be there" },
    { OPTION("module-rate", OPTION_INT, rate), .fallback = "16777216", .min = MIN_MODULE,
      .max = INT64_C(1) << 32, .help = "bytes of modules that are sent per second on a channel" },
    { OPTION("module-docker-config", OPTION_STRING, modules.docker_config), .value_name = "FILE",
      .help = "file with credentials for registries in the format of docker, for all namespaces" },
    { OPTION("module-public-keys", OPTION_STRING, modules.public_keys), .value_name = "FILE",
      .help = "PEM file of 1 to 16 ECDSA P-256 keys; only modules with a signature by one of them "
              "are sent" },
    { OPTION("module-ca-file", OPTION_STRING, modules.ca_file), .value_name = "FILE",
      .help = "PEM file of the authorities that are trusted for registries" },
};

static bool is_on(const void *own)
{
    return ((const struct registry_flags *)own)->modules.registries.len;
}

static int check(const struct controller_settings *settings UNUSED, const void *own,
                 struct error *err)
{
    const struct registry_flags *flags = own;

    if (!is_on(own))
        return 0;
    if (flags->modules.cache_bytes < 2 * flags->modules.max_bytes)
        return error_set(err, ERROR_INVALID,
                         "--module-cache-bytes: must be at least twice --module-max-bytes");
    if (flags->modules.max_bytes > MAX_DELIVERY_S * flags->rate)
        return error_set(err, ERROR_INVALID,
                         "--module-rate: --module-max-bytes must not need more than %d s",
                         MAX_DELIVERY_S);
    return wasm_modules_check(&flags->modules, err);
}

static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct registry_flags), check };

struct registry {
    struct wasm_modules *modules;
    struct deliveries *deliveries;
    struct gate *gate;
    struct bridge *bridge;
    struct attempts *attempts;
    struct kube_client *client;
    struct workqueue *task_queue;
};

static int read_secret(void *ctx, struct arena *arena, const struct kube_name *name,
                       const struct cJSON **ret, struct error *err)
{
    const struct registry *registry = ctx;
    cJSON *secret = NULL;
    int r = kube_get(registry->client, arena, &KIND_SECRET, name, &secret, err);

    *ret = secret;
    return r;
}

static void wake(void *ctx, const struct kube_name *task)
{
    workqueue_add(((const struct registry *)ctx)->task_queue, task);
}

static void wake_after(void *ctx, const struct kube_name *task, uint32_t delay_ms)
{
    workqueue_add_after(((const struct registry *)ctx)->task_queue, task, delay_ms);
}

static int read_module(void *ctx, const char *digest, int64_t offset, void *ret, size_t len,
                       struct error *err)
{
    return wasm_modules_read(((const struct registry *)ctx)->modules, digest, offset, ret, len,
                             err);
}

static int publish(void *ctx, const char *channel, const void *payload, size_t len,
                   struct error *err)
{
    return bridge_publish_module(((const struct registry *)ctx)->bridge, channel, payload, len,
                                 err);
}

static bool is_unconfirmed(void *ctx, const char *key, int64_t attempt)
{
    return attempts_is_unconfirmed(((const struct registry *)ctx)->attempts, key, attempt);
}

static void on_request(void *ctx, const char *channel, const char *payload, size_t len)
{
    deliveries_request(((const struct registry *)ctx)->deliveries, channel, payload, len);
}

static int start(void *self, struct error *err)
{
    const struct registry *registry = self;
    int r = wasm_modules_start(registry->modules, err);

    return r < 0 ? r : deliveries_start(registry->deliveries, err);
}

static void join(void *self)
{
    const struct registry *registry = self;

    deliveries_stop(registry->deliveries);
    wasm_modules_stop(registry->modules);
}

static void destroy(void *self)
{
    struct registry *registry = self;

    gate_destroy(registry->gate);
    deliveries_destroy(registry->deliveries);
    wasm_modules_stop(registry->modules);
    wasm_modules_destroy(registry->modules);
}

static void make_parts(struct module_host *host, const struct registry_flags *flags,
                       struct registry *registry)
{
    const struct deliveries_host of_deliveries = {
        .ctx = registry,
        .clock = host->clock,
        .bytes_per_s = flags->rate,
        .read = read_module,
        .publish = publish,
        .is_unconfirmed = is_unconfirmed,
        .wake = wake_after,
    };
    registry->deliveries = deliveries_create(&of_deliveries);

    const struct gate_options of_gate = {
        .modules = registry->modules,
        .deliveries = registry->deliveries,
        .proplets = informer_store(module_host_informer(host, &KIND_PROPLET)),
        .pull_timeout_ms = flags->pull_timeout_ms,
        .needs_signatures = !str_is_empty(flags->modules.public_keys),
    };
    registry->gate = gate_create(&of_gate);
}

static int create(struct module_host *host, void **ret, struct error *err)
{
    const struct registry_flags *flags = module_host_flags(host, &REGISTRY_MODULE);
    const struct device_plane *plane = device_plane_of(host);
    struct registry *registry = arena_new(host->arena, struct registry);
    const struct wasm_modules_host of_modules = {
        .ctx = registry, .clock = host->clock, .read_secret = read_secret, .wake = wake
    };
    const struct runnable runnable = {
        .name = "modules", .group = RUN_LEADER, .self = registry, .start = start, .join = join
    };

    *registry = (struct registry){ .bridge = plane->bridge,
                                   .attempts = plane->attempts,
                                   .client = module_host_client(host, &REGISTRY_MODULE),
                                   .task_queue = module_host_queue(host, &KIND_TASK) };
    int r = wasm_modules_create(&flags->modules, &of_modules, &registry->modules, err);
    if (r < 0)
        return r;
    make_parts(host, flags, registry);
    task_owner_register(host, &GATE_OWNER, registry->gate);
    if (registry->bridge)
        bridge_set_module_requests(registry->bridge, on_request, registry);
    manager_add(host->manager, &runnable);
    health_add_check(host->health, "modules", wasm_modules_ready, registry->modules);
    *ret = registry;
    return 0;
}

const struct module REGISTRY_MODULE = {
    .name = "module",
    .flags = &FLAGS,
    .is_on = is_on,
    .create = create,
    .destroy = destroy,
};
