/*
 * An elector elects a leader by a Lease, with the algorithm of client-go (tools/leaderelection).
 *
 * It has a thread of its own. lease_decide is pure. Times are in milliseconds of the boot clock,
 * which goes on while the machine sleeps. Errors of requests are logged and tried again.
 */
#pragma once

#include "common/base/timeline.h"
#include "common/kube/client.h"

struct elector_options {
    const char *identity;       /* "<hostname>_<uuid>", below 128 bytes */
    struct kube_name lease;     /* coordination.k8s.io/v1 */
    uint32_t lease_duration_ms; /* 15000 */
    uint32_t renew_deadline_ms; /* 10000; below lease_duration_ms */
    uint32_t retry_period_ms;   /* 2000; renew_deadline_ms is above 1.2 × this */
};

/* The Lease as this process saw it. observed_ms is its own boot clock when it first saw this
 * version, so the clocks of other machines do not matter. */
#define ELECTOR_HOLDER_LEN 128
struct lease_view {
    bool exists;
    char holder[ELECTOR_HOLDER_LEN];
    char version[64];
    int64_t observed_ms;
    uint32_t duration_ms;
    int64_t transitions;
};
enum lease_action { LEASE_CREATE, LEASE_TAKE, LEASE_RENEW, LEASE_WAIT };
enum lease_action lease_decide(const struct lease_view *view, const struct elector_options *options,
                               int64_t now_ms);

/*
 * Callbacks run on the lease thread, each at most once. After the renew deadline elector_may_act is
 * false until the Lease is renewed. Leading ends after four lease durations without a renewal, or
 * when the Lease belongs to another process: it has another holder, it had one meanwhile (its
 * transitions have changed), or it is gone after the deadline. The process exits after ended.
 */
struct elector_callbacks {
    void *ctx;
    void (*started)(void *ctx); /* we lead */
    void (*ended)(void *ctx, const char *why);
};

/* client is used by the elector only, with a time-out of half the renew deadline. Strings of
 * options are copied; client and clock are borrowed. */
struct elector;
struct elector *elector_create(const struct elector_options *options, struct kube_client *client,
                               const struct clock *clock,
                               const struct elector_callbacks *callbacks);
void elector_destroy(struct elector *elector);
/*
 * Hands over the timeline with the Lease: the annotation has the time since which the wall clocks
 * of its holders made no step. A new holder counts from there if its own clock continues at most
 * ELECTOR_MAX_GAP_US after renewTime (the longest back-off of a container that restarts). Otherwise
 * it counts from the moment when it takes the Lease. Called before elector_start; both outlive the
 * elector.
 */
#define ELECTOR_MAX_GAP_US INT64_C(300000000)
void elector_set_timeline(struct elector *elector, struct timeline *timeline,
                          const char *annotation);
/* Starts the thread. ERROR_INVALID: the options contradict each other. */
int elector_start(struct elector *elector, struct error *err) MUST_CHECK;
/* Whether this process holds the Lease and its local renew deadline has not passed. It guards every
 * write, connect, publish and acknowledgement. Any thread; no lock, no I/O. */
bool elector_may_act(void *elector);
bool elector_is_leader(struct elector *elector);
/* Copies the identity of the process that the Lease names, as it was last seen; "": none. Any thread. */
void elector_holder(struct elector *elector, char ret[static ELECTOR_HOLDER_LEN]);
/* Whether an attempt to read or write the Lease succeeded within the last renew deadline. A standby
 * for which this is false could not take over. Any thread; no lock, no I/O. */
bool elector_in_touch(struct elector *elector);
/* Joins the thread. release gives the Lease back, so another process may lead at once: it is true
 * only if all work has ended. */
void elector_stop(struct elector *elector, bool release);

/* Makes one attempt, and returns the milliseconds until the next one or ELECTOR_ENDED. The thread
 * calls it in a loop; tests with their own clock call it in place of elector_start. */
#define ELECTOR_ENDED UINT32_MAX
uint32_t elector_step(struct elector *elector);
