#include "controller/shared/mail_gauges.h"

#include "common/runtime/metrics.h"

static struct metric OLDEST = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_oldest_seconds",
    .help = "Age of the oldest message of a device that is not written yet, held or not.",
};
static struct metric HELD = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_held",
    .help = "Messages that are not written yet and hold up no other.",
};
static struct metric FORBIDDEN = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_forbidden",
    .help = "Tasks whose writes the API server answers with 403.",
};

static bool knows(void *ctx, const char *uid)
{
    struct kube_name name;

    return store_name_of_uid(ctx, uid, &name);
}

void mail_tend(struct shared *shared)
{
    int64_t oldest_ms, since_ms;

    if (informer_complete(shared->tasks))
        mailbox_forget_unknown(shared->mailbox, knows, informer_store(shared->tasks));
    oldest_ms = mailbox_oldest_ms(shared->mailbox);
    int64_t age_ms = oldest_ms ? clock_monotonic_ms(shared->clock) - oldest_ms : 0;
    metric_set(&OLDEST, (double)age_ms / 1000, NULL);
    metric_set(&HELD, (double)mailbox_held(shared->mailbox), NULL);
    metric_set(&FORBIDDEN, (double)attempts_forbidden_count(shared->attempts, &since_ms), NULL);
}
