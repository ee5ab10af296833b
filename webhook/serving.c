#include "webhook/serving.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"
#include "webhook/pair.h"

#define DEFAULT_POLL_MS 1000

static struct metric expiry = { .type = METRIC_GAUGE,
                                .name = "propeller_webhook_certificate_expiry_seconds",
                                .help = "Seconds until the served certificate expires." };
static struct metric loads = { .type = METRIC_COUNTER,
                               .name = "propeller_webhook_certificate_loads_total",
                               .help = "Number of key pairs found, by outcome.",
                               .labels = { "result" } };

struct serving {
    struct serving_options options;
    pthread_t thread;
    bool started;
    struct pair_version seen; /* of what is served, if used; one thread at a time */
    bool used;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stopping;
    struct http_server *server; /* NULL: there was no usable pair yet */
    int64_t not_after_us;       /* of what is served */
    struct error problem;       /* of the newest files; code 0: none */
};

struct serving *serving_create(const struct serving_options *options)
{
    struct serving *serving = xcalloc(1, sizeof(*serving));

    serving->options = *options;
    if (!serving->options.poll_ms)
        serving->options.poll_ms = DEFAULT_POLL_MS;
    pthread_mutex_init(&serving->lock, NULL);
    cond_init(&serving->changed);
    return serving;
}

void serving_destroy(struct serving *serving)
{
    if (!serving)
        return;
    http_server_stop(serving->server);
    pthread_cond_destroy(&serving->changed);
    pthread_mutex_destroy(&serving->lock);
    free(serving);
}

/* --- the pair --------------------------------------------------------------------------------- */

/* The server is replaced by this thread alone, so it may be looked at without the lock. */
static int serve(struct serving *serving, const struct pair *pair, struct error *err)
{
    struct http_server_options options = serving->options.http;
    struct http_server *server = serving->server;
    int r;

    if (server) {
        r = http_server_set_pair(server, pair->cert, pair->key, err);
    } else {
        options.cert_pem = pair->cert;
        options.key_pem = pair->key;
        r = http_server_start(&options, &server, err);
    }
    if (r < 0)
        return r;

    pthread_mutex_lock(&serving->lock);
    serving->server = server;
    serving->not_after_us = pair->not_after_us;
    pthread_mutex_unlock(&serving->lock);
    return 0;
}

static int load(struct serving *serving, struct error *err)
{
    CLEANUP(pair_releasep) struct pair pair = { 0 };
    char text[RFC3339_LEN];

    int r = pair_load(serving->options.cert_dir, clock_wall_us(serving->options.clock), &pair, err);
    if (r < 0)
        return r;
    r = serve(serving, &pair, err);
    if (r < 0)
        return r;

    log_info("serving certificate", "expires", rfc3339_format(pair.not_after_us, text), NULL);
    return 0;
}

static void note(struct serving *serving, const struct error *problem)
{
    pthread_mutex_lock(&serving->lock);
    bool again = serving->problem.code == problem->code &&
                 str_equal(serving->problem.message, problem->message);
    serving->problem = *problem;
    pthread_mutex_unlock(&serving->lock);

    if (problem->code && again)
        return;
    metric_add(&loads, 1, problem->code ? "failed" : "loaded", NULL);
    if (problem->code)
        log_warn("certificate pair not used, waiting for another", "error", ERROR_TEXT(problem),
                 NULL);
}

/* Uses the files if they changed since they were last of use: the address may become free again,
 * and the time of a pair may come, without a change of the files. */
static int look(struct serving *serving, struct error *err)
{
    struct pair_version version = pair_version(serving->options.cert_dir);
    struct error problem = { 0 };

    if (serving->used && pair_version_equal(&version, &serving->seen))
        return 0;

    int r = load(serving, &problem);
    serving->seen = version;
    serving->used = r == 0;
    note(serving, &problem);
    if (err)
        *err = problem;
    return r;
}

static void count_down(struct serving *serving)
{
    pthread_mutex_lock(&serving->lock);
    bool serves = serving->server != NULL;
    int64_t left_us = serving->not_after_us - clock_wall_us(serving->options.clock);
    pthread_mutex_unlock(&serving->lock);

    if (serves)
        metric_set(&expiry, (double)left_us / 1e6, NULL);
}

static void *follow(void *self)
{
    struct serving *serving = self;

    pthread_mutex_lock(&serving->lock);
    while (!serving->stopping) {
        struct timespec deadline = cond_deadline(serving->options.poll_ms);

        pthread_mutex_unlock(&serving->lock);
        (void)look(serving, NULL);
        count_down(serving);
        pthread_mutex_lock(&serving->lock);
        while (!serving->stopping && cond_wait_until(&serving->changed, &serving->lock, &deadline))
            ;
    }
    pthread_mutex_unlock(&serving->lock);
    return NULL;
}

/* --- the manager's side ------------------------------------------------------------------------
 */

int serving_start(void *self, struct error *err)
{
    struct serving *serving = self;
    int r = look(serving, err);

    if (r == -ERROR_UNAVAILABLE)
        return r;
    count_down(serving);
    r = thread_start(&serving->thread, "certificates", follow, serving, err);
    serving->started = r == 0;
    return r;
}

void serving_stop(void *self)
{
    struct serving *serving = self;

    pthread_mutex_lock(&serving->lock);
    serving->stopping = true;
    pthread_cond_signal(&serving->changed);
    pthread_mutex_unlock(&serving->lock);
}

void serving_join(void *self)
{
    struct serving *serving = self;

    if (serving->started)
        thread_join(serving->thread);
    serving->started = false;

    pthread_mutex_lock(&serving->lock);
    struct http_server *server = serving->server;
    serving->server = NULL;
    pthread_mutex_unlock(&serving->lock);
    http_server_stop(server);
}

int serving_check(void *self, char *why, size_t size)
{
    struct serving *serving = self;
    char text[RFC3339_LEN];

    pthread_mutex_lock(&serving->lock);
    bool serves = serving->server != NULL;
    int64_t not_after_us = serving->not_after_us;
    struct error problem = serving->problem;
    pthread_mutex_unlock(&serving->lock);

    if (!serves)
        (void)snprintf(why, size, "no certificate: %s", problem.message);
    else if (not_after_us <= clock_wall_us(serving->options.clock))
        (void)snprintf(why, size, "the certificate expired at %s",
                       rfc3339_format(not_after_us, text));
    else
        return 1;
    return 0;
}

unsigned serving_port(struct serving *serving)
{
    pthread_mutex_lock(&serving->lock);
    struct http_server *server = serving->server;
    pthread_mutex_unlock(&serving->lock);
    return server ? http_server_port(server) : 0;
}
