#include "controller/page/rows.h"

#include <string.h>

#include "common/api/kinds.h"
#include "common/api/reasons.h"
#include "common/base/str.h"
#include "common/view/state.h"

const struct page_list PAGE_LIST[PAGE_LISTS] = {
    { "proplets", &KIND_PROPLET },     { "tasks", &KIND_TASK },
    { "jobs", &KIND_PROPELLERJOB },    { "federated", &KIND_FEDERATEDJOB },
    { "rounds", &KIND_TRAININGROUND }, { "enrollments", &KIND_ENROLLMENT },
};

size_t page_list_find(const char *name)
{
    size_t i = 0;

    while (i < PAGE_LISTS && !str_equal(PAGE_LIST[i].name, name))
        i++;
    return i;
}

/* Where a row has a member from. */
struct cell {
    const struct kube_kind *kind;
    const char *name; /* in the row */
    const char *part; /* "spec", "status", "metadata" */
    const char *key, *inner;
};
static const struct cell CELLS[] = {
    { &KIND_PROPLET, "type", "spec", "type", NULL },
    { &KIND_PROPLET, "cordoned", "spec", "unschedulable", NULL },
    { &KIND_PROPLET, "labels", "metadata", "labels", NULL },
    { &KIND_PROPLET, "max", "spec", "external", "maxTasks" },
    { &KIND_PROPLET, "active", "status", "activeTaskCount", NULL },
    { &KIND_PROPLET, "seen", "status", "lastSeen", NULL },
    { &KIND_PROPLET, "cpu", "status", "latestMetrics", "cpuMilliPercent" },
    { &KIND_PROPLET, "memory", "status", "latestMetrics", "memoryMilliPercent" },
    { &KIND_TASK, "title", "spec", "name", NULL },
    { &KIND_TASK, "proplet", "status", "assignedProplet", NULL },
    { &KIND_TASK, "attempt", "status", "attempt", NULL },
    { &KIND_TASK, "started", "status", "startedAt", NULL },
    { &KIND_TASK, "finished", "status", "finishedAt", NULL },
    { &KIND_TASK, "next", "status", "nextRun", NULL },
    { &KIND_PROPELLERJOB, "tasks", "status", "taskCount", NULL },
    { &KIND_PROPELLERJOB, "completed", "status", "completedCount", NULL },
    { &KIND_PROPELLERJOB, "failed", "status", "failedCount", NULL },
    { &KIND_FEDERATEDJOB, "round", "status", "currentRound", NULL },
    { &KIND_FEDERATEDJOB, "done", "status", "completedRounds", NULL },
    { &KIND_FEDERATEDJOB, "rounds", "spec", "rounds", "total" },
    { &KIND_TRAININGROUND, "job", "spec", "federatedJobRef", "name" },
    { &KIND_TRAININGROUND, "updates", "status", "updatesReceived", NULL },
    { &KIND_TRAININGROUND, "required", "status", "updatesRequired", NULL },
    { &KIND_TRAININGROUND, "started", "status", "startTime", NULL },
    { &KIND_TRAININGROUND, "finished", "status", "endTime", NULL },
    { &KIND_ENROLLMENT, "approval", "spec", "approval", NULL },
    { &KIND_ENROLLMENT, "pending", "status", "pendingCount", NULL },
    { &KIND_ENROLLMENT, "overflow", "status", "overflow", NULL },
    { &KIND_ENROLLMENT, "enrolled", "status", "enrolledCount", NULL },
};

void page_row(const struct kube_kind *kind, const cJSON *object, cJSON *row)
{
    const cJSON *metadata = json_get(object, "metadata");
    const struct state state = state_of(kind, object);

    json_set_copy(row, "ns", json_get(metadata, "namespace"));
    json_set_copy(row, "name", json_get(metadata, "name"));
    json_set_copy(row, "created", json_get(metadata, "creationTimestamp"));
    json_set_string(row, "phase", state.phase);
    json_set_string(row, "reason", state.reason);
    if (json_get(metadata, "deletionTimestamp"))
        json_set_bool(row, "deleting", true);
    for (size_t i = 0; i < ARRAY_LEN(CELLS); i++) {
        const struct cell *cell = &CELLS[i];
        const cJSON *value = json_get(json_get(object, cell->part), cell->key);

        if (cell->kind == kind && cell->inner)
            value = json_get(value, cell->inner);
        if (cell->kind == kind && value)
            json_set_copy(row, cell->name, value);
    }
}

/* The names without the values. */
static void hide_values(cJSON *spec, const char *key)
{
    const cJSON *values = json_get(spec, key);

    if (!values)
        return;
    cJSON *names = cJSON_CreateArray();
    json_for_each (value, values)
        json_add_string(names, value->string ? value->string : "");
    json_remove(spec, key);
    json_set(spec, key, names);
}

/* Passwords and signatures of addresses. */
static void hide_credentials(struct arena *arena, cJSON *spec, const char *key)
{
    const char *url = json_string(json_get(spec, key), NULL);
    const char *host = url ? strstr(url, "://") : NULL;

    if (!host)
        return;
    host += 3;
    size_t end = strcspn(host, "?"), authority = strcspn(host, "/?");
    const char *at = memrchr(host, '@', authority);
    const char *shown = at ? at + 1 : host;
    const char *text = arena_printf(arena, "%.*s%.*s%s", (int)(host - url), url,
                                    (int)(host + end - shown), shown, host[end] ? "?…" : "");

    json_remove(spec, key);
    json_set_string(spec, key, text);
}

static void clean_task(struct arena *arena, cJSON *spec)
{
    hide_credentials(arena, spec, "imageUrl");
    hide_credentials(arena, spec, "taskWasmImage");
    json_remove(spec, "file");
    json_remove(spec, "metadata");
    hide_values(spec, "env");
}

static void cut_result(struct arena *arena, cJSON *holder)
{
    const cJSON *results = json_get(holder, "results");
    const char *text = json_string(results, NULL);
    size_t len = 0;

    if (!results)
        return;
    if (!text)
        text = json_text(arena, results, &len);
    len = strlen(text);
    if (len <= PAGE_MAX_RESULT)
        return;
    text = arena_strndup(arena, text, str_utf8_cut(text, len, PAGE_MAX_RESULT));
    json_remove(holder, "results");
    json_set_string(holder, "results", text);
    json_set_int(holder, "resultBytes", (int64_t)len);
}

/* Trees of a reply belong to the caller, which json_get does not know. */
static cJSON *own(const cJSON *item)
{
    return (cJSON *)(uintptr_t)item;
}

void page_clean(struct arena *arena, cJSON *object)
{
    cJSON *spec = own(json_get(object, "spec"));
    cJSON *status = own(json_get(object, "status"));

    json_remove_path(object, "metadata.managedFields");
    json_remove_path(object, "metadata.annotations"); /* kubectl keeps all of the spec there */
    json_remove_path(object, "spec.connectionConfig.clientKey");
    json_remove_path(object, "spec.k8s.podTemplate");
    clean_task(arena, spec);
    json_for_each (task, json_get(spec, "tasks"))
        clean_task(arena, own(task));
    hide_credentials(arena, own(json_get(status, "lastCheckpoint")), "uri");
    cut_result(arena, status);
    json_for_each (target, json_get(status, "broadcastResults"))
        cut_result(arena, own(target));
}

void page_explain(const struct kube_kind *kind, const cJSON *object, cJSON *ret)
{
    const struct state state = state_of(kind, object);
    enum reason reason = reason_of(state.reason);

    json_set_string(ret, "phase", state.phase);
    json_set_string(ret, "reason", state.reason);
    json_set_string(ret, "message", state.message);
    json_set_bool(ret, "final", state.is_final);
    json_set_bool(ret, "good", state.is_good);
    if (reason == REASON_NONE || reason == REASON_OTHER)
        return;
    json_set_string(ret, "meaning", REASON_TABLE[reason].meaning);
    if (!state.is_good)
        json_set_string(ret, "remedy", REASON_TABLE[reason].remedy);
}
