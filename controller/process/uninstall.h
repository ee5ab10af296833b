/*
 * Removes what keeps an installation from going: `propeller-controller --uninstall`.
 *
 *  1. The webhook configurations, so that no request waits for a webhook that goes.
 *  2. All objects of the five kinds. The running controller stops devices and releases them. After three quarters of
 *     the time the finalizers of this operator that are left are removed. Those of others stay.
 *  3. The uninstall waits until the garbage collector has removed the children of these objects.
 *  4. The two Secrets of the webhook that the controller made.
 *
 * With namespaces only their objects go: webhook configurations are of the whole cluster, and no namespaced
 * installation has any. Programs, rights and CRDs are left to the caller. An uninstall may be repeated, since an object
 * that is gone is no error. A failed request is repeated until the time is over. A missing right ends the uninstall.
 */
#pragma once

#include "common/base/clock.h"
#include "common/kube/client.h"
#include "common/runtime/options.h"
#include "controller/shared/options.h"

struct uninstall {
    struct kube_client *client;
    const struct clock *clock;
    struct str_list namespaces; /* empty: all */
    const char *configuration;  /* name of the two webhook configurations */
    const char *webhook_ns;     /* of the Secrets */
    int64_t timeout_ms;
    void (*say)(void *ctx, const char *line);
    void (*rest)(void *ctx, int64_t ms); /* between two looks */
    void *ctx;                           /* of both */
};

/* < 0: something is left, and err says what. */
int uninstall_run(const struct uninstall *self, struct error *err) MUST_CHECK;

/* The same with these settings, for a person or for a pod: kubeconfigs as kubectl reads them. Lines go to standard output. */
int uninstall_by_settings(const struct controller_settings *settings, struct error *err) MUST_CHECK;
