/* Objects and lists as the client asked for them: as they are, as a Table, or their metadata. */
#pragma once

#include "common/base/buf.h"
#include "standalone/api/call.h"
#include "standalone/schema/table.h"

/* One object. */
int present_object(struct api_call *call, int code, cJSON *object);

/* How a Table is to be; -1 after a refusal: the query wishes what is none. Of another form nothing counts. */
int present_options(struct api_call *call, struct table_options *ret);
/* A tree in the form that was asked for, a Table of one row or metadata alone; in the arena. */
cJSON *present_tree(struct arena *arena, const struct format *format,
                    const struct resource *resource, const struct table_options *options,
                    cJSON *tree);

/* Of a list: what its metadata says. */
struct list_end {
    uint64_t revision;
    const char *continue_token; /* "" none */
    int64_t remaining;          /* -1: not said */
};

/* A list that is written while it is read, so that nothing is held but its text. */
struct list_writer {
    struct api_call *call;
    struct table_options table;
    struct buf text; /* of the items so far */
    size_t room;     /* for so many bytes there is some */
};

/* -1 after a refusal. */
int list_writer_begin(struct list_writer *writer, struct api_call *call);
/* tree: of the value; NULL: made in the arena if the form needs it. Nothing of the arena is needed afterwards. -1
 * after a refusal. */
int list_writer_add(struct list_writer *writer, struct arena *arena, const struct kv_value *value,
                    cJSON *tree);
/* As if nothing was added. */
void list_writer_forget(struct list_writer *writer);
/* The reply. */
int list_writer_end(struct list_writer *writer, const struct list_end *end);
void list_writer_release(struct list_writer *writer);
DEFINE_CLEANUP_OF(struct list_writer, list_writer_release)
