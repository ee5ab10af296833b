/* A watch, and what it asks of the ring. */
#pragma once

#include "standalone/store/kv_internal.h"

/* Events that are read from the file at once: so many, and no further one behind so many bytes; and
 * so many revisions are looked at. */
#define KV_WATCH_EVENTS 32
#define KV_WATCH_BYTES ((size_t)1 << 20)
#define KV_WATCH_REVISIONS 1024

struct kv_watch {
    struct kv *kv;
    char *prefix;
    kv_notify_fn *notify;
    void *ctx;
    /* of the ring's lock */
    struct kv_watch *next;
    uint64_t cursor; /* everything up to here was taken, or is in pending */
    bool waits;      /* has taken everything, and is told of more */
    bool to_tell;    /* is on the ring's list of these */
    struct kv_watch *next_to_tell;
    bool telling; /* notify runs */
    /* of the thread that uses the watch */
    struct kv_entry *pending[KV_WATCH_EVENTS];
    size_t first;
    size_t len;
};

enum kv_ring_answer { KV_RING_NOTHING, KV_RING_EVENT, KV_RING_BEHIND };

void kv_ring_join(struct kv_ring *ring, struct kv_watch *watch);
void kv_ring_leave(struct kv_ring *ring, struct kv_watch *watch);
/* The watch's next event, referenced; NOTHING: it is told of the next; BEHIND: the ring does not
 * reach back to its cursor. */
enum kv_ring_answer kv_ring_next(struct kv_ring *ring, struct kv_watch *watch,
                                 struct kv_entry **ret);
uint64_t kv_ring_cursor(struct kv_ring *ring, struct kv_watch *watch);
void kv_ring_set_cursor(struct kv_ring *ring, struct kv_watch *watch, uint64_t cursor);
