#include "controller/wait_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"

/* At once; each of them calls the next when its turn ends. */
#define MAX_CALLS 256

/* A Task. */
struct entry {
    struct group *group;
    int64_t rank;
    size_t at;    /* in the group's heap, if it waits */
    char *called; /* key of the Proplet; NULL: it waits */
    char name[];
};

/* Tasks of a namespace with the same wishes. */
struct group {
    uint64_t id;
    char *text; /* its key: the wishes */
    struct arena *arena;
    struct task_spec spec; /* nothing but the wishes; in the arena */
    struct entry **heap;   /* who waits; the first comes first */
    size_t len, cap;
    size_t entries; /* and who is called */
};

struct space {
    struct map *groups; /* text -> group */
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

static void group_free(void *value)
{
    struct group *group = value;

    arena_destroy(group->arena);
    free(group->text);
    free(group->heap);
    free(group);
}

static void space_free(void *value)
{
    struct space *space = value;

    map_destroy(space->groups);
    free(space);
}

static void entry_free(void *value)
{
    struct entry *entry = value;

    free(entry->called);
    free(entry);
}

struct wait_list *wait_list_create(void)
{
    struct wait_list *list = xcalloc(1, sizeof(*list));

    pthread_mutex_init(&list->lock, NULL);
    list->spaces = map_create(space_free);
    list->entries = map_create(entry_free);
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

int64_t wait_rank(const struct scheduler *scheduler, int64_t created_us, int64_t priority)
{
    return scheduler->by_priority ? created_us - priority * WAIT_AGEING_US : created_us;
}

/* What schedule_filter looks at, as text: equal for equal wishes of equal order. */
static const char *wishes_of(struct arena *arena, const cJSON *task)
{
    const cJSON *spec = json_get(task, "spec");
    cJSON *wishes = json_object(arena);

    json_set_copy(wishes, "propletSelector", json_get(spec, "propletSelector"));
    json_set_copy(wishes, "preferredPropletType", json_get(spec, "preferredPropletType"));
    return json_text(arena, wishes, NULL);
}

/* The heap of a group. */

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->rank != b->rank ? a->rank < b->rank : strcmp(a->name, b->name) < 0;
}

static void place(struct group *group, struct entry *entry, size_t at)
{
    group->heap[at] = entry;
    entry->at = at;
}

static void sift(struct group *group, struct entry *entry, size_t at)
{
    while (at > 0 && is_before(entry, group->heap[(at - 1) / 2])) {
        place(group, group->heap[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    for (size_t child = 2 * at + 1; child < group->len; child = 2 * at + 1) {
        if (child + 1 < group->len && is_before(group->heap[child + 1], group->heap[child]))
            child++;
        if (!is_before(group->heap[child], entry))
            break;
        place(group, group->heap[child], at);
        at = child;
    }
    place(group, entry, at);
}

static void heap_add(struct group *group, struct entry *entry)
{
    if (group->len == group->cap) {
        group->cap = group->cap ? 2 * group->cap : 4;
        group->heap = xrealloc(group->heap, group->cap * sizeof(struct entry *));
    }
    sift(group, entry, group->len++);
}

static void heap_remove(struct group *group, const struct entry *entry)
{
    struct entry *last = group->heap[--group->len];

    if (last != entry)
        sift(group, last, entry->at);
}

/* The lock is held by whoever calls what follows, up to wait_list_enter. */

static struct space *space_of(struct wait_list *list, const char *ns)
{
    struct space *space = map_get(list->spaces, ns);

    if (!space) {
        space = xcalloc(1, sizeof(*space));
        space->groups = map_create(group_free);
        map_set(list->spaces, ns, space);
    }
    return space;
}

/* Nobody whose wishes cannot be read comes here: the Task was decoded before. */
static struct group *group_of(struct wait_list *list, struct space *space, const char *text)
{
    struct group *group = map_get(space->groups, text);
    const cJSON *wishes;

    if (group)
        return group;
    group = xcalloc(1, sizeof(*group));
    group->id = ++list->last_group;
    group->text = xstrdup(text);
    group->arena = arena_create();
    if (json_parse(group->arena, group->text, strlen(group->text), &wishes, NULL) < 0 ||
        json_decode(group->arena, &TASK_SPEC, wishes, &group->spec, NULL) < 0)
        group->spec = (struct task_spec){ 0 };
    map_set(space->groups, text, group);
    return group;
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
    const struct entry *entry = map_get(list->entries, key);

    if (!entry)
        return;

    struct group *group = entry->group;
    struct space *space = map_get(list->spaces, name->ns);
    if (entry->called) {
        keep(list, entry->called, -1);
        ret->any = kube_name_set(&ret->proplet, name->ns, strchr(entry->called, '/') + 1);
    } else {
        heap_remove(group, entry);
        space->waiting--;
    }
    map_remove(list->entries, key);
    if (--group->entries == 0)
        map_remove(space->groups, group->text);
    if (map_len(space->groups) == 0)
        map_remove(list->spaces, name->ns);
}

static void add(struct wait_list *list, const struct kube_name *name, const char *key,
                struct group *group, int64_t rank)
{
    size_t size = strlen(name->name) + 1;
    struct entry *entry = xcalloc(1, sizeof(*entry) + size);

    memcpy(entry->name, name->name, size);
    entry->group = group;
    entry->rank = rank;
    map_set(list->entries, key, entry);
    heap_add(group, entry);
}

bool wait_list_enter(struct wait_list *list, const struct kube_name *name, const cJSON *task,
                     int64_t rank, uint64_t sequence, struct wait_release *ret)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = wishes_of(arena, task);
    char key[KUBE_KEY_LEN];

    *ret = (struct wait_release){ 0 };
    kube_name_key(name, key);
    pthread_mutex_lock(&list->lock);
    bool enters = sequence == list->sequence;
    if (enters) {
        struct space *space = space_of(list, name->ns);
        struct group *group = group_of(list, space, text);
        group->entries++; /* before the old entry goes: it may be the group's last */
        space->waiting++;
        drop(list, name, key, ret);
        ret->group = group->id;
        add(list, name, key, group, rank);
    }
    pthread_mutex_unlock(&list->lock);
    return enters;
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
    const struct entry *own = ret ? map_get(list->entries, task_key) : NULL;
    if (own && str_equal(own->called, key))
        ret--;
    pthread_mutex_unlock(&list->lock);
    return ret;
}

/* Those whom the Proplet fits but for its room; the room is the same for all. */
static size_t groups_that_fit(const struct space *space, struct arena *arena,
                              const struct candidate *candidate, uint64_t except,
                              struct group ***ret)
{
    struct group **fitting = arena_array(arena, struct group *, map_len(space->groups));
    struct candidate empty = *candidate;
    const char *text;
    void *value;
    size_t len = 0;

    empty.active = INT64_MIN;
    for (size_t i = 0; map_next(space->groups, &i, &text, &value);) {
        struct group *group = value;
        if (group->id != except && group->len &&
            schedule_filter(&group->spec, &empty) == FILTER_PASSED)
            fitting[len++] = group;
    }
    *ret = fitting;
    return len;
}

static struct group *first_group(struct group *const *groups, size_t len)
{
    struct group *first = NULL;

    for (size_t i = 0; i < len; i++) {
        if (groups[i]->len && (!first || is_before(groups[i]->heap[0], first->heap[0])))
            first = groups[i];
    }
    return first;
}

static size_t call(struct wait_list *list, struct space *space, struct arena *arena,
                   const char *proplet, const struct candidate *candidate, uint64_t except,
                   struct entry **ret)
{
    struct candidate now = *candidate;
    struct group **groups;
    size_t fitting = groups_that_fit(space, arena, candidate, except, &groups);
    size_t len = 0;
    const int64_t *kept = map_get(list->kept, proplet);

    now.active += kept ? *kept : 0;
    for (; len < MAX_CALLS; len++, now.active++) {
        struct group *group = first_group(groups, fitting);
        if (!group || schedule_filter(&group->spec, &now) != FILTER_PASSED)
            break;
        struct entry *entry = group->heap[0];
        heap_remove(group, entry);
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
    struct entry *called[MAX_CALLS];
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
