#include "controller/scheduler/wait_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/scheduler/candidates.h"
#include "controller/scheduler/wait_group.h"

/* At once; each of them calls the next when its turn ends. */
#define MAX_CALLS 256

struct space {
    struct map *pins; /* propletId, "" of those who have none -> map of text -> group */
    size_t waiting;
    int64_t quiet_until_ms; /* monotonic */
};

struct wait_list {
    pthread_mutex_t lock;
    struct map *spaces;  /* namespace -> space */
    struct map *entries; /* Task key -> entry */
    struct map *kept;    /* Proplet key -> int64_t */
    uint64_t sequence;
    uint64_t last_group;
};

static void pin_free(void *value)
{
    map_destroy(value);
}

static void space_free(void *value)
{
    struct space *space = value;

    map_destroy(space->pins);
    free(space);
}

struct wait_list *wait_list_create(void)
{
    struct wait_list *list = xcalloc(1, sizeof(*list));

    pthread_mutex_init(&list->lock, NULL);
    list->spaces = map_create(space_free);
    list->entries = map_create(wait_entry_free);
    list->kept = map_create(free);
    return list;
}

void wait_list_destroy(struct wait_list *list)
{
    if (!list)
        return;

    map_destroy(list->entries);
    map_destroy(list->spaces);
    map_destroy(list->kept);
    pthread_mutex_destroy(&list->lock);
    free(list);
}

int64_t wait_rank(int64_t since_us, int64_t priority)
{
    return since_us - priority * WAIT_AGEING_US;
}

/* The lock is held by whoever calls what follows, up to wait_list_enter. */

static struct space *space_of(struct wait_list *list, const char *ns)
{
    struct space *space = map_get(list->spaces, ns);

    if (!space) {
        space = xcalloc(1, sizeof(*space));
        space->pins = map_create(pin_free);
        map_set(list->spaces, ns, space);
    }
    return space;
}

static struct wait_group *group_of(struct wait_list *list, struct space *space, const char *pinned,
                                   const char *text)
{
    struct map *groups = map_get(space->pins, pinned);
    if (!groups) {
        groups = map_create(wait_group_free);
        map_set(space->pins, pinned, groups);
    }

    struct wait_group *group = map_get(groups, text);
    if (!group) {
        group = wait_group_create(++list->last_group, text, pinned);
        map_set(groups, text, group);
    }
    return group;
}

static void group_unused(struct space *space, const struct wait_group *group)
{
    struct map *groups = map_get(space->pins, group->pinned);

    if (map_len(groups) == 1)
        map_remove(space->pins, group->pinned);
    else
        map_remove(groups, group->text);
}

static void keep(struct wait_list *list, const char *proplet, int64_t places)
{
    int64_t *kept = map_get(list->kept, proplet);

    if (!kept) {
        kept = xcalloc(1, sizeof(*kept));
        map_set(list->kept, proplet, kept);
    }
    *kept += places;
    if (*kept == 0)
        map_remove(list->kept, proplet);
}

static void drop(struct wait_list *list, const struct kube_name *name, const char *key,
                 struct wait_release *ret)
{
    const struct wait_entry *entry = map_get(list->entries, key);

    if (!entry)
        return;

    struct wait_group *group = entry->group;
    struct space *space = map_get(list->spaces, name->ns);
    if (entry->called) {
        keep(list, entry->called, -1);
        ret->any = kube_name_set(&ret->proplet, name->ns, strchr(entry->called, '/') + 1);
    } else {
        wait_group_remove(group, entry);
        space->waiting--;
    }
    map_remove(list->entries, key);
    if (--group->entries == 0)
        group_unused(space, group);
    if (map_len(space->pins) == 0)
        map_remove(list->spaces, name->ns);
}

/* Whatever it was before. */
static void add(struct wait_list *list, const struct wait_seeker *seeker, const char *key,
                struct space *space, struct wait_group *group, struct wait_release *ret)
{
    group->entries++; /* before the old entry goes: it may be the group's last */
    space->waiting++;
    drop(list, seeker->name, key, ret);

    struct wait_entry *entry = wait_entry_create(group, seeker->name->name, seeker->rank);
    map_set(list->entries, key, entry);
    wait_group_add(group, entry);
}

bool wait_list_enter(struct wait_list *list, const struct wait_seeker *seeker,
                     const struct wait_told *told, uint64_t sequence, struct wait_release *ret)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = wait_wishes(arena, seeker->task);
    char key[KUBE_KEY_LEN];

    *ret = (struct wait_release){ 0 };
    kube_name_key(seeker->name, key);
    pthread_mutex_lock(&list->lock);
    bool enters = sequence == list->sequence;
    if (enters) {
        struct space *space = space_of(list, seeker->name->ns);
        struct wait_group *group = group_of(list, space, wait_pinned(seeker->task), text);
        add(list, seeker, key, space, group, ret);
        ret->group = group->id;
        if (told)
            wait_group_tell(group, &told->refusal, told->version);
    }
    pthread_mutex_unlock(&list->lock);
    return enters;
}

/* Somebody else waits in the group, and was told of these candidates. */
static struct wait_group *group_to_join(struct wait_list *list, const struct wait_seeker *seeker,
                                        const char *text, const char *key, uint64_t version)
{
    const struct space *space = map_get(list->spaces, seeker->name->ns);
    const struct map *groups = space ? map_get(space->pins, wait_pinned(seeker->task)) : NULL;
    struct wait_group *group = groups ? map_get(groups, text) : NULL;
    const struct wait_entry *own = map_get(list->entries, key);

    if (!group || !group->reason || group->version != version || (own && own->called))
        return NULL;
    return group->len > (own && own->group == group ? 1 : 0) ? group : NULL;
}

bool wait_list_join(struct wait_list *list, const struct wait_seeker *seeker, uint64_t version,
                    struct arena *arena, struct schedule_refusal *ret)
{
    const char *text = wait_wishes(arena, seeker->task);
    struct wait_release nothing = { 0 }; /* it is not called */
    char key[KUBE_KEY_LEN];

    kube_name_key(seeker->name, key);
    pthread_mutex_lock(&list->lock);
    struct wait_group *group = group_to_join(list, seeker, text, key, version);
    if (group) {
        add(list, seeker, key, space_of(list, seeker->name->ns), group, &nothing);
        ret->reason = group->reason;
        ret->message = arena_strdup(arena, group->message);
    }
    pthread_mutex_unlock(&list->lock);
    return group != NULL;
}

void wait_list_leave(struct wait_list *list, const struct kube_name *name, struct wait_release *ret)
{
    char key[KUBE_KEY_LEN];

    *ret = (struct wait_release){ 0 };
    kube_name_key(name, key);
    pthread_mutex_lock(&list->lock);
    drop(list, name, key, ret);
    pthread_mutex_unlock(&list->lock);
}

uint64_t wait_list_sequence(struct wait_list *list)
{
    pthread_mutex_lock(&list->lock);
    uint64_t sequence = list->sequence;
    pthread_mutex_unlock(&list->lock);
    return sequence;
}

int64_t wait_list_kept(struct wait_list *list, const char *proplet, const struct kube_name *task)
{
    struct kube_name name;
    char key[KUBE_KEY_LEN];
    char task_key[KUBE_KEY_LEN];

    if (!kube_name_set(&name, task->ns, proplet))
        return 0;

    kube_name_key(&name, key);
    kube_name_key(task, task_key);
    pthread_mutex_lock(&list->lock);
    const int64_t *kept = map_get(list->kept, key);
    int64_t ret = kept ? *kept : 0;
    const struct wait_entry *own = ret ? map_get(list->entries, task_key) : NULL;
    if (own && str_equal(own->called, key))
        ret--;
    pthread_mutex_unlock(&list->lock);
    return ret;
}

bool wait_list_called(struct wait_list *list, const struct kube_name *task, struct kube_name *ret)
{
    char key[KUBE_KEY_LEN];

    kube_name_key(task, key);
    pthread_mutex_lock(&list->lock);
    const struct wait_entry *entry = map_get(list->entries, key);
    bool called =
        entry && entry->called && kube_name_set(ret, task->ns, strchr(entry->called, '/') + 1);
    pthread_mutex_unlock(&list->lock);
    return called;
}

/* Those whom the Proplet fits but for its room; the room is the same for all. */
static size_t add_fitting(const struct map *groups, const struct candidate *candidate,
                          uint64_t except, struct wait_group **fitting)
{
    struct candidate empty = *candidate;
    const char *text;
    void *value;
    size_t len = 0;

    if (!groups)
        return 0;

    empty.active = INT64_MIN;
    for (size_t i = 0; map_next(groups, &i, &text, &value);) {
        struct wait_group *group = value;
        if (group->id != except && group->len &&
            schedule_filter(&group->spec, &empty) == FILTER_PASSED)
            fitting[len++] = group;
    }
    candidates_compared(map_len(groups));
    return len;
}

/* Those who are pinned to another Proplet are not looked at. */
static size_t groups_that_fit(const struct space *space, struct arena *arena,
                              const struct candidate *candidate, uint64_t except,
                              struct wait_group ***ret)
{
    const struct map *any = map_get(space->pins, "");
    const struct map *pinned = map_get(space->pins, candidate->name);
    size_t most = (any ? map_len(any) : 0) + (pinned ? map_len(pinned) : 0);
    struct wait_group **fitting = arena_array(arena, struct wait_group *, most + 1);
    size_t len = add_fitting(any, candidate, except, fitting);

    *ret = fitting;
    return len + add_fitting(pinned, candidate, except, fitting + len);
}

static size_t call(struct wait_list *list, struct space *space, struct arena *arena,
                   const char *proplet, const struct candidate *candidate, uint64_t except,
                   struct wait_entry **ret)
{
    struct candidate now = *candidate;
    struct wait_group **groups;
    size_t fitting = groups_that_fit(space, arena, candidate, except, &groups);
    size_t len = 0;
    const int64_t *kept = map_get(list->kept, proplet);

    now.active += kept ? *kept : 0;
    for (; len < MAX_CALLS; len++, now.active++) {
        struct wait_group *group = wait_groups_first(groups, fitting);
        if (!group || schedule_filter(&group->spec, &now) != FILTER_PASSED)
            break;
        struct wait_entry *entry = wait_group_first(group);
        wait_group_remove(group, entry);
        space->waiting--;
        entry->called = xstrdup(proplet);
        keep(list, proplet, 1);
        ret[len] = entry;
    }
    return len;
}

size_t wait_list_call(struct wait_list *list, struct arena *arena, const char *ns,
                      const struct candidate *candidate, uint64_t except, struct kube_name **ret)
{
    struct kube_name proplet;
    char key[KUBE_KEY_LEN];
    struct wait_entry *called[MAX_CALLS];
    size_t len = 0;

    *ret = NULL;
    if (!kube_name_set(&proplet, ns, candidate->name))
        return 0;

    kube_name_key(&proplet, key);
    pthread_mutex_lock(&list->lock);
    list->sequence++;
    struct space *space = map_get(list->spaces, ns);
    if (space)
        len = call(list, space, arena, key, candidate, except, called);
    if (len)
        *ret = arena_array(arena, struct kube_name, len);
    for (size_t i = 0; i < len; i++)
        (void)kube_name_set(&(*ret)[i], ns, called[i]->name);
    pthread_mutex_unlock(&list->lock);
    return len;
}

bool wait_list_call_nobody(struct wait_list *list, const char *ns)
{
    pthread_mutex_lock(&list->lock);
    const struct space *space = map_get(list->spaces, ns);
    bool nobody = !space || !space->waiting;
    list->sequence += nobody;
    pthread_mutex_unlock(&list->lock);
    return nobody;
}

size_t wait_list_len(struct wait_list *list, const char *ns)
{
    pthread_mutex_lock(&list->lock);
    const struct space *space = map_get(list->spaces, ns);
    size_t len = space ? space->waiting : 0;
    pthread_mutex_unlock(&list->lock);
    return len;
}

uint32_t wait_list_quiet_ms(struct wait_list *list, const char *ns, int64_t now_ms,
                            uint32_t interval_ms)
{
    uint32_t left_ms = 0;

    pthread_mutex_lock(&list->lock);
    struct space *space = map_get(list->spaces, ns);
    if (space && now_ms < space->quiet_until_ms)
        left_ms = (uint32_t)(space->quiet_until_ms - now_ms);
    else if (space)
        space->quiet_until_ms = now_ms + interval_ms;
    pthread_mutex_unlock(&list->lock);
    return left_ms;
}
