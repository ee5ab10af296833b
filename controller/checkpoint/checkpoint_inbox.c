#include "controller/checkpoint/checkpoint_inbox.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

struct waiting {
    bool is_ready;
    struct observed_checkpoint checkpoint; /* its strings are owned */
};

struct of_task {
    struct waiting items[CHECKPOINT_MAX_WAITING]; /* oldest first */
    size_t len;
    char *failure;
    bool has_garbage;
    int64_t unreadable, unreadable_told; /* numbers of attempts; 0: none */
};

struct checkpoint_inbox {
    pthread_mutex_t lock;
    struct map *tasks; /* of struct of_task, by uid */
};

static void clear(struct waiting *waiting)
{
    free((char *)(uintptr_t)waiting->checkpoint.message_id);
    free((char *)(uintptr_t)waiting->checkpoint.sha256);
    free((char *)(uintptr_t)waiting->checkpoint.ref);
    free((char *)(uintptr_t)waiting->checkpoint.uri);
    *waiting = (struct waiting){ 0 };
}

static void of_task_free(void *data)
{
    struct of_task *task = data;

    for (size_t i = 0; i < task->len; i++)
        clear(&task->items[i]);
    free(task->failure);
    free(task);
}

struct checkpoint_inbox *checkpoint_inbox_create(void)
{
    struct checkpoint_inbox *inbox = xcalloc(1, sizeof(*inbox));

    pthread_mutex_init(&inbox->lock, NULL);
    inbox->tasks = map_create(of_task_free);
    return inbox;
}

void checkpoint_inbox_destroy(struct checkpoint_inbox *inbox)
{
    if (!inbox)
        return;
    map_destroy(inbox->tasks);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox);
}

/* With the lock, as all static functions below. */
static struct of_task *make(struct checkpoint_inbox *inbox, const char *uid)
{
    struct of_task *task = map_get(inbox->tasks, uid);

    if (!task) {
        task = xcalloc(1, sizeof(*task));
        map_set(inbox->tasks, uid, task);
    }
    return task;
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void fill(struct waiting *waiting, bool is_ready,
                 const struct observed_checkpoint *checkpoint)
{
    struct waiting old = *waiting;

    waiting->is_ready = is_ready;
    waiting->checkpoint = *checkpoint;
    waiting->checkpoint.message_id = copy(checkpoint->message_id);
    waiting->checkpoint.sha256 = copy(checkpoint->sha256);
    waiting->checkpoint.ref = copy(checkpoint->ref);
    waiting->checkpoint.uri = copy(checkpoint->uri);
    clear(&old);
}

bool checkpoint_inbox_add(struct checkpoint_inbox *inbox, const char *uid,
                          const struct observed_checkpoint *checkpoint)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = make(inbox, uid);
    bool fits = task->len < CHECKPOINT_MAX_WAITING;
    if (fits)
        fill(&task->items[task->len++], false, checkpoint);
    pthread_mutex_unlock(&inbox->lock);
    return fits;
}

static const char *copy_to(struct arena *arena, const char *text)
{
    return text ? arena_strdup(arena, text) : NULL;
}

bool checkpoint_inbox_first(struct checkpoint_inbox *inbox, struct arena *arena, const char *uid,
                            bool ready, struct observed_checkpoint *ret)
{
    bool found = false;

    pthread_mutex_lock(&inbox->lock);
    const struct of_task *task = map_get(inbox->tasks, uid);
    for (size_t i = 0; task && i < task->len && !found; i++) {
        const struct observed_checkpoint *checkpoint = &task->items[i].checkpoint;
        found = task->items[i].is_ready == ready;
        if (!found)
            continue;
        *ret = *checkpoint;
        ret->message_id = copy_to(arena, checkpoint->message_id);
        ret->sha256 = copy_to(arena, checkpoint->sha256);
        ret->ref = copy_to(arena, checkpoint->ref);
        ret->uri = copy_to(arena, checkpoint->uri);
    }
    pthread_mutex_unlock(&inbox->lock);
    return found;
}

void checkpoint_inbox_settle(struct checkpoint_inbox *inbox, const char *uid,
                             const struct observed_checkpoint *checkpoint)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = map_get(inbox->tasks, uid);
    for (size_t i = 0; task && i < task->len; i++) {
        if (task->items[i].checkpoint.token == checkpoint->token)
            fill(&task->items[i], true, checkpoint);
    }
    pthread_mutex_unlock(&inbox->lock);
}

void checkpoint_inbox_remove(struct checkpoint_inbox *inbox, const char *uid, uint64_t token)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = map_get(inbox->tasks, uid);
    for (size_t i = 0; task && i < task->len; i++) {
        if (task->items[i].checkpoint.token != token)
            continue;
        clear(&task->items[i]);
        for (task->len--; i < task->len; i++)
            task->items[i] = task->items[i + 1];
        task->items[task->len] = (struct waiting){ 0 };
    }
    pthread_mutex_unlock(&inbox->lock);
}

void checkpoint_inbox_forget(struct checkpoint_inbox *inbox, const char *uid)
{
    pthread_mutex_lock(&inbox->lock);
    map_remove(inbox->tasks, uid);
    pthread_mutex_unlock(&inbox->lock);
}

void checkpoint_inbox_set_failure(struct checkpoint_inbox *inbox, const char *uid,
                                  const char *message)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = message ? make(inbox, uid) : map_get(inbox->tasks, uid);
    if (task) {
        free(task->failure);
        task->failure = copy(message);
    }
    pthread_mutex_unlock(&inbox->lock);
}

const char *checkpoint_inbox_failure(struct checkpoint_inbox *inbox, struct arena *arena,
                                     const char *uid)
{
    pthread_mutex_lock(&inbox->lock);
    const struct of_task *task = map_get(inbox->tasks, uid);
    const char *failure = task ? copy_to(arena, task->failure) : NULL;
    pthread_mutex_unlock(&inbox->lock);
    return failure;
}

void checkpoint_inbox_set_garbage(struct checkpoint_inbox *inbox, const char *uid)
{
    pthread_mutex_lock(&inbox->lock);
    make(inbox, uid)->has_garbage = true;
    pthread_mutex_unlock(&inbox->lock);
}

bool checkpoint_inbox_take_garbage(struct checkpoint_inbox *inbox, const char *uid)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = map_get(inbox->tasks, uid);
    bool had = task && task->has_garbage;
    if (task)
        task->has_garbage = false;
    pthread_mutex_unlock(&inbox->lock);
    return had;
}

void checkpoint_inbox_set_unreadable(struct checkpoint_inbox *inbox, const char *uid,
                                     int64_t attempt)
{
    pthread_mutex_lock(&inbox->lock);
    make(inbox, uid)->unreadable = attempt;
    pthread_mutex_unlock(&inbox->lock);
}

bool checkpoint_inbox_take_unreadable(struct checkpoint_inbox *inbox, const char *uid)
{
    pthread_mutex_lock(&inbox->lock);
    struct of_task *task = map_get(inbox->tasks, uid);
    bool is_news = task && task->unreadable != task->unreadable_told;
    if (is_news)
        task->unreadable_told = task->unreadable;
    pthread_mutex_unlock(&inbox->lock);
    return is_news;
}
