/* Results, and reclaims, that are not written in time: their copies in the broker, and the thread that makes them. */
#pragma once

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/base/error.h"
#include "common/runtime/mailbox.h"

/*
 * One session of MQTT is acknowledged in order, so a result that cannot be written would hold up the
 * results of all others behind it. A result that has waited for QUARANTINE_AFTER_MS is therefore
 * copied into a retained message of its own,
 *
 *   m/<domain>/c/<channel>/control/controller/quarantine/<kind>/<message id or uid>/<digest>
 *
 * and held (mailbox.h) from the moment in which the broker has delivered this copy to the controller:
 * that proves that the broker keeps it, where an acknowledgement alone does not (a broker may
 * acknowledge what its access rules make it drop). Until then nothing is acknowledged. The copy is
 * removed when the result is written. Another process gets all copies with its first subscription.
 * The messages that its session had queued come before them, so a create waits for the copies
 * (mailbox_expect_copies): the process publishes a message behind the subscription,
 *
 *   m/<domain>/c/<channel>/control/controller/quarantine/end/<uuid>
 *
 * and when this comes back all copies have come.
 *
 * A create is held without a copy: if the process ends before it is written, the silence of the
 * device shows the same. The inbox keeps one for each Task and device.
 */
#define QUARANTINE_AFTER_MS 500
#define QUARANTINE_SUFFIX "controller/quarantine"
#define QUARANTINE_FILTER "m/+/c/+/control/" QUARANTINE_SUFFIX "/#"
#define QUARANTINE_END QUARANTINE_SUFFIX "/end/"

struct quarantine_options {
    struct mailbox *mailbox;
    const struct clock *clock;
    void *ctx;
    /* Publishes with the retain flag, below this channel or, if it is NULL, that of the Task with
     * this uid. false: not now. */
    bool (*publish)(void *ctx, const char *channel, const char *uid, const char *suffix,
                    const char *payload, size_t len);
    bool (*remove)(void *ctx, const char *topic); /* the topic that was published; false: not now */
    bool (*hears_copies)(void *ctx); /* the broker has granted the last subscription to them */
    void (*recall)(void *ctx);       /* subscribes again: all copies come */
    void (*await_copies)(void *ctx); /* publishes their end, unless it is on its way */
};

struct quarantine;
struct quarantine *quarantine_create(const struct quarantine_options *options);
void quarantine_destroy(struct quarantine *quarantine);
int quarantine_start(struct quarantine *quarantine, struct error *err) MUST_CHECK;
void quarantine_stop(struct quarantine *quarantine); /* joins */

/* Reads kind and id from the topic of a copy; false: it is of no copy. id: as in the topic. */
bool quarantine_topic_parse(struct arena *arena, const char *topic, const char **ret_kind,
                            const char **ret_id);
