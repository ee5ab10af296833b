#include "controller/process/process.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/cache/indexes.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_update.h"
#include "controller/job/propellerjob_cache.h"
#include "controller/process/debug_page.h"
#include "controller/process/process_federated.h"
#include "controller/proplet/proplet_pods.h"
#include "controller/task/task_workload.h"
#include "controller/workload/workload.h"

#define LEASE_NAME "propeller-controller"
/* Less than the time that a stop may take. */
#define API_TIMEOUT_MS 10000
#define MQTT_KEEP_ALIVE_S 20
#define MQTT_MAX_QOS1_IN_MAILBOX 4096

/* Half of the bytes is for a batch of the broker, the other for results that are held. */
static_assert((64u << 20) / 2 >= MQTT_BATCH_BYTES + RESULT_MAX_SENT, "a batch fits");
/* Of one channel for one Task: twice the results of a broadcast's targets (500). */
static const struct mailbox_limits MAILBOX_LIMITS = { .key_messages = 1024,
                                                      .total_messages = MQTT_MAX_QOS1_IN_MAILBOX,
                                                      .total_bytes = 64u << 20 };

static bool may_act(void *ctx)
{
    struct process *process = ctx;

    return !process->elector || elector_may_act(process->elector);
}

/* Of every namespace: one that may not be listed yet has Tasks that the cache lacks, and so has a list
 * in which one could not be read. */
static bool knows_all_tasks(void *ctx)
{
    return informer_complete(ctx);
}

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

/* Of the watched namespaces. selector may be NULL. */
static struct informer *make_informer(struct process *process, const struct kube_kind *kind,
                                      const char *selector, watch_project_fn *project)
{
    const struct option_strings *namespaces = &process->settings.namespaces;
    const struct watch_options options = {
        .kind = kind,
        .label_selector = selector,
        .project = project,
        .unread = kind == &KIND_TASK           ? UNREAD_OF_TASK
                  : kind == &KIND_PROPLET      ? UNREAD_OF_PROPLET
                  : kind == &KIND_PROPELLERJOB ? UNREAD_OF_PROPELLERJOB
                                               : NULL,
    };

    return informer_create_in(process->watches, &options, namespaces->items, namespaces->len);
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
    process->elector = elector_create(&options, process->lease_client, &CLOCK_SYSTEM, &callbacks);
    elector_set_timeline(process->elector, process->shared.timeline, ANNOTATION_STEADY_SINCE);
}

static int make_bridge(struct process *process, struct error *err)
{
    const struct controller_settings *settings = &process->settings;
    struct shared *shared = &process->shared;
    char *host;
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
        .clock = &CLOCK_SYSTEM,
        .connection = { .user_name = settings->client_id,
                        .password = settings->client_key,
                        .password_file = settings->client_key_file,
                        .ca_file = settings->mqtt_ca_file,
                        .cert_file = settings->mqtt_cert_file,
                        .key_file = settings->mqtt_key_file,
                        .keep_alive_s = MQTT_KEEP_ALIVE_S,
                        .may_act = may_act,
                        .may_act_ctx = process },
    };
    int r = mqtt_address_parse(settings->mqtt_address, &host, &options.connection.port,
                               &options.connection.tls, err);
    if (r < 0)
        return error_wrap(err, "--mqtt-address");

    options.connection.host = arena_own(process->arena, host, free);
    if (settings->domain_id) {
        char *channel = arena_alloc(process->arena, 1, CHANNEL_KEY_LEN);
        if (!channel_key(settings->domain_id, settings->channel_id, channel))
            return error_set(err, ERROR_INVALID, "--domain-id and --channel-id: too long");
        options.own_channel = channel;
    }
    shared->bridge = bridge_create(&options);
    return 0;
}

struct controller *process_make_controller(struct process *process,
                                           const struct controller_options *options,
                                           enum identity identity)
{
    return controller_create(options, identities_client(process->identities, identity),
                             identities_events(process->identities, identity), &CLOCK_SYSTEM);
}

static void make_controllers(struct process *process)
{
    struct shared *shared = &process->shared;
    const struct controller_source task_sources[] = { { shared->tasks, task_map_task },
                                                      { shared->proplets, task_map_proplet },
                                                      { shared->jobs, task_map_job },
                                                      { shared->rounds, task_map_round },
                                                      { shared->federated_jobs,
                                                        task_map_federatedjob },
                                                      { shared->task_jobs, task_map_workload },
                                                      { shared->deployments, task_map_workload },
                                                      { shared->pods, task_map_workload } };
    const struct controller_source proplet_sources[] = {
        { shared->proplets, proplet_map_proplet },
        { shared->deployments, proplet_map_workload },
        { shared->statefulsets, proplet_map_workload },
        { shared->pods, proplet_map_pod }
    };
    const struct controller_options tasks = { .name = "task",
                                              .self = shared,
                                              .reconcile = task_reconcile,
                                              .sources = task_sources,
                                              .source_count = ARRAY_LEN(task_sources),
                                              .workers = process->settings.task_workers };
    const struct controller_options proplets = { .name = "proplet",
                                                 .self = shared,
                                                 .reconcile = proplet_reconcile,
                                                 .sources = proplet_sources,
                                                 .source_count = ARRAY_LEN(proplet_sources),
                                                 .workers = process->settings.proplet_workers };
    const struct controller_source job_sources[] = { { shared->jobs, map_self },
                                                     { shared->tasks, propellerjob_map_task } };
    const struct controller_options jobs = { .name = "propellerjob",
                                             .self = shared,
                                             .reconcile = propellerjob_reconcile,
                                             .sources = job_sources,
                                             .source_count = ARRAY_LEN(job_sources),
                                             .workers = process->settings.job_workers };

    process->task_controller = process_make_controller(process, &tasks, IDENTITY_TASK);
    process->proplet_controller = process_make_controller(process, &proplets, IDENTITY_PROPLET);
    process->job_controller = process_make_controller(process, &jobs, IDENTITY_JOB);
    shared->task_queue = controller_queue(process->task_controller);
    shared->proplet_queue = controller_queue(process->proplet_controller);
    if (shared->bridge)
        bridge_set_queues(shared->bridge, shared->task_queue, shared->proplet_queue);
}

static int make_certificates(struct process *process, struct error *err)
{
    const struct certificates_options options = {
        .config = identities_config(process->identities, IDENTITY_CERTIFICATE),
        .client = identities_client(process->identities, IDENTITY_CERTIFICATE),
        .settings = &process->settings.certificates,
        .clock = &CLOCK_SYSTEM,
    };

    if (!process->settings.manage_certificates)
        return 0;
    return certificates_create(&options, &process->certificates, err);
}

static void make_health(struct process *process)
{
    process->health = health_create();
    health_add_check(process->health, "caches", process_check_caches, process);
    if (process->elector)
        health_add_check(process->health, "lease", process_check_lease, process);
    if (process->shared.bridge)
        health_add_check(process->health, "mqtt", process_check_mqtt, process);
    health_add_check(process->health, "rights", process_check_rights, process);
    if (process->settings.debug_endpoint)
        health_add_page(process->health, "/debug/proplets", debug_proplets_page, &process->shared);
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
    process->client = kube_client_create(process->config, API_TIMEOUT_MS);
    kube_client_set_limit(process->client, process->limit);
    kube_client_set_guard(process->client, may_act, process);
    kube_client_set_observer(process->client, on_request, process);
    const struct identities_options options = {
        .config = process->config,
        .client = process->client,
        .separate = process->settings.use_service_accounts,
        .timeout_ms = API_TIMEOUT_MS,
        .may_write = may_act,
        .may_write_ctx = process,
        .limit = process->limit,
        .observer = on_request,
        .observer_ctx = process,
        .clock = &CLOCK_SYSTEM,
    };
    return identities_create(&options, &process->identities, err);
}

static void add_indexes(const struct shared *shared)
{
    indexes_add_task(informer_store(shared->tasks));
    indexes_add_proplet(informer_store(shared->proplets));
    indexes_add_propellerjob(informer_store(shared->jobs));
    indexes_add_traininground(informer_store(shared->rounds));
    indexes_add_workload(informer_store(shared->task_jobs));
    indexes_add_workload(informer_store(shared->deployments));
    indexes_add_workload(informer_store(shared->pods));
    proplet_pods_add_indexes(informer_store(shared->proplets), informer_store(shared->pods));
}

static void add_owners(struct process *process)
{
    struct shared *shared = &process->shared;

    task_owners_add(&process->owners, &TRAININGROUND_OWNER, shared);
    task_owners_add(&process->owners, &PROPELLERJOB_OWNER, informer_store(shared->jobs));
}

int process_create(struct process *process, struct error *err)
{
    struct shared *shared = &process->shared;
    const struct option_strings *namespaces = &process->settings.namespaces;

    int r = make_clients(process, err);
    if (r < 0)
        return r;

    process->watches = watch_loop_create(process->config);
    *shared = (struct shared){
        .settings = &process->settings,
        .clock = &CLOCK_SYSTEM,
        .timeline = timeline_create(&CLOCK_SYSTEM),
        .tasks = make_informer(process, &KIND_TASK, NULL, project_task),
        .proplets = make_informer(process, &KIND_PROPLET, NULL, project_proplet),
        .jobs = make_informer(process, &KIND_PROPELLERJOB, NULL, project_propellerjob),
        .federated_jobs = make_informer(process, &KIND_FEDERATEDJOB, NULL, project_federatedjob),
        .rounds = make_informer(process, &KIND_TRAININGROUND, NULL, project_traininground),
        .deployments =
            make_informer(process, &KIND_DEPLOYMENT, WORKLOAD_SELECTOR, project_workload),
        .statefulsets =
            make_informer(process, &KIND_STATEFULSET, WORKLOAD_SELECTOR, project_workload),
        .pods = make_informer(process, &KIND_POD, WORKLOAD_SELECTOR, project_pod),
        .task_jobs = make_informer(process, &KIND_JOB, WORKLOAD_SELECTOR, project_task_job),
        .fleet = fleet_create(),
        .brake = fleet_brake_create(),
        .budget = refresh_budget_create(),
        .placements = placements_create(),
        .waiting = wait_list_create(),
        .attempts = attempts_create(),
        .mailbox = mailbox_create(&MAILBOX_LIMITS),
        .owners = &process->owners,
        .scheduler = scheduler_by_name(process->settings.scheduler),
    };
    add_owners(process);
    add_indexes(shared);
    shared->candidates = candidates_create(informer_store(shared->proplets));
    if (!str_is_empty(process->settings.mqtt_address)) {
        r = make_bridge(process, err);
        if (r < 0)
            return r;
    }
    process->catch_up = catch_up_create(process->client, informer_store(shared->tasks),
                                        namespaces->items, namespaces->len, &CLOCK_SYSTEM);
    process->manager = manager_create();
    if (process->settings.leader_elect)
        make_elector(process);
    r = process_make_federated(process, err);
    if (r < 0)
        return r;
    make_controllers(process);
    process_make_federated_controllers(process);
    r = make_certificates(process, err);
    if (r < 0)
        return r;
    make_health(process);
    process_add_runnables(process);
    return 0;
}

void process_destroy(struct process *process)
{
    struct shared *shared = &process->shared;

    manager_destroy(process->manager);
    health_destroy(process->health);
    certificates_destroy(process->certificates);
    controller_destroy(process->task_controller);
    controller_destroy(process->proplet_controller);
    controller_destroy(process->job_controller);
    process_destroy_federated(process);
    elector_destroy(process->elector);
    catch_up_destroy(process->catch_up);
    watch_loop_destroy(process->watches);
    informer_destroy(shared->tasks);
    informer_destroy(shared->proplets);
    informer_destroy(shared->jobs);
    informer_destroy(shared->federated_jobs);
    informer_destroy(shared->rounds);
    informer_destroy(shared->deployments);
    informer_destroy(shared->statefulsets);
    informer_destroy(shared->pods);
    informer_destroy(shared->task_jobs);
    bridge_destroy(shared->bridge);
    mailbox_destroy(shared->mailbox);
    attempts_destroy(shared->attempts);
    wait_list_destroy(shared->waiting);
    candidates_destroy(shared->candidates);
    placements_destroy(shared->placements);
    refresh_budget_destroy(shared->budget);
    fleet_destroy(shared->fleet);
    fleet_brake_destroy(shared->brake);
    timeline_destroy(shared->timeline);
    kube_client_destroy(process->lease_client);
    identities_destroy(process->identities);
    kube_client_destroy(process->client);
    rate_limit_destroy(process->limit);
    kube_config_destroy(process->config);
    arena_destroy(process->arena);
}
