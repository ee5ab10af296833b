/* An inbox (struct mailbox) keeps messages from outside under the key of their object until their
 * content is written: peek, write, acknowledge. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/arena.h"

/*
 * A message is in one of three states:
 *
 *   waiting    Its sender is not told that it is stored before it is acknowledged here, and neither
 *              are the senders of the messages that came with it (mailbox_wait_empty).
 *   held       It is in memory and delays no other message: the broker keeps a copy of it, or its
 *              sender waits for this message alone, or it need not survive the process.
 *   elsewhere  The broker keeps a copy of it, and memory does not. A recall brings it back.
 *
 * Capacity. Waiting and held messages share the total; held ones get at most half of it. A message
 * that supersedes takes no capacity, since there is one at most for each key, kind and source.
 *
 * Fairness. One source puts at most key_messages under one key, wherever they are, and at most a
 * sixteenth of these copies in memory. A message whose copy has just been made takes, if all is
 * full, the place of the copy that has been in memory for the longest time. A recall chooses the
 * keys whose turn was the longest ago. So messages that cannot be written, however many, delay the
 * others for a number of recalls at most.
 *
 * Order. Messages of one key are shown oldest first. A copy that was elsewhere comes behind those
 * that came meanwhile, and one that supersedes ends what came before it: so it is not shown while
 * messages of its key are elsewhere, nor while copies of an earlier process are expected.
 *
 * Thread-safe; guarded by the mailbox's own lock. No function but the waits blocks.
 */

/* Limits, none of them 0. */
struct mailbox_limits {
    size_t key_messages; /* of one source under one key */
    size_t total_messages;
    size_t total_bytes; /* bodies and what the mailbox itself needs for each message */
};
struct mail {
    uint64_t sequence;  /* rises over the whole mailbox */
    const char *kind;   /* "result", "create", … */
    const char *source; /* where it came from: the channel, "<domain>/<channel>" */
    const char *body;   /* NUL-terminated */
    size_t body_len;
    int64_t came_ms; /* monotonic; 0: unknown */
    bool supersedes; /* it replaces an older one of the same key, kind and source */
};

enum mailbox_verdict {
    MAILBOX_TAKEN,
    MAILBOX_TOO_MANY, /* the source has key_messages under this key */
    MAILBOX_FULL,
};

struct mailbox;
struct mailbox *mailbox_create(const struct mailbox_limits *limits);
void mailbox_destroy(struct mailbox *mailbox); /* NULL is fine */
/* Copies the message. If a copy of it is held already, it is taken and not kept twice. A message
 * that supersedes takes over the state of the one that it replaces, and the time since it waits.
 * ret_sequence may be NULL; it is written if the message is taken. */
enum mailbox_verdict mailbox_put(struct mailbox *mailbox, const char *key, const struct mail *mail,
                                 uint64_t *ret_sequence);
/* Copies the messages of a key into the arena, oldest first, and returns their number. */
size_t mailbox_peek(struct mailbox *mailbox, struct arena *arena, const char *key,
                    struct mail **ret);
/* Drops the messages of a key up to a sequence, after the API write. A superseding message that was
 * never shown stays, unless up_to_sequence is UINT64_MAX. */
void mailbox_ack(struct mailbox *mailbox, const char *key, uint64_t up_to_sequence);
/* Acknowledges all messages under the keys for which knows returns false. knows is called without
 * the lock. */
void mailbox_forget_unknown(struct mailbox *mailbox, bool (*knows)(void *ctx, const char *key),
                            void *ctx);

/* Finds the oldest waiting message that came before before_ms, or whose source has a copy under the
 * same key. It is copied into the arena, and not reported again before again_ms. false: there is
 * none. */
bool mailbox_overdue(struct mailbox *mailbox, struct arena *arena, int64_t before_ms,
                     int64_t now_ms, int64_t again_ms, const char **ret_key, struct mail *ret);
void mailbox_overdue_again(struct mailbox *mailbox, const char *key,
                           uint64_t sequence); /* at once */
/* The message is held from now on, although the broker keeps no copy of it. */
void mailbox_hold(struct mailbox *mailbox, const char *key, uint64_t sequence);
/* The broker keeps a copy of this message under this name: the message is held, or elsewhere, from
 * now on, whether it was here or not. */
void mailbox_put_copy(struct mailbox *mailbox, const char *key, const struct mail *mail,
                      const char *copy);
/* The name of a copy that is not needed any more, which the caller frees; NULL: none. */
char *mailbox_take_released(struct mailbox *mailbox);
/* mailbox_take_released returns this name, too. */
void mailbox_release(struct mailbox *mailbox, const char *copy);
/* Whether messages of this key are elsewhere, or may still come by the last recall. */
bool mailbox_is_elsewhere(struct mailbox *mailbox, const char *key);
/* The broker may hold copies of an earlier process that did not come yet. */
void mailbox_expect_copies(struct mailbox *mailbox, bool expects);
bool mailbox_expects_copies(struct mailbox *mailbox);
bool mailbox_any_elsewhere(struct mailbox *mailbox);
/* true: the caller now asks the broker for all copies, and hands each to mailbox_put_copy. Due a
 * second after the last recall if at most a quarter of the total is held, else a minute after it;
 * and as long after the last copy that came by it. Copies that did not come by then are gone. */
bool mailbox_recall(struct mailbox *mailbox, int64_t now_ms);
/* From now on the broker sends all copies, asked by a recall or by a new connection. */
void mailbox_copies_come(struct mailbox *mailbox, int64_t now_ms);

size_t mailbox_len(struct mailbox *mailbox);
size_t mailbox_held(struct mailbox *mailbox);
/* Messages of this source under all keys but this one, wherever they are. */
size_t mailbox_len_of_source(struct mailbox *mailbox, const char *source, const char *except_key);
/* Returns when the oldest message came, held or not (monotonic); 0: there is none. */
int64_t mailbox_oldest_ms(struct mailbox *mailbox);
/* Blocks until no message waits, mailbox_wake or the time-out; true: no message waits. Called by
 * the MQTT events thread before it acknowledges. */
bool mailbox_wait_empty(struct mailbox *mailbox, uint32_t timeout_ms);
/* Blocks until a message waits or a copy is released, mailbox_wake since wakes was read, or the
 * time-out. */
void mailbox_wait_work(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms);
/* Blocks until mailbox_wake since wakes was read, or the time-out. */
void mailbox_wait_wake(struct mailbox *mailbox, uint64_t wakes, uint32_t timeout_ms);
uint64_t mailbox_wakes(struct mailbox *mailbox);
void mailbox_wake(struct mailbox *mailbox); /* ends the waits of this moment early */
