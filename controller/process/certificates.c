#include "controller/process/certificates.h"

#include <math.h>

#include "certs/cluster_place.h"
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"

#define WATCHED 4
/* Against what no watch tells, such as a clock that was set. */
#define RECHECK_MS (60u * 60 * 1000)
/* The API server forbids it, or refuses what was sent: rights and namespaces may come. */
#define REFUSED_MS (60u * 1000)
#define TICK_MS 15000u
/* Certificates know whole seconds, and nothing is so urgent that it would be worth a spin. */
#define MIN_WAIT_MS 100

/*
 * Somebody else may put a caBundle back each time: a second controller with other settings, or
 * whoever applies manifests in a loop. Changes of bundles that follow each other within CONTEST_MS
 * are free up to CONTEST_FREE; then each waits twice as long as the one before.
 */
#define CONTEST_MS 10000
#define CONTEST_FREE 5u
#define CONTEST_FIRST_MS 1000
#define CONTEST_MAX_MS 60000

static struct metric managed = {
    .type = METRIC_GAUGE,
    .name = "propeller_webhook_certificates_managed",
    .help = "1 while the certificates of the webhook are managed and valid.",
};
static struct metric expiry = {
    .type = METRIC_GAUGE,
    .name = "propeller_webhook_managed_certificate_expiry_seconds",
    .help = "Seconds until the stored certificate and the authority of the webhook expire.",
    .labels = { "certificate" },
};

struct certificates {
    struct arena *arena;
    const struct clock *clock;
    struct cert_policy policy;
    struct cluster_place cluster;
    struct cert_place place;
    struct watch_loop *watches;
    struct informer *informers[WATCHED];
    struct controller *controller;

    /* of the one worker */
    int64_t ca_end_us; /* 0: not known */
    int64_t leaf_end_us;
    bool counted;          /* a value was told, which must not stay when it is no longer known */
    unsigned contested;    /* changes of bundles that followed soon after another */
    int64_t not_before_ms; /* monotonic: nothing is written until then */
    struct error said;     /* why nothing is done; code 0: nothing was said, or all is well */
};

struct kube_name certificates_name(void)
{
    return (struct kube_name){ .name = "webhook" };
}

struct kube_name certificates_tick(void)
{
    return (struct kube_name){ .name = "expiry" };
}

/* That something changed is all that a watch is for: keys stay where they are. */
void certificates_project(cJSON *object)
{
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata"); /* the tree is ours */

    json_remove(object, "data");
    json_remove(object, "webhooks");
    if (metadata) {
        json_remove(metadata, "annotations");
        json_remove(metadata, "labels");
    }
}

static void map_to_all(void *self UNUSED, struct kube_object *old UNUSED,
                       struct kube_object *current UNUSED, struct workqueue *queue)
{
    const struct kube_name name = certificates_name();

    workqueue_add(queue, &name);
}

static void make_watches(struct certificates *certificates, struct kube_config *config)
{
    const struct configurations *configurations = &certificates->cluster.configurations;
    const struct watch_options options[WATCHED] = {
        { .kind = &KIND_VALIDATING_WEBHOOKS, .name = configurations->name },
        { .kind = &KIND_MUTATING_WEBHOOKS, .name = configurations->name },
        { .kind = &KIND_SECRET, .ns = configurations->ns, .name = CERT_SECRET_CA },
        { .kind = &KIND_SECRET, .ns = configurations->ns, .name = CERT_SECRET_LEAF },
    };

    certificates->watches = watch_loop_create(config);
    for (size_t i = 0; i < WATCHED; i++) {
        struct watch_options one = options[i];

        one.project = certificates_project;
        certificates->informers[i] = informer_create(certificates->watches, &one);
        controller_watch(
            certificates->controller,
            &(struct controller_source){ certificates->informers[i], map_to_all, certificates });
    }
}

int certificates_create(const struct certificates_options *options, struct certificates **ret,
                        struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct cert_settings *settings = options->settings;
    const char *ns =
        str_is_empty(settings->ns) ? kube_config_namespace(options->config) : settings->ns;
    struct cert_policy policy;

    int r = cert_policy_create(arena, settings, ns, &policy, err);
    if (r < 0)
        return r;

    struct certificates *certificates = xcalloc(1, sizeof(*certificates));
    certificates->arena = TAKE(arena);
    certificates->clock = options->clock;
    certificates->policy = policy;
    certificates->cluster.configurations =
        (struct configurations){ .client = options->client,
                                 .name = settings->configuration,
                                 .service = settings->service,
                                 .ns = arena_strdup(certificates->arena, ns) };
    certificates->place = cluster_place(&certificates->cluster);

    const struct controller_options controller = { .name = "certificates",
                                                   .self = certificates,
                                                   .reconcile = certificates_reconcile,
                                                   .workers = 1 };
    certificates->controller =
        controller_create(&controller, options->client, NULL, options->clock);
    make_watches(certificates, options->config);
    *ret = certificates;
    return 0;
}

void certificates_destroy(struct certificates *certificates)
{
    if (!certificates)
        return;
    certificates_join(certificates);
    controller_destroy(certificates->controller);
    watch_loop_destroy(certificates->watches);
    for (size_t i = 0; i < WATCHED; i++)
        informer_destroy(certificates->informers[i]);
    arena_destroy(certificates->arena);
    free(certificates);
}

/* --- one pass --------------------------------------------------------------------------------- */

/* Why nothing is done, once. */
static void say(struct certificates *certificates, enum log_level level, enum error_code code,
                const char *why)
{
    struct error now = { .code = code };

    (void)error_set(&now, code, "%s", why);
    if (certificates->said.code == now.code && str_equal(certificates->said.message, now.message))
        return;
    certificates->said = now;
    log_write(level, "the webhook's certificates are not looked after", "why", why, NULL);
}

static void report(const struct cert_result *result)
{
    for (size_t i = 0; i < result->done_count; i++)
        log_info("webhook certificates changed", "step", cert_step_name(result->done[i].step),
                 "why", result->done[i].why, NULL);
}

static void count_down(struct certificates *certificates)
{
    const struct {
        const char *label;
        int64_t end_us;
    } ends[] = { { "authority", certificates->ca_end_us },
                 { "serving", certificates->leaf_end_us } };
    int64_t now_us = clock_wall_us(certificates->clock);

    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        if (ends[i].end_us || certificates->counted)
            metric_set(&expiry, ends[i].end_us ? (double)(ends[i].end_us - now_us) / 1e6 : NAN,
                       ends[i].label, NULL);
        certificates->counted = certificates->counted || ends[i].end_us;
    }
}

static int64_t pause_of(unsigned contested)
{
    int64_t pause_ms = contested > CONTEST_FREE ? CONTEST_FIRST_MS : 0;

    for (unsigned i = CONTEST_FREE + 1; i < contested && pause_ms < CONTEST_MAX_MS; i++)
        pause_ms *= 2;
    return pause_ms < CONTEST_MAX_MS ? pause_ms : CONTEST_MAX_MS;
}

static void damp(struct certificates *certificates, const struct cert_result *result,
                 int64_t now_ms)
{
    bool wrote = false;

    for (size_t i = 0; i < result->done_count; i++)
        wrote = wrote || result->done[i].step == CERT_WRITE_BUNDLES;
    if (!wrote)
        return;

    bool soon = certificates->not_before_ms && now_ms - certificates->not_before_ms < CONTEST_MS;
    certificates->contested = soon ? certificates->contested + 1 : 0;
    certificates->not_before_ms = now_ms + pause_of(certificates->contested);
    if (certificates->contested == CONTEST_FREE + 1)
        log_warn("another component changes the caBundle of the webhook configurations again and "
                 "again, putting it back more slowly",
                 NULL);
}

static uint32_t wait_of(int64_t next_us, int64_t now_us)
{
    int64_t wait_ms = (next_us - now_us) / 1000 + 1;

    if (wait_ms > RECHECK_MS)
        return RECHECK_MS;
    return wait_ms < MIN_WAIT_MS ? MIN_WAIT_MS : (uint32_t)wait_ms;
}

int certificates_reconcile(void *self, struct reconcile *rc, struct error *err)
{
    struct certificates *certificates = self;
    const struct kube_name tick = certificates_tick();
    struct cert_result result;

    if (kube_name_equal(&rc->name, &tick)) {
        count_down(certificates);
        rc->requeue_after_ms = TICK_MS;
        return 0;
    }

    int64_t now_ms = clock_monotonic_ms(rc->clock);
    if (now_ms < certificates->not_before_ms) {
        rc->requeue_after_ms = (uint32_t)(certificates->not_before_ms - now_ms);
        return 0;
    }

    int r =
        cert_keep(rc->arena, &certificates->place, &certificates->policy, rc->clock, &result, err);
    report(&result);
    damp(certificates, &result, now_ms);
    metric_set(&managed, r == 0 && !result.plan.why ? 1 : 0, NULL);
    if (r < 0 && (error_is_transient(err) || err->code == ERROR_CANCELED))
        return r;
    if (r < 0) {
        say(certificates, LOG_WARN, err->code, err->message);
        rc->requeue_after_ms = REFUSED_MS;
        return 0;
    }

    certificates->ca_end_us = result.plan.ca_end_us;
    certificates->leaf_end_us = result.plan.leaf_end_us;
    count_down(certificates);
    if (result.plan.why) {
        say(certificates, LOG_INFO, ERROR_NOT_FOUND, result.plan.why);
        rc->requeue_after_ms = RECHECK_MS;
        return 0;
    }
    certificates->said = (struct error){ 0 };
    rc->requeue_after_ms = wait_of(result.plan.next_us, clock_wall_us(rc->clock));
    return 0;
}

/* --- the manager's side ----------------------------------------------------------------------- */

int certificates_start(void *self, struct error *err)
{
    struct certificates *certificates = self;
    struct workqueue *queue = controller_queue(certificates->controller);
    const struct kube_name name = certificates_name();
    const struct kube_name tick = certificates_tick();

    int r = watch_loop_start(certificates->watches, err);
    if (r == 0)
        r = controller_start(certificates->controller, err);
    if (r < 0)
        return r;
    workqueue_add(queue, &name);
    workqueue_add(queue, &tick);
    return 0;
}

void certificates_stop(void *self)
{
    controller_stop(((struct certificates *)self)->controller);
}

void certificates_join(void *self)
{
    struct certificates *certificates = self;

    controller_stop(certificates->controller);
    controller_join(certificates->controller);
    watch_loop_stop(certificates->watches);
}
