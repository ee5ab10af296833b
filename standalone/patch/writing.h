/* What updates and applies share: one write of an object, and who held its fields. For this folder only. */
#pragma once

#include "standalone/patch/managed_fields.h"
#include "standalone/patch/managers.h"
#include "standalone/patch/typed.h"

struct writing {
    struct arena *arena;
    const struct managed_fields_write *write;
    const struct schema *schema;
    const char *version;       /* apiVersion of the resource */
    const char *now;           /* RFC 3339 */
    struct field_set *ignored; /* the endpoint does not write it, nor what is below */
    struct field_set *meta;    /* nobody holds it */
};
struct writing writing_of(struct arena *arena, const struct managed_fields_write *write);

/* What Go has of an object that is not there: its kind, and members that are always written. */
const cJSON *writing_nothing(const struct writing *writing);
/* A copy without managedFields, in the arena; managers are no fields. */
cJSON *writing_bare(const struct writing *writing, const cJSON *object);
void writing_set_managers(const struct writing *writing, cJSON *object,
                          const struct managers *managers);

/* Without what the endpoint does not write. */
struct field_set *writing_filtered(const struct writing *writing, const struct field_set *set);
struct typed_comparison writing_compare(const struct writing *writing, const cJSON *old,
                                        const cJSON *new);
/* modified and added */
struct field_set *writing_changed(const struct writing *writing,
                                  const struct typed_comparison *comparison);

/* Whether this is another manager than own, of fields of this version: those of another version of
 * the kind have other names, and nothing is known of them. */
bool writing_is_concerned(const struct writing *writing, const struct manager *manager,
                          const struct manager *own);
/* Others lose what was changed or removed. */
void writing_take(const struct writing *writing, struct managers *managers,
                  const struct typed_comparison *comparison, const struct manager *own);
/* The manager with this name, of operation Update, gets what changed, and the time; others lose it. */
void writing_update(const struct writing *writing, struct managers *managers, const cJSON *old,
                    const cJSON *new, const char *name, const char *time);
