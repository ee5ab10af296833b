/* Objects as the store has them, and as clients see them. */
#pragma once

#include "common/base/buf.h"
#include "common/json/json.h"
#include "standalone/schema/resource.h"
#include "standalone/store/kv.h"

/*
 * The store's text is the object in the storage form of its resource, compact, without metadata.resourceVersion, and
 * with metadata first: so that the version can be put into the text of a list or an event without parsing it.
 */

/* "/registry/<group or core>/<plural>/"; with ns "…/<ns>/", with a name the key. NULL or "": none. */
const char *stored_key(struct arena *arena, const struct resource *resource, const char *ns,
                       const char *name);

/* Its deletion has begun, and nothing keeps it any more. */
bool stored_is_finished(const cJSON *object);

/* Writes the object to the key of `at`, which must still have its revision (0: not there), or deletes the key if the
 * object is finished. guard: kv_put_guarded's; NULL: none. */
int stored_write(struct kv *kv, struct arena *arena, const struct resource *resource,
                 const cJSON *object, const struct kv_value *at, const struct kv_guard *guard,
                 uint64_t *ret_revision, struct error *err) MUST_CHECK;

/* Returns the object as clients of this version of the resource see it, with resourceVersion; owned by the arena, free
 * to change. revision: the one to show instead of the value's own; 0: the value's own. */
int stored_tree(struct arena *arena, const struct resource *resource, const struct kv_value *value,
                uint64_t revision, cJSON **ret, struct error *err) MUST_CHECK;

/* Appends the same as text. */
int stored_append(struct arena *arena, const struct resource *resource,
                  const struct kv_value *value, uint64_t revision, struct buf *ret,
                  struct error *err) MUST_CHECK;

void stored_set_version(cJSON *object, uint64_t revision);
