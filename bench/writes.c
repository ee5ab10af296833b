/* The ceiling: what the client library of the operator alone makes of the writes that Tasks cost, with
 * nothing else to do. The Tasks PREFIX-1 ... PREFIX-N are there; each is written as the operator
 * writes it: metadata (if asked for), then two statuses one after the other, each guarded by the
 * version that the reply before it had. Events are made by one thread beside, as the operator does.
 *
 * Prints "seconds=S" and "writes=N", of Tasks only. */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/client.h"
#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/guarded_patch.h"
#include "common/kube/kinds.h"

#define MAX_THREADS 64
#define NOW "2026-01-01T00:00:00Z"

struct settings {
    const char *kubeconfig, *ns, *prefix;
    int64_t tasks, threads, events;
    int64_t metadata; /* 1: a write of metadata for each Task */
};

struct writer {
    const struct settings *settings;
    struct kube_client *client;
    pthread_t thread;
};

static atomic_long next_task = 1;
static atomic_long writes;

#define CONDITION(type, status, reason, message)                                                   \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"observedGeneration\":1,"                   \
    "\"lastTransitionTime\":\"" NOW "\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"
#define CHOSEN                                                                                     \
    "\"assignedProplet\":\"worker-1\",\"assignedClientId\":\"device-1\",\"attempt\":1,"            \
    "\"createdAt\":\"" NOW "\",\"scheduledAt\":\"" NOW "\",\"observedGeneration\":1,\"run\":1"
#define SCHEDULED CONDITION("Scheduled", "True", "Assigned", "assigned to Proplet 'worker-1'")
#define STARTED CONDITION("Started", "True", "Started", "started on Proplet 'worker-1'")

static const char *const STATUSES[] = {
    "{\"phase\":\"scheduled\"," CHOSEN ",\"conditions\":[" SCHEDULED "]}",
    "{\"phase\":\"completed\"," CHOSEN ",\"startedAt\":\"" NOW "\",\"finishedAt\":\"" NOW
    "\",\"results\":\"42\",\"conditions\":[" SCHEDULED "," STARTED
    "," CONDITION("Completed", "True", "Completed", "completed on Proplet 'worker-1'") "]}",
};
static const char METADATA[] = "{\"metadata\":{\"annotations\":{\"bench\":\"written\"}}}";

static cJSON *patch(struct kube_client *client, struct arena *arena, const struct kube_name *name,
                    enum kube_subresource subresource, enum kube_patch_type type, const cJSON *body)
{
    cJSON *reply = NULL;
    struct error err = { 0 };

    if (kube_patch(client, arena, &KIND_TASK, name, subresource, type, body, &reply, &err) < 0)
        bench_die(name->name, &err);
    atomic_fetch_add(&writes, 1);
    return reply;
}

static void write_task(const struct writer *writer, long number)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    cJSON *object = NULL;
    const struct settings *settings = writer->settings;
    const char *text = arena_printf(arena, "%s-%ld", settings->prefix, number);
    struct kube_name name;
    struct error err = { 0 };

    if (!kube_name_set(&name, settings->ns, text))
        bench_die("a name is too long", &err);
    if (settings->metadata)
        object = patch(writer->client, arena, &name, KUBE_MAIN, KUBE_PATCH_MERGE,
                       bench_tree(arena, METADATA));
    else if (kube_get(writer->client, arena, &KIND_TASK, &name, &object, &err) < 0)
        bench_die(text, &err);
    for (size_t i = 0; i < ARRAY_LEN(STATUSES); i++) {
        struct json_patch *operations = guarded_patch_create(arena, object, "status");

        json_patch_members(operations, "/status", json_get(object, "status"),
                           bench_tree(arena, STATUSES[i]));
        object = patch(writer->client, arena, &name, KUBE_STATUS, KUBE_PATCH_JSON,
                       json_patch_operations(operations));
    }
}

static void *write_tasks(void *self)
{
    const struct writer *writer = self;

    for (;;) {
        long number = atomic_fetch_add(&next_task, 1);
        if (number > writer->settings->tasks)
            return NULL;
        write_task(writer, number);
    }
}

static void *write_events(void *self)
{
    const struct writer *writer = self;
    const struct settings *settings = writer->settings;

    for (int64_t i = 0; i < settings->events && atomic_load(&next_task) <= settings->tasks; i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct error err = { 0 };
        const char *text = arena_printf(
            arena,
            "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"namespace\":"
            "\"%s\",\"name\":\"%s.%lld\"},\"eventTime\":\"2026-01-01T00:00:00.000000Z\",\"reason\":"
            "\"Started\",\"action\":\"Started\",\"type\":\"Normal\",\"note\":\"started on Proplet "
            "'worker-1'\",\"reportingController\":\"bench\",\"reportingInstance\":\"bench\","
            "\"regarding\":{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":"
            "\"Task\",\"namespace\":\"%s\",\"name\":\"%s-1\"}}",
            settings->ns, settings->prefix, (long long)i, settings->ns, settings->prefix);

        if (kube_create(writer->client, arena, &KIND_EVENT, bench_tree(arena, text), NULL, &err) <
            0)
            bench_die("an Event", &err);
    }
    return NULL;
}

static void run(const struct settings *settings, struct kube_client *client)
{
    struct writer writers[MAX_THREADS + 1] = { 0 };
    int64_t began_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    for (int64_t i = 0; i <= settings->threads; i++) {
        writers[i] = (struct writer){ .settings = settings, .client = client };
        if (pthread_create(&writers[i].thread, NULL,
                           i < settings->threads ? write_tasks : write_events, &writers[i]) != 0)
            exit(EXIT_FAILURE);
    }
    for (int64_t i = 0; i < settings->threads; i++)
        pthread_join(writers[i].thread, NULL);
    printf("seconds=%.3f\nwrites=%ld\n",
           (double)(clock_monotonic_ms(&CLOCK_SYSTEM) - began_ms) / 1e3, atomic_load(&writes));
    pthread_join(writers[settings->threads].thread, NULL);
}

static const struct option OPTIONS[] = {
    { "kubeconfig", required_argument, NULL, 'k' }, { "namespace", required_argument, NULL, 'n' },
    { "prefix", required_argument, NULL, 'p' },     { "tasks", required_argument, NULL, 't' },
    { "threads", required_argument, NULL, 'w' },    { "events", required_argument, NULL, 'e' },
    { "metadata", required_argument, NULL, 'm' },   { 0 },
};

static bool parse(int argc, char **argv, struct settings *ret)
{
    bool usable = true;

    for (int c; usable && (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        switch (c) {
        case 'k':
            ret->kubeconfig = optarg;
            break;
        case 'n':
            ret->ns = optarg;
            break;
        case 'p':
            ret->prefix = optarg;
            break;
        case 't':
            usable = str_to_int64(optarg, &ret->tasks);
            break;
        case 'w':
            usable = str_to_int64(optarg, &ret->threads);
            break;
        case 'e':
            usable = str_to_int64(optarg, &ret->events);
            break;
        case 'm':
            usable = str_to_int64(optarg, &ret->metadata);
            break;
        default:
            usable = false;
            break;
        }
    }
    return usable && ret->kubeconfig && ret->ns && ret->prefix && ret->tasks > 0 &&
           ret->threads > 0 && ret->threads <= MAX_THREADS && ret->events >= 0;
}

int main(int argc, char **argv)
{
    struct settings settings = { .threads = 8 };

    json_init();
    if (!parse(argc, argv, &settings)) {
        (void)fprintf(stderr,
                      "usage: writes --kubeconfig FILE --namespace NAME --prefix TEXT --tasks N "
                      "[--threads 1..%d] [--events N] [--metadata 0|1]\n",
                      MAX_THREADS);
        return EXIT_FAILURE;
    }

    struct bench_client client = bench_connect(settings.kubeconfig);

    run(&settings, client.kube);
    bench_disconnect(&client);
    return EXIT_SUCCESS;
}
