/* Objects of one kind by name and by index: what reconcilers read. One writer (the watch loop),
 * many readers. It is one part, or one for each namespace that is listed and watched by itself. */
#pragma once

#include "common/base/arena.h"
#include "common/kube/object.h"

/*
 * Invariants
 *  1. An object is replaced only by a newer one (kube_version_compare).
 *  2. Every index holds exactly the objects of the store, under the values its function gave for
 * them.
 *  3. Objects never change; what a reader holds stays as it was.
 *  4. The seen version of a part never goes back. An object that is not there at or below it is
 * deleted, and does not come back through a late put. What one watch told says nothing of another
 * part: each has its own.
 *  5. An object of a namespace that no part is for is not kept: nobody would tell its end.
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
/* A part for each of them, which are not empty; before the first object. */
void store_split(struct store *store, const char *const *namespaces, size_t len);
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
 * The reply to a write, or a change told by the API server. false: the store holds that version or
 * a newer one, or the object is deleted (invariant 4). *ret_old (may be NULL) gets a reference to
 * what was replaced, or NULL.
 */
bool store_put(struct store *store, struct kube_object *object, struct kube_object **ret_old);
/* The API server told the deletion, so everything up to version is seen as well. A reference to
 * what was removed; NULL if there was none, or one that is newer than version. */
struct kube_object *store_remove(struct store *store, const struct kube_name *name,
                                 const char *version);
/* The API server has told every change of a part up to version. ns says which one, here and below;
 * it does not matter (may be NULL) where there is one only. */
void store_seen(struct store *store, const char *ns, const char *version);

/*
 * A complete set of a part: begin, add for each of its objects (which returns as store_put does, but knows no
 * deleted ones), sweep at the version of the set. What was not added and is not newer than the set
 * is gone: calls gone(ctx, old) with no lock held. Another begin starts over.
 */
typedef void store_gone_fn(void *ctx, struct kube_object *old);
void store_set_begin(struct store *store, const char *ns);
bool store_set_add(struct store *store, struct kube_object *object, struct kube_object **ret_old);
/* An object of the set cannot be kept: the one that is there under this uid, if any, is not gone;
 * NULL: all that are there are not. */
void store_set_keep(struct store *store, const char *ns, const char *uid);
void store_set_sweep(struct store *store, const char *ns, const char *version, store_gone_fn *gone,
                     void *ctx);

/* The uid is there at `version` or newer, or was removed since: the seen version is not older. For
 * catching up with a quorum list. */
bool store_has_seen(struct store *store, const char *ns, const char *uid, const char *version);
