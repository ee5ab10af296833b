/* Names waiting to be reconciled: deduplicated, delayed and backed off (client-go's workqueue). */
#pragma once

#include "common/base/clock.h"
#include "common/kube/object.h"

/*
 * Invariants, for every name at every time:
 *
 *  1. It waits at most once. Adding it again keeps the earlier time.
 *  2. At most one worker processes it.
 *  3. Added while it is processed, it waits again after done().
 *  4. Only retry() raises and only forget() resets its failure count.
 *
 * No timer thread: one waiting worker looks after the next due item. Back-off 5 ms doubling to 5
 * min, ± 10 %. The queue has no limit of its own: it holds each name once, so the caller's objects
 * are the limit. Any thread.
 */
struct workqueue;
struct workqueue *workqueue_create(const char *name, const struct clock *clock);
void workqueue_destroy(struct workqueue *queue);
void workqueue_add(struct workqueue *queue, const struct kube_name *name);
void workqueue_add_after(struct workqueue *queue, const struct kube_name *name, uint32_t delay_ms);
/* After its back-off, or min_delay_ms if that is longer. */
void workqueue_retry(struct workqueue *queue, const struct kube_name *name, uint32_t min_delay_ms);
void workqueue_forget(struct workqueue *queue, const struct kube_name *name);
bool workqueue_get(struct workqueue *queue, struct kube_name *ret); /* blocks; false: shut down */
void workqueue_done(struct workqueue *queue, const struct kube_name *name);
void workqueue_shutdown(
    struct workqueue *queue);                  /* waiting names are dropped, get() returns false */
size_t workqueue_len(struct workqueue *queue); /* due or waiting, without those in process */
/* The clock was moved by hand: waiting workers look again. For tests. */
void workqueue_poke(struct workqueue *queue);
