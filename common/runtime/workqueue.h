/* A work queue holds names that wait to be reconciled: deduplicated, delayed and backed off. */
#pragma once

#include "common/base/clock.h"
#include "common/kube/object.h"

/*
 * Invariants, for every name at every time:
 *
 *  1. It waits at most once. Adding it again keeps the earlier time.
 *  2. At most one worker processes it.
 *  3. If it is added while it is processed, it waits again after workqueue_done.
 *  4. Only workqueue_retry raises and only workqueue_forget resets its number of failures.
 *
 * Thread-safe; guarded by the queue's own lock. Only workqueue_get blocks. No function fails. The
 * queue copies names. It has no limit of its own: it holds each name once, so the number of objects
 * is the limit. There is no timer thread: one waiting worker waits for the next due name. The
 * back-off starts at 5 ms and doubles up to 5 minutes, ± 10 %. All delays are in milliseconds.
 */
struct workqueue;
/* name is copied; clock is borrowed. Destroyed after all workers have ended; NULL is fine. */
struct workqueue *workqueue_create(const char *name, const struct clock *clock);
void workqueue_destroy(struct workqueue *queue);
void workqueue_add(struct workqueue *queue, const struct kube_name *name);
void workqueue_add_object(struct workqueue *queue, const struct kube_object *object); /* its name */
void workqueue_add_after(struct workqueue *queue, const struct kube_name *name, uint32_t delay_ms);
/* Counts a failure and adds the name after its back-off, or after min_delay_ms if that is
 * longer. */
void workqueue_retry(struct workqueue *queue, const struct kube_name *name, uint32_t min_delay_ms);
void workqueue_forget(struct workqueue *queue, const struct kube_name *name);
/* Blocks until a name is due, which the caller processes until workqueue_done. false: shut down. */
bool workqueue_get(struct workqueue *queue, struct kube_name *ret);
void workqueue_done(struct workqueue *queue, const struct kube_name *name);
void workqueue_shutdown(
    struct workqueue *queue); /* drops waiting names; workqueue_get returns false */
size_t workqueue_len(struct workqueue *queue); /* names that are due or delayed */
/* For tests: waiting workers read the clock again, which was moved by hand. */
void workqueue_poke(struct workqueue *queue);
