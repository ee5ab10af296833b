/* metadata.managedFields: the fields of each manager. */
#pragma once

#include "standalone/patch/field_set.h"

/* Of one object. */
#define MANAGERS_MAX 1024
/* As in the API server: more managers that only update are joined into one, "ancient-changes". */
#define MANAGERS_MAX_UPDATERS 10

struct manager {
    const char *name;
    const char *subresource; /* "" for none */
    const char *version;     /* apiVersion of the fields */
    bool applies;            /* operation Apply; otherwise Update */
    const char *time;        /* RFC 3339; NULL: none */
    struct field_set fields;
};

/* In the arena, as all they point to. */
struct managers {
    struct manager *items;
    size_t len, cap;
};

/* false: an entry cannot be read; *ret is not changed. */
bool managers_read(struct arena *arena, const cJSON *managed_fields, struct managers *ret);
/* Orders them as the API server does, drops those without fields and joins the oldest updaters. Returns an array, the
 * caller's; NULL: there are none. */
cJSON *managers_write(struct arena *arena, struct managers *managers);

/* The manager with the same name, operation and subresource, and for Update the same version. NULL: there is none. */
struct manager *managers_find(const struct managers *managers, const struct manager *id);
struct manager *managers_add(struct arena *arena, struct managers *managers,
                             const struct manager *manager);
