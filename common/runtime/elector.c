#include "common/runtime/elector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/backoff.h"
#include "common/runtime/metrics.h"

/* A leader that could not renew for so many lease durations does not hope any more. */
#define GIVE_UP_DURATIONS 4
/* client-go: standbys wait up to 1.2 retry periods longer, so that they do not all come at once. */
#define JITTER_PERCENT 120

struct elector {
    struct elector_options options;
    char *identity;
    struct kube_client *client;
    const struct clock *clock;
    struct elector_callbacks callbacks;
    pthread_t thread;
    bool running;

    struct lease_view view; /* the thread's own */
    bool led;               /* started() was called */

    _Atomic int64_t
        renewed_ms; /* boot time at which the last renewal that succeeded began; 0: none */
    atomic_bool leader;

    pthread_mutex_t lock; /* leaf: guards stopping */
    pthread_cond_t changed;
    bool stopping;
};

static struct metric MASTER = { .type = METRIC_GAUGE,
                                .name = "leader_election_master_status",
                                .help = "1: this process holds the Lease.",
                                .labels = { "name" } };

enum lease_action lease_decide(const struct lease_view *view, const struct elector_options *options,
                               int64_t now_ms)
{
    if (!view->exists)
        return LEASE_CREATE;
    if (str_equal(view->holder, options->identity))
        return LEASE_RENEW;
    if (str_is_empty(view->holder) || now_ms >= view->observed_ms + view->duration_ms)
        return LEASE_TAKE;
    return LEASE_WAIT;
}

struct elector *elector_create(const struct elector_options *options, struct kube_client *client,
                               const struct clock *clock, const struct elector_callbacks *callbacks)
{
    struct elector *elector = xcalloc(1, sizeof(*elector));

    elector->options = *options;
    elector->identity = xstrdup(options->identity);
    elector->options.identity = elector->identity;
    elector->client = client;
    elector->clock = clock;
    elector->callbacks = *callbacks;
    pthread_mutex_init(&elector->lock, NULL);
    cond_init(&elector->changed);
    return elector;
}

void elector_destroy(struct elector *elector)
{
    if (!elector)
        return;

    pthread_cond_destroy(&elector->changed);
    pthread_mutex_destroy(&elector->lock);
    free(elector->identity);
    free(elector);
}

bool elector_may_act(void *ctx)
{
    struct elector *elector = ctx;
    int64_t renewed_ms = atomic_load(&elector->renewed_ms);

    return renewed_ms &&
           clock_boot_ms(elector->clock) < renewed_ms + elector->options.renew_deadline_ms;
}

bool elector_is_leader(struct elector *elector)
{
    return atomic_load(&elector->leader);
}

/* What a reply or a read says of the Lease. Only a new version moves the time of observation. */
static void observe(struct elector *elector, const cJSON *lease, int64_t now_ms)
{
    const cJSON *spec = json_get(lease, "spec");
    const char *version = json_string(json_path(lease, "metadata", "resourceVersion", NULL), "");
    struct lease_view *view = &elector->view;

    if (!view->exists || !str_equal(view->version, version))
        view->observed_ms = now_ms;
    view->exists = true;
    str_copy(view->version, sizeof(view->version), version);
    /* A holder that does not fit is not us, and must not look like nobody. */
    if (!str_copy(view->holder, sizeof(view->holder),
                  json_string(json_get(spec, "holderIdentity"), "")))
        str_copy(view->holder, sizeof(view->holder), "<too long>");

    int64_t seconds =
        json_int(json_get(spec, "leaseDurationSeconds"), elector->options.lease_duration_ms / 1000);
    view->duration_ms = seconds > 0 && seconds <= UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : 0;
    view->transitions = json_int(json_get(spec, "leaseTransitions"), 0);
}

static int read_lease(struct elector *elector, struct arena *arena, int64_t now_ms,
                      struct error *err)
{
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    int r = kube_get(elector->client, &KIND_LEASE, &elector->options.lease, &object, err);

    if (r == -ERROR_NOT_FOUND) {
        elector->view = (struct lease_view){ 0 };
        return 0;
    }
    if (r < 0)
        return r;

    observe(elector, kube_object_json(arena, object), now_ms);
    return 0;
}

static cJSON *lease_object(struct elector *elector, struct arena *arena, enum lease_action action,
                           const char *holder)
{
    char time[RFC3339_LEN];
    cJSON *lease = json_object(arena);
    cJSON *metadata = json_set_object(lease, "metadata");
    cJSON *spec = json_set_object(lease, "spec");
    int64_t seconds = (elector->options.lease_duration_ms + 999) / 1000;

    rfc3339_format_micro(clock_wall_us(elector->clock), time);
    json_set_string(spec, "holderIdentity", holder);
    json_set_int(spec, "leaseDurationSeconds", *holder ? seconds : 1);
    json_set_string(spec, "renewTime", time);
    if (action != LEASE_RENEW)
        json_set_string(spec, "acquireTime", time);
    if (action == LEASE_TAKE)
        json_set_int(spec, "leaseTransitions", elector->view.transitions + 1);
    if (action != LEASE_CREATE) {
        json_set_string(metadata, "resourceVersion", elector->view.version);
        return lease;
    }
    json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
    json_set_string(lease, "kind", "Lease");
    json_set_string(metadata, "namespace", elector->options.lease.ns);
    json_set_string(metadata, "name", elector->options.lease.name);
    json_set_int(spec, "leaseTransitions", 0);
    return lease;
}

static int write_lease(struct elector *elector, struct arena *arena, enum lease_action action,
                       const char *holder, struct error *err)
{
    CLEANUP(kube_object_unrefp) struct kube_object *reply = NULL;
    const cJSON *lease = lease_object(elector, arena, action, holder);
    int r = action == LEASE_CREATE
                ? kube_create(elector->client, &KIND_LEASE, lease, &reply, err)
                : kube_patch(elector->client, &KIND_LEASE, &elector->options.lease, KUBE_MAIN,
                             KUBE_PATCH_MERGE, lease, &reply, err);
    if (r < 0)
        return r;

    observe(elector, kube_object_json(arena, reply), clock_boot_ms(elector->clock));
    return 0;
}

/* One attempt. 1: we hold the Lease; 0: somebody else does; < 0: not known. */
static int try_once(struct elector *elector, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int64_t began_ms = clock_boot_ms(elector->clock);

    /* A holder knows the version of its own last write and needs no read. */
    enum lease_action action = lease_decide(&elector->view, &elector->options, began_ms);
    if (action != LEASE_RENEW) {
        int r = read_lease(elector, arena, began_ms, err);
        if (r < 0)
            return r;
        action = lease_decide(&elector->view, &elector->options, began_ms);
    }
    if (action == LEASE_WAIT)
        return 0;

    int r = write_lease(elector, arena, action, elector->identity, err);
    if (r < 0) { /* whatever it was: what is known of the Lease is not to be relied on */
        elector->view.holder[0] = '\0';
        elector->view.version[0] = '\0';
        struct error ignored;
        int read = read_lease(elector, arena, clock_boot_ms(elector->clock), &ignored);
        if (read == 0 && elector->view.exists && !str_is_empty(elector->view.holder) &&
            !str_equal(elector->view.holder, elector->identity))
            return 0;
        return r;
    }
    atomic_store(&elector->renewed_ms, began_ms);
    return 1;
}

static bool wait_for_stop(struct elector *elector, uint32_t delay_ms)
{
    struct timespec deadline = cond_deadline(delay_ms);

    pthread_mutex_lock(&elector->lock);
    while (!elector->stopping && cond_wait_until(&elector->changed, &elector->lock, &deadline))
        ;
    bool stopping = elector->stopping;
    pthread_mutex_unlock(&elector->lock);
    return stopping;
}

static uint32_t next_delay_ms(const struct elector *elector)
{
    uint32_t period_ms = elector->options.retry_period_ms;

    if (elector->led)
        return period_ms;
    return jitter_ms(period_ms, 100, 100 + JITTER_PERCENT);
}

static void set_leader(struct elector *elector, bool leader)
{
    atomic_store(&elector->leader, leader);
    metric_set(&MASTER, leader, elector->options.lease.name, NULL);
}

/* NULL: go on; otherwise why leading has ended for good. */
static const char *judge(struct elector *elector, int r)
{
    if (!elector->led)
        return NULL;
    if (r == 0)
        return "another process holds the Lease";

    int64_t silent_ms = clock_boot_ms(elector->clock) - atomic_load(&elector->renewed_ms);
    if (silent_ms >= (int64_t)GIVE_UP_DURATIONS * elector->options.lease_duration_ms)
        return "the Lease could not be renewed for four lease durations";
    return NULL;
}

static void *run(void *arg)
{
    struct elector *elector = arg;
    bool reported = false;

    do {
        struct error err = { 0 };
        int r = try_once(elector, &err);
        if (r == 1 && !elector->led) {
            elector->led = true;
            set_leader(elector, true);
            elector->callbacks.started(elector->callbacks.ctx);
        }
        if (r < 0 && !reported)
            log_warn("lease not read or written, trying again", "error", err.message, NULL);
        reported = r < 0;

        const char *why = judge(elector, r);
        if (why) {
            atomic_store(&elector->renewed_ms, 0);
            set_leader(elector, false);
            elector->callbacks.ended(elector->callbacks.ctx, why);
            return NULL;
        }
    } while (!wait_for_stop(elector, next_delay_ms(elector)));
    return NULL;
}

int elector_start(struct elector *elector, struct error *err)
{
    set_leader(elector, false); /* before the thread may say otherwise */
    int r = pthread_create(&elector->thread, NULL, run, elector);
    if (r != 0)
        return error_set(err, ERROR_INTERNAL, "start the lease thread: %s", strerror(r));

    elector->running = true;
    return 0;
}

/* So that the next holder need not wait for the Lease to run out. */
static void release_lease(struct elector *elector)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };

    if (!str_equal(elector->view.holder, elector->identity) || !elector_may_act(elector))
        return;

    atomic_store(&elector->renewed_ms, 0); /* before the write: its reply may be lost */
    if (write_lease(elector, arena, LEASE_RENEW, "", &err) < 0)
        log_warn("lease not released, it runs out by itself", "error", err.message, NULL);
}

void elector_stop(struct elector *elector, bool release)
{
    if (!elector->running)
        return;

    pthread_mutex_lock(&elector->lock);
    elector->stopping = true;
    pthread_cond_signal(&elector->changed);
    pthread_mutex_unlock(&elector->lock);
    pthread_join(elector->thread, NULL);
    elector->running = false;
    if (release && elector_is_leader(elector))
        release_lease(elector);
    atomic_store(&elector->renewed_ms, 0);
    set_leader(elector, false);
}
