#include "controller/scheduler/wait_group.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/embedded.h"
#include "common/base/alloc.h"
#include "common/base/str.h"

/* What the Task asks of the dialect; no field of a spec. */
#define BEYOND_EMBEDDED "beyondEmbedded"

const char *wait_wishes(struct arena *arena, const cJSON *task)
{
    const cJSON *spec = json_get(task, "spec");
    cJSON *wishes = json_object(arena);
    struct task_spec decoded = { 0 };

    json_set_copy(wishes, "propletSelector", json_get(spec, "propletSelector"));
    json_set_copy(wishes, "preferredPropletType", json_get(spec, "preferredPropletType"));
    /* It takes nothing as long as one of many is full, and who wants a single place goes on. */
    json_set_copy(wishes, "broadcast", json_get(spec, "broadcast"));
    if (json_decode(arena, &TASK_SPEC, spec, &decoded, NULL) == 0 &&
        embedded_problem(arena, &decoded))
        json_set_bool(wishes, BEYOND_EMBEDDED, true); /* and not the inputs: groups are few */
    return json_text(arena, wishes, NULL);
}

const char *wait_pinned(const cJSON *task)
{
    return json_string(json_path(task, "spec", "propletSelector", "propletId", NULL), "");
}

/* Nobody whose wishes cannot be read comes here: the Task was decoded before. */
struct wait_group *wait_group_create(uint64_t id, const char *wishes, const char *pinned)
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
    return group;
}

void wait_group_free(void *value)
{
    struct wait_group *group = value;

    arena_destroy(group->arena);
    free(group->text);
    free(group->pinned);
    free(group->message);
    free(group->heap);
    free(group);
}

struct wait_entry *wait_entry_create(struct wait_group *group, const char *name, int64_t rank)
{
    size_t size = strlen(name) + 1;
    struct wait_entry *entry = xcalloc(1, sizeof(*entry) + size);

    memcpy(entry->name, name, size);
    entry->group = group;
    entry->rank = rank;
    return entry;
}

void wait_entry_free(void *value)
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

void wait_group_add(struct wait_group *group, struct wait_entry *entry)
{
    if (group->len == group->cap) {
        group->cap = group->cap ? 2 * group->cap : 4;
        group->heap = xrealloc(group->heap, group->cap * sizeof(struct wait_entry *));
    }
    sift(group, entry, group->len++);
}

void wait_group_remove(struct wait_group *group, const struct wait_entry *entry)
{
    struct wait_entry *last = group->heap[--group->len];

    if (last != entry)
        sift(group, last, entry->at);
}

struct wait_entry *wait_group_first(const struct wait_group *group)
{
    return group->len ? group->heap[0] : NULL;
}

struct wait_group *wait_groups_first(struct wait_group *const *groups, size_t len)
{
    struct wait_group *first = NULL;

    for (size_t i = 0; i < len; i++) {
        if (groups[i]->len && (!first || is_before(groups[i]->heap[0], first->heap[0])))
            first = groups[i];
    }
    return first;
}

void wait_group_tell(struct wait_group *group, const struct schedule_refusal *refusal,
                     uint64_t version)
{
    group->version = version;
    if (group->reason == refusal->reason && str_equal(group->message, refusal->message))
        return;

    free(group->message);
    group->reason = refusal->reason;
    group->message = xstrdup(refusal->message);
}
