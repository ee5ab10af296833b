#include "controller/shared/parked_mail.h"

#include <stdatomic.h>

#include "common/base/log.h"
#include "common/runtime/metrics.h"

static struct metric PARKED = {
    .type = METRIC_COUNTER,
    .name = "propeller_mail_parked_total",
    .help = "Objects whose mail was parked, because they could not be written while others were.",
};
static struct metric OLDEST = {
    .type = METRIC_GAUGE,
    .name = "propeller_mail_oldest_seconds",
    .help = "Age of the oldest message of a device that is not written yet, parked or not.",
};
static struct metric FORBIDDEN = {
    .type = METRIC_GAUGE,
    .name = "propeller_tasks_forbidden",
    .help = "Tasks whose writes the API server answers with 403.",
};

void mail_note_written(struct shared *shared)
{
    atomic_store(&shared->status_written_ms, clock_monotonic_ms(shared->clock));
}

/* The API server was asked and did not do it; the next time it may. */
static bool is_trouble(int r)
{
    return r == -ERROR_INTERNAL || r == -ERROR_TIMEOUT || r == -ERROR_UNAVAILABLE;
}

void mail_note_turn(struct shared *shared, const struct kube_object *object, int r,
                    const struct error *err)
{
    if (!is_trouble(r) ||
        !mailbox_failed(shared->mailbox, object->uid, clock_monotonic_ms(shared->clock),
                        atomic_load(&shared->status_written_ms)))
        return;

    metric_add(&PARKED, 1, NULL);
    log_error("not written for long while others are: its mail does not hold up theirs any more",
              "uid", object->uid, "error", ERROR_TEXT(err), NULL);
}

void mail_tell_oldest(struct shared *shared)
{
    int64_t oldest_ms = mailbox_oldest_ms(shared->mailbox);
    int64_t age_ms = oldest_ms ? clock_monotonic_ms(shared->clock) - oldest_ms : 0;
    int64_t since_ms;

    metric_set(&OLDEST, (double)age_ms / 1000, NULL);
    metric_set(&FORBIDDEN, (double)attempts_forbidden_count(shared->attempts, &since_ms), NULL);
}
