/* Names, kinds and shared immutable objects of the Kubernetes API. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/json/json.h"

struct json_phrases;

/* A kind: the parts of its path. Kinds are constants, since there is no discovery. */
struct kube_kind {
    const char *group; /* "" for the core group */
    const char *version;
    const char *kind;
    const char *plural;
    bool namespaced;
    /* Members of any size that only travel: kept as text in every tree (json_reading.texts). NULL: none. */
    const char *const *texts;
    const struct json_phrases *phrases; /* for packing (packing.h). NULL: those of all objects */
};

/* A value: never allocated, compared with kube_name_equal. */
struct kube_name {
    char ns[64]; /* "" for cluster-scoped objects */
    char name[254];
};

bool kube_name_set(struct kube_name *ret, const char *ns, const char *name); /* false: too long */
bool kube_name_equal(const struct kube_name *a, const struct kube_name *b);
/* "ns/name" or "name": map keys and messages. */
#define KUBE_KEY_LEN 320
const char *kube_name_key(const struct kube_name *name, char ret[static KUBE_KEY_LEN]);

/*
 * One allocation: header and compact JSON text, packed (packing.h). Immutable and counted; any thread may hold a
 * reference. A tree at rest would cost 4 to 5 KiB an object, so it is parsed into the arena of the
 * unit of work that needs it.
 */
struct kube_object {
    const char *packed; /* kube_object_text, kube_object_json */
    uint32_t packed_len;
    struct kube_name name;
    const char *uid;              /* "": not set yet */
    const char *resource_version; /* likewise */
    int64_t generation;
    int64_t created_us;           /* metadata.creationTimestamp; 0: not set yet */
    const struct kube_kind *kind; /* outlives the object; NULL: not known */
    bool deleting;                /* metadata.deletionTimestamp is set */
};

/* By creationTimestamp, which has whole seconds, then by uid: the same for every process. */
bool kube_object_is_older(const struct kube_object *object, const struct kube_object *than);

/* Copies what it needs of json; ERROR_INVALID without metadata.name. kind: may be NULL; the tree was read
 * with its texts. */
int kube_object_create_with(const cJSON *json, const struct kube_kind *kind,
                            struct kube_object **ret, struct error *err) MUST_CHECK;
int kube_object_create(const cJSON *json, struct kube_object **ret, struct error *err) MUST_CHECK;
struct kube_object *kube_object_ref(struct kube_object *object); /* NULL gives NULL */
void kube_object_unref(struct kube_object *object);              /* NULL is fine */
DEFINE_CLEANUP(struct kube_object *, kube_object_unref)

/* The compact JSON text, in the arena; ret_len may be NULL. */
const char *kube_object_text(struct arena *arena, const struct kube_object *object,
                             size_t *ret_len);
/* The tree, parsed from the text; dies with the arena. Aborts only on a bug, the text came from a
 * tree. */
const cJSON *kube_object_json(struct arena *arena, const struct kube_object *object);

/*
 * resourceVersions of one resource, compared as the API server lets clients do (KEP-5504): as
 * decimal numbers of any length. < 0, 0, > 0; anything that is not a number counts as older.
 */
int kube_version_compare(const char *a, const char *b);

/* Of a tree that is an object: false if a name is too long. */
bool kube_name_of(const cJSON *object, struct kube_name *ret);
/* "" if it has none yet. */
const char *kube_uid(const cJSON *object);
bool kube_is_deleting(const cJSON *object);

/* The controller owner reference, or NULL; and its uid. */
const cJSON *kube_controller_reference(const cJSON *object);
const char *kube_controller_uid(const cJSON *object);
