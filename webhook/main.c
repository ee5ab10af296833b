/* propeller-webhook */
#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/runtime/health.h"
#include "common/runtime/manager.h"
#include "common/runtime/program.h"
#include "webhook/handler.h"
#include "webhook/options.h"
#include "webhook/serving.h"

#define NAME "propeller-webhook"
/* Bodies of all requests in progress. */
#define MAX_BODIES (64u << 20)

struct process {
    struct arena *arena;
    struct webhook_settings settings;
    struct admission_settings admission;
    struct health *health;
    struct serving *serving;
    struct manager *manager;
};

static int start_health(void *self, struct error *err)
{
    struct process *process = self;

    return health_start(process->health, process->settings.health_address,
                        process->settings.metrics_address, err);
}

static void join_health(void *self)
{
    health_stop(((struct process *)self)->health);
}

static int start_serving(void *self, struct error *err)
{
    return serving_start(((struct process *)self)->serving, err);
}

static void stop_serving(void *self)
{
    struct process *process = self;

    health_set_stopping(process->health);
    serving_stop(process->serving);
}

static void join_serving(void *self)
{
    serving_join(((struct process *)self)->serving);
}

static void process_create(struct process *process)
{
    const struct webhook_settings *settings = &process->settings;
    const struct serving_options options = {
        .cert_dir = settings->cert_dir,
        .clock = &CLOCK_SYSTEM,
        .http = { .address = arena_printf(process->arena, ":%d", (int)settings->port),
                  .handler = admission_handle,
                  .ctx = &process->admission,
                  .threads = (unsigned)settings->workers,
                  .max_connections = (unsigned)settings->max_connections,
                  .max_body = ADMISSION_MAX_BODY,
                  .max_bodies = MAX_BODIES,
                  .request_timeout_ms = (uint32_t)settings->request_timeout_ms },
    };
    const struct runnable health = { .name = "health",
                                     .group = RUN_SERVERS,
                                     .self = process,
                                     .start = start_health,
                                     .join = join_health };
    const struct runnable serving = { .name = "reviews",
                                      .group = RUN_SERVERS,
                                      .self = process,
                                      .start = start_serving,
                                      .stop = stop_serving,
                                      .join = join_serving };

    (void)admission_hooks(); /* the first review need not wait for the schemas */
    process->admission.max_inline_wasm = (size_t)settings->max_inline_wasm;
    process->admission.policy = &settings->policy;
    process->admission.clock = &CLOCK_SYSTEM;
    process->admission.has_vmafx = settings->enable_vmafx;
    process->manager = manager_create();
    process->serving = serving_create(&options);
    process->health = health_create();
    health_add_check(process->health, "certificate", serving_check, process->serving);
    manager_add(process->manager, &health);
    manager_add(process->manager, &serving);
}

static void process_destroy(struct process *process)
{
    manager_destroy(process->manager);
    serving_destroy(process->serving);
    health_destroy(process->health);
    arena_destroy(process->arena);
}

int main(int argc, char **argv)
{
    struct process process = { .arena = arena_create() };
    struct error err = { 0 };

    json_init();
    int r = webhook_options_parse(process.arena, argc, argv, &process.settings, &err);
    if (r != 0) {
        arena_destroy(process.arena);
        return program_end_of_options(NAME, r, &err);
    }
    program_configure_log(process.settings.log_level, process.settings.log_format);

    process_create(&process);
    r = manager_run(process.manager, &err);
    process_destroy(&process);
    return program_end(NAME, r, &err);
}
