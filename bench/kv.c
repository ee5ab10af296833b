/* Measures the embedded store and prints "name value" lines: bench/kv writes FILE WRITERS, objects FILE
 * NUMBER, fanout FILE WATCHES. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/store/kv.h"

#define SECONDS_EACH 3
#define MAX_THREADS 256
/* About what a Task with its status takes. */
#define TEXT_LEN 1500
#define LOADERS 16
#define FANOUT_EVENTS 500

static struct kv *kv;
static char text[TEXT_LEN + 1];
static atomic_bool stopping;
static atomic_size_t count;

static void die(const char *what, const struct error *err)
{
    (void)fprintf(stderr, "kv: %s: %s\n", what, err->message);
    exit(1);
}

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&CLOCK_SYSTEM);
}

/* Of this process: the same whoever else is at work. */
static int64_t cpu_ms(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void open_store(const char *path)
{
    struct kv_options options = { .path = path };
    struct error err;

    if (kv_open(&options, &kv, &err) < 0)
        die("open", &err);
}

static void put(const char *key)
{
    struct error err;

    if (kv_put(kv, key, text, TEXT_LEN, KV_ANY, NULL, &err) < 0)
        die("put", &err);
}

static void start_all(pthread_t *threads, size_t len, void *(*function)(void *), void **ctx)
{
    for (size_t i = 0; i < len; i++) {
        if (pthread_create(&threads[i], NULL, function, ctx ? ctx[i] : (void *)i))
            abort();
    }
}

static void join_all(pthread_t *threads, size_t len)
{
    for (size_t i = 0; i < len; i++)
        (void)pthread_join(threads[i], NULL);
}

/* --- writes --- */

static void *write_on(void *ctx)
{
    char key[64];

    for (unsigned i = 0; !atomic_load(&stopping); i++) {
        (void)snprintf(key, sizeof(key), "/registry/tasks/%zu-%u", (size_t)ctx, i % 100);
        put(key);
        atomic_fetch_add(&count, 1);
    }
    return NULL;
}

static int measure_writes(const char *path, size_t writers)
{
    pthread_t threads[MAX_THREADS];

    open_store(path);
    int64_t begin = now_ms();
    start_all(threads, writers, write_on, NULL);
    struct timespec pause = { .tv_sec = SECONDS_EACH };
    (void)nanosleep(&pause, NULL);
    atomic_store(&stopping, true);
    join_all(threads, writers);
    int64_t took = now_ms() - begin;
    (void)printf("writes-per-second %.0f\n", 1000.0 * (double)atomic_load(&count) / (double)took);
    return 0;
}

/* --- objects --- */

static size_t objects;

static void *load_some(void *ctx)
{
    char key[64];

    for (size_t i = (size_t)ctx; i < objects; i += LOADERS) {
        (void)snprintf(key, sizeof(key), "/registry/tasks/default/task-%06zu", i);
        put(key);
    }
    return NULL;
}

static long resident_kib(void)
{
    FILE *status = fopen("/proc/self/status", "re");
    char line[256];
    long kib = 0;

    while (status && fgets(line, sizeof(line), status)) {
        if (str_has_prefix(line, "VmRSS:"))
            kib = strtol(line + strlen("VmRSS:"), NULL, 10);
    }
    if (status)
        (void)fclose(status);
    return kib;
}

static void list_in_pages(void)
{
    struct kv_range range = { .prefix = "/registry/tasks/", .limit = 500 };
    char after[KV_MAX_KEY + 1];

    for (;;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_page page;
        struct error err;
        if (kv_list(kv, arena, &range, &page, &err) < 0)
            die("list", &err);
        if (!page.remaining)
            return;
        (void)snprintf(after, sizeof(after), "%s", page.items[page.len - 1].key);
        range.after = after;
        range.revision = page.revision;
        range.uncounted = true;
    }
}

/* Filled, closed and opened again: what a process takes that serves so many. */
static int measure_objects(const char *path, size_t len)
{
    pthread_t threads[LOADERS];

    objects = len;
    open_store(path);
    start_all(threads, LOADERS, load_some, NULL);
    join_all(threads, LOADERS);
    kv_close(kv);

    alloc_give_back();
    int64_t begin = now_ms(), cpu_begin = cpu_ms();
    open_store(path);
    (void)printf("start-ms %" PRIi64 "\nstart-cpu-ms %" PRIi64 "\n", now_ms() - begin,
                 cpu_ms() - cpu_begin);
    begin = now_ms();
    list_in_pages();
    (void)printf("list-ms %" PRIi64 "\n", now_ms() - begin);
    (void)printf("resident-kib %ld\n", resident_kib());
    return 0;
}

/* --- watches --- */

struct follower {
    struct kv_watch *watch;
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool more;
};

static void tell(void *ctx)
{
    struct follower *follower = ctx;

    (void)pthread_mutex_lock(&follower->lock);
    follower->more = true;
    (void)pthread_cond_signal(&follower->told);
    (void)pthread_mutex_unlock(&follower->lock);
}

static void await_more(struct follower *follower)
{
    (void)pthread_mutex_lock(&follower->lock);
    while (!follower->more)
        (void)pthread_cond_wait(&follower->told, &follower->lock);
    follower->more = false;
    (void)pthread_mutex_unlock(&follower->lock);
}

static void *follow(void *ctx)
{
    struct follower *follower = ctx;

    for (int seen = 0; seen < FANOUT_EVENTS;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        struct kv_event event;
        struct error err;
        int r = kv_watch_next(follower->watch, arena, &event, &err);
        if (r < 0)
            die("watch", &err);
        seen += r;
        if (r == 0)
            await_more(follower);
    }
    return NULL;
}

/* From the first write to the moment at which every watch has every event. */
static int measure_fanout(const char *path, size_t watches)
{
    static struct follower followers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    void *ctx[MAX_THREADS];
    char key[64];
    struct error err;

    open_store(path);
    for (size_t i = 0; i < watches; i++) {
        (void)pthread_mutex_init(&followers[i].lock, NULL);
        (void)pthread_cond_init(&followers[i].told, NULL);
        ctx[i] = &followers[i];
        if (kv_watch(kv, "/registry/", kv_revision(kv), &followers[i].watch, &err) < 0)
            die("watch", &err);
        kv_watch_set_notify(followers[i].watch, tell, ctx[i]);
    }
    start_all(threads, watches, follow, ctx);
    int64_t begin = now_ms();
    for (int i = 0; i < FANOUT_EVENTS; i++) {
        (void)snprintf(key, sizeof(key), "/registry/tasks/%d", i);
        put(key);
    }
    int64_t written = now_ms() - begin;
    join_all(threads, watches);
    int64_t took = now_ms() - begin;
    (void)printf("events-per-second %.0f\n",
                 1000.0 * (double)(watches * FANOUT_EVENTS) / (double)(took ? took : 1));
    (void)printf("behind-ms %" PRIi64 "\n", took - written);
    for (size_t i = 0; i < watches; i++)
        kv_watch_close(followers[i].watch);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*measure)(const char *path, size_t number);
    } MEASURES[] = { { "writes", measure_writes },
                     { "objects", measure_objects },
                     { "fanout", measure_fanout } };
    int64_t number = 0;

    alloc_init();
    memset(text, 'x', TEXT_LEN);
    for (size_t i = 0; argc == 4 && i < ARRAY_LEN(MEASURES); i++) {
        if (!str_equal(argv[1], MEASURES[i].name) || !str_to_int64(argv[3], &number) || number < 0)
            continue;
        if (i != 1 && (number < 1 || number > MAX_THREADS))
            break;
        int status = MEASURES[i].measure(argv[2], (size_t)number);
        kv_close(kv);
        return status;
    }
    (void)fprintf(stderr, "usage: kv writes|fanout FILE 1..%d, kv objects FILE NUMBER\n",
                  MAX_THREADS);
    return 2;
}
