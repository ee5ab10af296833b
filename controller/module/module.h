/*
 * A module describes a kind to the process, and a host gives the module the parts of the process.
 *
 * Tables are constants. The host and everything that it hands out belong to the process and outlive
 * the modules. Functions of a module run on the main thread, except reconcile (workers) and map
 * (see map_fn). Functions of the host are for any thread and do not block; none of them fails,
 * since asking for a kind or module that is not stated is a bug.
 */
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

/* Gauges of the objects of a kind, by a class that is read from each: the cache counts them as they change. */
struct module_census {
    store_class_fn *class_of;
    size_t classes;
    /* Sets the gauges. Called once before the first object, and at most once a second when a count has changed;
     * counts has one for each class. */
    void (*report)(const size_t *counts);
    /* Returns the phase of a class, a constant. */
    const char *(*phase_of)(size_t class);
};

/* A cache of objects. Modules that use one kind share a cache: it is watched as the first of them
 * states, and each adds its indexes. */
struct module_cache {
    struct watch_options watch;
    void (*add_indexes)(struct store *store); /* may be NULL */
};

/* Changes of one kind that cause objects to be reconciled. */
struct module_source {
    const struct kube_kind *kind; /* of a cache that a module has stated */
    map_fn *map;                  /* with self of this module */
    const struct kube_kind
        *wakes; /* kind of the names that map queues; NULL: the queue of the module */
};

/* Flags that fill a struct of the module. */
struct module_flags {
    const struct option *table;
    size_t len;
    size_t size; /* of the struct; bytes */
    /* Checks the flags together with the common ones. < 0: err names the flag. May be NULL. */
    int (*check)(const struct controller_settings *settings, const void *own, struct error *err);
};

typedef void last_turn_fn(void *ctx, const struct kube_name *name);

/*
 * A module is a kind, or a part that several kinds use. Such a part has no kind. It has a name, and a
 * queue of its own, if it has a reconcile.
 * The process loops over MODULES and knows none of them by name.
 *
 *  1. The caches and queues of all modules exist before the first create.
 *  2. create, start, started_leading and stopping run in the order of the list, destroy in the
 *     reverse order.
 *  3. Of a module that is not turned on only the flags exist.
 */
struct module {
    const char
        *name; /* in --workers, metrics and logs; the ServiceAccount is "<name>-controller". NULL:
                  it makes no requests and reconciles nothing */
    const struct kube_kind *kind;
    /* "vmafx": the flag --enable-vmafx turns the module on, and nothing asks for its kinds without it. The caches of
     * all modules of an extension have a watch loop of their own, whose state is a line of this name in
     * /readyz?verbose. They hold up nothing: started_leading and reconcile may find them incomplete.
     * NULL: the module is always on. */
    const char *extension;
    unsigned workers;                    /* parallel reconciles without --workers */
    const struct module_flags *flags;    /* NULL: none */
    bool (*is_on)(const void *flags);    /* they turn the module on; NULL: they do not matter */
    const struct module_cache *caches;   /* an entry without a kind ends it; NULL: none */
    const struct module_source *sources; /* an entry without a kind ends it; NULL: none */
    const struct module_census *census;  /* of the kind; NULL: it is not counted */
    struct metric
        *served; /* gauge: 1 while all caches of the extension are complete and watched, else
                              0; NULL: none */

    /* Asks the host for the parts that the module uses, and keeps them. *ret is self of all other
     * functions. < 0: the process ends with this error, and destroy is not called. May be NULL. */
    int (*create)(struct module_host *host, void **ret, struct error *err);
    /* This replica begins to lead. The caches are complete, and no object is reconciled before the
     * function returns. May be NULL. */
    void (*started_leading)(void *self);
    reconcile_fn *reconcile;
    /* The process stops in order: the workers have ended, and this replica still holds the Lease.
     * Calls turn(ctx, name) for each object that its successor must find up to date; reconcile runs
     * during the call, on this thread. May be NULL. */
    void (*stopping)(void *self, last_turn_fn *turn, void *ctx);
    /* Frees self, after all threads have stopped. May be NULL. */
    void (*destroy)(void *self);
};

/* All modules; NULL ends the list. */
extern const struct module *const MODULES[];
#define MODULES_MAX 17

/* The parts of the process that modules use. create adds runnables to manager, and readiness checks
 * and pages to health. */
struct module_host {
    const struct controller_settings *settings;
    struct arena *arena; /* of the process */
    const struct clock *clock;
    struct timeline *timeline;  /* of that clock, for the ages of timestamps */
    struct kube_client *client; /* of the process; a module uses module_host_client */
    struct kube_config *config; /* of the API server, for clients with credentials of other users */
    const char *ns;             /* of the Lease, and of objects that belong to the process */
    struct elector *elector;    /* NULL: --leader-elect=false */
    struct manager *manager;
    struct health *health;
    struct modules *modules; /* private, for the functions below */
};

/* Returns the cache of a kind that a module has stated. */
struct informer *module_host_informer(const struct module_host *host, const struct kube_kind *kind);
/* Returns the queue of a kind that a module reconciles. */
struct workqueue *module_host_queue(const struct module_host *host, const struct kube_kind *kind);
/* Returns the queue of a module without a kind. */
struct workqueue *module_host_own_queue(const struct module_host *host,
                                        const struct module *module);
/* Returns the client with the rights of the ServiceAccount of a module. */
struct kube_client *module_host_client(const struct module_host *host, const struct module *module);
/* Returns the struct that the flags of a module filled. */
const void *module_host_flags(const struct module_host *host, const struct module *module);
/* Returns self of a module that is earlier in the list. */
void *module_host_self(const struct module_host *host, const struct module *module);

/* For create. Before this replica leads, the cache of the kind becomes as new as a quorum list (cache/catch_up.h). */
void module_host_catch_up(struct module_host *host, const struct kube_kind *kind);

/* Callbacks, whose ctx is the host. */
bool module_host_is_leader(void *ctx);
bool module_host_may_act(void *ctx); /* the Lease was renewed in time */
bool module_host_leads(void *ctx);   /* both of these */
