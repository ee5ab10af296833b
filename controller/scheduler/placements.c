#include "controller/scheduler/placements.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* What one Task adds to the counts. */
struct share {
    char **proplet_keys; /* in the order in which they were given */
    char **device_keys;  /* of each; NULL: it names none */
    size_t len;
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
    struct map *counts; /* Proplet key, or "<Proplet key>/<clientId>" -> placement_count */
    struct map *last;   /* namespace -> last */
    uint64_t sequence;
};

static void share_free(void *value)
{
    struct share *share = value;

    for (size_t i = 0; i < share->len; i++) {
        free(share->proplet_keys[i]);
        free(share->device_keys[i]);
    }
    free(share->proplet_keys);
    free(share->device_keys);
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

/* Both of one place of a share. */
static void place_change(struct placements *placements, const struct share *share, size_t at,
                         int64_t sign)
{
    int64_t active = sign * share->active;

    count_change(placements, share->proplet_keys[at], sign, active);
    if (share->device_keys[at])
        count_change(placements, share->device_keys[at], sign, active);
}

static const char *proplet_key(const char *ns, const char *proplet, char ret[static KUBE_KEY_LEN])
{
    struct kube_name name;

    if (!proplet || !kube_name_set(&name, ns, proplet))
        return NULL;

    return kube_name_key(&name, ret);
}

static char *device_key(const char *proplet_key, const char *client_id)
{
    size_t size = strlen(proplet_key) + strlen(client_id) + 2;
    char *key = xmalloc(size);

    snprintf(key, size, "%s/%s", proplet_key, client_id);
    return key;
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
    str_copy(last->proplet, sizeof(last->proplet), placement->on.proplet);
    map_set(placements->last, ns, last);
}

/* NULL: it counts nowhere. */
static struct share *share_create(const struct kube_name *task, const struct placement *placement)
{
    size_t len = placement ? placement->target_count : 0;
    char key[KUBE_KEY_LEN];

    if (!placement || (!len && !placement->on.proplet))
        return NULL;

    const struct placed *places = len ? placement->targets : &placement->on;
    struct share *share = xcalloc(1, sizeof(*share));
    share->proplet_keys = xcalloc(len + 1, sizeof(*share->proplet_keys));
    share->device_keys = xcalloc(len + 1, sizeof(*share->device_keys));
    share->active = placement->active;
    share->chosen_us = placement->chosen_us;
    for (size_t i = 0; i < (len ? len : 1); i++) {
        if (!proplet_key(task->ns, places[i].proplet, key))
            continue;
        if (places[i].client_id)
            share->device_keys[share->len] = device_key(key, places[i].client_id);
        share->proplet_keys[share->len++] = xstrdup(key);
    }
    if (share->len)
        return share;
    share_free(share);
    return NULL;
}

/* Targets end in any order, and all of both lists are in the order of the broadcast: next is where
 * to look on. */
static bool share_has(const struct share *share, const char *key, size_t *next)
{
    for (size_t i = *next; share && share->active && i < share->len; i++) {
        if (str_equal(share->proplet_keys[i], key)) {
            *next = i + 1;
            return true;
        }
    }
    return false;
}

/* The lock is held. Takes fresh. */
static struct freed_list share_replace(struct placements *placements, struct arena *arena,
                                       const struct kube_name *task, struct share *fresh)
{
    struct freed_list ret = { 0 };
    char task_key[KUBE_KEY_LEN];
    size_t next = 0;

    const struct share *old = map_get(placements->shares, kube_name_key(task, task_key));
    if (old) {
        ret.items = arena_array(arena, struct kube_name, old->len);
        for (size_t i = 0; i < old->len; i++) {
            const char *key = old->proplet_keys[i];
            if (old->active && !share_has(fresh, key, &next) &&
                kube_name_set(&ret.items[ret.len], task->ns, strchr(key, '/') + 1))
                ret.len++;
            place_change(placements, old, i, -1);
        }
        map_remove(placements->shares, task_key);
    }
    if (fresh) {
        map_set(placements->shares, task_key, fresh);
        for (size_t i = 0; i < fresh->len; i++)
            place_change(placements, fresh, i, 1);
    }
    return ret;
}

/* An earlier choice than the one that is assumed: it only has not seen it yet. */
static bool is_outdated(struct placements *placements, const struct kube_name *task,
                        const struct placement *placement)
{
    char key[KUBE_KEY_LEN];
    const struct share *old = map_get(placements->shares, kube_name_key(task, key));

    return old && old->assumed && placement && placement->chosen_us < old->chosen_us;
}

struct freed_list placements_note(struct placements *placements, struct arena *arena,
                                  const struct kube_name *task, const struct placement *placement)
{
    struct share *fresh = share_create(task, placement);
    struct freed_list ret = { 0 };

    pthread_mutex_lock(&placements->lock);
    bool outdated = is_outdated(placements, task, placement);
    if (!outdated) {
        ret = share_replace(placements, arena, task, fresh);
        if (fresh && placement->on.proplet)
            last_change(placements, task->ns, placement, false);
    }
    pthread_mutex_unlock(&placements->lock);
    if (outdated && fresh)
        share_free(fresh);
    return ret;
}

uint64_t placements_sequence(struct placements *placements)
{
    pthread_mutex_lock(&placements->lock);
    uint64_t sequence = placements->sequence;
    pthread_mutex_unlock(&placements->lock);
    return sequence;
}

bool placements_assume(struct placements *placements, struct arena *arena, uint64_t sequence,
                       const struct kube_name *task, const struct placement *placement,
                       struct freed_list *ret_freed)
{
    struct share *fresh = share_create(task, placement);

    *ret_freed = (struct freed_list){ 0 };
    pthread_mutex_lock(&placements->lock);
    bool ok = placements->sequence == sequence;
    if (ok) {
        placements->sequence++;
        *ret_freed = share_replace(placements, arena, task, fresh);
        if (fresh)
            fresh->assumed = true;
        if (fresh && placement->on.proplet)
            last_change(placements, task->ns, placement, true);
    }
    pthread_mutex_unlock(&placements->lock);
    if (!ok && fresh)
        share_free(fresh);
    return ok;
}

struct freed_list placements_forget(struct placements *placements, struct arena *arena,
                                    const struct kube_name *task)
{
    return placements_note(placements, arena, task, NULL);
}

static struct placement_count count_of(struct placements *placements, const char *key)
{
    struct placement_count ret = { 0 };

    pthread_mutex_lock(&placements->lock);
    const struct placement_count *count = map_get(placements->counts, key);
    if (count)
        ret = *count;
    pthread_mutex_unlock(&placements->lock);
    return ret;
}

struct placement_count placements_count(struct placements *placements, const char *ns,
                                        const char *proplet)
{
    char key[KUBE_KEY_LEN];

    if (!proplet_key(ns, proplet, key))
        return (struct placement_count){ 0 };
    return count_of(placements, key);
}

struct placement_count placements_device_count(struct placements *placements, const char *ns,
                                               const char *proplet, const char *client_id)
{
    char key[KUBE_KEY_LEN];

    if (!proplet_key(ns, proplet, key))
        return (struct placement_count){ 0 };

    char *own_key = device_key(key, client_id);
    struct placement_count ret = count_of(placements, own_key);
    free(own_key);
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
