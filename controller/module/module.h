/* A module tells the process about a kind; the host gives the module its parts of the process. */
#pragma once

#include "common/base/timeline.h"
#include "common/runtime/controller.h"
#include "common/runtime/elector.h"
#include "common/runtime/health.h"
#include "common/runtime/manager.h"
#include "common/runtime/options.h"

struct controller_settings;
struct module_host;
struct modules;

/* Objects that are kept in memory. Modules that use the same kind share one cache. It is watched as the
 * first of them states; each adds its own indexes. */
struct module_cache {
    struct watch_options watch;
    void (*add_indexes)(struct store *store); /* may be NULL */
};

/* Changes of one kind that cause objects to be reconciled. */
struct module_source {
    const struct kube_kind *kind; /* of a cache that any module has stated */
    map_fn *map;                  /* with self of this module */
    const struct kube_kind
        *wakes; /* the kind of the names that map queues; NULL: the module's own */
};

/* Flags of a module, which fill a struct of its own. */
struct module_flags {
    const struct option *table;
    size_t len;
    size_t size; /* of the struct */
    /* Whether they fit together, and to the flags of all: < 0, and err names the flag. May be NULL. */
    int (*check)(const struct controller_settings *settings, const void *own, struct error *err);
};

/*
 * A module is a kind, or a part that several kinds use (it has no name, kind and reconcile then). The process
 * loops over MODULES and knows none of them by name. The caches and queues of all modules exist before
 * the first create. Modules are created, started and told that they lead in the order of the list, and
 * destroyed in reverse.
 */
struct module {
    const char
        *name; /* in --workers, metrics and logs; the ServiceAccount is "<name>-controller" */
    const struct kube_kind *kind;
    unsigned workers;                    /* parallel reconciles, if --workers does not say */
    const struct module_flags *flags;    /* NULL: none */
    const struct module_cache *caches;   /* ended by one without a kind; NULL: none */
    const struct module_source *sources; /* ended by one without a kind; NULL: none */

    /* Asks the host for what the module uses, and keeps it. *ret is self of all other functions. < 0:
     * the start-up input is unusable; destroy is not called. */
    int (*create)(struct module_host *host, void **ret, struct error *err);
    /* This replica begins to lead: the caches are complete, and no object is reconciled before it
     * returns. May be NULL. */
    void (*started_leading)(void *self);
    reconcile_fn *reconcile;
    /* Everything has stopped. May be NULL. */
    void (*destroy)(void *self);
};

/* Ended by NULL. */
extern const struct module *const MODULES[];
#define MODULES_MAX 16

/* The parts of the process that modules use; it outlives them. create adds runnables to manager, and
 * readiness checks and pages to health. */
struct module_host {
    const struct controller_settings *settings;
    struct arena *arena; /* of the process */
    const struct clock *clock;
    struct timeline *timeline;  /* of that clock: what waits is counted with it */
    struct kube_client *client; /* of the process; module_host_client is that of a module */
    struct elector *elector;    /* NULL: --leader-elect=false */
    struct manager *manager;
    struct health *health;
    struct modules *modules; /* of the functions below */
};

/* The cache of a kind, which some module has stated. */
struct informer *module_host_informer(const struct module_host *host, const struct kube_kind *kind);
/* The names of a kind that a module reconciles. */
struct workqueue *module_host_queue(const struct module_host *host, const struct kube_kind *kind);
/* With the rights of the ServiceAccount of a module. */
struct kube_client *module_host_client(const struct module_host *host, const struct module *module);
/* The struct that the flags of a module filled. */
const void *module_host_flags(const struct module_host *host, const struct module *module);
/* self of a module that stands before this one in the list. */
void *module_host_self(const struct module_host *host, const struct module *module);

/* For callbacks; ctx: the host. Any thread. */
bool module_host_is_leader(void *ctx);
bool module_host_may_act(void *ctx); /* the Lease is renewed in time */
bool module_host_leads(void *ctx);   /* both */
