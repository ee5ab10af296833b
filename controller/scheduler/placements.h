/* This module counts the Tasks on each Proplet for the scheduler, kept up to date without
 * listing Tasks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/kube/object.h"

/*
 * Two sources: the store's view of a Task (placements_note, in the Task's turn), and a choice that
 * is not in the store yet (placements_assume). A note of an earlier choice (chosen_us) does not
 * undo an assumption: it only has not seen it yet. A caller that cannot write what it assumed takes
 * it back with placements_forget.
 *
 * Choosing is optimistic: read the sequence and the counts, choose, assume with that sequence; if
 * anything was chosen meanwhile the assumption is refused and the choice is made again. So two
 * workers never choose on the same counts.
 *
 * Any thread; one leaf mutex.
 */
struct placements;

struct placed {
    const char *proplet;   /* NULL: the Task has none */
    const char *client_id; /* the device of it; NULL: its only one */
};

struct placement {
    struct placed on;
    bool active;       /* scheduled or running: it takes capacity */
    int64_t chosen_us; /* status.scheduledAt */
    /* Of a broadcast, which is on no Proplet: those that it waits for. */
    const struct placed *targets;
    size_t target_count;
};

/* Proplets that have more room than before. */
struct freed_list {
    struct kube_name *items; /* in the caller's arena */
    size_t len;
};

struct placement_count {
    int64_t total; /* Tasks that exist and are assigned to it */
    int64_t active;
};

struct placements *placements_create(void);
void placements_destroy(struct placements *placements);

/* placement NULL: the Task is gone. Those of whom it took capacity and does not any more. */
struct freed_list placements_note(struct placements *placements, struct arena *arena,
                                  const struct kube_name *task, const struct placement *placement);

/* Every assumption moves it; to be read before the counts. */
uint64_t placements_sequence(struct placements *placements);
/* false: others chose since. ret_freed: those that the Task leaves with it. */
bool placements_assume(struct placements *placements, struct arena *arena, uint64_t sequence,
                       const struct kube_name *task, const struct placement *placement,
                       struct freed_list *ret_freed);

/* The assumption came to nothing: the Task counts nowhere until its next note. As placements_note. */
struct freed_list placements_forget(struct placements *placements, struct arena *arena,
                                    const struct kube_name *task);

struct placement_count placements_count(struct placements *placements, const char *ns,
                                        const char *proplet);
/* Of one device, of those Tasks that name it. */
struct placement_count placements_device_count(struct placements *placements, const char *ns,
                                               const char *proplet, const char *client_id);
/* The Proplet of the newest choice in the namespace; "" if there is none. For round-robin. */
void placements_last(struct placements *placements, const char *ns, char ret[static 254]);
