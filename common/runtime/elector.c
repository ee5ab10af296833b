#include "common/runtime/elector.h"

#include <stdatomic.h>

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/backoff.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"

/* A leader that could not renew for so many lease durations does not hope any more. */
#define GIVE_UP_DURATIONS 4
/* A standby looks in these percents of the retry period, so that a Lease that was released is taken
 * within one, and standbys do not move in step. */
#define STANDBY_LOW_PERCENT 40
#define STANDBY_HIGH_PERCENT 80
/* A write that met another version is tried once more after a look, in the same attempt. */
#define MAX_TRIES 2

#define NEVER INT64_MIN

struct elector {
    struct elector_options options;
    char *identity;
    struct kube_client *client;
    const struct clock *clock;
    struct elector_callbacks callbacks;
    struct timeline *timeline; /* NULL: none is handed over */
    const char *annotation;

    /* The lease thread's own. */
    struct lease_view view;
    cJSON *seen;         /* owned; the Lease of the view: what others keep in it is written back */
    bool is_current;     /* view is what our last write made: the next needs no look before */
    bool led;            /* started() was called, ended() was not */
    int64_t transitions; /* of our term */
    bool is_late;        /* the renew deadline has passed, and that was told */
    bool has_failed;     /* the last attempt, and that was told */

    _Atomic int64_t may_act_until_ms; /* boot clock; NEVER: not leading */
    _Atomic int64_t in_touch_until_ms;
    atomic_bool leader;

    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* of stopping, and of view where another thread reads it */
    pthread_cond_t changed;
    bool stopping;
};

static struct metric master_status = { .type = METRIC_GAUGE,
                                       .name = "leader_election_master_status",
                                       .help = "1 while this process is the leader.",
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

static void set_status(const struct elector *elector, bool leads)
{
    metric_set(&master_status, leads, elector->options.lease.name, NULL);
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
    atomic_init(&elector->may_act_until_ms, NEVER);
    atomic_init(&elector->in_touch_until_ms, NEVER);
    atomic_init(&elector->leader, false);
    (void)pthread_mutex_init(&elector->lock, NULL);
    cond_init(&elector->changed);
    set_status(elector, false);
    return elector;
}

void elector_set_timeline(struct elector *elector, struct timeline *timeline,
                          const char *annotation)
{
    elector->timeline = timeline;
    elector->annotation = annotation;
}

void elector_destroy(struct elector *elector)
{
    if (!elector)
        return;
    elector_stop(elector, false);
    (void)pthread_cond_destroy(&elector->changed);
    (void)pthread_mutex_destroy(&elector->lock);
    json_free(elector->seen);
    free(elector->identity);
    free(elector);
}

bool elector_may_act(void *ctx)
{
    struct elector *elector = ctx;

    return clock_boot_ms(elector->clock) < atomic_load(&elector->may_act_until_ms);
}

bool elector_in_touch(struct elector *elector)
{
    return clock_boot_ms(elector->clock) < atomic_load(&elector->in_touch_until_ms);
}

void elector_holder(struct elector *elector, char ret[static ELECTOR_HOLDER_LEN])
{
    pthread_mutex_lock(&elector->lock);
    memcpy(ret, elector->view.holder, ELECTOR_HOLDER_LEN);
    pthread_mutex_unlock(&elector->lock);
}

bool elector_is_leader(struct elector *elector)
{
    return atomic_load(&elector->leader);
}

static uint32_t duration_ms(const struct elector *elector, const cJSON *spec)
{
    int64_t seconds = json_int(json_get(spec, "leaseDurationSeconds"), 0);

    if (seconds <= 0)
        return elector->options.lease_duration_ms;
    return seconds < UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : UINT32_MAX;
}

/* Takes over what a reply says of the Lease; NULL: there is none. Only a new version moves the time of observation. */
static void observe(struct elector *elector, const cJSON *lease)
{
    json_free(elector->seen);
    elector->seen = lease ? json_copy(lease) : NULL;
    if (!lease) {
        pthread_mutex_lock(&elector->lock);
        elector->view = (struct lease_view){ 0 };
        pthread_mutex_unlock(&elector->lock);
        return;
    }

    const cJSON *spec = json_get(lease, "spec");
    const char *holder = json_string(json_get(spec, "holderIdentity"), "");
    struct lease_view seen = { .exists = true,
                               .observed_ms = clock_boot_ms(elector->clock),
                               .duration_ms = duration_ms(elector, spec),
                               .transitions = json_int(json_get(spec, "leaseTransitions"), 0) };

    if (!str_copy(seen.holder, sizeof(seen.holder), holder))
        (void)str_copy(seen.holder, sizeof(seen.holder), "(a long name)"); /* not us, not nobody */
    (void)str_copy(seen.version, sizeof(seen.version),
                   json_string(json_path(lease, "metadata", "resourceVersion", NULL), ""));
    if (elector->view.exists && str_equal(elector->view.version, seen.version))
        seen.observed_ms = elector->view.observed_ms;
    if (!elector->led && seen.holder[0] && !str_equal(seen.holder, elector->view.holder) &&
        !str_equal(seen.holder, elector->identity))
        log_info("another process leads, waiting", "holder", seen.holder, NULL);
    pthread_mutex_lock(&elector->lock); /* for elector_holder: this thread alone writes it */
    elector->view = seen;
    pthread_mutex_unlock(&elector->lock);
}

static int read_lease(struct elector *elector, struct arena *arena, struct error *err)
{
    cJSON *lease = NULL;
    int r = kube_get(elector->client, arena, &KIND_LEASE, &elector->options.lease, &lease, err);

    if (r < 0 && r != -ERROR_NOT_FOUND)
        return r;
    observe(elector, lease);
    return 0;
}

/* Before we act: the Lease that was seen says since when the clock is watched. */
static void take_over_timeline(const struct elector *elector)
{
    const cJSON *seen = elector->seen;
    const char *since =
        json_string(json_path(seen, "metadata", "annotations", elector->annotation, NULL), "");
    const char *renewed = json_string(json_path(seen, "spec", "renewTime", NULL), "");
    int64_t now_us = timeline_now_us(elector->timeline, NULL);
    int64_t since_us;
    int64_t renewed_us;
    bool goes_on = rfc3339_parse(since, &since_us) && rfc3339_parse(renewed, &renewed_us) &&
                   since_us <= renewed_us && renewed_us <= now_us &&
                   now_us - renewed_us <= ELECTOR_MAX_GAP_US;

    timeline_take_over(elector->timeline, goes_on ? since_us : now_us);
}

static void copy_members(cJSON *to, const cJSON *from)
{
    json_for_each (member, from)
        json_set_copy(to, member->string, member);
}

static void hand_over_timeline(const struct elector *elector, struct arena *arena, cJSON *lease)
{
    cJSON *metadata = json_object(arena), *annotations = json_object(arena);
    char since[RFC3339_LEN];

    copy_members(metadata, json_get(lease, "metadata"));
    copy_members(annotations, json_get(metadata, "annotations"));
    (void)rfc3339_format_micro(timeline_since_us(elector->timeline), since);
    json_set_string(annotations, elector->annotation, since);
    json_set_copy(metadata, "annotations", annotations);
    json_set_copy(lease, "metadata", metadata);
}

/* What was seen, or a new one, with us as its holder. holder "": the Lease is given up. */
static cJSON *lease_object(const struct elector *elector, struct arena *arena,
                           enum lease_action action, const char *holder)
{
    const struct elector_options *options = &elector->options;
    const cJSON *seen = elector->seen;
    cJSON *lease = json_object(arena);
    char now[RFC3339_LEN];

    json_set_string(lease, "apiVersion", "coordination.k8s.io/v1");
    json_set_string(lease, "kind", "Lease");
    if (seen) {
        json_set_copy(lease, "metadata", json_get(seen, "metadata"));
    } else {
        cJSON *metadata = json_set_object(lease, "metadata");

        json_set_string(metadata, "namespace", options->lease.ns);
        json_set_string(metadata, "name", options->lease.name);
    }

    cJSON *spec = json_set_object(lease, "spec");
    copy_members(spec, json_get(seen, "spec"));
    (void)rfc3339_format_micro(clock_wall_us(elector->clock), now);
    json_set_string(spec, "holderIdentity", holder);
    json_set_int(spec, "leaseDurationSeconds",
                 holder[0] ? ((int64_t)options->lease_duration_ms + 999) / 1000 : 1);
    json_set_string(spec, "renewTime", now);
    if (action != LEASE_RENEW || !holder[0])
        json_set_string(spec, "acquireTime", now);
    if (action == LEASE_CREATE)
        json_set_int(spec, "leaseTransitions", elector->led ? elector->transitions : 0);
    else if (action == LEASE_TAKE)
        json_set_int(spec, "leaseTransitions", elector->view.transitions + 1);
    if (elector->timeline)
        hand_over_timeline(elector, arena, lease);
    return lease;
}

static int write_lease(struct elector *elector, struct arena *arena, enum lease_action action,
                       const char *holder, struct error *err)
{
    if (elector->timeline && !elector->led)
        take_over_timeline(elector);

    cJSON *reply = NULL;
    const cJSON *lease = lease_object(elector, arena, action, holder);
    int r;

    elector->is_current = false;
    if (action != LEASE_CREATE && !elector->view.version[0])
        return error_set(err, ERROR_INTERNAL, "lease '%s' came without a resourceVersion",
                         elector->options.lease.name);
    if (action == LEASE_CREATE)
        r = kube_create(elector->client, arena, &KIND_LEASE, lease, &reply, err);
    else
        r = kube_update(elector->client, arena, &KIND_LEASE, lease, &reply, err);
    if (r < 0)
        return r;

    observe(elector, reply);
    elector->is_current = true;
    return 0;
}

/* What was seen says that our term is over; NULL: it is not, or there is none. */
static const char *lost_because(struct elector *elector)
{
    const struct lease_view *view = &elector->view;

    if (!elector->led)
        return NULL;
    if (!view->exists)
        return elector_may_act(elector) ? NULL : "the lease was deleted";
    if (!str_equal(view->holder, elector->identity))
        return view->holder[0] ? "another process holds the lease" : "the lease was released";
    return view->transitions == elector->transitions ? NULL : "another process held the lease";
}

/* 1: written, so we hold it (or nobody does, if holder is "": only while we lead); 0: it is
 * another's; < 0: not known. *ret_decided_ms: before the last write, or when it was
 * seen to be another's. */
static int try_to_write(struct elector *elector, const char *holder, int64_t *ret_decided_ms,
                        struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = 0;

    for (int tries = 0; tries < MAX_TRIES; tries++) {
        if (!elector->is_current) {
            r = read_lease(elector, arena, err);
            if (r < 0)
                return r;
        }

        *ret_decided_ms = clock_boot_ms(elector->clock);
        enum lease_action action = lease_decide(&elector->view, &elector->options, *ret_decided_ms);
        if (action == LEASE_WAIT || lost_because(elector))
            return 0;

        r = write_lease(elector, arena, action, holder, err);
        if (r >= 0)
            return 1;
        if (r != -ERROR_CONFLICT && r != -ERROR_EXISTS && r != -ERROR_NOT_FOUND)
            return r;
    }
    return r;
}

static void begin_term(struct elector *elector)
{
    elector->led = true;
    elector->transitions = elector->view.transitions;
    atomic_store(&elector->leader, true);
    elector->callbacks.started(elector->callbacks.ctx);
}

static void end_term(struct elector *elector)
{
    atomic_store(&elector->may_act_until_ms, NEVER);
    atomic_store(&elector->leader, false);
    elector->led = false;
    set_status(elector, false);
}

/* Tells once when something begins to fail, and when the renew deadline passes or is kept again. */
static void tell(struct elector *elector, bool failed, const struct error *err)
{
    bool is_late = elector->led && !elector_may_act(elector);

    if (failed && !elector->has_failed)
        log_warn("lease not read or written, trying again", "error", ERROR_TEXT(err), NULL);
    if (is_late && !elector->is_late)
        log_error("lease not renewed in time, nothing is written until it is", NULL);
    if (!is_late && elector->is_late)
        log_info("lease renewed, going on", NULL);
    elector->has_failed = failed;
    elector->is_late = is_late;
    set_status(elector, elector->led && !is_late);
}

/* NULL: go on; otherwise why the term is over. */
static const char *over_because(struct elector *elector, int result)
{
    if (!elector->led)
        return NULL;
    if (result == 0)
        return lost_because(elector);

    int64_t renewed_ms =
        atomic_load(&elector->may_act_until_ms) - elector->options.renew_deadline_ms;
    int64_t silent_ms = clock_boot_ms(elector->clock) - renewed_ms;
    bool gives_up = silent_ms >= (int64_t)GIVE_UP_DURATIONS * elector->options.lease_duration_ms;
    return gives_up ? "the lease could not be renewed" : NULL;
}

/* Not past the end of a Lease that is not renewed any more: that would add to every crash. */
static uint32_t standby_pause(const struct elector *elector)
{
    const struct lease_view *view = &elector->view;
    uint32_t pause_ms =
        jitter_ms(elector->options.retry_period_ms, STANDBY_LOW_PERCENT, STANDBY_HIGH_PERCENT);
    int64_t left_ms = view->observed_ms + view->duration_ms - clock_boot_ms(elector->clock);

    return view->exists && left_ms > 0 && left_ms < pause_ms ? (uint32_t)left_ms : pause_ms;
}

uint32_t elector_step(struct elector *elector)
{
    const struct elector_options *options = &elector->options;
    int64_t began_ms = clock_boot_ms(elector->clock);
    int64_t decided_ms = began_ms;
    struct error err = { 0 };

    int r = try_to_write(elector, elector->identity, &decided_ms, &err);
    if (r >= 0)
        atomic_store(&elector->in_touch_until_ms, decided_ms + options->renew_deadline_ms);
    if (r > 0)
        atomic_store(&elector->may_act_until_ms, decided_ms + options->renew_deadline_ms);
    if (r > 0 && !elector->led)
        begin_term(elector);

    const char *why = over_because(elector, r);
    if (why) {
        end_term(elector);
        elector->callbacks.ended(elector->callbacks.ctx, why);
        return ELECTOR_ENDED;
    }
    tell(elector, r < 0, &err);
    if (!elector->led)
        return standby_pause(elector);

    int64_t took_ms = clock_boot_ms(elector->clock) - began_ms;
    return took_ms < options->retry_period_ms ? options->retry_period_ms - (uint32_t)took_ms : 0;
}

/* true: go on. */
static bool wait_for_next(struct elector *elector, uint32_t delay_ms)
{
    struct timespec deadline = cond_deadline(delay_ms);

    pthread_mutex_lock(&elector->lock);
    while (!elector->stopping && cond_wait_until(&elector->changed, &elector->lock, &deadline))
        ;
    bool go_on = !elector->stopping;
    pthread_mutex_unlock(&elector->lock);
    return go_on;
}

static void *run(void *ctx)
{
    struct elector *elector = ctx;

    for (;;) {
        uint32_t delay_ms = elector_step(elector);

        if (delay_ms == ELECTOR_ENDED || !wait_for_next(elector, delay_ms))
            return NULL;
    }
}

static int check_options(const struct elector_options *options, struct error *err)
{
    struct lease_view view;

    if (!options->identity[0] || !str_copy(view.holder, sizeof(view.holder), options->identity))
        return error_set(err, ERROR_INVALID, "identity '%s' must have 1 to %zu characters",
                         options->identity, sizeof(view.holder) - 1);
    if (!options->lease.ns[0] || !options->lease.name[0])
        return error_set(err, ERROR_INVALID, "the lease needs a namespace and a name");
    if (options->renew_deadline_ms >= options->lease_duration_ms)
        return error_set(err, ERROR_INVALID, "the renew deadline must be below the lease duration");
    if ((uint64_t)options->retry_period_ms * 12 >= (uint64_t)options->renew_deadline_ms * 10)
        return error_set(err, ERROR_INVALID,
                         "the renew deadline must be above 1.2 retry periods of the lease");
    return 0;
}

int elector_start(struct elector *elector, struct error *err)
{
    int r = check_options(&elector->options, err);
    if (r < 0)
        return r;

    r = thread_start(&elector->thread, "lease", run, elector, err);
    if (r < 0)
        return r;

    elector->running = true;
    return 0;
}

/* So that the next holder need not wait until the Lease has run out. */
static void release_lease(struct elector *elector)
{
    int64_t decided_ms;
    struct error err;

    atomic_store(&elector->may_act_until_ms, NEVER); /* before the write: its reply may be lost */
    if (try_to_write(elector, "", &decided_ms, &err) < 0)
        log_warn("lease not released, it runs out by itself", "error", ERROR_TEXT(&err), NULL);
}

void elector_stop(struct elector *elector, bool release)
{
    pthread_mutex_lock(&elector->lock);
    elector->stopping = true;
    (void)pthread_cond_signal(&elector->changed);
    pthread_mutex_unlock(&elector->lock);
    if (elector->running)
        thread_join(elector->thread);
    elector->running = false;
    if (release && elector->led)
        release_lease(elector);
    end_term(elector);
}
