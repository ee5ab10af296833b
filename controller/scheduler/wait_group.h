/* Tasks that wait for room and want the same of a Proplet. No lock: whoever has them has one. */
#pragma once

#include "controller/scheduler/scheduler.h"

/* A Task. */
struct wait_entry {
    struct wait_group *group;
    int64_t rank; /* lower is first */
    size_t at;    /* in the group's heap, if it waits */
    char *called; /* key of the Proplet; NULL: it waits */
    char name[];
};

/*
 * Who waits is in a heap: the first is the one of the lowest rank, ties by name. Who is called
 * belongs to the group, but is not in it.
 *
 * Nobody waits beside a place: a place that becomes free calls until it is taken or nobody is left.
 * So why one of them waits is why all of them do, as long as the Proplets are what they were.
 */
struct wait_group {
    uint64_t id;
    char *text;   /* its key: the wishes */
    char *pinned; /* the only Proplet that it may run on; "": any */
    struct arena *arena;
    struct task_spec spec; /* nothing but the wishes; in the arena */
    struct wait_entry **heap;
    size_t len, cap;
    size_t entries;     /* who waits, and who is called */
    enum reason reason; /* REASON_NONE: no Task of the group has been refused yet */
    char *message;
    uint64_t version; /* of the candidates that these were made of */
};

/* What schedule_filter looks at in an object's tree, as text: equal for equal wishes of equal
 * order. */
const char *wait_wishes(struct arena *arena, const cJSON *task);
/* The propletId of the wishes; "" if there is none. */
const char *wait_pinned(const cJSON *task);

struct wait_group *wait_group_create(uint64_t id, const char *wishes, const char *pinned);
void wait_group_free(void *value); /* its entries are others' */

struct wait_entry *wait_entry_create(struct wait_group *group, const char *name, int64_t rank);
void wait_entry_free(void *value);

void wait_group_add(struct wait_group *group, struct wait_entry *entry);
void wait_group_remove(struct wait_group *group, const struct wait_entry *entry);
struct wait_entry *wait_group_first(const struct wait_group *group); /* NULL: nobody waits */
/* The group whose first comes first; NULL: nobody waits in any. */
struct wait_group *wait_groups_first(struct wait_group *const *groups, size_t len);

void wait_group_tell(struct wait_group *group, const struct schedule_refusal *refusal,
                     uint64_t version);
