/*
 * This module holds kinds, names and shared immutable objects of the Kubernetes API.
 *
 * Only kube_object_create and kube_object_create_with fail. Any thread may call any function.
 * Lengths are in bytes; _us is the wall clock in microseconds since 1970.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/json/json.h"

struct json_phrases;

/* A kind with the parts of its path. Kinds are constants, since there is no discovery. */
struct kube_kind {
    const char *group; /* "" for the core group */
    const char *version;
    const char *kind;
    const char *plural;
    bool namespaced;
    /* Paths of large members that no code looks into: every tree keeps them as text
     * (json_reading.texts). NULL: none. */
    const char *const *texts;
    const struct json_phrases *phrases; /* for packing (packing.h); NULL: those of all objects */
};

/* A name is a plain value, compared by kube_name_equal. */
struct kube_name {
    char ns[64]; /* "" for cluster-scoped objects */
    char name[254];
};

bool kube_name_set(struct kube_name *ret, const char *ns, const char *name); /* false: too long */
bool kube_name_equal(const struct kube_name *a, const struct kube_name *b);
/* Write "ns/name" or "name" to ret, for map keys and messages, and return ret. */
#define KUBE_KEY_LEN 320
const char *kube_name_key(const struct kube_name *name, char ret[static KUBE_KEY_LEN]);

/*
 * An object is one allocation with a header, its names and its packed JSON text (packing.h). It never changes
 * and counts its references, which any thread may hold. A tree in memory would cost 4 to 5 KiB, so
 * each unit of work that needs the tree parses it into its arena.
 */
struct kube_object {
    const char *packed; /* read by kube_object_text and kube_object_json */
    uint32_t packed_len;
    const char *ns;               /* "" for cluster-scoped objects */
    const char *name;             /* both fit into a struct kube_name */
    const char *uid;              /* "": not set yet */
    const char *resource_version; /* likewise */
    int64_t generation;
    int64_t created_us;           /* metadata.creationTimestamp; 0: not set yet */
    const struct kube_kind *kind; /* outlives the object; NULL: not known */
    bool deleting;                /* metadata.deletionTimestamp is set */
};

struct kube_name kube_object_name(const struct kube_object *object);
/* As kube_name_key. */
const char *kube_object_key(const struct kube_object *object, char ret[static KUBE_KEY_LEN]);

/* Compares by creationTimestamp, which has whole seconds, then by uid, so all processes agree. */
bool kube_object_is_older(const struct kube_object *object, const struct kube_object *than);

/* Makes an object of a tree, which it copies. *ret is a new reference, owned by the caller. kind
 * may be NULL; otherwise the tree was read with its texts. ERROR_INVALID: no metadata.name, or a
 * name that is too long. ERROR_TOO_LARGE: over 4 GiB. */
int kube_object_create_with(const cJSON *json, const struct kube_kind *kind,
                            struct kube_object **ret, struct error *err) MUST_CHECK;
int kube_object_create(const cJSON *json, struct kube_object **ret, struct error *err) MUST_CHECK;
struct kube_object *kube_object_ref(struct kube_object *object); /* NULL gives NULL */
void kube_object_unref(struct kube_object *object);              /* NULL is fine */
DEFINE_CLEANUP(struct kube_object *, kube_object_unref)

/* Returns the compact JSON text, in the arena; ret_len may be NULL. */
const char *kube_object_text(struct arena *arena, const struct kube_object *object,
                             size_t *ret_len);
/* Returns the tree, owned by the arena. It cannot fail, since the text was printed from a tree. */
const cJSON *kube_object_json(struct arena *arena, const struct kube_object *object);

/*
 * Compares two resourceVersions of one resource as decimal numbers of any length (KEP-5504).
 * Returns < 0, 0 or > 0; a text that is not a number counts as older.
 */
int kube_version_compare(const char *a, const char *b);

/* The following functions read the tree of an object and borrow from it. false: a name is too
 * long. */
bool kube_name_of(const cJSON *object, struct kube_name *ret);
/* Returns "" if the object has no uid yet. */
const char *kube_uid(const cJSON *object);
bool kube_is_deleting(const cJSON *object);

/* Return the owner reference with controller: true, or its uid; NULL if there is none. */
const cJSON *kube_controller_reference(const cJSON *object);
const char *kube_controller_uid(const cJSON *object);
