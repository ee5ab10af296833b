#include "standalone/process/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/runtime/manager.h"
#include "common/runtime/program.h"
#include "controller/process/process.h"
#include "standalone/api/api.h"
#include "standalone/process/data_dir.h"
#include "standalone/process/init.h"
#include "standalone/process/store_metrics.h"
#include "standalone/schema/resource.h"
#include "standalone/server/in_process.h"
#include "standalone/server/server.h"
#include "standalone/server/users.h"
#include "standalone/store/kv.h"

/* The user that the controller of this process is. */
#define CONTROLLER "propeller-controller"
#define LOSS_TEXT 128

/* Other threads hold pointers to it until the very end. */
static struct process process;

/* The parts below the controller, in the order of their creation. */
struct world {
    struct kv *kv;
    struct resources *resources;
    struct users_file *users;
    struct api *api;
    struct server *server;
};

static void world_release(struct world *world)
{
    server_stop(world->server);
    api_destroy(world->api);
    users_file_close(world->users);
    resources_destroy(world->resources);
    kv_close(world->kv);
}
DEFINE_CLEANUP_OF(struct world, world_release)

/* An object that may be there already. */
static int make(struct api *api, const char *path, const char *body, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct in_process self = { .api = api,
                               .user = { .name = "propeller-standalone", .role = ROLE_ADMIN },
                               .user_agent = "propeller-standalone" };
    const struct http_request request = { .method = "POST",
                                          .path = path,
                                          .content_type = "application/json",
                                          .body = body,
                                          .body_len = strlen(body) };
    struct http_response response;

    int r = in_process_roundtrip(&self, arena, &request, &response, err);
    if (r < 0 || response.status == 201 || response.status == 409)
        return r;
    return error_set(err, ERROR_INTERNAL, "POST %s: %.160s", path, response.body);
}

/* Every server has it. */
static int make_default_namespace(struct api *api, struct error *err)
{
    return make(
        api, "/api/v1/namespaces",
        "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}}", err);
}

static void print_loss(const struct kv_loss *loss, char *buffer, size_t size)
{
    (void)snprintf(buffer, size,
                   "it had lost writes: it was at version %" PRIu64 ", %" PRIu64
                   " was acknowledged",
                   loss->found, loss->noted);
}

/* An Event for users who see neither the log nor the health page. A full disk that refuses it stops no start. */
static void report_loss(struct arena *arena, const struct world *world)
{
    const struct kv_loss loss = kv_loss(world->kv);
    char text[LOSS_TEXT], now[RFC3339_LEN];
    struct error err;

    if (!loss.found)
        return;
    print_loss(&loss, text, sizeof(text));
    (void)rfc3339_format(clock_wall_us(&CLOCK_SYSTEM), now);
    const char *event =
        arena_printf(arena,
                     "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{"
                     "\"generateName\":\"store-\",\"namespace\":\"default\"},"
                     "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
                     "\"name\":\"default\",\"namespace\":\"default\"},\"type\":\"Warning\","
                     "\"reason\":\"WritesLost\",\"message\":\"the store: %s\",\"count\":1,"
                     "\"source\":{\"component\":\"propeller-standalone\"},"
                     "\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\"}",
                     text, now, now);
    if (make(world->api, "/api/v1/namespaces/default/events", event, &err) < 0)
        log_warn("event not written, ignoring", "error", ERROR_TEXT(&err), NULL);
}

static int open_store(struct arena *arena, const struct standalone_settings *settings,
                      struct world *world, struct error *err)
{
    const struct kv_options kv = {
        .path = data_dir_path(arena, settings->data_dir, DATA_DIR_STORE),
        .goes_on = !settings->strict_store,
    };
    const char *users;

    int r = data_dir_check_modes(arena, settings->data_dir, err);
    if (r < 0)
        return r;
    r = init_read_users(arena, settings, &users, err); /* its words when there are none */
    if (r == 0)
        r = users_file_open(data_dir_path(arena, settings->data_dir, DATA_DIR_USERS), &world->users,
                            err);
    if (r == 0)
        r = resources_create(&world->resources, err);
    if (r < 0)
        return r;

    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    r = kv_open(&kv, &world->kv, err); /* and looks through all of it */
    if (r == 0)
        log_info("the store is sound", "file", kv.path, "revision",
                 LOG_INT((int64_t)kv_revision(world->kv)), "milliseconds",
                 LOG_INT(clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms), NULL);
    return r;
}

static int start_api(struct arena *arena, const struct standalone_settings *settings,
                     struct world *world, struct error *err)
{
    const struct api_options options = { .kv = world->kv,
                                         .resources = world->resources,
                                         .clock = &CLOCK_SYSTEM,
                                         .policy = &settings->policy };
    struct server_options server = { .address = settings->address, .users = world->users };

    int r = init_keep_certificates(arena, settings, false, err);
    if (r == 0)
        r = data_dir_read(arena, settings->data_dir, DATA_DIR_TLS "/tls.crt", &server.cert_pem,
                          err);
    if (r == 0)
        r = data_dir_read(arena, settings->data_dir, DATA_DIR_TLS "/tls.key", &server.key_pem, err);
    if (r < 0)
        return r;
    world->api = api_create(&options);
    r = make_default_namespace(world->api, err);
    if (r == 0)
        r = api_start_collector(world->api, err);
    if (r < 0)
        return r;
    report_loss(arena, world);
    server.api = world->api;
    return server_start(&server, &world->server, err);
}

/* Options of the controller that stand before those of the command line. */
static int parse_controller(struct arena *arena, const struct standalone_settings *settings,
                            int rest_len, char *const *rest, struct controller_settings *ret,
                            struct error *err)
{
    static const char *const fixed[] = {
        "--leader-elect=false", /* the store has one process */
        "--manage-webhook-certificates=false",
        "--metrics-bind-address=127.0.0.1:8080",
        "--health-probe-bind-address=127.0.0.1:8081",
        "--page-bind-address=127.0.0.1:8082",
    };
    char **all = arena_array(arena, char *, ARRAY_LEN(fixed) + (size_t)rest_len + 2);
    int len = 0;

    all[len++] = rest[0];
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        all[len++] = arena_strdup(arena, fixed[i]);
    all[len++] = arena_printf(arena, "--module-cache-dir=%s",
                              data_dir_path(arena, settings->data_dir, DATA_DIR_MODULES));
    for (int i = 1; i < rest_len; i++)
        all[len++] = rest[i];

    int r = controller_options_parse(arena, len, all, ret, err);

    if (r == 0 && ret->kubeconfig)
        return error_set(err, ERROR_INVALID,
                         "--kubeconfig is not for serve: its controller asks this server alone; "
                         "run propeller-controller for another one");
    if (r == 0 && ret->uninstall)
        return error_set(err, ERROR_INVALID,
                         "--uninstall is not for serve: stop it and delete its data directory");
    for (size_t i = 0; MODULES[i] && r == 0; i++) {
        if (ret->is_on[i] && str_equal(MODULES[i]->extension, "scheduled-machines"))
            r = error_set(err, ERROR_INVALID,
                          "--enable-scheduled-machines is not for serve: it has neither Machines "
                          "nor Nodes");
        if (ret->is_on[i] && str_equal(MODULES[i]->extension, "kueue"))
            r = error_set(err, ERROR_INVALID,
                          "--enable-kueue: propeller-standalone serves no kueue.x-k8s.io");
    }
    return r;
}

static int check_store(void *ctx, char *why, size_t size)
{
    const struct kv_loss loss = kv_loss(ctx);
    struct error err;

    if (kv_health(ctx, &err) < 0) {
        (void)snprintf(why, size, "%s", err.message);
        return 0;
    }
    if (!loss.found)
        return 1;
    print_loss(&loss, why, size);
    return HEALTH_REMARK;
}

/* It calls the API of this process: no connection, credentials or certificate, so that no clock matters. */
static int run_controller(struct arena *arena, const struct standalone_settings *settings,
                          const struct world *world, struct error *err)
{
    struct store_metrics metrics = {
        .kv = world->kv,
        .resources = world->resources,
        .path = data_dir_path(arena, settings->data_dir, DATA_DIR_STORE),
    };
    const struct runnable store = {
        .name = "store", .group = RUN_SERVERS, .self = &metrics, .tick = store_metrics_report
    };

    struct in_process self = { .api = world->api,
                               .user = { .name = CONTROLLER, .role = ROLE_ADMIN },
                               .user_agent = version_user_agent(),
                               .users = world->users };
    const struct kube_in_process api = in_process_of(&self);

    process.config = kube_config_create_in_process(&api);

    int r = process_create(&process, err);
    if (r == 0) {
        health_add_check(process.host.health, "store", check_store, world->kv);
        manager_add(process.host.manager, &store);
        r = manager_run(process.host.manager, err);
    }
    process_destroy(&process); /* and its arena, with the settings */
    return r;
}

/* As the controller does where there is one: what a large answer needed goes. */
static void rest(void *kv)
{
    (void)!kv_health(kv, NULL); /* after a failure it looks again */
    alloc_give_back();
}

/* Until a signal. */
static int run_alone(struct kv *kv, struct error *err)
{
    const struct runnable memory = {
        .name = "memory", .group = RUN_SERVERS, .self = kv, .tick = rest
    };
    struct manager *manager = manager_create();

    manager_add(manager, &memory);
    int r = manager_run(manager, err);

    manager_destroy(manager);
    return r;
}

int serve_parse(const struct standalone_settings *settings, int rest_len, char *const *rest,
                struct error *err)
{
    process.arena = arena_create();
    return parse_controller(process.arena, settings, rest_len, rest, &process.settings, err);
}

int serve_run(struct arena *arena, const struct standalone_settings *settings, struct error *err)
{
    CLEANUP(world_releasep) struct world world = { .kv = NULL };

    program_configure_log(process.settings.log_level, process.settings.log_format);
    manager_block_signals(); /* before any other thread is there: only manager_run waits for them */

    int r = open_store(arena, settings, &world, err);
    if (r == 0)
        r = start_api(arena, settings, &world, err);
    if (r < 0)
        return r;
    log_info("serving", "address", settings->address, "data-dir", settings->data_dir, NULL);
    if (!settings->controller)
        return run_alone(world.kv, err);
    return run_controller(arena, settings, &world, err);
}
