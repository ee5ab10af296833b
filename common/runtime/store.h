/* Objects of one kind by name and by index: what reconcilers read. One writer (the watch loop),
 * many readers. */
#pragma once

#include "common/base/arena.h"
#include "common/kube/object.h"

/*
 * Invariants
 *  1. An object is replaced only by a newer one (kube_version_compare), but for store_replace's
 * complete set.
 *  2. Every index holds exactly the objects of the store, under the values its function gave for
 * them.
 *  3. Objects never change; what a reader holds stays as it was.
 */
struct store;

struct object_list {
    struct kube_object **items; /* references owned by the arena; in name order */
    size_t len;
};

/* Calls add(ctx, value) for each value the object is found under. json is the object's tree. */
typedef void index_add_fn(void *ctx, const char *value);
typedef void index_fn(const cJSON *json, index_add_fn *add, void *ctx);

struct store *store_create(void);
void store_destroy(struct store *store);
void store_add_index(struct store *store, const char *name,
                     index_fn *function); /* before the first object */

struct kube_object *store_get(struct store *store,
                              const struct kube_name *name); /* new reference or NULL */
struct object_list store_list(struct store *store, struct arena *arena,
                              const char *ns); /* NULL: all */
struct object_list store_find(struct store *store, struct arena *arena, const char *index,
                              const char *value);
size_t store_count(struct store *store, const char *index,
                   const char *value); /* index NULL: all objects */
/* An index "uid" is always there. */
bool store_name_of_uid(struct store *store, const char *uid, struct kube_name *ret);

/*
 * put: false if the store holds that version or a newer one; *ret_old (may be NULL) gets the
 * replaced object. A deleted object does not come back through a late put of an older version: its
 * version is remembered for a while.
 */
bool store_put(struct store *store, struct kube_object *object, struct kube_object **ret_old);
struct kube_object *store_remove(struct store *store, const struct kube_name *name,
                                 const char *version);

/* What is not in the set of names marked since store_mark_begin is gone; calls gone(ctx, old) with
 * no lock held. */
typedef void store_gone_fn(void *ctx, struct kube_object *old);
void store_mark_begin(struct store *store);
void store_mark_sweep(struct store *store, store_gone_fn *gone, void *ctx);

/* The uid is there at `version` or newer, or was removed since. For catching up with a quorum list.
 */
bool store_has_seen(struct store *store, const char *uid, const char *version);
