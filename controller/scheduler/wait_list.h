/* Tasks that wait for room on a Proplet, in the order in which they get it. */
#pragma once

#include "controller/scheduler/scheduler.h"

/*
 * A Task that no Proplet has room for enters, and is called when one that it may run on has: it is
 * woken, the place is kept for it until its turn ends, against every other Task, and in that turn
 * it looks at that Proplet first. So a place wakes as many as it can serve, one, however many wait.
 *
 * Invariants
 *
 * 1. A Task is in it at most once: waiting, or called for one Proplet.
 * 2. Of the Tasks that a Proplet fits the one of the lowest rank is called first; ties by name.
 * 3. No call is missed: a Task that enters names the sequence that it read before it looked at the
 *    Proplets. Every call moves it, and then the Task may not enter but has to look again.
 *
 * Tasks with the same wishes (selector, preferred type) are one group: a Proplet is compared with
 * groups, not with Tasks, and with those only that are pinned to no other. A Task that comes to a
 * group in which others wait joins them without looking at any Proplet. So N Tasks of G groups, P
 * Proplets and C places that become free cost G x (P + C) comparisons, whatever N is.
 *
 * Any thread; one leaf mutex.
 */
struct wait_list;
struct wait_list *wait_list_create(void);
void wait_list_destroy(struct wait_list *list);

/*
 * Lower is first: since when it waits, moved back by this for each point of priority. So the order
 * of two Tasks never changes, and the lowest priority is not overtaken by what begins to wait 50
 * minutes after it.
 */
#define WAIT_AGEING_US (30 * INT64_C(1000000))
int64_t wait_rank(int64_t since_us, int64_t priority);

/* A Task that looks for room. */
struct wait_seeker {
    const struct kube_name *name;
    const cJSON *task; /* the object's tree */
    int64_t rank;
    int64_t since_us; /* since when it waits, wall clock */
};

/* Why no Proplet takes it. */
struct wait_told {
    struct schedule_refusal refusal;
    uint64_t version; /* of the candidates that were looked at */
};

/* The place that was kept for a Task is not kept any more: to be offered to others. */
struct wait_release {
    bool any;
    struct kube_name proplet;
    uint64_t group; /* whose Tasks it does not fit any more; 0: none */
};

uint64_t wait_list_sequence(struct wait_list *list);
/* It looked at all of them and has the answer `told`; NULL: it waited before this process, and
 * looks in its own turn. false: there were calls since the sequence was read; nothing changed. */
bool wait_list_enter(struct wait_list *list, const struct wait_seeker *seeker,
                     const struct wait_told *told, uint64_t sequence, struct wait_release *ret);
/* It has not looked. false: no other Task of its wishes waits with an answer for candidates of
 * this version, or it was called; nothing changed. The refusal is the arena's. */
bool wait_list_join(struct wait_list *list, const struct wait_seeker *seeker, uint64_t version,
                    struct arena *arena, struct schedule_refusal *ret);
/* true: a place on this Proplet is kept for it. */
bool wait_list_called(struct wait_list *list, const struct kube_name *task, struct kube_name *ret);
/* It does not wait for room (any more), or is gone. */
void wait_list_leave(struct wait_list *list, const struct kube_name *name,
                     struct wait_release *ret);

/* Places kept on the Proplet for others than this Task. */
int64_t wait_list_kept(struct wait_list *list, const char *proplet, const struct kube_name *task);

/*
 * Calls those who come first, as many as the candidate has places that are not kept. active: Tasks
 * on it. Tasks of the group except (0: none) are left out. The caller wakes them.
 */
size_t wait_list_call(struct wait_list *list, struct arena *arena, const char *ns,
                      const struct candidate *candidate, uint64_t except, struct kube_name **ret);
/* The same where no Task waits, without the candidate; false: one does, and nothing was done. */
bool wait_list_call_nobody(struct wait_list *list, const char *ns);
size_t wait_list_len(struct wait_list *list, const char *ns); /* waiting, not called */
/* Returns since when the Task waits that waits longest, of all namespaces. 0: none waits. It walks all of them. */
int64_t wait_list_oldest_us(struct wait_list *list);
/* For what is done to all who wait, at most once an interval: 0 if it is due, and from now on it is
 * not; otherwise in how many ms it is. */
uint32_t wait_list_quiet_ms(struct wait_list *list, const char *ns, int64_t now_ms,
                            uint32_t interval_ms);
