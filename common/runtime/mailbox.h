/* Messages from outside for objects, kept until what they say is written: peek, write, acknowledge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"

/* Bounds, none of them 0: a put that would go over a key's or the total limit is refused, and the
 * caller counts it. */
struct mailbox_limits {
    size_t key_messages, total_messages;
    size_t total_bytes; /* bodies and what the mailbox itself needs for each message */
};
struct mail {
    uint64_t sequence;  /* rises over the whole mailbox */
    const char *kind;   /* "result", "create", … */
    const char *source; /* where it came from: the channel, "m/<domain>/c/<channel>" */
    const char *body;   /* NUL-terminated */
    size_t body_len;
    int64_t came_ms; /* monotonic; 0: not told */
};

struct mailbox;
struct mailbox *mailbox_create(const struct mailbox_limits *limits);
void mailbox_destroy(struct mailbox *mailbox);
/* Any thread; copies. *ret_sequence may be NULL. */
bool mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                 uint64_t *ret_sequence);
/* Oldest first, copied into the arena. */
size_t mailbox_peek(struct mailbox *mailbox, struct arena *arena, const char *key,
                    struct mail **ret);
void mailbox_ack(struct mailbox *mailbox, const char *key,
                 uint64_t up_to_sequence);      /* after the API write */
void mailbox_drop_all(struct mailbox *mailbox); /* leadership ended: the broker has them still */
/*
 * The turn of the key failed, and others were written at others_ms (passed_over.h). true: what waits
 * under it, and what comes for it, is parked from now on: it is kept and tried on, but holds up
 * nobody else. So its sender is told that it is stored, and it goes if this process ends before it
 * is written.
 */
bool mailbox_failed(struct mailbox *mailbox, const char *key, int64_t now_ms, int64_t others_ms);
size_t mailbox_len(struct mailbox *mailbox);
size_t mailbox_parked(struct mailbox *mailbox);
/* When the oldest that is not written yet came, parked or not; 0: there is none. */
int64_t mailbox_oldest_ms(struct mailbox *mailbox);
/* Blocks until nothing waits but what is parked, or woken, or the time is over; true: nothing. The
 * events thread, before it acknowledges. */
bool mailbox_wait_empty(struct mailbox *mailbox, uint32_t timeout_ms);
void mailbox_wake(struct mailbox *mailbox); /* ends the waits of this moment early */
