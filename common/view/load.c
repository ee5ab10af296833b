#include "common/view/load.h"

#include <stdlib.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/base/str.h"

#define MIB (1024 * 1024)

struct load {
    const char *ns, *name;
    int64_t cpu, memory, active; /* for the order; -1: not known */
    const cJSON *object;
};

/* "12.5%" of thousandths of a percent */
static const char *percent(struct arena *arena, int64_t milli)
{
    return arena_printf(arena, "%lld.%lld%%", (long long)(milli / 1000),
                        (long long)(milli % 1000 / 100));
}

static void add_row(struct arena *arena, const struct kube_kind *kind, const struct load *load,
                    cJSON *rows)
{
    const cJSON *status = json_get(load->object, "status");
    cJSON *row = json_add_object(rows);

    json_set_string(
        row, "object",
        arena_printf(arena, "%s/%s", kind == &KIND_TASK ? "task" : "proplet", load->name));
    json_set_string(row, "namespace", load->ns);
    json_set_string(row, "name", load->name);
    json_set_copy(row, "phase", json_get(status, "phase"));
    if (kind == &KIND_TASK) {
        json_set_copy(row, "proplet", json_get(status, "assignedProplet"));
    } else {
        json_set_int(row, "active", load->active);
        json_set_copy(row, "maxTasks",
                      json_path(load->object, "spec", "external", "maxTasks", NULL));
    }
    if (load->cpu >= 0)
        json_set_string(row, "cpu", percent(arena, load->cpu));
    if (load->memory >= 0)
        json_set_string(row, "memory",
                        arena_printf(arena, "%lldMi", (long long)(load->memory / MIB)));
    json_set_copy(row, "timestamp", json_path(status, "latestMetrics", "timestamp", NULL));
}

static int by_name(const void *a, const void *b)
{
    const struct load *x = a, *y = b;
    int order = strcmp(x->ns, y->ns);

    return order ? order : strcmp(x->name, y->name);
}

static int by_number(int64_t a, int64_t b, const void *x, const void *y)
{
    return a != b ? (a < b ? 1 : -1) : by_name(x, y);
}

static int by_cpu(const void *a, const void *b)
{
    return by_number(((const struct load *)a)->cpu, ((const struct load *)b)->cpu, a, b);
}

static int by_memory(const void *a, const void *b)
{
    return by_number(((const struct load *)a)->memory, ((const struct load *)b)->memory, a, b);
}

static int by_active(const void *a, const void *b)
{
    return by_number(((const struct load *)a)->active, ((const struct load *)b)->active, a, b);
}

/* A Task that is not active has no load. */
static bool is_shown(const struct kube_kind *kind, const cJSON *object)
{
    const char *phase = json_string(json_path(object, "status", "phase", NULL), "");

    return kind == &KIND_PROPLET || str_equal(phase, "running") || str_equal(phase, "scheduled");
}

void load_rows(struct arena *arena, const struct kube_kind *kind, const cJSON *objects,
               const char *sort_by, cJSON *rows)
{
    static const struct {
        const char *key;
        int (*compare)(const void *a, const void *b);
    } ORDERS[] = { { "cpu", by_cpu }, { "memory", by_memory }, { "active", by_active } };
    struct load *loads = arena_array(arena, struct load, json_len(objects) + 1);
    int (*compare)(const void *a, const void *b) = by_name;
    size_t len = 0;

    json_for_each (object, objects) {
        const cJSON *metrics = json_path(object, "status", "latestMetrics", NULL);

        if (is_shown(kind, object))
            loads[len++] = (struct load){
                .ns = json_string(json_path(object, "metadata", "namespace", NULL), ""),
                .name = json_string(json_path(object, "metadata", "name", NULL), ""),
                .cpu = json_int(json_get(metrics, "cpuMilliPercent"), -1),
                .memory = json_int(json_get(metrics, "memoryBytes"), -1),
                .active = json_int(json_path(object, "status", "activeTaskCount", NULL), 0),
                .object = object,
            };
    }
    for (size_t i = 0; i < ARRAY_LEN(ORDERS); i++) {
        if (str_equal(ORDERS[i].key, sort_by))
            compare = ORDERS[i].compare;
    }
    qsort(loads, len, sizeof(*loads), compare);
    for (size_t i = 0; i < len; i++)
        add_row(arena, kind, &loads[i], rows);
}
