#include "controller/placements.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* What one Task adds to the counts. */
struct share {
    char *proplet_key;
    int64_t chosen_us;
    bool active;
    bool assumed;
};

struct last {
    char proplet[254];
    int64_t chosen_us;
};

struct placements {
    pthread_mutex_t lock;
    struct map *shares; /* Task key -> share */
    struct map *counts; /* Proplet key -> placement_count */
    struct map *last;   /* namespace -> last */
    uint64_t sequence;
};

static void share_free(void *value)
{
    struct share *share = value;

    free(share->proplet_key);
    free(share);
}

struct placements *placements_create(void)
{
    struct placements *placements = xcalloc(1, sizeof(*placements));

    pthread_mutex_init(&placements->lock, NULL);
    placements->shares = map_create(share_free);
    placements->counts = map_create(free);
    placements->last = map_create(free);
    return placements;
}

void placements_destroy(struct placements *placements)
{
    if (!placements)
        return;

    map_destroy(placements->shares);
    map_destroy(placements->counts);
    map_destroy(placements->last);
    pthread_mutex_destroy(&placements->lock);
    free(placements);
}

static void count_change(struct placements *placements, const char *key, int64_t total,
                         int64_t active)
{
    struct placement_count *count = map_get(placements->counts, key);

    if (!count) {
        count = xcalloc(1, sizeof(*count));
        map_set(placements->counts, key, count);
    }
    count->total += total;
    count->active += active;
    if (!count->total)
        map_remove(placements->counts, key);
}

static const char *proplet_key(const struct kube_name *task, const char *proplet,
                               char ret[static KUBE_KEY_LEN])
{
    struct kube_name name;

    if (!proplet || !kube_name_set(&name, task->ns, proplet))
        return NULL;

    return kube_name_key(&name, ret);
}

/* now: it is chosen with the lock held, so it is the newest whatever the time of its choice says:
 * that is the wall clock's, read before. */
static void last_change(struct placements *placements, const char *ns,
                        const struct placement *placement, bool now)
{
    const struct last *old = map_get(placements->last, ns);
    int64_t chosen_us = placement->chosen_us;

    if (old && old->chosen_us >= chosen_us) {
        if (!now)
            return;
        chosen_us = old->chosen_us;
    }

    struct last *last = xcalloc(1, sizeof(*last));
    last->chosen_us = chosen_us;
    str_copy(last->proplet, sizeof(last->proplet), placement->proplet);
    map_set(placements->last, ns, last);
}

/* The lock is held. Returns true if capacity became free: of *ret_freed. */
static bool share_replace(struct placements *placements, const struct kube_name *task,
                          const struct placement *placement, struct kube_name *ret_freed)
{
    char task_key[KUBE_KEY_LEN];
    char new_key[KUBE_KEY_LEN];
    const char *to = placement ? proplet_key(task, placement->proplet, new_key) : NULL;
    bool freed = false;

    kube_name_key(task, task_key);
    const struct share *old = map_get(placements->shares, task_key);
    if (old && old->assumed && placement && placement->chosen_us < old->chosen_us)
        return false;
    if (old) {
        freed = old->active && !(to && placement->active && str_equal(old->proplet_key, to)) &&
                kube_name_set(ret_freed, task->ns, strchr(old->proplet_key, '/') + 1);
        count_change(placements, old->proplet_key, -1, -(int64_t)old->active);
        map_remove(placements->shares, task_key);
    }
    if (to) {
        struct share *share = xcalloc(1, sizeof(*share));
        share->proplet_key = xstrdup(to);
        share->active = placement->active;
        share->chosen_us = placement->chosen_us;
        map_set(placements->shares, task_key, share);
        count_change(placements, to, 1, placement->active);
        last_change(placements, task->ns, placement, false);
    }
    return freed;
}

bool placements_note(struct placements *placements, const struct kube_name *task,
                     const struct placement *placement, struct kube_name *ret_freed)
{
    pthread_mutex_lock(&placements->lock);
    bool freed = share_replace(placements, task, placement, ret_freed);
    pthread_mutex_unlock(&placements->lock);
    return freed;
}

uint64_t placements_sequence(struct placements *placements)
{
    pthread_mutex_lock(&placements->lock);
    uint64_t sequence = placements->sequence;
    pthread_mutex_unlock(&placements->lock);
    return sequence;
}

bool placements_assume(struct placements *placements, uint64_t sequence,
                       const struct kube_name *task, const struct placement *placement,
                       struct kube_name *ret_freed)
{
    *ret_freed = (struct kube_name){ 0 };
    pthread_mutex_lock(&placements->lock);
    bool ok = placements->sequence == sequence;
    if (ok) {
        char key[KUBE_KEY_LEN];
        placements->sequence++;
        share_replace(placements, task, placement, ret_freed);
        struct share *share = map_get(placements->shares, kube_name_key(task, key));
        if (share) {
            share->assumed = true;
            last_change(placements, task->ns, placement, true);
        }
    }
    pthread_mutex_unlock(&placements->lock);
    return ok;
}

bool placements_forget(struct placements *placements, const struct kube_name *task,
                       struct kube_name *ret_freed)
{
    return placements_note(placements, task, NULL, ret_freed);
}

struct placement_count placements_count(struct placements *placements, const char *ns,
                                        const char *proplet)
{
    struct placement_count ret = { 0 };
    struct kube_name name;
    char key[KUBE_KEY_LEN];

    if (!kube_name_set(&name, ns, proplet))
        return ret;

    pthread_mutex_lock(&placements->lock);
    const struct placement_count *count = map_get(placements->counts, kube_name_key(&name, key));
    if (count)
        ret = *count;
    pthread_mutex_unlock(&placements->lock);
    return ret;
}

void placements_last(struct placements *placements, const char *ns, char ret[static 254])
{
    ret[0] = '\0';
    pthread_mutex_lock(&placements->lock);
    const struct last *last = map_get(placements->last, ns);
    if (last)
        str_copy(ret, 254, last->proplet);
    pthread_mutex_unlock(&placements->lock);
}
