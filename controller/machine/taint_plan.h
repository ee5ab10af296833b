/*
 * Decides which taints of a Node are changed: pure functions.
 *
 * A taint is the same as another if key and effect are. A taint is ours if the annotation of the Node says that it was
 * applied, and with which value. Taints of others are never changed, and keep their order and their timeAdded.
 */
#pragma once

#include "common/api/scheduledmachine.h"

#define MACHINE_MAX_TAINTS 64

struct machine_taints {
    const struct machine_taint *items;
    size_t len;
};

/* Reads the annotation applied-taints. NULL, or a text that is no list of taints, means that none is ours. */
struct machine_taints taints_read(struct arena *arena, const char *text);
/* Returns the text of the annotation. */
const char *taints_text(struct arena *arena, const struct machine_taints *taints);

/* Why the taints of a spec cannot be used: "spec.nodeTaints[1]: ..."; NULL: they can. */
const char *taints_problem(struct arena *arena, const struct machine_taints *wanted);

struct taint_plan {
    const char
        *conflicts; /* keys that others hold, as a text; NULL: none. With one nothing is changed */
    cJSON *taints;  /* spec.taints as it is to be; in the arena. NULL: it stays */
    struct machine_taints applied; /* as the annotation is to say it */
    bool annotation_changes;
};

/*
 *   wanted   on the Node       applied by us           act
 *   yes      absent            any                     add
 *   yes      same value        any                     none; it is ours only if it was
 *   yes      other value       with that value         update
 *   yes      other value       no, or with another     conflict
 *   no       value as applied  yes                     remove
 *   no       other value       yes                     conflict
 *   no       absent            yes                     it is ours no more
 *   no       any               no                      none
 *
 * live: spec.taints of the Node; may be NULL.
 */
struct taint_plan taint_plan(struct arena *arena, const cJSON *live,
                             const struct machine_taints *wanted,
                             const struct machine_taints *applied);
