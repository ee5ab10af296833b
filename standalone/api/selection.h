/* Which objects of a collection a list or a watch is about. */
#pragma once

#include "standalone/api/call.h"
#include "standalone/api/selector.h"

struct selection {
    const struct resource *resource;
    const struct label_selector *labels;
    const struct field_selector *fields;
};

/* Of the query; -1 after a refusal. Strings live in the call's arena. */
int selection_read(struct api_call *call, struct selection *ret);
bool selection_is_empty(const struct selection *selection);
bool selection_matches(const struct selection *selection, const cJSON *object);
/* 1 or 0; *ret_tree is the object if it had to be looked at, else as it was. */
int selection_takes(const struct selection *selection, struct arena *arena,
                    const struct kv_value *value, uint64_t revision, cJSON **ret_tree,
                    struct error *err) MUST_CHECK;
