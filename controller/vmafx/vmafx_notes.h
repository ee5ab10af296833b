/* Notes hold the state that this process keeps about each object of a kind. There are as many as objects. */
#pragma once

#include "common/kube/object.h"
#include "controller/vmafx/vmafx_job_plan.h"

struct vmafx_note {
    char *uid, *job_id; /* of the object that the note is about */
    struct vmafx_series series;
    int64_t due_ms; /* monotonic: of the next poll; 0: at once */
    char *unkept; /* members that the API server did not keep, as text; NULL: it kept all of them */
};

/* Thread-safe; guarded by its own lock. A note is used by the worker of its name alone. No function fails. */
struct vmafx_notes;
struct vmafx_notes *vmafx_notes_create(void);
void vmafx_notes_destroy(struct vmafx_notes *notes); /* NULL is fine */
/* Returns the note of this name, empty if there was none or another uid or job_id had it. It is valid until the
 * next call for this name. */
struct vmafx_note *vmafx_notes_of(struct vmafx_notes *notes, const struct kube_name *name,
                                  const char *uid, const char *job_id);
void vmafx_notes_drop(struct vmafx_notes *notes, const struct kube_name *name);
size_t vmafx_notes_count(struct vmafx_notes *notes);
