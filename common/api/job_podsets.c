#include "common/api/job_podsets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/api/quantity.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define HASH_LEN 16

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* The members in the order of their keys. */
static const cJSON **sorted(struct arena *arena, const cJSON *map)
{
    const cJSON **items = arena_array(arena, const cJSON *, json_len(map) + 1);
    size_t len = 0;

    json_for_each (item, map)
        items[len++] = item;
    qsort(items, len, sizeof(const cJSON *), by_key);
    return items;
}

static bool is_zero(const cJSON *value)
{
    struct quantity quantity;

    return quantity_of(value, &quantity) && !quantity.whole && !quantity.nano;
}

/* Requests as one map: cpu, memory and custom. Amounts of zero are left out. */
static const cJSON *requests_of(struct arena *arena, const cJSON *task)
{
    static const char *const NAMED[] = { "cpu", "memory" };
    const cJSON *amounts = json_get(task, "resourceRequirements");
    cJSON *requests = json_object(arena);

    for (size_t i = 0; i < ARRAY_LEN(NAMED); i++) {
        const cJSON *value = json_get(amounts, NAMED[i]);
        if (value && !is_zero(value))
            json_set_copy(requests, NAMED[i], value);
    }
    json_for_each (value, json_get(amounts, "custom")) {
        if (!is_zero(value))
            json_set_copy(requests, value->string, value);
    }
    return requests;
}

static const cJSON *labels_of(const cJSON *task)
{
    const cJSON *labels = json_path(task, "propletSelector", "matchLabels", NULL);

    return json_len(labels) ? labels : NULL;
}

/* The same text for the same shape: amounts as numbers, all keys sorted. */
static const char *shape_of(struct arena *arena, const cJSON *requests, const cJSON *labels)
{
    const cJSON **amounts = sorted(arena, requests);
    const cJSON **pairs = sorted(arena, labels);
    cJSON *shape = json_array(arena);

    for (; *amounts; amounts++) {
        struct quantity quantity = { 0 };
        bool known = quantity_of(*amounts, &quantity);

        json_add_string(shape, (*amounts)->string);
        json_add_string(shape, known
                                   ? arena_printf(arena, "%d %" PRId64 " %" PRId32,
                                                  quantity.negative, quantity.whole, quantity.nano)
                                   : json_text(arena, *amounts, NULL));
    }
    json_add_string(shape, "");
    for (; *pairs; pairs++) {
        json_add_string(shape, (*pairs)->string);
        json_add_string(shape, json_string(*pairs, ""));
    }
    return json_text(arena, shape, NULL);
}

const char *job_podset_name(struct arena *arena, size_t index)
{
    return arena_printf(arena, "tasks-%zu", index);
}

static void set_sorted(struct arena *arena, cJSON *object, const char *key, const cJSON *map)
{
    cJSON *copy = json_set_object(object, key);

    for (const cJSON **item = sorted(arena, map); *item; item++)
        json_set_copy(copy, (*item)->string, *item);
}

/* Keys are added in their order, which the hash depends on. */
static void add_podset(struct arena *arena, cJSON *list, size_t index, int64_t count,
                       const cJSON *requests, const cJSON *labels)
{
    cJSON *podset = json_add_object(list);

    json_set_int(podset, "count", count);
    json_set_string(podset, "name", job_podset_name(arena, index));
    cJSON *spec = json_set_object(json_set_object(podset, "template"), "spec");
    cJSON *container = json_add_object(json_set_array(spec, "containers"));
    json_set_string(container, "name", "task");
    set_sorted(arena, json_set_object(container, "resources"), "requests", requests);
    if (labels)
        set_sorted(arena, spec, "nodeSelector", labels);
    json_set_string(spec, "restartPolicy", "Never");
}

static int64_t at_once(const cJSON *spec)
{
    if (str_equal(json_get_string(spec, "executionMode"), "sequential"))
        return 1;
    return json_int(json_get(spec, "parallelism"), INT64_MAX);
}

struct shape {
    const char *text;
    const cJSON *requests;
    const cJSON *labels;
    int64_t tasks;
};

static size_t shape_index(struct shape *shapes, size_t *len, const struct shape *shape)
{
    size_t i = 0;

    while (i < *len && !str_equal(shapes[i].text, shape->text))
        i++;
    if (i == *len)
        shapes[(*len)++] = *shape;
    shapes[i].tasks++;
    return i;
}

struct job_podsets job_podsets_of(struct arena *arena, const cJSON *spec)
{
    const cJSON *tasks = json_get(spec, "tasks");
    struct shape *shapes = arena_array(arena, struct shape, json_len(tasks) + 1);
    size_t *of_task = arena_array(arena, size_t, json_len(tasks) + 1);
    struct job_podsets ret = { .of_task = of_task, .tasks = json_len(tasks) };
    const int64_t limit = at_once(spec);
    cJSON *list = json_array(arena);
    char digest[SHA256_HEX_LEN];
    size_t index = 0;

    json_for_each (task, tasks) {
        struct shape shape = { .requests = requests_of(arena, task), .labels = labels_of(task) };

        shape.text = shape_of(arena, shape.requests, shape.labels);
        of_task[index++] = shape_index(shapes, &ret.len, &shape);
        ret.is_recurring |= json_bool(json_get(task, "isRecurring"), false);
    }
    for (size_t i = 0; i < ret.len && i < JOB_MAX_PODSETS; i++) {
        ret.counts[i] = shapes[i].tasks < limit ? shapes[i].tasks : limit;
        ret.labels[i] = shapes[i].labels;
        add_podset(arena, list, i, ret.counts[i], shapes[i].requests, shapes[i].labels);
    }
    ret.list = list;

    size_t len;
    const char *text = json_text(arena, list, &len);
    ret.hash = arena_printf(arena, "%.*s", HASH_LEN, sha256_hex(text, len, digest));
    return ret;
}
