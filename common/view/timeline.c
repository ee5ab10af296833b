#include "common/view/timeline.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/object.h"

#define MAX_ENTRIES 2000

/* Times of a status have whole seconds, and those of Events more. So entries of one second stand in the order of their
 * sources. */
enum source { SOURCE_OBJECT, SOURCE_STATUS, SOURCE_CONDITION, SOURCE_HISTORY, SOURCE_EVENT };
static const char *const SOURCES[] = { "object", "status", "condition", "history", "event" };

struct entry {
    int64_t time_us;
    size_t order; /* as they were found */
    enum source source;
    const char *time, *what, *message;
};

struct entries {
    struct arena *arena;
    struct entry *items;
    size_t len;
};

static void add(struct entries *entries, const cJSON *time, enum source source, const char *what,
                const char *message)
{
    struct entry entry = { .order = entries->len,
                           .time = json_string(time, ""),
                           .source = source,
                           .what = what,
                           .message = message };

    if (entries->len < MAX_ENTRIES && rfc3339_parse(entry.time, &entry.time_us))
        entries->items[entries->len++] = entry;
}

static void add_times(struct entries *entries, const cJSON *object)
{
    static const struct {
        const char *field, *what;
    } TIMES[] = {
        { "scheduledAt", "scheduled" }, { "startedAt", "started" },
        { "startTime", "started" },     { "finishedAt", "finished" },
        { "finishTime", "finished" },   { "endTime", "finished" },
        { "offlineSince", "offline" },  { "lastSeen", "last heartbeat" },
    };
    const cJSON *status = json_get(object, "status");

    add(entries, json_path(object, "metadata", "creationTimestamp", NULL), SOURCE_OBJECT, "created",
        "");
    for (size_t i = 0; i < ARRAY_LEN(TIMES); i++)
        add(entries, json_get(status, TIMES[i].field), SOURCE_STATUS, TIMES[i].what,
            json_string(json_get(status, "assignedProplet"), ""));
}

static void add_conditions(struct entries *entries, const cJSON *object)
{
    json_for_each (condition, json_path(object, "status", "conditions", NULL)) {
        const char *what =
            arena_printf(entries->arena, "%s=%s %s", json_string(json_get(condition, "type"), ""),
                         json_string(json_get(condition, "status"), ""),
                         json_string(json_get(condition, "reason"), ""));

        add(entries, json_get(condition, "lastTransitionTime"), SOURCE_CONDITION, what,
            json_string(json_get(condition, "message"), ""));
    }
}

static void add_history(struct entries *entries, const cJSON *object)
{
    json_for_each (run, json_path(object, "status", "history", NULL)) {
        const char *what = arena_printf(entries->arena, "run %lld %s",
                                        (long long)json_int(json_get(run, "run"), 0),
                                        json_string(json_get(run, "phase"), ""));

        add(entries, json_get(run, "finishedAt"), SOURCE_HISTORY, what,
            json_string(json_get(run, "error"), json_string(json_get(run, "reason"), "")));
    }
}

static void add_events(struct entries *entries, const cJSON *object, const cJSON *events)
{
    json_for_each (event, events) {
        const cJSON *time = json_path(event, "series", "lastObservedTime", NULL);
        int64_t count = json_int(json_path(event, "series", "count", NULL), 1);
        const char *reason = json_string(json_get(event, "reason"), "");

        if (!str_equal(json_string(json_path(event, "regarding", "uid", NULL), ""),
                       kube_uid(object)))
            continue;
        if (count > 1)
            reason = arena_printf(entries->arena, "%s (%lld times)", reason, (long long)count);
        add(entries, time ? time : json_get(event, "eventTime"), SOURCE_EVENT, reason,
            json_string(json_get(event, "note"), ""));
    }
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int64_t x_s = x->time_us / 1000000, y_s = y->time_us / 1000000;

    if (x_s != y_s)
        return x_s < y_s ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->source == SOURCE_EVENT && x->time_us != y->time_us)
        return x->time_us < y->time_us ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void timeline_rows(struct arena *arena, const cJSON *object, const cJSON *events, cJSON *rows)
{
    struct entries entries = { .arena = arena,
                               .items = arena_array(arena, struct entry, MAX_ENTRIES) };

    add_times(&entries, object);
    add_conditions(&entries, object);
    add_history(&entries, object);
    add_events(&entries, object, events);
    qsort(entries.items, entries.len, sizeof(struct entry), compare);
    for (size_t i = 0; i < entries.len; i++) {
        cJSON *row = json_add_object(rows);

        json_set_string(row, "time", entries.items[i].time);
        json_set_string(row, "source", SOURCES[entries.items[i].source]);
        json_set_string(row, "what", entries.items[i].what);
        json_set_string(row, "message", entries.items[i].message);
    }
}
