#include "controller/vmafx/vmafx_notes.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

struct vmafx_notes {
    pthread_mutex_t lock; /* leaf: guards the map */
    struct map *map;      /* by name */
};

static void note_free(void *value)
{
    struct vmafx_note *note = value;

    free(note->uid);
    free(note->job_id);
    free(note->unkept);
    free(note);
}

struct vmafx_notes *vmafx_notes_create(void)
{
    struct vmafx_notes *notes = xcalloc(1, sizeof(*notes));

    notes->map = map_create(note_free);
    pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void vmafx_notes_destroy(struct vmafx_notes *notes)
{
    if (!notes)
        return;
    map_destroy(notes->map);
    pthread_mutex_destroy(&notes->lock);
    free(notes);
}

struct vmafx_note *vmafx_notes_of(struct vmafx_notes *notes, const struct kube_name *name,
                                  const char *uid, const char *job_id)
{
    char key[KUBE_KEY_LEN];

    pthread_mutex_lock(&notes->lock);
    struct vmafx_note *note = map_get(notes->map, kube_name_key(name, key));
    if (!note || !str_equal(note->uid, uid) || !str_equal(note->job_id, job_id)) {
        note = xcalloc(1, sizeof(*note));
        note->uid = xstrdup(uid);
        note->job_id = xstrdup(job_id);
        map_set(notes->map, key, note);
    }
    pthread_mutex_unlock(&notes->lock);
    return note;
}

void vmafx_notes_drop(struct vmafx_notes *notes, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    pthread_mutex_lock(&notes->lock);
    (void)map_remove(notes->map, kube_name_key(name, key));
    pthread_mutex_unlock(&notes->lock);
}

size_t vmafx_notes_count(struct vmafx_notes *notes)
{
    pthread_mutex_lock(&notes->lock);
    size_t count = map_len(notes->map);
    pthread_mutex_unlock(&notes->lock);
    return count;
}
