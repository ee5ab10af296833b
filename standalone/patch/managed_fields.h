/* Who set which field: metadata.managedFields and server-side apply (KEP-555). */
#pragma once

#include "standalone/schema/resource.h"

/* As the API server: more managers that only update are joined into one named "ancient-changes". */
#define MANAGED_FIELDS_MAX_UPDATERS 10
#define FIELD_MANAGER_MAX 128

struct managed_fields_write {
    const struct resource *resource;
    const char *subresource; /* "" or "status" */
    const char *manager;     /* managed_fields_manager */
    int64_t now_us;          /* wall clock */
};

/* ?fieldManager=, else what stands before the first '/' of the User-Agent, at most
 * FIELD_MANAGER_MAX bytes; "unknown" for none. */
const char *managed_fields_manager(struct arena *arena, const char *field_manager,
                                   const char *user_agent);

/*
 * Of create, update and patches but apply: sets metadata.managedFields of object, which is what the
 * client wants, pruned and with the defaults of the schema, before admission and before the
 * strategy takes anything from live: as in the API server, nobody holds what these add. Fields that
 * the endpoint does not write (status; for status all but it) are left out here. live NULL: it is
 * created. What the client sent as managedFields counts if it can be decoded; [{}] forgets all
 * (of built-in kinds [] too). Who changes nothing keeps the times. Never fails: what cannot be tracked is as
 * live had it.
 */
void managed_fields_update(struct arena *arena, const struct managed_fields_write *write,
                           const cJSON *live, cJSON *object);

/*
 * Server-side apply: live (NULL: not there) with applied merged into it, list by list as the schema says,
 * without what this manager applied before and nobody holds any more; managedFields are set. *ret is a new
 * tree in the arena, to be defaulted, admitted and stored.
 * applied must hold apiVersion, kind and no managedFields. The list's keys and types are checked:
 *   ERROR_INVALID   applied does not fit the schema (400 BadRequest, message as it is)
 *   ERROR_CONFLICT  not forced, and others hold fields with other values: *ret_status is the Status (409,
 *                   causes FieldManagerConflict), in the arena
 */
int managed_fields_apply(struct arena *arena, const struct managed_fields_write *write,
                         const cJSON *live, const cJSON *applied, bool force, cJSON **ret,
                         const cJSON **ret_status, struct error *err) MUST_CHECK;
