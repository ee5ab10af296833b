/* Sends reviews to a webhook at a steady rate over a number of connections, and says how long the
 * answers took and how many failed. */
#include <curl/curl.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/compiler.h"

#define MAX_CONNECTIONS 4096
#define MAX_BODY (8u << 20)
#define STACK_BYTES (256u << 10)
#define TIMEOUT_S 30L
#define SECOND_NS 1000000000LL
#define FAILURES_TOLD 5
/* Handshakes of all connections at once outlast what a server allows for one, on a busy machine. */
#define CONNECTING_AT_ONCE 16

struct settings {
    const char *url, *ca, *resolve;
    char *body;
    size_t body_len;
    long connections;
    long rate;         /* requests a second, of all connections; 0: as fast as they are answered */
    long requests;     /* of all connections */
    long fresh_every;  /* of so many connections one makes a new one for each request; 0: none */
    const char *until; /* instead of a number of requests: while there is no such file */
};

struct connection {
    const struct settings *settings;
    long index;
    CURL *easy;
    pthread_t thread;
    int64_t *taken_ns;
    long count;
};

static pthread_barrier_t all_connected;
static sem_t connecting;
static int64_t start_ns;
static atomic_long failures;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

static void wait_until(int64_t when_ns)
{
    const struct timespec when = { .tv_sec = when_ns / SECOND_NS, .tv_nsec = when_ns % SECOND_NS };

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static size_t drop(char *bytes UNUSED, size_t size, size_t count, void *ctx UNUSED)
{
    return size * count;
}

static void ask(CURL *easy)
{
    long status = 0;
    CURLcode r = curl_easy_perform(easy);

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (r == CURLE_OK && status == 200)
        return;
    if (atomic_fetch_add(&failures, 1) < FAILURES_TOLD)
        (void)fprintf(stderr, "failed: %s, status %ld\n", curl_easy_strerror(r), status);
}

static CURL *make_easy(const struct settings *settings, long index)
{
    CURL *easy = curl_easy_init();
    bool is_fresh = settings->fresh_every && index % settings->fresh_every == 0;
    /* They live as long as the program. */
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    struct curl_slist *resolve =
        settings->resolve ? curl_slist_append(NULL, settings->resolve) : NULL;

    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_URL, settings->url);
    curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca);
    curl_easy_setopt(easy, CURLOPT_RESOLVE, resolve);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, settings->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)settings->body_len);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, (long)is_fresh);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, (long)is_fresh);
    return easy;
}

static bool goes_on(const struct settings *settings, long number)
{
    return settings->until ? access(settings->until, F_OK) != 0 : number < settings->requests;
}

/* A request's time begins when it was due, not when the connection came to it: a server that is
 * late makes the next one late, too. */
static void *run(void *self)
{
    struct connection *connection = self;
    const struct settings *settings = connection->settings;

    sem_wait(&connecting);
    ask(connection->easy);
    sem_post(&connecting);
    pthread_barrier_wait(&all_connected);
    pthread_barrier_wait(&all_connected); /* start_ns is set */
    for (long number = connection->index; goes_on(settings, number);
         number += settings->connections) {
        int64_t due_ns = now_ns();

        if (settings->rate) {
            due_ns = start_ns + number * (SECOND_NS / settings->rate);
            wait_until(due_ns);
        }
        ask(connection->easy);
        if (number < settings->requests)
            connection->taken_ns[number] = now_ns() - due_ns;
        connection->count++;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static double percentile_ms(const int64_t *sorted_ns, long count, double part)
{
    long index = (long)((double)count * part);

    return (double)sorted_ns[index < count ? index : count - 1] / 1e6;
}

static void report(const struct settings *settings, int64_t *taken_ns, long count)
{
    if (!settings->until) {
        qsort(taken_ns, (size_t)settings->requests, sizeof(*taken_ns), compare);
        printf("p50_ms=%.2f\np99_ms=%.2f\nmax_ms=%.2f\n",
               percentile_ms(taken_ns, settings->requests, 0.5),
               percentile_ms(taken_ns, settings->requests, 0.99),
               percentile_ms(taken_ns, settings->requests, 1));
    }
    printf("requests=%ld\nfailed=%ld\n", count, atomic_load(&failures));
}

static int run_all(const struct settings *settings)
{
    struct connection *connections =
        xcalloc((size_t)settings->connections, sizeof(struct connection));
    int64_t *taken_ns = xcalloc((size_t)settings->requests + 1, sizeof(*taken_ns));
    pthread_attr_t attributes;
    long count = 0;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sem_init(&connecting, 0, CONNECTING_AT_ONCE);
    pthread_barrier_init(&all_connected, NULL, (unsigned)settings->connections + 1);
    for (long i = 0; i < settings->connections; i++) {
        connections[i] = (struct connection){
            .settings = settings, .index = i, .easy = make_easy(settings, i), .taken_ns = taken_ns
        };
        if (pthread_create(&connections[i].thread, &attributes, run, &connections[i]) != 0)
            return EXIT_FAILURE;
    }
    pthread_barrier_wait(&all_connected);
    start_ns = now_ns() + SECOND_NS; /* nobody is late before the first one is due */
    pthread_barrier_wait(&all_connected);
    for (long i = 0; i < settings->connections; i++) {
        pthread_join(connections[i].thread, NULL);
        count += connections[i].count;
    }
    report(settings, taken_ns, count);
    free(connections);
    free(taken_ns);
    return atomic_load(&failures) ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool read_body(const char *path, struct settings *settings)
{
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    settings->body = xcalloc(1, MAX_BODY);
    settings->body_len = fread(settings->body, 1, MAX_BODY, file);
    return fclose(file) == 0 && settings->body_len < MAX_BODY;
}

static const struct option OPTIONS[] = {
    { "url", required_argument, NULL, 'u' },
    { "ca", required_argument, NULL, 'a' },
    { "resolve", required_argument, NULL, 'e' }, /* as curl's: name:port:address */
    { "body", required_argument, NULL, 'b' },
    { "connections", required_argument, NULL, 'c' },
    { "rate", required_argument, NULL, 'r' },
    { "requests", required_argument, NULL, 'n' },
    { "fresh-every", required_argument, NULL, 'f' },
    { "until", required_argument, NULL, 't' },
    { 0 },
};

static bool parse(int argc, char **argv, struct settings *ret)
{
    bool is_usable = true;

    for (int c; (c = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        long number = strtol(optarg ? optarg : "", NULL, 10);

        switch (c) {
        case 'u':
            ret->url = optarg;
            break;
        case 'a':
            ret->ca = optarg;
            break;
        case 'e':
            ret->resolve = optarg;
            break;
        case 'b':
            is_usable = read_body(optarg, ret);
            break;
        case 'c':
            ret->connections = number;
            break;
        case 'r':
            ret->rate = number;
            break;
        case 'n':
            ret->requests = number;
            break;
        case 'f':
            ret->fresh_every = number;
            break;
        case 't':
            ret->until = optarg;
            break;
        default:
            is_usable = false;
            break;
        }
        if (!is_usable)
            return false;
    }
    return ret->url && ret->ca && ret->body && ret->connections > 0 &&
           ret->connections <= MAX_CONNECTIONS && ret->rate >= 0 && ret->requests >= 0 &&
           (ret->until || ret->requests > 0);
}

int main(int argc, char **argv)
{
    struct settings settings = { .connections = 8 };

    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (!parse(argc, argv, &settings)) {
        (void)fprintf(stderr, "usage: load --url URL --ca FILE --body FILE [--connections N] "
                              "[--rate N] (--requests N | --until FILE) [--fresh-every N] "
                              "[--resolve NAME:PORT:ADDRESS]\n");
        return EXIT_FAILURE;
    }
    int r = run_all(&settings);
    free(settings.body);
    return r;
}
