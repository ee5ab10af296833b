#include "controller/scheduler/wait_list.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/embedded.h"
#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "controller/scheduler/candidates.h"

/* A Task. */
struct wait_entry {
    struct wait_group *group;
    int64_t rank; /* lower is first */
    int64_t since_us;
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

/* What the Task asks of the dialect; no field of a spec. */
#define BEYOND_EMBEDDED "beyondEmbedded"
/* The time that its start must have until a Proplet closes; neither. */
#define NEED_SECONDS "needSeconds"

/* Returns the fields that schedule_filter looks at, as text: equal for equal constraints in equal order. */
static const char *wait_wishes(struct arena *arena, const cJSON *task)
{
    const cJSON *spec = json_get(task, "spec");
    cJSON *wishes = json_object(arena);
    struct task_spec decoded = { 0 };

    json_set_copy(wishes, "propletSelector", json_get(spec, "propletSelector"));
    json_set_copy(wishes, "preferredPropletType", json_get(spec, "preferredPropletType"));
    /* It takes nothing as long as one of many is full, and who wants a single place goes on. */
    json_set_copy(wishes, "broadcast", json_get(spec, "broadcast"));
    if (json_decode(arena, &TASK_SPEC, spec, &decoded, NULL) < 0)
        return json_text(arena, wishes, NULL);
    if (embedded_problem(arena, &decoded))
        json_set_bool(wishes, BEYOND_EMBEDDED, true); /* and not the inputs: groups are few */

    const cJSON *cut = json_path(task, "status", "cutAfterSeconds", NULL);
    int64_t need_s = task_need_s(&decoded, (struct json_opt_int){ cut != NULL, json_int(cut, 0) });
    if (need_s)
        json_set_int(wishes, NEED_SECONDS, need_s);
    return json_text(arena, wishes, NULL);
}

static const char *wait_pinned(const cJSON *task)
{
    return json_string(json_path(task, "spec", "propletSelector", "propletId", NULL), "");
}

/* Nobody whose wishes cannot be read comes here: the Task was decoded before. */
static struct wait_group *wait_group_create(uint64_t id, const char *wishes, const char *pinned)
{
    struct wait_group *group = xcalloc(1, sizeof(*group));
    const cJSON *tree = NULL;

    group->id = id;
    group->text = xstrdup(wishes);
    group->pinned = xstrdup(pinned);
    group->arena = arena_create();
    if (json_parse(group->arena, group->text, strlen(group->text), &tree, NULL) < 0 ||
        json_decode(group->arena, &TASK_SPEC, tree, &group->spec, NULL) < 0)
        group->spec = (struct task_spec){ 0 };
    group->spec.beyond_embedded = json_bool(json_get(tree, BEYOND_EMBEDDED), false);
    group->spec.need_s = json_int(json_get(tree, NEED_SECONDS), 0);
    return group;
}

static void wait_group_free(void *value)
{
    struct wait_group *group = value;

    arena_destroy(group->arena);
    free(group->text);
    free(group->pinned);
    free(group->message);
    free(group->heap);
    free(group);
}

static struct wait_entry *wait_entry_create(struct wait_group *group,
                                            const struct wait_seeker *seeker)
{
    const char *name = seeker->name->name;
    size_t size = strlen(name) + 1;
    struct wait_entry *entry = xcalloc(1, sizeof(*entry) + size);

    memcpy(entry->name, name, size);
    entry->group = group;
    entry->rank = seeker->rank;
    entry->since_us = seeker->since_us;
    return entry;
}

static void wait_entry_free(void *value)
{
    struct wait_entry *entry = value;

    free(entry->called);
    free(entry);
}

static bool is_before(const struct wait_entry *a, const struct wait_entry *b)
{
    return a->rank != b->rank ? a->rank < b->rank : strcmp(a->name, b->name) < 0;
}

static void place(struct wait_group *group, struct wait_entry *entry, size_t at)
{
    group->heap[at] = entry;
    entry->at = at;
}

static void sift(struct wait_group *group, struct wait_entry *entry, size_t at)
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

static void wait_group_add(struct wait_group *group, struct wait_entry *entry)
{
    if (group->len == group->cap) {
        group->cap = group->cap ? 2 * group->cap : 4;
        group->heap = xrealloc(group->heap, group->cap * sizeof(struct wait_entry *));
    }
    sift(group, entry, group->len++);
}

static void wait_group_remove(struct wait_group *group, const struct wait_entry *entry)
{
    struct wait_entry *last = group->heap[--group->len];

    if (last != entry)
        sift(group, last, entry->at);
}

static struct wait_entry *wait_group_first(const struct wait_group *group)
{
    return group->len ? group->heap[0] : NULL;
}

static struct wait_group *wait_groups_first(struct wait_group *const *groups, size_t len)
{
    struct wait_group *first = NULL;

    for (size_t i = 0; i < len; i++) {
        if (groups[i]->len && (!first || is_before(groups[i]->heap[0], first->heap[0])))
            first = groups[i];
    }
    return first;
}

static void wait_group_tell(struct wait_group *group, const struct schedule_refusal *refusal,
                            uint64_t version)
{
    group->version = version;
    if (group->reason == refusal->reason && str_equal(group->message, refusal->message))
        return;

    free(group->message);
    group->reason = refusal->reason;
    group->message = xstrdup(refusal->message);
}

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

    struct wait_entry *entry = wait_entry_create(group, seeker);
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

int64_t wait_list_oldest_us(struct wait_list *list)
{
    int64_t oldest_us = 0;
    const char *key;
    void *value;

    pthread_mutex_lock(&list->lock);
    for (size_t i = 0; map_next(list->entries, &i, &key, &value);) {
        const struct wait_entry *entry = value;
        if (!oldest_us || entry->since_us < oldest_us)
            oldest_us = entry->since_us;
    }
    pthread_mutex_unlock(&list->lock);
    return oldest_us;
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
