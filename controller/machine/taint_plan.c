#include "controller/machine/taint_plan.h"

#include <string.h>

#include "common/base/str.h"

/* A list in a struct, so that the codec reads and writes it. */
struct list {
    struct json_objects taints;
};
static const struct json_field LIST_FIELDS[] = {
    JSON_FIELD_NESTED(FIELD_OBJECTS, struct list, taints, "taints", &MACHINE_TAINT),
};
static const struct json_struct LIST = JSON_STRUCT(struct list, LIST_FIELDS);

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static bool is_same(const struct machine_taint *taint, const char *key, const char *effect)
{
    return str_equal(text_of(taint->key), key) && str_equal(text_of(taint->effect), effect);
}

static const struct machine_taint *find(const struct machine_taints *taints, const char *key,
                                        const char *effect)
{
    for (size_t i = 0; i < taints->len; i++) {
        if (is_same(&taints->items[i], key, effect))
            return &taints->items[i];
    }
    return NULL;
}

static const char *member(const cJSON *taint, const char *name)
{
    return json_string(json_get(taint, name), "");
}

static const cJSON *find_live(const cJSON *live, const struct machine_taint *taint)
{
    json_for_each (item, live) {
        if (is_same(taint, member(item, "key"), member(item, "effect")))
            return item;
    }
    return NULL;
}

struct machine_taints taints_read(struct arena *arena, const char *text)
{
    struct list list = { .taints = { 0 } };
    const cJSON *json;
    struct error err = { 0 };

    if (!text || json_parse(arena, text, strlen(text), &json, &err) < 0 || !cJSON_IsArray(json) ||
        json_len(json) > MACHINE_MAX_TAINTS)
        return (struct machine_taints){ .len = 0 };

    cJSON *root = json_object(arena);
    json_set_copy(root, "taints", json);
    if (json_decode(arena, &LIST, root, &list, &err) < 0)
        return (struct machine_taints){ .len = 0 };
    return (struct machine_taints){ list.taints.items, list.taints.len };
}

const char *taints_text(struct arena *arena, const struct machine_taints *taints)
{
    cJSON *array = json_array(arena);

    for (size_t i = 0; i < taints->len; i++) {
        cJSON *item = json_add_object(array);

        json_set_string(item, "key", text_of(taints->items[i].key));
        json_set_string(item, "value", text_of(taints->items[i].value));
        json_set_string(item, "effect", text_of(taints->items[i].effect));
    }
    return json_text(arena, array, NULL);
}

/* --- rules of a spec -------------------------------------------------------------------------- */

static bool has_reserved_prefix(const char *key)
{
    static const char *const RESERVED[] = { "5spot.finos.org/", "kubernetes.io/",
                                            "node.kubernetes.io/", "node-role.kubernetes.io/" };

    for (size_t i = 0; i < ARRAY_LEN(RESERVED); i++) {
        if (str_has_prefix(key, RESERVED[i]))
            return true;
    }
    return false;
}

static bool is_effect(const char *effect)
{
    return str_equal(effect, "NoSchedule") || str_equal(effect, "PreferNoSchedule") ||
           str_equal(effect, "NoExecute");
}

const char *taints_problem(struct arena *arena, const struct machine_taints *wanted)
{
    if (wanted->len > MACHINE_MAX_TAINTS)
        return arena_printf(arena, "spec.nodeTaints: must have at most %d items",
                            MACHINE_MAX_TAINTS);
    for (size_t i = 0; i < wanted->len; i++) {
        const struct machine_taint *taint = &wanted->items[i];
        const char *problem = NULL;

        if (str_is_empty(taint->key))
            problem = "the key is empty";
        else if (has_reserved_prefix(taint->key))
            problem = "the prefix of the key is reserved";
        else if (!is_effect(text_of(taint->effect)))
            problem = "the effect must be NoSchedule, PreferNoSchedule or NoExecute";
        else if (find(wanted, taint->key, taint->effect) != taint)
            problem = "another item has this key and effect";
        if (problem)
            return arena_printf(arena, "spec.nodeTaints[%zu]: %s", i, problem);
    }
    return NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

struct work {
    struct arena *arena;
    struct taint_plan plan;
    struct machine_taint *ours; /* with room for all that are wanted */
    bool changed;
};

static void note_conflict(struct work *work, const struct machine_taint *taint)
{
    const char *before = work->plan.conflicts;

    work->plan.conflicts =
        arena_printf(work->arena, "%s%s%s:%s", text_of(before), before ? ", " : "",
                     text_of(taint->key), text_of(taint->effect));
}

/* Of a wanted taint. item: the one on the Node, in the new list; NULL: none. */
static void place(struct work *work, const struct machine_taint *taint, cJSON *item,
                  const struct machine_taint *applied)
{
    bool ours = true;

    if (!item) {
        item = json_add_object(work->plan.taints);
        json_set_string(item, "key", taint->key);
        json_set_string(item, "effect", taint->effect);
        if (!str_is_empty(taint->value))
            json_set_string(item, "value", taint->value);
        work->changed = true;
    } else if (str_equal(member(item, "value"), text_of(taint->value))) {
        ours = applied != NULL;
    } else if (applied && str_equal(member(item, "value"), text_of(applied->value))) {
        json_set_string(item, "value", text_of(taint->value));
        work->changed = true;
    } else {
        note_conflict(work, taint);
    }
    if (ours)
        work->ours[work->plan.applied.len++] = *taint;
}

/* Copies the taints of the Node, but those of ours that are not wanted any more. */
static void keep_others(struct work *work, const cJSON *live, const struct machine_taints *wanted,
                        const struct machine_taints *applied)
{
    json_for_each (item, live) {
        const char *key = member(item, "key"), *effect = member(item, "effect");
        const struct machine_taint *was = find(applied, key, effect);

        if (was && !find(wanted, key, effect)) {
            if (str_equal(member(item, "value"), text_of(was->value))) {
                work->changed = true;
                continue;
            }
            note_conflict(work, was);
        }
        json_add(work->plan.taints, json_copy(item));
    }
}

static bool are_equal(const struct machine_taints *a, const struct machine_taints *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const struct machine_taint *other =
            find(b, text_of(a->items[i].key), text_of(a->items[i].effect));
        if (!other || !str_equal(text_of(other->value), text_of(a->items[i].value)))
            return false;
    }
    return true;
}

struct taint_plan taint_plan(struct arena *arena, const cJSON *live,
                             const struct machine_taints *wanted,
                             const struct machine_taints *applied)
{
    struct work work = { .arena = arena,
                         .plan = { .taints = json_array(arena) },
                         .ours = arena_array(arena, struct machine_taint, wanted->len + 1) };

    work.plan.applied.items = work.ours;
    keep_others(&work, live, wanted, applied);
    for (size_t i = 0; i < wanted->len; i++) {
        const struct machine_taint *taint = &wanted->items[i];

        place(&work, taint, (cJSON *)(uintptr_t)find_live(work.plan.taints, taint),
              find(applied, text_of(taint->key), text_of(taint->effect)));
    }
    if (work.plan.conflicts)
        return (struct taint_plan){ .conflicts = work.plan.conflicts, .applied = *applied };
    if (!work.changed)
        work.plan.taints = NULL;
    work.plan.annotation_changes = !are_equal(&work.plan.applied, applied);
    return work.plan;
}
