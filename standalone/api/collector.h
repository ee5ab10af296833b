/* The thread that finishes deletions: dependents of what is gone, foreground and orphaning deletions,
 * namespaces, Events that are over. For this folder only. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/map.h"
#include "common/base/timeline.h"
#include "standalone/api/delete.h"

struct collector;

/*
 * Watches the whole store. In memory is the key of each object that has an owner, and of each that
 * is to be looked at. An owner that goes costs a few looks for each dependent, whatever order they
 * end in, and a namespace for each object in it; meanwhile others are looked at, too. A deletion
 * that is impossible now (a conflict, a full disk, an object that cannot be read) is tried again
 * every collector_retry_ms. Nothing is done before it has read all events.
 */
#define COLLECTOR_EVENTS_MS 60000
int collector_create(struct api *api, struct collector **ret, struct error *err);
void collector_destroy(struct collector *collector); /* joins; NULL is fine */
/* Objects that it has read so far, but for its first look at the store. Any thread. */
size_t collector_looked_at(const struct collector *collector);

/* --- of its two files: collector.c knows which objects to look at, collector_act.c looks ---------- */

#define NAMESPACE_KEYS "/registry/core/namespaces/" /* prefixes of keys */
#define EVENT_KEYS "/registry/core/events/"

/* Objects that are read, or deleted, before the events of the store are taken again: so the watch stays within
 * the history, and what comes meanwhile does not wait for 100,000 dependents of one owner. */
#define COLLECTOR_BATCH 256
/* Of a page of the store: objects are large, or many. */
#define COLLECTOR_PAGE 500
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
    struct map *
        dependents; /* uid of an owner -> map of the keys of its dependents, with whether it waits for each */
    struct map *sweeps; /* uid of a namespace that is going -> struct collector_sweep */
    /* Keys to be looked at. At most a batch of them goes at once; more wait in bulk, whose older part is gone
     * through from position on: */
    struct map *todo, *bulk, *going;
    size_t position;
    struct map *later; /* deletions that failed */
    int64_t later_ms;  /* the time to look at them again */
    int64_t events_due_ms;
    struct timeline *timeline; /* of Events */
};

/* The progress of emptying a namespace. */
struct collector_sweep {
    size_t resource; /* all before it were gone through; as many as there are: all */
    char *after;     /* of it, up to this key; NULL: from its first */
};
void collector_sweep_destroy(void *pointer);

/* At most a batch of them; there may be more. blocking: those that the owner waits for. Keys only, they may be stale;
 * in the arena. */
size_t collector_dependents(struct collector *collector, struct arena *arena, const char *uid,
                            bool blocking, const char *const **ret);

/* Calls the function with each object below the prefix, at one revision. */
typedef void collector_walk_fn(struct collector *collector, struct arena *arena,
                               const struct kv_value *value);
int collector_walk(struct collector *collector, const char *prefix, collector_walk_fn *function,
                   uint64_t *ret_revision, struct error *err);

const cJSON *collector_owners(const cJSON *object); /* metadata.ownerReferences */
bool collector_blocks(
    const cJSON *reference); /* the owner waits for the object in the foreground */
/* The object is being deleted, and its dependents are to go first. */
bool collector_is_waiting(const cJSON *object);
/* Returns the key in the store of an owner reference of an object in ns ("": in none). NULL: it
 * cannot be known whether the owner is there: its kind is not served, or is in namespaces and
 * the object is not. */
const char *collector_owner_key(const struct collector *collector, struct arena *arena,
                                const char *ns, const cJSON *reference);

enum collector_outcome {
    COLLECTOR_DONE,
    COLLECTOR_MORE,  /* to be looked at again when the events of what was done were taken */
    COLLECTOR_LATER, /* it cannot be done now */
};
/* Looks at the object of a key and does what is due. */
enum collector_outcome collector_act(struct collector *collector, struct arena *arena,
                                     const char *key);
/* Deletes the Events that are over. */
void collector_expire_events(struct collector *collector);
