/* What users of an API server see of its speed, by the client library of the operator, whichever server it is:
 *
 *   apiserver writes   N writers, each of which changes a Task of its own for so many seconds
 *   apiserver fill     N Tasks of about 1.5 KiB are made by 16 writers
 *   apiserver list     all Tasks, in pages of 500: the median of five times
 *   apiserver lists    N clients of one user list all Tasks again and again, for so many seconds
 *   apiserver patches  N changes of one Task, one after the other
 *   apiserver fanout   N watches of all Tasks of the namespace are told of 300 changes of one Task, written as fast
 *                      as they are answered; and of 60 more, each when all of them were told of the one before
 *
 * Prints "name value" lines. */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/client.h"
#include "common/api/kinds.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/watch.h"

#define MAX_WATCHES 128 /* of one user of propeller-standalone, docs/explanation/standalone.md */
#define MAX_THREADS 250
#define MAX_WRITERS 64
#define MAX_PATCHES 10000
#define LOADERS 16
#define TEXT_LEN 1200
#define FANOUT_EVENTS 300
#define FANOUT_SINGLE 60
#define LISTS 5
#define WAIT_MS 300000

static const char *kubeconfig, *ns;
static int64_t number, seconds = 5;
static struct bench_client client;
static int64_t end_ms;
static atomic_long count;

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&CLOCK_SYSTEM);
}

/* A Task of this name, which may be there already. */
static void make_task(const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char filling[TEXT_LEN + 1] = { 0 };
    struct error err = { 0 };

    memset(filling, 'x', TEXT_LEN);
    const char *text = arena_printf(
        arena,
        "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\","
        "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},\"spec\":{\"name\":\"%s\","
        "\"imageUrl\":\"registry.example/bench:1\",\"suspend\":true,\"env\":{\"FILLING\":\"%s\"}}}",
        name, ns, name, filling);
    if (kube_create(client.kube, NULL, &KIND_TASK, bench_tree(arena, text), NULL, &err) < 0 &&
        err.code != ERROR_EXISTS)
        bench_die("make a Task", &err);
}

static void change_task(const char *name, long value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name full;
    struct error err = { 0 };

    if (!kube_name_set(&full, ns, name))
        bench_die("a name is too long", &err);
    const cJSON *patch = bench_tree(
        arena, arena_printf(arena, "{\"metadata\":{\"annotations\":{\"bench\":\"%ld\"}}}", value));
    if (kube_patch(client.kube, NULL, &KIND_TASK, &full, KUBE_MAIN, KUBE_PATCH_MERGE, patch, NULL,
                   &err) < 0)
        bench_die("change a Task", &err);
}

/* --- writes --- */

static void run_threads(size_t len, void *(*function)(void *))
{
    pthread_t threads[MAX_THREADS];

    for (size_t i = 0; i < len; i++) {
        if (pthread_create(&threads[i], NULL, function, (void *)i))
            abort();
    }
    for (size_t i = 0; i < len; i++)
        (void)pthread_join(threads[i], NULL);
}

static void *write_on(void *ctx)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "writer-%zu", (size_t)ctx);
    for (long i = 0; now_ms() < end_ms; i++) {
        change_task(name, i);
        atomic_fetch_add(&count, 1);
    }
    return NULL;
}

static void measure_writes(void)
{
    char name[32];

    for (int64_t i = 0; i < number; i++) {
        (void)snprintf(name, sizeof(name), "writer-%" PRId64, i);
        make_task(name);
    }
    int64_t began_ms = now_ms();
    end_ms = began_ms + seconds * 1000;
    run_threads((size_t)number, write_on);
    printf("writes-per-second %.1f\n",
           (double)atomic_load(&count) * 1e3 / (double)(now_ms() - began_ms));
}

/* --- objects --- */

static void *make_some(void *ctx)
{
    char name[32];

    for (int64_t i = (int64_t)(size_t)ctx; i < number; i += LOADERS) {
        (void)snprintf(name, sizeof(name), "filling-%06" PRId64, i);
        make_task(name);
    }
    return NULL;
}

static void fill(void)
{
    int64_t began_ms = now_ms();

    run_threads(LOADERS, make_some);
    printf("fill-ms %" PRId64 "\n", now_ms() - began_ms);
}

static int count_item(void *ctx, const cJSON *item, struct error *err)
{
    (void)ctx;
    (void)item;
    (void)err;
    atomic_fetch_add(&count, 1);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static double median(double *values, size_t len)
{
    qsort(values, len, sizeof(*values), by_value);
    return values[len / 2];
}

static double ms_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) * 1e3 + (double)(to->tv_nsec - from->tv_nsec) / 1e6;
}

static void list(void)
{
    const struct kube_list_options options = { .ns = ns };
    double took_ms[LISTS];
    struct error err = { 0 };

    for (size_t i = 0; i < LISTS; i++) {
        int64_t began_ms = now_ms();

        if (kube_list(client.kube, &KIND_TASK, &options, count_item, NULL, &err) < 0)
            bench_die("list", &err);
        took_ms[i] = (double)(now_ms() - began_ms);
    }
    printf("list-ms %.0f\nlists %d\nobjects %ld\n", median(took_ms, LISTS), LISTS,
           atomic_load(&count) / LISTS);
}

static atomic_long refused;

static void *list_on(void *ctx)
{
    const struct kube_list_options options = { .ns = ns };

    (void)ctx;
    while (now_ms() < end_ms) {
        struct error err = { 0 };

        if (kube_list(client.kube, &KIND_TASK, &options, count_item, NULL, &err) == 0)
            continue;
        if (!error_is_transient(&err))
            bench_die("list", &err);
        atomic_fetch_add(&refused, 1);
        (void)usleep((useconds_t)err.retry_after_ms * 1000);
    }
    return NULL;
}

static void list_at_once(void)
{
    end_ms = now_ms() + seconds * 1000;
    run_threads((size_t)number, list_on);
    printf("listed %ld\nrefused %ld\n", atomic_load(&count), atomic_load(&refused));
}

static void patch_in_turn(void)
{
    double took_ms[MAX_PATCHES] = { 0 };

    make_task("patched");
    for (int64_t i = 0; i < number; i++) {
        struct timespec from, to;

        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        change_task("patched", i);
        (void)clock_gettime(CLOCK_MONOTONIC, &to);
        took_ms[i] = ms_between(&from, &to);
    }
    printf("p50-ms %.1f\n", median(took_ms, (size_t)number));
    printf("p99-ms %.1f\n", took_ms[number * 99 / 100]);
}

/* --- watches --- */

/* How many watches have seen this many changes; the thread of the loop alone counts. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int seen[MAX_WATCHES];
    int lists, goal;
    int64_t at_goal;
} watches = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void told(void *ctx, enum watch_event_type type, struct kube_object *object,
                 const char *version)
{
    (void)object;
    (void)version;
    if (type != WATCH_APPLY && type != WATCH_INIT_DONE)
        return;
    (void)pthread_mutex_lock(&watches.lock);
    if (type == WATCH_INIT_DONE)
        watches.lists++;
    else if (++watches.seen[(size_t)ctx] == watches.goal)
        watches.at_goal++;
    (void)pthread_cond_signal(&watches.changed);
    (void)pthread_mutex_unlock(&watches.lock);
}

/* Until all watches have seen so many changes; with 0 changes, until all have listed. */
static void await_changes(int64_t watchers, int goal)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    (void)pthread_mutex_lock(&watches.lock);
    while ((goal ? watches.at_goal : watches.lists) < watchers) {
        if (pthread_cond_timedwait(&watches.changed, &watches.lock, &until))
            bench_die("the watches", NULL);
    }
    (void)pthread_mutex_unlock(&watches.lock);
}

static void set_goal(int goal)
{
    (void)pthread_mutex_lock(&watches.lock);
    watches.goal = goal;
    watches.at_goal = 0;
    (void)pthread_mutex_unlock(&watches.lock);
}

/* From the answer to a change to the moment at which all watches have it, one change at a time: what a server
 * that writes faster is not at a disadvantage with. */
static double told_ms(void)
{
    double took_ms[FANOUT_SINGLE];

    for (int i = 0; i < FANOUT_SINGLE; i++) {
        struct timespec from, to;

        set_goal(1 + FANOUT_EVENTS + 1 + i);
        change_task("watched", FANOUT_EVENTS + i);
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        await_changes(number, 1 + FANOUT_EVENTS + 1 + i);
        (void)clock_gettime(CLOCK_MONOTONIC, &to);
        took_ms[i] = ms_between(&from, &to);
    }
    return median(took_ms, FANOUT_SINGLE);
}

static void measure_fanout(void)
{
    struct watch_loop *loop = watch_loop_create(client.config);
    struct watch_machine *machines[MAX_WATCHES];
    const struct watch_options options = { .kind = &KIND_TASK, .ns = ns };
    struct error err = { 0 };

    make_task("watched");
    for (int64_t i = 0; i < number; i++) {
        machines[i] = watch_machine_create(&options, told, (void *)(size_t)i);
        watch_loop_add(loop, machines[i]);
    }
    if (watch_loop_start(loop, &err) < 0)
        bench_die("the watches", &err);
    await_changes(number, 0);
    set_goal(1); /* until then a watch may not have begun */
    change_task("watched", -1);
    await_changes(number, 1);
    set_goal(1 + FANOUT_EVENTS);
    int64_t began_ms = now_ms();
    for (long i = 0; i < FANOUT_EVENTS; i++)
        change_task("watched", i);
    int64_t written_ms = now_ms();
    await_changes(number, 1 + FANOUT_EVENTS);
    int64_t end = now_ms();
    printf("events-per-second %.0f\nbehind-ms %" PRId64 "\n",
           (double)(FANOUT_EVENTS * number) * 1e3 / (double)(end - began_ms), end - written_ms);
    printf("told-ms %.2f\n", told_ms());
    printf("events %" PRId64 "\n", (1 + FANOUT_EVENTS + FANOUT_SINGLE) * number);
    watch_loop_stop(loop);
    for (int64_t i = 0; i < number; i++)
        watch_machine_destroy(machines[i]);
    watch_loop_destroy(loop);
}

static const struct {
    const char *name;
    void (*run)(void);
    int64_t max;
} MODES[] = {
    { "writes", measure_writes, MAX_WRITERS },
    { "fill", fill, 1000000 },
    { "list", list, 1000000 },
    { "lists", list_at_once, MAX_THREADS },
    { "patches", patch_in_turn, MAX_PATCHES },
    { "fanout", measure_fanout, MAX_WATCHES },
};

static const struct option OPTIONS[] = {
    { "kubeconfig", required_argument, NULL, 'k' },
    { "namespace", required_argument, NULL, 'n' },
    { "number", required_argument, NULL, 'c' },
    { "seconds", required_argument, NULL, 's' },
    { 0 },
};

static bool parse(int argc, char **argv)
{
    bool usable = true;

    for (int c; usable && (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        if (c == 'k')
            kubeconfig = optarg;
        else if (c == 'n')
            ns = optarg;
        else if (c == 'c')
            usable = str_to_int64(optarg, &number) && number > 0;
        else
            usable = c == 's' && str_to_int64(optarg, &seconds) && seconds > 0;
    }
    return usable && kubeconfig && ns && optind == argc - 1;
}

int main(int argc, char **argv)
{
    size_t mode = ARRAY_LEN(MODES);

    json_init();
    if (parse(argc, argv)) {
        for (mode = 0; mode < ARRAY_LEN(MODES) && strcmp(MODES[mode].name, argv[optind]) != 0;)
            mode++;
    }
    if (mode == ARRAY_LEN(MODES) || number > MODES[mode].max) {
        (void)fprintf(stderr,
                      "usage: apiserver writes|fill|list|lists|patches|fanout --kubeconfig FILE "
                      "--namespace NAME [--number N] [--seconds N]\n");
        return EXIT_FAILURE;
    }
    client = bench_connect(kubeconfig);
    MODES[mode].run();
    bench_disconnect(&client);
    return EXIT_SUCCESS;
}
