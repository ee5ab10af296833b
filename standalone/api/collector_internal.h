/* What the files of the collector share. */
#pragma once

#include <pthread.h>

#include "common/base/map.h"
#include "standalone/api/call.h"
#include "standalone/api/collector.h"
#include "standalone/api/collector_plan.h"

struct collector {
    struct api *api;
    pthread_t thread;
    struct kv_watch *watch;

    pthread_mutex_t lock; /* of the two below */
    pthread_cond_t changed;
    bool woken, stopping;

    /* The thread alone: */
    struct map *dependents; /* uid of an owner -> map of the keys of who names it */
    struct map *todo;       /* keys to be looked at */
    int64_t events_due_ms;
};

void collector_note(struct collector *collector, const char *key);
/* Those of an owner, as a list in the arena; keys only, they may be stale. */
size_t collector_dependents(struct collector *collector, struct arena *arena, const char *uid,
                            const char *const **ret);

/* collector_act.c: looks at the object of a key and does what is due. False: try again later. */
bool collector_act(struct collector *collector, struct arena *arena, const char *key);
void collector_expire_events(struct collector *collector);
