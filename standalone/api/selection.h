/* This module selects objects of a collection: label selectors and field selectors. Pure. */
#pragma once

#include "standalone/schema/resource.h"
#include "standalone/store/kv.h"

/* In each of both selectors: each requirement is looked at for each object. */
#define SELECTION_MAX_REQUIREMENTS 64
#define SELECTION_MAX_VALUES 64 /* of one requirement */

struct selector;
struct selection {
    const struct resource *resource;
    const struct selector *labels, *fields;
};

/*
 * labels: "a,!b,c=d,e!=f,g in (h,i),j notin (k)"; fields: "metadata.name=a,spec.x!=b". "" selects everything. The
 * selection lives in the arena. ERROR_INVALID: one of them cannot be read, or objects of this resource cannot be
 * selected by this field: metadata.name and metadata.namespace are fields of all of them.
 */
int selection_parse(struct arena *arena, const struct resource *resource, const char *labels,
                    const char *fields, struct selection *ret, struct error *err) MUST_CHECK;
bool selection_is_empty(const struct selection *selection);
bool selection_matches(const struct selection *selection, const cJSON *object);
/* 1 or 0; *ret_tree is the object (stored_tree) if it had to be looked at, else it stays as it was. */
int selection_takes(const struct selection *selection, struct arena *arena,
                    const struct kv_value *value, uint64_t revision, cJSON **ret_tree,
                    struct error *err) MUST_CHECK;
