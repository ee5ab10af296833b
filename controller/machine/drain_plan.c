#include "controller/machine/drain_plan.h"

#include "common/base/str.h"

#define MIRROR "kubernetes.io/config.mirror"
#define LABEL_SKIP "cluster.x-k8s.io/drain"

static bool is_of_daemon_set(const cJSON *pod)
{
    json_for_each (owner, json_path(pod, "metadata", "ownerReferences", NULL)) {
        if (str_equal(json_string(json_get(owner, "kind"), ""), "DaemonSet"))
            return true;
    }
    return false;
}

bool drain_counts(const cJSON *pod)
{
    const char *phase = json_string(json_path(pod, "status", "phase", NULL), "");
    const cJSON *skip = json_path(pod, "metadata", "labels", LABEL_SKIP, NULL);

    return !str_equal(phase, "Succeeded") && !str_equal(phase, "Failed") &&
           !is_of_daemon_set(pod) && !json_path(pod, "metadata", "annotations", MIRROR, NULL) &&
           !str_equal(json_string(skip, ""), "skip");
}

static const char *name_pods(struct arena *arena, const struct drain_pod *pods, size_t len)
{
    const char *text = "";

    for (size_t i = 0; i < len && i < DRAIN_MAX_NAMED; i++)
        text = arena_printf(arena, "%s%s%s/%s", text, i ? ", " : "", pods[i].ns, pods[i].name);
    if (len > DRAIN_MAX_NAMED)
        text = arena_printf(arena, "%s and %zu more", text, len - DRAIN_MAX_NAMED);
    return text;
}

struct drain_plan drain_plan(struct arena *arena, const struct drain_pod *pods, size_t len,
                             int64_t deadline_ms, int64_t now_ms)
{
    struct drain_plan plan = { .done = !len };

    if (!len)
        return plan;
    if (now_ms >= deadline_ms)
        return (struct drain_plan){ .done = true, .left = name_pods(arena, pods, len) };

    const struct drain_pod **evict = arena_array(arena, const struct drain_pod *, len);

    plan.evict = evict;
    plan.again_ms = now_ms + DRAIN_AGAIN_MS < deadline_ms ? now_ms + DRAIN_AGAIN_MS : deadline_ms;
    for (size_t i = 0; i < len; i++) {
        if (pods[i].deleting)
            continue;
        if (pods[i].not_before_ms > now_ms) {
            if (pods[i].not_before_ms < plan.again_ms)
                plan.again_ms = pods[i].not_before_ms;
        } else if (plan.evict_len < DRAIN_MAX_EVICTIONS) {
            evict[plan.evict_len++] = &pods[i];
        }
    }
    return plan;
}

enum eviction_result eviction_result(int status)
{
    switch (status) {
    case 200:
    case 201:
        return EVICTION_DONE;
    case 404:
    case 409:
        return EVICTION_GONE;
    case 429:
        return EVICTION_BLOCKED;
    case 401:
    case 403:
        return EVICTION_REFUSED;
    default:
        return EVICTION_FAILED;
    }
}

int64_t eviction_wait_ms(enum eviction_result result, uint32_t retry_after_ms)
{
    switch (result) {
    case EVICTION_DONE:
    case EVICTION_GONE:
        return 0;
    case EVICTION_BLOCKED:
        return retry_after_ms ? retry_after_ms : DRAIN_AGAIN_MS;
    case EVICTION_FAILED:
    case EVICTION_REFUSED:
        break;
    }
    return DRAIN_FAILED_MS;
}
