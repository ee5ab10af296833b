/* The parts put together: what the process says to nobody as long as it does not lead. */
#include "controller/process/process.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "common/tests/mqtt_probe.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"
#include "common/tests/tiny_server.h"
#include "controller/process/modules.h"
#include "controller/shared/device_plane.h"
#include "controller/task/task.h"

/* Polls of 10 ms: two minutes, for a busy machine. */
#define MAX_POLLS 12000
#define RENEW_POLLS 200
#define LEASE                                                                                      \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"propeller-controller\",\"uid\":\"u\","    \
    "\"resourceVersion\":\"1\"}}"

#define HELD                                                                                       \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"propeller-controller\",\"uid\":\"u\","    \
    "\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"another\"}}"

static struct broker *broker;
static struct probe *device;
static struct tiny_server *server;
static struct process process;

static void set_up_with(const char *flag, const char *other_flag)
{
    struct error err = { 0 };

    json_init();
    log_configure(LOG_ERROR, LOG_TEXT);
    broker = broker_create();
    broker_start(broker);
    server = tiny_server_start(0);
    process = (struct process){ .arena = arena_create() };

    const char *config =
        arena_printf(process.arena,
                     "{apiVersion: v1, kind: Config, current-context: c,\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                     "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}],\n"
                     "users: [{name: u, user: {}}]}\n",
                     tiny_server_port(server));
    char *argv[] = {
        arena_strdup(process.arena, "propeller-controller"),
        arena_printf(process.arena, "--kubeconfig=%s",
                     temp_file(process.arena, temp_dir(process.arena), "config", config)),
        arena_printf(process.arena, "--mqtt-address=tcp://127.0.0.1:%u", broker_port(broker)),
        arena_strdup(process.arena, "--client-id=controller"),
        arena_strdup(process.arena, flag),
        arena_strdup(process.arena, other_flag),
        NULL,
    };
    int r = controller_options_parse(process.arena, (int)ARRAY_LEN(argv) - 1, argv,
                                     &process.settings, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    r = process_create(&process, &err);
    ck_assert_msg(r == 0, "%s", err.message);

    struct mqtt_options options = probe_options(broker, "device-1");
    device = probe_create(&options, false);
}

static void set_up(void)
{
    set_up_with("--kube-api-qps=0", "--kube-api-burst=30"); /* no limit */
}

static void set_up_extended(void)
{
    set_up_with("--enable-vmafx", "--enable-scheduled-machines");
}

static void set_up_queued(void)
{
    set_up_with("--enable-kueue", "--leader-elect=false");
}

/* Two at once, and no third one for a quarter of an hour. */
static void set_up_limited(void)
{
    set_up_with("--kube-api-qps=0.001", "--kube-api-burst=2");
}

static void tear_down(void)
{
    bridge_stop(device_plane_of(&process.host)->bridge);
    process_destroy(&process);
    probe_destroy(device);
    tiny_server_stop(server);
    broker_destroy(broker);
}

TEST_GROUP("process", set_up, tear_down);

static bool broker_saw(const char *line)
{
    char *log = temp_file_read(broker_dir(broker), "log");
    bool saw = strstr(log, line);

    free(log);
    return saw;
}

static int write_something(struct kube_client *client)
{
    struct kube_name name;
    struct error err = { 0 };

    ck_assert(kube_name_set(&name, "default", "one"));
    return kube_delete(client, &KIND_TASK, &name, NULL, NULL, &err);
}

TEST(only_the_holder_of_the_lease_writes_and_connects)
{
    struct error err = { 0 };
    char why[256];

    tiny_server_answer(server, "/tasks/one", 200, "{}");
    tiny_server_answer(server, "/leases", 201, LEASE);
    tiny_server_answer(server, "/leases/", 404, "{}");
    ck_assert_int_eq(bridge_start(device_plane_of(&process.host)->bridge, &err), 0);
    for (int i = 0; i < 5; i++) { /* time enough for a connection that nothing holds back */
        probe_start(device);
        probe_publish(device, "any", "the broker is up to date");
        mqtt_stop(probe_mqtt(device));
    }
    ck_assert(!broker_saw(" as controller"));
    ck_assert_int_eq(write_something(process.host.client), -ERROR_CANCELED);
    ck_assert_int_eq(write_something(identities_client(process.identities, "task")),
                     -ERROR_CANCELED);

    (void)elector_step(process.host.elector);
    ck_assert(elector_is_leader(process.host.elector));
    ck_assert_int_eq(write_something(process.host.client), 0);
    ck_assert_int_eq(write_something(identities_client(process.identities, "task")), 0);
    for (int i = 0; !bridge_connected(device_plane_of(&process.host)->bridge, why, sizeof(why));
         i++) {
        ck_assert_msg(i < MAX_POLLS, "not connected: %s", why);
        if (i % RENEW_POLLS == RENEW_POLLS - 1)
            (void)elector_step(
                process.host.elector); /* as its thread would, however long it takes */
        (void)poll(NULL, 0, 10);
    }
}

static void ck_lease_check(int wanted, const char *words)
{
    char why[256] = "";

    ck_assert_int_eq(process_check_lease(&process, why, sizeof(why)), wanted);
    ck_assert_msg(wanted || strstr(why, words), "no '%s' in '%s'", words, why);
}

TEST(a_standby_that_may_not_read_the_lease_is_not_ready)
{
    static const char WORDS[] = "this standby could not take over";

    ck_lease_check(0, WORDS);
    tiny_server_answer(server, "/leases/", 403, "{}");
    (void)elector_step(process.host.elector);
    ck_lease_check(0, WORDS);
    tiny_server_answer(server, "/leases/", 200, HELD);
    (void)elector_step(process.host.elector);
    ck_assert(!elector_is_leader(process.host.elector));
    ck_lease_check(1, NULL);
}

TEST(a_leader_that_lacks_a_right_is_not_ready_until_it_is_back)
{
    struct task_deps deps = { .clock = &CLOCK_SYSTEM,
                              .attempts = device_plane_of(&process.host)->attempts };
    char why[256] = "";

    ck_assert_int_eq(task_check_rights(&deps, why, sizeof(why)), 1);
    attempts_forbidden(device_plane_of(&process.host)->attempts, "uid-1", 1,
                       clock_monotonic_ms(&CLOCK_SYSTEM));
    ck_assert_int_eq(task_check_rights(&deps, why, sizeof(why)), 0);
    ck_assert_ptr_nonnull(strstr(why, "403 to writes of 1 Tasks"));
    attempts_not_forbidden(device_plane_of(&process.host)->attempts, "uid-1");
    ck_assert_int_eq(task_check_rights(&deps, why, sizeof(why)), 1);
}

TEST(requests_are_counted_with_the_host_that_was_asked)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(METRICS_MAX_TEXT);

    tiny_server_answer(server, "/leases", 201, LEASE);
    tiny_server_answer(server, "/leases/", 404, "{}");
    (void)elector_step(process.host.elector);
    tiny_server_answer(server, "/tasks/one", 200, "{}");
    ck_assert_int_eq(write_something(identities_client(process.identities, "task")), 0);
    ck_assert(metrics_write(&text));
    const char *line = arena_printf(
        process.arena,
        "rest_client_requests_total{code=\"200\",method=\"DELETE\",host=\"127.0.0.1:%u\"} 1",
        tiny_server_port(server));
    ck_assert_msg(strstr(buf_string(&text), line), "no %s", line);
}

static void cache(const struct kube_kind *kind, const char *name, int version, const char *rest)
{
    informer_observed(
        module_host_informer(&process.host, kind),
        (cJSON *)parsed(process.arena,
                        arena_printf(process.arena,
                                     "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\","
                                     "\"uid\":\"%s\",\"resourceVersion\":\"%d\"},%s}",
                                     name, name, version, rest)));
}

TEST(gauges_count_the_objects_of_the_caches)
{
    ck_metric(
        arena_printf(process.arena, "propeller_build_info{version=\"%s\"} 1", version_name()));
    ck_metric("propeller_tasks{phase=\"completed\"} 0"); /* from the start */
    ck_metric("propeller_proplets{type=\"k8s\",phase=\"Offline\"} 0");
    ck_metric("propeller_jobs{kind=\"TrainingRound\",phase=\"Running\"} 0");
    cache(&KIND_TASK, "a", 1, "\"status\":{\"phase\":\"pending\",\"reason\":\"NoProplet\"}");
    cache(&KIND_TASK, "b", 2, "\"status\":{\"phase\":\"pending\",\"reason\":\"Unheard\"}");
    cache(&KIND_TASK, "c", 3, "\"spec\":{}");
    cache(&KIND_TASK, "d", 4, "\"status\":{\"phase\":\"running\"}");
    cache(&KIND_PROPLET, "e", 5,
          "\"spec\":{\"type\":\"external\"},\"status\":{\"phase\":\"Running\","
          "\"availability\":{\"state\":\"Draining\"}}");
    cache(&KIND_PROPLET, "f", 6, "\"spec\":{\"type\":\"k8s\"},\"status\":{}");
    cache(&KIND_PROPELLERJOB, "g", 7, "\"status\":{\"phase\":\"Failed\"}");
    cache(&KIND_FEDERATEDJOB, "h", 8, "\"status\":{\"phase\":\"Completed\"}");
    cache(&KIND_TRAININGROUND, "i", 9, "\"status\":{\"phase\":\"Running\"}");
    modules_report(process.host.modules);
    ck_metric("propeller_tasks{phase=\"pending\"} 3");
    ck_metric("propeller_tasks{phase=\"running\"} 1");
    ck_metric("propeller_tasks_waiting{reason=\"NoProplet\"} 1");
    ck_metric("propeller_tasks_waiting{reason=\"other\"} 1");
    ck_metric("propeller_proplets{type=\"external\",phase=\"Running\"} 1");
    ck_metric("propeller_proplets{type=\"k8s\",phase=\"Initializing\"} 1");
    ck_metric("propeller_proplets_availability{state=\"Draining\"} 1");
    ck_metric("propeller_proplets_availability{state=\"Open\"} 0");
    ck_metric("propeller_jobs{kind=\"PropellerJob\",phase=\"Failed\"} 1");
    ck_metric("propeller_jobs{kind=\"FederatedJob\",phase=\"Completed\"} 1");
    ck_metric("propeller_jobs{kind=\"TrainingRound\",phase=\"Running\"} 1");

    cache(&KIND_TASK, "a", 10, "\"status\":{\"phase\":\"completed\"}");
    modules_report(process.host.modules);
    ck_metric("propeller_tasks{phase=\"pending\"} 2");
    ck_metric("propeller_tasks{phase=\"completed\"} 1");
    ck_metric("propeller_tasks_waiting{reason=\"NoProplet\"} 0");

    struct kube_name job; /* the last one goes */
    ck_assert(kube_name_set(&job, "default", "g"));
    kube_object_unref(store_remove(
        informer_store(module_host_informer(&process.host, &KIND_PROPELLERJOB)), &job, "11"));
    modules_report(process.host.modules);
    ck_metric("propeller_jobs{kind=\"PropellerJob\",phase=\"Failed\"} 0");
}

TEST_GROUP("extended", set_up_extended, tear_down);

static size_t caches_seen;

static bool count_cache(struct informer *informer UNUSED)
{
    caches_seen++;
    return true;
}

TEST(extension_without_its_crds_holds_up_nothing)
{
    struct watch_loop *loop = process.watches;
    struct error err = { 0 };

    tiny_server_answer(server, "limit=500", 200,
                       "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    tiny_server_answer(server, "/vmafx.dev/", 404, "{}");
    tiny_server_answer(server, "watch=true", 200, "");
    ck_assert_int_eq(watch_loop_start(loop, &err), 0);
    for (int i = 0; !modules_all_caches(process.host.modules, informer_synced); i++) {
        ck_assert_int_lt(i, MAX_POLLS);
        (void)poll(NULL, 0, 10);
    }
    ck_assert(modules_all_caches(process.host.modules, count_cache));
    ck_assert_uint_ge(caches_seen, 5);
    ck_assert(!informer_synced(module_host_informer(&process.host, &KIND_VMAFXJOB)));
    modules_report(process.host.modules);
    ck_metric("propeller_scheduled_machines_served 0");
    watch_loop_stop(loop);
}

TEST_GROUP("limited", set_up_limited, tear_down);

TEST(all_identities_share_one_limit_and_the_lease_has_none)
{
    tiny_server_answer(server, "/leases", 201, LEASE);
    tiny_server_answer(server, "/leases/", 404, "{}");
    for (int i = 0; i < 3; i++)
        (void)elector_step(process.host.elector);
    ck_assert(elector_is_leader(process.host.elector));
    tiny_server_answer(server, "/tasks/one", 200, "{}");
    ck_assert_int_eq(write_something(process.host.client), 0);
    ck_assert_int_eq(write_something(identities_client(process.identities, "task")), 0);
    ck_assert_uint_gt(rate_limit_reserve(process.limit), 0); /* both took one of its two */
}

TEST_GROUP("queued", set_up_queued, tear_down);

static void *run(void *manager)
{
    struct error err = { 0 };

    ck_assert_int_eq(manager_run(manager, &err), -ERROR_CANCELED);
    return NULL;
}

/* Their first list may come from a cache of the API server. The second one is a quorum list. */
TEST(new_leader_lists_tasks_and_jobs_again_before_it_acts)
{
    static const char ACCEPT[] =
        "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    struct error enough = { 0 };
    pthread_t thread;

    (void)error_set(&enough, ERROR_CANCELED, "enough");
    tiny_server_answer(server, "limit=500", 200,
                       "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
    tiny_server_answer(server, "watch=true", 200, "");
    ck_assert_int_eq(pthread_create(&thread, NULL, run, process.host.manager), 0);
    tiny_server_wait(server, "/tasks?limit=500", 2);
    tiny_server_wait(server, "/propellerjobs?limit=500", 2);
    ck_assert(tiny_server_saw(server, "/propellerjobs?limit=500", ACCEPT));
    manager_fail(process.host.manager, &enough);
    pthread_join(thread, NULL);
}
