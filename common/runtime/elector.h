/* Leader election on a Lease with client-go's algorithm (tools/leaderelection). */
#pragma once

#include "common/base/timeline.h"
#include "common/kube/client.h"

struct elector_options {
    const char *identity;       /* "<hostname>_<uuid>", < 128 */
    struct kube_name lease;     /* coordination.k8s.io/v1 */
    uint32_t lease_duration_ms; /* 15000 */
    uint32_t renew_deadline_ms; /* 10000 < lease_duration */
    uint32_t retry_period_ms;   /* 2000; renew_deadline > 1.2 × retry_period */
};

/* What was seen of the Lease; observed_ms is our own boot clock after `version` was seen first:
 * clocks of others do not matter. */
struct lease_view {
    bool exists;
    char holder[128];
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
 * false until the Lease is renewed; leading ends when it is not ours any more (another holder, or
 * one in between: its transitions have moved; or it is gone after the deadline), or after four
 * lease durations without a renewal. ended: exit.
 */
struct elector_callbacks {
    void *ctx;
    void (*started)(void *ctx); /* we lead */
    void (*ended)(void *ctx, const char *why);
};

/* client: of its own, with a time-out of half the renew deadline. Strings of options are copied. */
struct elector;
struct elector *elector_create(const struct elector_options *options, struct kube_client *client,
                               const struct clock *clock,
                               const struct elector_callbacks *callbacks);
void elector_destroy(struct elector *elector);
/*
 * Before start: the timeline is handed over with the Lease, in this annotation, which says since when
 * the wall clock of its holders has made no step. A new holder counts from there if its own clock
 * goes on where renewTime ended, at most ELECTOR_MAX_GAP_US later (the longest back-off of a
 * container that ends again and again); otherwise from the moment when it takes the Lease. Both
 * outlive the elector.
 */
#define ELECTOR_MAX_GAP_US INT64_C(300000000)
void elector_set_timeline(struct elector *elector, struct timeline *timeline,
                          const char *annotation);
/* ERROR_INVALID: the options do not fit together. */
int elector_start(struct elector *elector, struct error *err) MUST_CHECK;
/* Any thread, no lock, no I/O: we hold the Lease and its local renew deadline has not passed. The
 * guard of every write, connect, publish and acknowledgement. */
bool elector_may_act(void *elector);
bool elector_is_leader(struct elector *elector);
/* Any thread, no lock, no I/O: an attempt to read or write the Lease succeeded within the last renew
 * deadline. A standby that is not in touch could not take over. */
bool elector_in_touch(struct elector *elector);
/* Joins. release only if all work has ended: others may lead at once. */
void elector_stop(struct elector *elector, bool release);

/* One attempt: the milliseconds until the next, or ELECTOR_ENDED. The thread calls it again and
 * again; tests with a clock of their own call it instead of start. */
#define ELECTOR_ENDED UINT32_MAX
uint32_t elector_step(struct elector *elector);
