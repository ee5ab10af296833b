/* Objects and lists as the client asked for them: as they are, as a Table, or their metadata. */
#pragma once

#include "standalone/api/call.h"

/* One object. */
int present_object(struct api_call *call, int code, cJSON *object);

/* Of a list: what its metadata says. */
struct list_end {
    uint64_t revision;
    const char *continue_token; /* "" none */
    int64_t remaining;          /* -1: not said */
};
/* Items that are shown, and trees of them where the form needs these; NULL: made on the way. */
struct listed {
    const struct kv_value *value;
    cJSON *tree;
};
int present_list(struct api_call *call, const struct listed *items, size_t len,
                 const struct list_end *end);
