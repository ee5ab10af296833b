/* The identities of this process at the API server: one for each reconciler, or the process's
 * own for all. */
#pragma once

#include "common/kube/client.h"
#include "common/runtime/events.h"

struct identities_options {
    struct kube_config *config; /* of the process; borrowed */
    struct kube_client *client; /* of the process: it asks for tokens; borrowed */
    /* --use-service-account-credentials; false: all are the process */
    bool separate;
    uint32_t timeout_ms;
    /* Of every client, as in kube_client_set_guard, kube_client_set_limit and
     * kube_client_set_observer. */
    bool (*may_write)(void *ctx);
    void *may_write_ctx;
    struct rate_limit *limit;
    kube_observer_fn *observer;
    void *observer_ctx;
    const struct clock *clock;
};

/*
 * With separate each has a configuration, tokens, connections and a writer of Events of its own.
 * ServiceAccounts are in the namespace of the process.
 */
struct identities;
struct identities *identities_create(const struct identities_options *options);
void identities_destroy(struct identities *identities); /* after the controllers */
/* Before start. name: its ServiceAccount, which rbac/ gives its rights, is "<name>-controller". Without
 * separate only the first one counts. */
#define IDENTITIES_MAX 32
int identities_add(struct identities *identities, const char *name, bool writes_events,
                   struct error *err) MUST_CHECK;

/* Of an identity that was added. */
struct kube_client *identities_client(const struct identities *identities, const char *name);
/* For watches whose objects no other module needs. */
struct kube_config *identities_config(const struct identities *identities, const char *name);
/* NULL: this one writes none. */
struct events *identities_events(const struct identities *identities, const char *name);

int identities_start(struct identities *identities, struct error *err) MUST_CHECK;
void identities_stop(struct identities *identities); /* as events_stop */
void identities_close_idle(struct identities *identities,
                           uint32_t idle_ms); /* as kube_client_close_idle */
/* Any thread: requests under way and later ones of all of them end with ERROR_CANCELED. */
void identities_cancel(struct identities *identities);
