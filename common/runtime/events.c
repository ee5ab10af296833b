#include "common/runtime/events.h"

#include "common/base/alloc.h"
#include "common/base/cond.h"
#include "common/base/digest.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/base/version.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "common/runtime/thread.h"

/* Waiting to be written; more than that and the API server has other worries. */
#define MAX_QUEUE 1024
/* Events that may still become a series. */
#define MAX_SERIES 512
#define SERIES_MS (INT64_C(10) * 60 * 1000)
/* Of the object's name in that of its Event: 253 less a dot and 16 digits. */
#define MAX_NAME_PART 236
#define STOP_BUDGET_MS 2000

struct pending {
    struct pending *next;
    const struct kube_kind *kind;
    struct kube_object *regarding;
    const struct event *event;
    char *note; /* in place of that of the event; NULL: none */
    int64_t time_us;
    int64_t time_ms; /* the same, of the monotonic clock */
};

/* What was written under one (object, type, reason, note), so that the next one raises its count.
 */
struct series {
    uint64_t id; /* in the name of the Event */
    int64_t count;
    int64_t last_ms;
};

struct events {
    struct kube_client *client;
    char *component;
    char *instance;
    const struct clock *clock;
    struct map *series; /* the writer's own, like has_failed */
    uint64_t next_id;   /* begins with the time in nanoseconds, so that no two processes agree */
    bool has_failed;    /* the last write, and that was told */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* leaf: guards what follows */
    pthread_cond_t changed;
    struct pending *first;
    struct pending **last;
    size_t len;
    bool stopping;
    int64_t stop_by_ms;
};

static struct metric DROPPED = { .type = METRIC_COUNTER,
                                 .name = PRODUCT_METRICS "events_dropped_total",
                                 .help = "Number of Events that were not written." };

struct events *events_create(struct kube_client *client, const char *component,
                             const char *instance, const struct clock *clock)
{
    struct events *events = xcalloc(1, sizeof(*events));

    events->client = client;
    events->component = xstrdup(component);
    events->instance = xstrdup(instance);
    events->clock = clock;
    events->series = map_create(free);
    events->next_id = (uint64_t)clock_wall_us(clock) * 1000;
    events->last = &events->first;
    (void)pthread_mutex_init(&events->lock, NULL);
    cond_init(&events->changed);
    return events;
}

static void pending_free(struct pending *pending)
{
    kube_object_unref(pending->regarding);
    free(pending->note);
    free(pending);
}

/* What waits, when nobody writes any more. */
static void drop_all(struct events *events)
{
    metric_add(&DROPPED, (double)events->len, NULL);
    for (struct pending *next; events->first; events->first = next) {
        next = events->first->next;
        pending_free(events->first);
    }
    events->last = &events->first;
    events->len = 0;
}

void events_destroy(struct events *events)
{
    if (!events)
        return;

    events_stop(events);
    drop_all(events);
    map_destroy(events->series);
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->lock);
    free(events->component);
    free(events->instance);
    free(events);
}

/* NULL: stopped, and nothing waits any more or its time is over. */
static struct pending *next_pending(struct events *events)
{
    pthread_mutex_lock(&events->lock);
    while (!events->first && !events->stopping)
        pthread_cond_wait(&events->changed, &events->lock);

    bool late = events->stopping && clock_monotonic_ms(events->clock) >= events->stop_by_ms;
    struct pending *pending = late ? NULL : events->first;
    if (pending) {
        events->first = pending->next;
        events->len--;
        if (!events->first)
            events->last = &events->first;
    }
    pthread_mutex_unlock(&events->lock);
    return pending;
}

static const char *note_of(const struct pending *pending)
{
    return pending->note ? pending->note : pending->event->note;
}

static cJSON *event_object(struct events *events, struct arena *arena,
                           const struct pending *pending, const struct kube_name *name)
{
    const struct kube_object *about = pending->regarding;
    char time[RFC3339_LEN];
    cJSON *event = json_object(arena);

    json_set_string(event, "apiVersion", "events.k8s.io/v1");
    json_set_string(event, "kind", "Event");
    cJSON *metadata = json_set_object(event, "metadata");
    json_set_string(metadata, "namespace", name->ns);
    json_set_string(metadata, "name", name->name);
    json_set_string(event, "eventTime", rfc3339_format_micro(pending->time_us, time));
    json_set_string(event, "reportingController", events->component);
    json_set_string(event, "reportingInstance", events->instance);
    json_set_string(event, "type", pending->event->type == EVENT_WARNING ? "Warning" : "Normal");
    json_set_string(event, "reason", pending->event->reason);
    json_set_string(event, "action", pending->event->reason);
    json_set_string(event, "note", note_of(pending));

    cJSON *regarding = json_set_object(event, "regarding");
    const struct kube_kind *kind = pending->kind;
    json_set_string(regarding, "apiVersion",
                    *kind->group ? arena_printf(arena, "%s/%s", kind->group, kind->version)
                                 : kind->version);
    json_set_string(regarding, "kind", kind->kind);
    json_set_string(regarding, "namespace", about->ns);
    json_set_string(regarding, "name", about->name);
    json_set_string(regarding, "uid", about->uid);
    json_set_string(regarding, "resourceVersion", about->resource_version);
    return event;
}

/* "<object>.<hex>", a DNS subdomain like the name of the object. */
static void event_name(const struct pending *pending, uint64_t id, struct kube_name *ret)
{
    const struct kube_object *about = pending->regarding;
    size_t len = strnlen(about->name, MAX_NAME_PART);

    while (len && (about->name[len - 1] == '.' || about->name[len - 1] == '-'))
        len--; /* a label must not end so, and may do after a cut */
    *ret = (struct kube_name){ 0 };
    (void)snprintf(ret->ns, sizeof(ret->ns), "%s", about->ns[0] ? about->ns : "default");
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s.%016llx", (int)len, about->name,
                   (unsigned long long)id);
}

static int write_new(struct events *events, struct arena *arena, const struct pending *pending,
                     const char *key, struct error *err)
{
    uint64_t id = events->next_id++;
    struct kube_name name;

    event_name(pending, id, &name);
    int r = kube_create(events->client, NULL, &KIND_EVENT,
                        event_object(events, arena, pending, &name), NULL, err);
    if (r < 0)
        return r;

    if (map_len(events->series) >= MAX_SERIES) { /* old ones would start a new Event anyway */
        map_destroy(events->series);
        events->series = map_create(free);
    }
    struct series *series = xmalloc(sizeof(*series));
    *series = (struct series){ .id = id, .count = 1, .last_ms = pending->time_ms };
    map_set(events->series, key, series);
    return 0;
}

static int write_again(struct events *events, struct arena *arena, const struct pending *pending,
                       struct series *series, struct error *err)
{
    char time[RFC3339_LEN];
    cJSON *patch = json_object(arena);
    cJSON *to = json_set_object(patch, "series");
    struct kube_name name;

    json_set_int(to, "count", series->count + 1);
    json_set_string(to, "lastObservedTime", rfc3339_format_micro(pending->time_us, time));
    event_name(pending, series->id, &name);
    int r = kube_patch(events->client, NULL, &KIND_EVENT, &name, KUBE_MAIN, KUBE_PATCH_MERGE, patch,
                       NULL, err);
    if (r < 0)
        return r;

    series->count++;
    series->last_ms = pending->time_ms;
    return 0;
}

static void write_one(struct events *events, const struct pending *pending)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const char *key = arena_printf(arena, "%s/%d/%s/%s", pending->regarding->uid,
                                   pending->event->type, pending->event->reason, note_of(pending));
    struct series *series = map_get(events->series, key);
    int r;

    if (series && pending->time_ms - series->last_ms < SERIES_MS) {
        r = write_again(events, arena, pending, series, &err);
        if (r == -ERROR_NOT_FOUND) /* expired or deleted by somebody */
            r = write_new(events, arena, pending, key, &err);
    } else {
        r = write_new(events, arena, pending, key, &err);
    }
    if (r < 0) {
        metric_add(&DROPPED, 1, NULL);
        log_write(events->has_failed ? LOG_DEBUG : LOG_WARN, "event not written, ignoring",
                  "reason", pending->event->reason, "error", ERROR_TEXT(&err), NULL);
    }
    events->has_failed = r < 0;
}

static void *run(void *arg)
{
    struct events *events = arg;

    for (struct pending *pending; (pending = next_pending(events));) {
        write_one(events, pending);
        pending_free(pending);
    }
    return NULL;
}

int events_start(struct events *events, struct error *err)
{
    int r = thread_start(&events->thread, "events", run, events, err);
    if (r < 0)
        return r;

    events->started = true;
    return 0;
}

void events_stop(struct events *events)
{
    if (!events->started)
        return;

    pthread_mutex_lock(&events->lock);
    events->stopping = true;
    events->stop_by_ms = clock_monotonic_ms(events->clock) + STOP_BUDGET_MS;
    pthread_cond_signal(&events->changed);
    pthread_mutex_unlock(&events->lock);
    thread_join(events->thread);
    events->started = false;
    drop_all(events);
}

void events_emit(struct events *events, const struct kube_kind *kind,
                 const struct kube_object *regarding, const struct event *event)
{
    events_emit_note(events, kind, regarding, event, NULL);
}

void events_emit_note(struct events *events, const struct kube_kind *kind,
                      const struct kube_object *regarding, const struct event *event,
                      const char *note)
{
    struct pending *pending = xcalloc(1, sizeof(*pending));

    pending->kind = kind;
    /* Counting references changes the counter only, which belongs to nobody. */
    pending->regarding = kube_object_ref((struct kube_object *)regarding);
    pending->event = event;
    pending->note = note ? xstrdup(note) : NULL;
    pending->time_us = clock_wall_us(events->clock);
    pending->time_ms = clock_monotonic_ms(events->clock);

    pthread_mutex_lock(&events->lock);
    bool full = events->len >= MAX_QUEUE || events->stopping;
    if (!full) {
        *events->last = pending;
        events->last = &pending->next;
        events->len++;
        pthread_cond_signal(&events->changed);
    }
    pthread_mutex_unlock(&events->lock);
    if (full) {
        pending_free(pending);
        metric_add(&DROPPED, 1, NULL);
    }
}
