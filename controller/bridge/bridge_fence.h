/* Markers that this process sends to itself through the events session. Pure: no I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/digest.h"

/*
 * One session is one ordered queue: when a marker comes back, all that was stored before it was
 * published has been handed over (behaviour: dispatch and recovery). At most one is on its way, so
 * however many wait, they share it. Its payload "<nonce of this process> <when it was sent>" makes
 * markers of others, doubled ones and lost ones harmless. Times are monotonic milliseconds.
 */
struct fence {
    char nonce[UUID_LEN];
    int64_t sent_ms;     /* of the one on its way; 0: none */
    int64_t returned_ms; /* the last one that came back was sent then; 0: none did */
    unsigned lost;       /* the number that did not come back in time, or ended with a connection */
    bool overdue;        /* since one was lost none has come back */
};

/* A marker that does not come back within this time is taken for lost. */
#define FENCE_TIMEOUT_MS 30000
/* A Task that waits for a marker asks again after this time: its look at the clock was earlier
 * than the sending. */
#define FENCE_RETRY_MS (FENCE_TIMEOUT_MS + 1000)
#define FENCE_TEXT_LEN (UUID_LEN + 24)

void fence_init(struct fence *fence);
/* A marker that was sent after since_ms has come back. */
bool fence_passed(const struct fence *fence, int64_t since_ms);
/* None is on its way, or it is lost. */
bool fence_is_due(const struct fence *fence, int64_t now_ms);
/* The one on its way is lost, or one was lost and none has come back since. */
bool fence_is_overdue(const struct fence *fence, int64_t now_ms);
/* true: the text is to be published now. */
bool fence_send(struct fence *fence, int64_t now_ms, char ret_text[static FENCE_TEXT_LEN]);
/* It could not be published, or a connection ended: the next fence_send sends. */
void fence_forget(struct fence *fence);
/* true: ours, and newer than those before, or the one on its way. */
bool fence_returned(struct fence *fence, const char *text, size_t len);
