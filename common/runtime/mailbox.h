/* Messages from outside for objects, kept until what they say is written: peek, write, acknowledge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"

/*
 * A message is in one of three states:
 *
 *   waiting    its sender is not told that it is stored before it is acknowledged here, and neither
 *              are the senders of the messages that came with it (mailbox_wait_empty)
 *   held       somebody else has a durable copy of it, or waits for its end alone: it is tried on,
 *              and holds up nobody
 *   elsewhere  as held, but for lack of memory the copy is all there is: mailbox_recall says when it
 *              may be brought back
 */

/* Bounds, none of them 0: a put that would go over a key's or the total limit is refused, and the
 * caller counts it. Held messages get at most half of the total. */
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
/* Any thread; copies. *ret_sequence may be NULL. One of which a copy is held already is taken, and
 * not kept twice. */
bool mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                 uint64_t *ret_sequence);
bool mailbox_key_is_full(struct mailbox *mailbox, const char *key);
/* Oldest first, copied into the arena. */
size_t mailbox_peek(struct mailbox *mailbox, struct arena *arena, const char *key,
                    struct mail **ret);
void mailbox_ack(struct mailbox *mailbox, const char *key,
                 uint64_t up_to_sequence);      /* after the API write */
void mailbox_drop_all(struct mailbox *mailbox); /* leadership ended: the broker has them still */
/* Acknowledges everything under the keys of which knows() says no; it is called without the lock. */
void mailbox_forget_unknown(struct mailbox *mailbox, bool (*knows)(void *ctx, const char *key),
                            void *ctx);

/* The oldest one that waits and came before that time, copied into the arena. It is not told again
 * before again_ms. */
bool mailbox_overdue(struct mailbox *mailbox, struct arena *arena, int64_t before_ms,
                     int64_t now_ms, int64_t again_ms, const char **ret_key, struct mail *ret);
void mailbox_overdue_again(struct mailbox *mailbox, const char *key,
                           uint64_t sequence); /* at once */
/* Without a copy: it is held from now on, whatever the limits say. */
void mailbox_hold(struct mailbox *mailbox, const char *key, uint64_t sequence);
/* A durable copy of this message exists, and has this name: the message is held, or elsewhere, from
 * now on, whether it was here or not. */
void mailbox_put_copy(struct mailbox *mailbox, const char *key, const struct mail *mail,
                      const char *copy);
/* The name of a copy that nobody needs any more, which the caller frees; NULL: none. */
char *mailbox_take_released(struct mailbox *mailbox);
void mailbox_release(struct mailbox *mailbox, const char *copy); /* to be told so */
bool mailbox_is_elsewhere(struct mailbox *mailbox, const char *key);
/* true: there is room again, and what is elsewhere is to be put once more. */
bool mailbox_recall(struct mailbox *mailbox);

size_t mailbox_len(struct mailbox *mailbox);
size_t mailbox_held(struct mailbox *mailbox);
/* When the oldest that is not written yet came, held or not; 0: there is none. */
int64_t mailbox_oldest_ms(struct mailbox *mailbox);
/* Blocks until nothing waits, or woken, or the time is over; true: nothing. The events thread,
 * before it acknowledges. */
bool mailbox_wait_empty(struct mailbox *mailbox, uint32_t timeout_ms);
/* Blocks until something waits or is released, or woken since wakes was read, or the time is over. */
void mailbox_wait_work(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms);
/* Blocks until woken since wakes was read, or the time is over. */
void mailbox_wait_wake(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms);
uint64_t mailbox_wakes(struct mailbox *mailbox);
void mailbox_wake(struct mailbox *mailbox); /* ends the waits of this moment early */
