#include "controller/process/process.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/api/names.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"

#define LEASE_NAME "propeller-controller"
/* Less than the time that a stop may take. */
#define API_TIMEOUT_MS 10000
#define CERTIFICATE "certificate" /* its identity */

static void on_request(void *ctx, const char *method, int status, int64_t duration_ms UNUSED)
{
    static struct metric requests = { .type = METRIC_COUNTER,
                                      .name = "rest_client_requests_total",
                                      .help = "Requests to the API server.",
                                      .labels = { "code", "method", "host" } };
    const struct process *process = ctx;
    char code[16];

    snprintf(code, sizeof(code), "%d", status);
    metric_add(&requests, 1, status ? code : "<error>", method, process->api_host, NULL);
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
    const char *ns = str_is_empty(settings->election_namespace)
                         ? kube_config_namespace(process->config)
                         : settings->election_namespace;
    const struct elector_callbacks callbacks = { process, process_lease_started,
                                                 process_lease_ended };

    gethostname(host, sizeof(host) - 1);
    options.identity = arena_printf(process->arena, "%s_%s", host, uuid_random(id));
    if (!kube_name_set(&options.lease, ns, LEASE_NAME))
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
    health_add_check(health, "caches", process_check_caches, process);
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
        if (MODULES[i]->reconcile)
            r = identities_add(process->identities, MODULES[i]->name, true, err);
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

    host->timeline = timeline_create(&CLOCK_SYSTEM);
    host->manager = manager_create();
    if (process->settings.leader_elect)
        make_elector(process);
    make_health(process);
    process->watches = watch_loop_create(process->config);
    process->modules = modules_create(host, process->watches, process->identities);
    host->modules = process->modules;
    process_add_runnables(process);
    r = modules_open(process->modules, host, err);
    if (r == 0)
        r = make_certificates(process, err);
    if (r == 0)
        process_add_leader_runnables(process);
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
    modules_destroy(process->modules);
    timeline_destroy(host->timeline);
    kube_client_destroy(process->lease_client);
    identities_destroy(process->identities);
    kube_client_destroy(host->client);
    rate_limit_destroy(process->limit);
    kube_config_destroy(process->config);
    arena_destroy(process->arena);
}
