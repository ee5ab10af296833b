/* Evicts the pods of a Node, or deletes them in an emergency. */
#include <stdlib.h>

#include "common/api/reasons.h"
#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/runtime/metrics.h"
#include "controller/machine/machine.h"

/* Not 0, with which a StatefulSet would run a pod twice. */
#define CLEAR_GRACE_S 1

static struct metric EVICTIONS = { .type = METRIC_COUNTER,
                                   .name = "fivespot_pod_evictions_total",
                                   .help = "Number of evictions that were asked for, by result.",
                                   .labels = { "result" } };

static const char *const RESULT_NAMES[] = { [EVICTION_DONE] = "evicted",
                                            [EVICTION_GONE] = "gone",
                                            [EVICTION_BLOCKED] = "blocked",
                                            [EVICTION_FAILED] = "failed",
                                            [EVICTION_REFUSED] = "refused" };

static void block(struct machine_note *note, const char *uid, int64_t until_ms)
{
    if (map_len(note->blocked) >= MACHINE_MAX_BLOCKED) {
        map_destroy(note->blocked);
        note->blocked = map_create(free);
    }
    int64_t *value = xcalloc(1, sizeof(*value));
    *value = until_ms;
    map_set(note->blocked, uid, value);
}

/* < 0: nothing may be sent now. */
static int evict(struct machine_turn *turn, const struct drain_pod *pod, int64_t now_ms,
                 struct error *err)
{
    struct kube_name name;
    uint32_t retry_after_ms = 0;
    int status = 0;

    if (!kube_name_set(&name, pod->ns, pod->name))
        return 0;
    int r = kube_evict(turn->rc->client, &name, pod->uid, &status, &retry_after_ms, err);
    if (r == -ERROR_CANCELED)
        return r;

    enum eviction_result result = r < 0 ? EVICTION_FAILED : eviction_result(status);
    int64_t wait_ms = eviction_wait_ms(result, retry_after_ms);
    metric_add(&EVICTIONS, 1, RESULT_NAMES[result], NULL);
    if (wait_ms) {
        block(turn->note, pod->uid, now_ms + wait_ms);
        reconcile_again_after(turn->rc, wait_ms);
    }
    if (result == EVICTION_REFUSED)
        turn->refusal = arena_printf(turn->rc->arena, "eviction of pod %s/%s: HTTP %d", pod->ns,
                                     pod->name, status);
    return 0;
}

int machine_drain(struct machine_turn *turn, const struct machine_plan *plan, struct error *err)
{
    int64_t now_ms = clock_monotonic_ms(turn->rc->clock);
    int64_t end_ms = now_ms + (plan->drain_end_us - turn->observed.now_us) / 1000;
    const struct drain_plan drain =
        drain_plan(turn->rc->arena, turn->pods, turn->pods_len, end_ms, now_ms);
    int r = 0;

    for (size_t i = 0; i < drain.evict_len && r == 0; i++)
        r = evict(turn, drain.evict[i], now_ms, err);
    if (turn->refusal)
        turn->refusal_reason = reason_text(REASON_DRAIN_FAILED);
    if (drain.again_ms)
        reconcile_again_after(turn->rc, drain.again_ms - now_ms);
    return r;
}

int machine_clear_pods(struct machine_turn *turn, struct error *err)
{
    turn->note->clears++;
    for (size_t i = 0; i < turn->pods_len; i++) {
        const struct drain_pod *pod = &turn->pods[i];
        struct kube_name name;
        struct error failure = { 0 };

        if (!kube_name_set(&name, pod->ns, pod->name))
            continue;
        int r = kube_delete_pod(turn->rc->client, &name, pod->uid, CLEAR_GRACE_S, &failure);
        if (r == -ERROR_CANCELED)
            return error_set(err, ERROR_CANCELED, "%s", failure.message);
        if (r < 0 && r != -ERROR_NOT_FOUND && r != -ERROR_CONFLICT)
            log_warn("pod of a reclaimed Node not deleted", "uid", pod->uid, "error",
                     ERROR_TEXT(&failure), NULL);
    }
    reconcile_again_after(turn->rc, 0);
    return 0;
}
