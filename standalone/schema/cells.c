#include <ctype.h>

#include "common/base/clock.h"
#include "common/base/str.h"
#include "standalone/schema/ages.h"
#include "standalone/schema/builtin.h"

/* The cells of the built-in kinds, as k8s.io/kubernetes/pkg/printers prints them. */

#define UNKNOWN_AGE "<unknown>"

static const char *since(struct arena *arena, const cJSON *time, int64_t now_us)
{
    int64_t at_us;

    if (!rfc3339_parse(json_string(time, ""), &at_us))
        return UNKNOWN_AGE;
    return age_text(arena, now_us - at_us);
}

static void add_name(const cJSON *object, cJSON *cells)
{
    json_add_string(cells, json_string(json_path(object, "metadata", "name", NULL), ""));
}

static void add_age(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    const cJSON *created = json_path(object, "metadata", "creationTimestamp", NULL);

    json_add_string(cells, since(arena, created, now_us));
}

static void add_count(size_t count, cJSON *cells)
{
    json_add(cells, cJSON_CreateNumber((double)count));
}

void namespace_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    add_name(object, cells);
    json_add_string(cells, json_string(json_path(object, "status", "phase", NULL), ""));
    add_age(arena, object, now_us, cells);
}

void configmap_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    add_name(object, cells);
    add_count(json_len(json_get(object, "data")) + json_len(json_get(object, "binaryData")), cells);
    add_age(arena, object, now_us, cells);
}

void secret_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    add_name(object, cells);
    json_add_string(cells, json_string(json_get(object, "type"), ""));
    add_count(json_len(json_get(object, "data")), cells);
    add_age(arena, object, now_us, cells);
}

void service_account_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    add_name(object, cells);
    add_count(json_len(json_get(object, "secrets")), cells);
    add_age(arena, object, now_us, cells);
}

void lease_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    add_name(object, cells);
    json_add_string(cells, json_string(json_path(object, "spec", "holderIdentity", NULL), ""));
    add_age(arena, object, now_us, cells);
}

/* --- events ----------------------------------------------------------------------------------- */

static const char *target_of(struct arena *arena, const cJSON *regarding)
{
    char *kind = arena_strdup(arena, json_string(json_get(regarding, "kind"), ""));
    const char *name = json_string(json_get(regarding, "name"), "");

    for (char *c = kind; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return *name ? arena_printf(arena, "%s/%s", kind, name) : kind;
}

static const char *source_of(struct arena *arena, const cJSON *event, bool core)
{
    const cJSON *source = json_get(event, core ? "source" : "deprecatedSource");
    const char *component = json_string(json_get(source, "component"), "");
    const char *host = json_string(json_get(source, "host"), "");

    if (!*component)
        component =
            json_string(json_get(event, core ? "reportingComponent" : "reportingController"), "");
    if (!*host)
        host = json_string(json_get(event, "reportingInstance"), "");
    return *host ? arena_printf(arena, "%s, %s", component, host) : component;
}

static const char *trimmed(struct arena *arena, const char *text)
{
    size_t len;

    text += strspn(text, " \t\r\n");
    len = strlen(text);
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    return arena_strndup(arena, text, len);
}

struct event_times {
    const char *first;
    const char *last;
    int64_t count;
};

static struct event_times times_of(struct arena *arena, const cJSON *event, bool core,
                                   int64_t now_us)
{
    const cJSON *first = json_get(event, core ? "firstTimestamp" : "deprecatedFirstTimestamp");
    const cJSON *last = json_get(event, core ? "lastTimestamp" : "deprecatedLastTimestamp");
    const cJSON *series = json_get(event, "series");
    struct event_times times = {
        .count = json_int(json_get(event, core ? "count" : "deprecatedCount"), 0),
    };

    times.first =
        since(arena, json_string(first, NULL) ? first : json_get(event, "eventTime"), now_us);
    times.last = json_string(last, NULL) ? since(arena, last, now_us) : times.first;
    if (cJSON_IsObject(series)) {
        times.last = since(arena, json_get(series, "lastObservedTime"), now_us);
        times.count = json_int(json_get(series, "count"), 0);
    } else if (!times.count) {
        times.count = 1;
    }
    return times;
}

void event_cells(struct arena *arena, const cJSON *object, int64_t now_us, cJSON *cells)
{
    bool core = json_get(object, "involvedObject") != NULL;
    const cJSON *regarding = json_get(object, core ? "involvedObject" : "regarding");
    struct event_times times = times_of(arena, object, core, now_us);
    const char *message = json_string(json_get(object, core ? "message" : "note"), "");

    json_add_string(cells, times.last);
    json_add_string(cells, json_string(json_get(object, "type"), ""));
    json_add_string(cells, json_string(json_get(object, "reason"), ""));
    json_add_string(cells, target_of(arena, regarding));
    json_add_string(cells, json_string(json_get(regarding, "fieldPath"), ""));
    json_add_string(cells, source_of(arena, object, core));
    json_add_string(cells, trimmed(arena, message));
    json_add_string(cells, times.first);
    json_add(cells, cJSON_CreateNumber((double)times.count));
    add_name(object, cells);
}
