#include "controller/workload/task_workload_result.h"

#include <string.h>

#include "common/api/names.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/workload/task_workload_manifest.h"

#define KEY_RESULT "result"

static const char *annotation(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "annotations", ANNOTATION_RESULT, NULL), "");
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/* A kubelet keeps so much of one message, the end of it, and so much of all of a pod, an equal share
 * for each container. One that fills its share has perhaps lost its beginning. */
#define KUBELET_MAX_MESSAGE 4096
#define KUBELET_MAX_MESSAGES 12288

static size_t message_share(const cJSON *pod)
{
    static const char *const LISTS[] = { "containerStatuses", "initContainerStatuses",
                                         "ephemeralContainerStatuses" };
    size_t share = KUBELET_MAX_MESSAGE;
    size_t containers = 0;

    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
        containers += (size_t)json_len(json_path(pod, "status", LISTS[i], NULL));
    if (containers && KUBELET_MAX_MESSAGES / containers < share)
        share = KUBELET_MAX_MESSAGES / containers;
    return share;
}

/* Of one that may not be whole nothing is taken, and *cut is set. */
static const char *termination_message(const cJSON *pod, bool *cut)
{
    const char *text = "";

    json_for_each (status, json_path(pod, "status", "containerStatuses", NULL)) {
        if (str_equal(json_string(json_get(status, "name"), ""), WORKLOAD_CONTAINER))
            text = json_string(json_path(status, "state", "terminated", "message", NULL), "");
    }
    if (strlen(text) < message_share(pod))
        return text;
    *cut = true;
    return "";
}

static int64_t time_of(const cJSON *item)
{
    int64_t us = 0;

    rfc3339_parse(json_string(item, ""), &us);
    return us;
}

/* Times of the API server are whole seconds. */
static bool is_since(const cJSON *object, const cJSON *job)
{
    const cJSON *metadata = json_get(object, "metadata");
    int64_t made_us = time_of(json_path(job, "metadata", "creationTimestamp", NULL));

    if (time_of(json_get(metadata, "creationTimestamp")) >= made_us)
        return true;
    json_for_each (manager, json_get(metadata, "managedFields")) {
        if (time_of(json_get(manager, "time")) >= made_us)
            return true;
    }
    return false;
}

static const char *kept_text(struct arena *arena, enum result_source source, const cJSON *object,
                             const cJSON *job)
{
    const char *text = json_string(json_path(object, "data", KEY_RESULT, NULL), "");
    size_t len;

    if (!object || !is_since(object, job))
        return "";
    if (source == RESULT_CONFIGMAP)
        return text;

    const char *decoded = base64_decode(arena, text, strlen(text), &len);
    return decoded ? arena_strndup(arena, decoded, len) : "";
}

static const cJSON *value_of(struct arena *arena, const char *text)
{
    const cJSON *value;

    if (json_parse(arena, text, strlen(text), &value, NULL) == 0)
        return value;

    cJSON *holder = json_object(arena);
    json_set_string(holder, KEY_RESULT, text);
    return json_get(holder, KEY_RESULT);
}

int task_workload_result(struct arena *arena, const cJSON *job, const cJSON *const *pods,
                         size_t count, task_workload_fetch_fn *fetch, void *ctx,
                         struct task_workload_result *ret, struct error *err)
{
    const char *text = annotation(job);
    bool cut = false;

    for (size_t i = 0; i < count && is_blank(text); i++)
        text = termination_message(pods[i], &cut);
    for (enum result_source source = RESULT_CONFIGMAP; source <= RESULT_SECRET && is_blank(text);
         source++) {
        const cJSON *object = NULL;
        int r = fetch(ctx, source, &object, err);
        if (r < 0)
            return r;
        text = kept_text(arena, source, object, job);
    }
    for (size_t i = 0; i < count && is_blank(text); i++)
        text = annotation(pods[i]);
    *ret = (struct task_workload_result){ .cut = cut && is_blank(text) };
    if (!is_blank(text))
        ret->value = value_of(arena, text);
    return 0;
}
