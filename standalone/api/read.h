/* Lists: the objects that a query selects, of one revision, as the text of the answer. For this folder only. */
#pragma once

#include "common/base/buf.h"
#include "standalone/api/call.h"
#include "standalone/api/selection.h"

/* The objects are read in chunks, each let go before the next; nothing is held but the text of the answer. */
struct list {
    struct api_call *call;
    struct selection selection;
    struct table_options table;
    struct kv_range range;
    size_t limit;    /* 0: all */
    struct buf text; /* of the items so far */
    size_t room;     /* there is room for so many bytes of it */
    size_t len;      /* objects that were taken */
    size_t remaining;
    bool keeps_keys; /* the deletion of a collection: */
    struct buf keys; /* of the objects, each with its NUL */
};

/* Reads the query. -1 after a refusal. */
int list_open(struct list *list, struct api_call *call);
/* All that the query selects, or the page that limit and continue ask for. -1 after a refusal: also when its revision
 * is older than the history, or falls out of it meanwhile. */
int list_read(struct list *list);
int list_reply(struct list *list);
void list_release(struct list *list);
DEFINE_CLEANUP_OF(struct list, list_release)
