/* metadata.managedFields as sets, and back. */
#pragma once

#include "standalone/patch/field_set.h"

/* Of one object; the API server has no limit, but its objects may hold 3 MiB. */
#define MANAGERS_MAX 1024

struct manager {
    const char *name;
    const char *subresource; /* "" for none */
    const char *version;     /* apiVersion of the fields */
    bool applies;            /* operation Apply; else Update */
    const char *time;        /* RFC 3339; NULL: none */
    struct field_set *set;
};

/* In the arena of whoever reads them. */
struct managers {
    struct manager *items;
    size_t len, cap;
};

/* false: an entry is not one; *ret is untouched. */
bool managers_read(struct arena *arena, const cJSON *managed_fields, struct managers *ret);
/* An array in the order of the API server, the caller's; NULL: there are none. */
cJSON *managers_write(struct arena *arena, const struct managers *managers);

/* The same name, operation and subresource, and for Update the same version. NULL: not there. */
struct manager *managers_find(const struct managers *managers, const struct manager *id);
struct manager *managers_add(struct arena *arena, struct managers *managers,
                             const struct manager *manager);
void managers_drop_empty(struct managers *managers);

/* Joins the oldest that update, until at most max do. */
void managers_cap(struct arena *arena, struct managers *managers, size_t max);

/* `"kubectl" with subresource "status" using v1`, in conflicts. */
const char *manager_text(struct arena *arena, const struct manager *manager);
/* By what conflicts are ordered. */
int manager_compare(const struct manager *a, const struct manager *b);
