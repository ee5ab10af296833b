#include "controller/process/process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/api/names.h"
#include "common/base/alloc.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/runtime/metrics.h"
#include "controller/cache/catch_up.h"

#define LEASE_NAME "propeller-controller"
/* Less than the time that a stop may take. */
#define API_TIMEOUT_MS 10000
/* Long enough for the pauses of steady work. */
#define IDLE_CONNECTION_MS 10000
#define CERTIFICATE "certificate" /* its identity */

static struct metric BUILD = {
    .type = METRIC_GAUGE,
    .name = PRODUCT_METRICS "build_info",
    .help = "1, with the version of this program.",
    .labels = { "version" },
};

/* --- while it runs ---------------------------------------------------------------------------- */

static int start_health(void *self, struct error *err)
{
    struct process *process = self;

    return health_start(process->host.health, process->settings.health_address,
                        process->settings.metrics_address, err);
}

static void join_health(void *self)
{
    health_stop(((struct process *)self)->host.health);
}

/* Frees the connections and the memory of a burst of work. */
static void rest(void *self)
{
    struct process *process = self;

    kube_client_close_idle(process->host.client, IDLE_CONNECTION_MS);
    identities_close_idle(process->identities, IDLE_CONNECTION_MS);
    alloc_give_back();
}

static void report_counts(void *self)
{
    modules_report(((struct process *)self)->host.modules);
}

static int start_watches(void *self, struct error *err)
{
    return watch_loop_start(((struct process *)self)->watches, err);
}

/* One namespace of several that is not there does not stop the others. */
static bool is_settled(struct informer *informer)
{
    return informer_settled(informer, CATCH_UP_PATIENCE_MS);
}

static int ready_watches(void *self, struct error *err UNUSED)
{
    return modules_all_caches(((struct process *)self)->host.modules, is_settled);
}

static void join_watches(void *self)
{
    watch_loop_stop(((struct process *)self)->watches);
}

static int start_elector(void *self, struct error *err)
{
    return elector_start(((struct process *)self)->host.elector, err);
}

static int ready_elector(void *self, struct error *err UNUSED)
{
    return elector_is_leader(((struct process *)self)->host.elector);
}

static void join_elector(void *self)
{
    elector_stop(((struct process *)self)->host.elector,
                 true); /* the manager has joined all work before */
}

static void lease_started(void *ctx)
{
    struct process *process = ctx;

    log_info("leading", NULL);
    manager_wake(process->host.manager);
}

static void lease_ended(void *ctx, const char *why)
{
    struct process *process = ctx;
    struct error err;

    error_set(&err, ERROR_CANCELED, "leadership ended: %s", why);
    manager_fail(process->host.manager, &err);
}

static int start_events(void *self, struct error *err)
{
    return identities_start(((struct process *)self)->identities, err);
}

static void join_events(void *self)
{
    identities_stop(((struct process *)self)->identities);
}

static int start_modules(void *self, struct error *err)
{
    return modules_start(((struct process *)self)->host.modules, err);
}

static void stop_modules(void *self)
{
    struct process *process = self;

    health_set_stopping(process->host.health);
    modules_stop(process->host.modules);
}

static void join_modules(void *self)
{
    struct process *process = self;

    modules_join(process->host.modules);
    if (module_host_leads(&process->host))
        modules_hand_over(process->host.modules);
}

/* The next leader repeats the work of requests that are cancelled here. */
static void hurry_requests(void *self)
{
    struct process *process = self;

    identities_cancel(process->identities);
    kube_client_cancel(process->host.client);
}

static void stop_standby(void *self)
{
    health_set_stopping(((struct process *)self)->host.health);
}

static int check_caches(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (watch_loop_problem(process->watches, why, size))
        return 0;
    if (modules_all_caches(process->host.modules, informer_synced))
        return 1;
    snprintf(why, size, "first list not complete");
    return 0;
}

int process_check_lease(void *ctx, char *why, size_t size)
{
    struct process *process = ctx;

    if (elector_is_leader(process->host.elector)) {
        snprintf(why, size, "not renewed in time, nothing is written until it is");
        return elector_may_act(process->host.elector);
    }
    snprintf(why, size, "neither read nor written in time, this standby could not take over");
    return elector_in_touch(process->host.elector);
}

static void add_runnables(struct process *process)
{
    const struct runnable servers = { .name = "servers",
                                      .group = RUN_SERVERS,
                                      .self = process,
                                      .start = start_health,
                                      .tick = rest,
                                      .join = join_health };
    const struct runnable watches = { .name = "watches",
                                      .group = RUN_CACHES,
                                      .self = process,
                                      .start = start_watches,
                                      .ready = ready_watches,
                                      .tick = report_counts,
                                      .stop = stop_standby,
                                      .join = join_watches };
    const struct runnable election = { .name = "election",
                                       .group = RUN_ELECTION,
                                       .self = process,
                                       .start = start_elector,
                                       .ready = ready_elector,
                                       .join = join_elector };
    const struct runnable events = { .name = "events",
                                     .group = RUN_LEADER,
                                     .self = process,
                                     .start = start_events,
                                     .join = join_events };

    manager_add(process->host.manager, &servers);
    manager_add(process->host.manager, &watches);
    if (process->host.elector)
        manager_add(process->host.manager, &election);
    manager_add(process->host.manager, &events);
}

static void add_leader_runnables(struct process *process)
{
    const struct runnable controllers = { .name = "controllers",
                                          .group = RUN_LEADER,
                                          .self = process,
                                          .start = start_modules,
                                          .stop = stop_modules,
                                          .join = join_modules,
                                          .hurry = hurry_requests };
    const struct runnable certificates = { .name = "certificates",
                                           .group = RUN_LEADER,
                                           .self = process->certificates,
                                           .start = certificates_start,
                                           .stop = certificates_stop,
                                           .join = certificates_join };

    manager_add(process->host.manager, &controllers);
    if (process->certificates)
        manager_add(process->host.manager, &certificates);
}

/* --- making it --------------------------------------------------------------------------------- */

static void on_request(void *ctx, const char *method, int status, int64_t duration_ms)
{
    static struct metric durations = { .type = METRIC_HISTOGRAM,
                                       .name = "rest_client_request_duration_seconds",
                                       .help =
                                           "Time from a request to the API server to its reply.",
                                       .labels = { "verb", "host" } };
    static struct metric requests = { .type = METRIC_COUNTER,
                                      .name = "rest_client_requests_total",
                                      .help = "Number of requests to the API server.",
                                      .labels = { "code", "method", "host" } };
    const struct process *process = ctx;
    char code[16];

    snprintf(code, sizeof(code), "%d", status);
    metric_add(&requests, 1, status ? code : "<error>", method, process->api_host, NULL);
    metric_observe(&durations, (double)duration_ms / 1000, method, process->api_host, NULL);
    if (process->watches && !str_equal(method, "GET") && status >= 200 && status <= 299)
        watch_loop_settle(process->watches);
}

static void make_elector(struct process *process)
{
    const struct controller_settings *settings = &process->settings;
    char host[64] = "controller";
    char id[UUID_LEN];
    struct elector_options options = {
        .lease_duration_ms = (uint32_t)settings->lease_duration_ms,
        .renew_deadline_ms = (uint32_t)settings->renew_deadline_ms,
        .retry_period_ms = (uint32_t)settings->retry_period_ms,
    };
    const struct elector_callbacks callbacks = { process, lease_started, lease_ended };

    gethostname(host, sizeof(host) - 1);
    options.identity = arena_printf(process->arena, "%s_%s", host, uuid_random(id));
    if (!kube_name_set(&options.lease, process->host.ns, LEASE_NAME))
        options.lease = (struct kube_name){ 0 };
    process->lease_client =
        kube_client_create(process->config, (uint32_t)settings->renew_deadline_ms / 2);
    process->host.elector =
        elector_create(&options, process->lease_client, &CLOCK_SYSTEM, &callbacks);
    elector_set_timeline(process->host.elector, process->host.timeline, ANNOTATION_STEADY_SINCE);
}

static int make_certificates(struct process *process, struct error *err)
{
    const struct certificates_options options = {
        .config = identities_config(process->identities, CERTIFICATE),
        .client = identities_client(process->identities, CERTIFICATE),
        .settings = &process->settings.certificates,
        .clock = &CLOCK_SYSTEM,
    };

    if (!process->settings.manage_certificates)
        return 0;
    return certificates_create(&options, &process->certificates, err);
}

static void make_health(struct process *process)
{
    struct health *health = health_create();

    process->host.health = health;
    health_add_check(health, "caches", check_caches, process);
    if (process->host.elector)
        health_add_check(health, "lease", process_check_lease, process);
}

/* "https://example.com:6443/path": what client-go calls the host. */
static const char *host_of(struct arena *arena, const char *server)
{
    const char *scheme = strstr(server, "://");
    const char *host = scheme ? scheme + strlen("://") : server;

    return arena_strndup(arena, host, strcspn(host, "/"));
}

static int make_clients(struct process *process, struct error *err)
{
    int r =
        process->config ? 0 : kube_config_load(process->settings.kubeconfig, &process->config, err);
    if (r < 0)
        return r;

    const struct controller_settings *settings = &process->settings;
    if (settings->kube_api_qps > 0)
        process->limit = rate_limit_create(settings->kube_api_qps,
                                           (unsigned)settings->kube_api_burst, &CLOCK_SYSTEM);
    process->api_host = host_of(process->arena, kube_config_server(process->config));
    process->host.ns = str_is_empty(process->settings.election_namespace)
                           ? kube_config_namespace(process->config)
                           : process->settings.election_namespace;
    process->host.client = kube_client_create(process->config, API_TIMEOUT_MS);
    kube_client_set_limit(process->host.client, process->limit);
    kube_client_set_guard(process->host.client, module_host_may_act, &process->host);
    kube_client_set_observer(process->host.client, on_request, process);
    const struct identities_options options = {
        .config = process->config,
        .client = process->host.client,
        .separate = process->settings.use_service_accounts,
        .timeout_ms = API_TIMEOUT_MS,
        .may_write = module_host_may_act,
        .may_write_ctx = &process->host,
        .limit = process->limit,
        .observer = on_request,
        .observer_ctx = process,
        .clock = &CLOCK_SYSTEM,
    };
    process->identities = identities_create(&options);
    for (size_t i = 0; MODULES[i] && r == 0; i++) {
        if (MODULES[i]->name && process->settings.is_on[i])
            r = identities_add(process->identities, MODULES[i]->name, MODULES[i]->reconcile != NULL,
                               err);
    }
    return r < 0 ? r : identities_add(process->identities, CERTIFICATE, false, err);
}

int process_create(struct process *process, struct error *err)
{
    struct module_host *host = &process->host;

    host->settings = &process->settings;
    host->arena = process->arena;
    host->clock = &CLOCK_SYSTEM;
    int r = make_clients(process, err);
    if (r < 0)
        return r;

    metric_set(&BUILD, 1, version_name(), NULL);
    host->config = process->config;
    host->timeline = timeline_create(&CLOCK_SYSTEM);
    host->manager = manager_create();
    if (process->settings.leader_elect)
        make_elector(process);
    make_health(process);
    process->watches = watch_loop_create(process->config);
    host->modules = modules_create(host, process->watches, process->identities);
    add_runnables(process);
    modules_add_extensions(host);
    r = modules_open(host, err);
    if (r == 0)
        r = make_certificates(process, err);
    if (r == 0)
        add_leader_runnables(process);
    return r;
}

void process_destroy(struct process *process)
{
    struct module_host *host = &process->host;

    manager_destroy(host->manager);
    health_destroy(host->health);
    certificates_destroy(process->certificates);
    elector_destroy(host->elector);
    watch_loop_destroy(process->watches);
    modules_destroy(host->modules);
    timeline_destroy(host->timeline);
    kube_client_destroy(process->lease_client);
    identities_destroy(process->identities);
    kube_client_destroy(host->client);
    rate_limit_destroy(process->limit);
    kube_config_destroy(process->config);
    arena_destroy(process->arena);
}
