/* What the files of the collector share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/map.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"
#include "standalone/api/collector_plan.h"

#define NAMESPACE_KEYS "/registry/core/namespaces/" /* prefixes of keys */
#define EVENT_KEYS "/registry/core/events/"

/* Objects that are read, or deleted, before the events of the store are taken again: so the watch stays within
 * the history, and what comes meanwhile does not wait for 100,000 dependents of one owner. */
#define COLLECTOR_BATCH 256
/* Of a page of the store: objects are large, or many. */
#define COLLECTOR_PAGE_BYTES ((size_t)1 << 20)

struct collector {
    struct api *api;
    pthread_t thread;
    struct kv_watch *watch;
    atomic_size_t looked_at; /* objects */

    pthread_mutex_t lock; /* of the two below */
    pthread_cond_t changed;
    bool woken, stopping;

    /* The thread alone: */
    bool is_behind; /* the store could not be read */
    struct map
        *dependents; /* uid of an owner -> map of the keys of who names it, with whether it waits */
    struct map *sweeps; /* uid of a namespace that is going -> struct collector_sweep */
    /* Keys to be looked at. At most a batch of them goes at once; more wait in bulk, whose older part is gone
     * through from position on: */
    struct map *todo, *bulk, *going;
    size_t position;
    /* Owners that wait for their dependents have their turn when these were all looked at: else those would
     * take for a reason to stay that the owner, kept by another finalizer, waits no more. */
    struct map *owners;
    bool owners_turn;
    struct map *later; /* those that could not be done */
    int64_t later_ms;  /* when they are looked at again */
    int64_t events_due_ms;
    struct timeline *timeline; /* of Events */
};

/* How far a namespace has been emptied. */
struct collector_sweep {
    size_t resource; /* all before it were gone through; as many as there are: all */
    char *after;     /* of it, up to this key; NULL: from its first */
};
void collector_sweep_destroy(void *pointer);

void collector_note(struct collector *collector, const char *key);

enum collector_dependents {
    COLLECTOR_ALL,      /* at most a batch of them; there may be more */
    COLLECTOR_BLOCKING, /* those that it waits for */
};
/* Keys only, they may be stale; in the arena. *position: 0, or where those of before ended. */
size_t collector_dependents(struct collector *collector, struct arena *arena, const char *uid,
                            enum collector_dependents which, size_t *position,
                            const char *const **ret);

enum collector_outcome {
    COLLECTOR_DONE,
    COLLECTOR_MORE,  /* when the events of what was done were taken */
    COLLECTOR_OWNER, /* it is not its turn */
    COLLECTOR_LATER, /* it cannot be done now */
};
/* collector_act.c: looks at the object of a key and does what is due. */
enum collector_outcome collector_act(struct collector *collector, struct arena *arena,
                                     const char *key);
void collector_expire_events(struct collector *collector);

/* An object as it is stored. */
struct collector_subject {
    const char *key;
    const cJSON *object;
    uint64_t revision;
};
/* As collector_act, of a namespace that is going (collector_namespace.c). */
enum collector_outcome collector_empty_namespace(struct collector *collector, struct arena *arena,
                                                 const struct collector_subject *subject);
/* Deletes the object of a key, which was read as this one. policy NULL: as its finalizers say. False: not now. */
bool collector_delete(struct collector *collector, struct arena *arena, const char *key,
                      const cJSON *object, const char *policy);
