#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "controller/machine/machine.h"

struct machine_notes {
    pthread_mutex_t lock; /* leaf: guards the map */
    struct map *map;      /* by name */
};

static void note_free(void *value)
{
    struct machine_note *note = value;

    map_destroy(note->blocked);
    free(note->uid);
    free(note);
}

struct machine_notes *machine_notes_create(void)
{
    struct machine_notes *notes = xcalloc(1, sizeof(*notes));

    notes->map = map_create(note_free);
    pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void machine_notes_destroy(struct machine_notes *notes)
{
    if (!notes)
        return;
    map_destroy(notes->map);
    pthread_mutex_destroy(&notes->lock);
    free(notes);
}

struct machine_note *machine_notes_of(struct machine_notes *notes, const struct kube_name *name,
                                      const char *uid)
{
    char key[KUBE_KEY_LEN];

    pthread_mutex_lock(&notes->lock);
    struct machine_note *note = map_get(notes->map, kube_name_key(name, key));
    if (!note || !str_equal(note->uid, uid)) {
        note = xcalloc(1, sizeof(*note));
        note->uid = xstrdup(uid);
        note->blocked = map_create(free);
        map_set(notes->map, key, note);
    }
    pthread_mutex_unlock(&notes->lock);
    return note;
}

void machine_notes_drop(struct machine_notes *notes, const struct kube_name *name)
{
    char key[KUBE_KEY_LEN];

    pthread_mutex_lock(&notes->lock);
    (void)map_remove(notes->map, kube_name_key(name, key));
    pthread_mutex_unlock(&notes->lock);
}

void machine_note_refusal(struct machine_note *note, bool of_creation, int64_t now_ms)
{
    note->wait_ms =
        note->wait_ms && note->of_creation == of_creation ? note->wait_ms * 2 : MACHINE_RETRY_MS;
    if (note->wait_ms > MACHINE_MAX_RETRY_MS)
        note->wait_ms = MACHINE_MAX_RETRY_MS;
    note->of_creation = of_creation;
    note->retry_ms = now_ms + note->wait_ms;
}

int64_t machine_note_wait_ms(const struct machine_note *note, bool of_creation, int64_t now_ms)
{
    return note->of_creation == of_creation && now_ms < note->retry_ms ? note->retry_ms - now_ms
                                                                       : 0;
}

void machine_note_success(struct machine_note *note)
{
    note->retry_ms = note->wait_ms = 0;
}
