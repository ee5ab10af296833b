/* Managers of fields: metadata.managedFields and server-side apply (KEP-555). */
#pragma once

#include "standalone/schema/resource.h"

#define FIELD_MANAGER_MAX 128

struct managed_fields_write {
    const struct resource *resource;
    const char *subresource; /* "" or "status" */
    const char *manager;     /* managed_fields_manager */
    int64_t now_us;          /* wall clock */
};

/* The parameter fieldManager; without one, what stands before the first '/' of the User-Agent, at most
 * FIELD_MANAGER_MAX bytes; "unknown" without either. */
const char *managed_fields_manager(struct arena *arena, const char *field_manager,
                                   const char *user_agent);

/*
 * For create, update and all patches but apply: sets metadata.managedFields of object. object is what the client
 * wants, pruned and with the defaults of the schema, before admission changes it and before fields are taken over
 * from live: fields that these add have no manager. Fields that the endpoint does not write (status; for status,
 * spec) are not managed by this write. live NULL: the object is created. managedFields that the client sent are taken
 * if they can be read; [{}] removes all. A write that changes nothing keeps the times.
 * Never fails: if object does not fit the schema, the object has no managers then.
 */
void managed_fields_update(struct arena *arena, const struct managed_fields_write *write,
                           const cJSON *live, cJSON *object);

/*
 * Server-side apply: merges applied into live (NULL: the object is created), list by list as the schema says, removes
 * what this manager applied before, does not apply now, and no other manager has, and sets managedFields. *ret is
 * a new tree in the arena, to be defaulted, admitted and stored.
 *   ERROR_INVALID   applied is of another kind, or has managedFields (400 BadRequest)
 *   ERROR_INTERNAL  applied or live does not fit the schema (500, as the API server answers)
 *   ERROR_CONFLICT  not forced, and others manage fields with other values: *ret_status is the Status (409, causes
 *                   FieldManagerConflict), in the arena
 */
int managed_fields_apply(struct arena *arena, const struct managed_fields_write *write,
                         const cJSON *live, const cJSON *applied, bool force, cJSON **ret,
                         const cJSON **ret_status, struct error *err) MUST_CHECK;
