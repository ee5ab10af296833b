/* The webhook's certificates, looked after by the leader: two Secrets, and the caBundle of two
 * webhook configurations (certs/plan.h says what and when). */
#pragma once

#include "certs/options.h"
#include "common/kube/config.h"
#include "common/runtime/controller.h"

struct certificates_options {
    struct kube_config *config;
    struct kube_client *client; /* its guard lets only the leader write */
    const struct cert_settings *settings;
    const struct clock *clock;
};

/*
 * Watches these four objects by name, on a connection of its own and while it leads, so that
 * missing rights for them hold up nothing else. An object that is deleted or emptied is restored at
 * once; a caBundle that another client changes again and again, more and more slowly and in the end
 * once a minute. Nothing is written while nothing changes; the objects are read when one of them
 * changes, when a step is due, and once an hour.
 *
 * If there is no configuration, if cert-manager manages one, or if the API server forbids it, this
 * is logged once. propeller_webhook_certificates_managed is 1 while all is as it should be, and
 * propeller_webhook_managed_certificate_expiry_seconds counts down (NaN: no longer looked after).
 */
struct certificates;
/* ERROR_INVALID: a flag cannot be used. */
int certificates_create(const struct certificates_options *options, struct certificates **ret,
                        struct error *err) MUST_CHECK;
void certificates_destroy(struct certificates *certificates);

/* For the manager: of the group that only a leader starts. */
int certificates_start(void *self, struct error *err);
void certificates_stop(void *self);
void certificates_join(void *self);

/* self: struct certificates *. For tests, which need no watches. */
reconcile_fn certificates_reconcile;
/* The members of an object that the watches keep: no key, and nothing else of a Secret's data. */
watch_project_fn certificates_project;
/* The name that stands for all of them, and the one that only moves the gauges. */
struct kube_name certificates_name(void);
struct kube_name certificates_tick(void);
