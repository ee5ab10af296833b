/*
 * A store holds the objects of one kind by name and by index; reconcilers read it. It is one part,
 * or has a part for each namespace that is listed and watched by itself.
 *
 * Ownership. The store holds references. Readers get references of their own.
 * Errors. No function fails.
 * Threads. Thread-safe; guarded by the store's own lock. No function blocks.
 */
#pragma once

#include "common/base/arena.h"
#include "common/kube/object.h"

/*
 * Invariants
 *  1. An object is replaced only by a newer one (kube_version_compare).
 *  2. Every index holds exactly the objects of the store, under the values that its function gave.
 *  3. Objects never change: an object that a reader holds stays as it was.
 *  4. The seen version of a part never goes back. An object that is not there at that version is
 *     deleted, and a late put does not bring it back. Each part has its own seen version.
 *  5. An object of a namespace without a part is not kept, since its end would not be reported.
 */
struct store;

struct object_list {
    struct kube_object **items; /* references that the arena owns, in the order of names */
    size_t len;
};

/* Calls add(ctx, value) for each value under which the object is found. json is its tree, borrowed.
 * Must not call the store. */
typedef void index_add_fn(void *ctx, const char *value);
typedef void index_fn(const cJSON *json, index_add_fn *add, void *ctx);

struct store *store_create(void);
void store_destroy(struct store *store); /* NULL is fine */
/* Makes a part for each of len namespaces, none of them ""; len 0: one part for all. Called before
 * the first object. */
void store_split(struct store *store, const char *const *namespaces, size_t len);
void store_add_index(struct store *store, const char *name,
                     index_fn *function); /* before the first object */

/* The class of an object, below the number of classes. json is its tree, borrowed. Must not call the store. */
typedef size_t store_class_fn(const cJSON *json);
/* Counts the objects of each class from now on; called before the first object, at most once. The counts
 * change with the objects, so asking for them costs no walk. */
void store_count_classes(struct store *store, store_class_fn *class_of, size_t classes);
/* Copies the count of each class; ret has room for all of them. ns NULL: of all namespaces; otherwise it walks the store
 * without a look into the objects. */
void store_class_counts(struct store *store, const char *ns, size_t *ret);
/* Returns the objects of a class. */
struct object_list store_of_class(struct store *store, struct arena *arena, size_t class);

struct kube_object *store_get(struct store *store,
                              const struct kube_name *name); /* new reference or NULL */
struct object_list store_list(struct store *store, struct arena *arena,
                              const char *ns); /* NULL: all */
struct object_list store_find(struct store *store, struct arena *arena, const char *index,
                              const char *value);
size_t store_count(struct store *store, const char *index,
                   const char *value); /* index NULL: all objects */
/* Finds the name of the object with this uid. false: not there. */
bool store_name_of_uid(struct store *store, const char *uid, struct kube_name *ret);

/*
 * Puts an object: the reply to a write, or a change that the API server reported. Returns false if
 * the store has this version or a newer one, or if the object is deleted (invariant 4). *ret_old,
 * if ret_old is not NULL, is a reference to the replaced object, or NULL.
 */
bool store_put(struct store *store, struct kube_object *object, struct kube_object **ret_old);
/* Removes an object whose deletion the API server reported; everything up to version is seen then.
 * Returns a reference to the removed object, or NULL if there was none or a newer one. */
struct kube_object *store_remove(struct store *store, const struct kube_name *name,
                                 const char *version);
/* The API server has reported every change of a part up to version. Here and below, ns names the
 * part; it may be NULL if there is only one. */
void store_seen(struct store *store, const char *ns, const char *version);

/*
 * Replaces a part by a complete set: store_set_begin, store_set_add for each object of the set, and
 * store_set_sweep with the version of the set. store_set_add returns as store_put does, but ignores
 * the seen version. An object that was not added and is not newer than the set is removed:
 * store_set_sweep calls gone(ctx, old) for it, with no lock held. Another store_set_begin starts
 * again.
 */
typedef void store_gone_fn(void *ctx, struct kube_object *old);
void store_set_begin(struct store *store, const char *ns);
bool store_set_add(struct store *store, struct kube_object *object, struct kube_object **ret_old);
/* The set has an object that cannot be kept. An object with this uid in the store stays; uid NULL:
 * all objects of the part stay. */
void store_set_keep(struct store *store, const char *ns, const char *uid);
void store_set_sweep(struct store *store, const char *ns, const char *version, store_gone_fn *gone,
                     void *ctx);

/* Whether the object with this uid is in the store at version or newer, or the seen version is not
 * older. For catching up with a list by quorum. */
bool store_has_seen(struct store *store, const char *ns, const char *uid, const char *version);
