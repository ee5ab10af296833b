#include "controller/federated/round_observe.h"

#include "common/api/federatedjob.h"
#include "common/api/kinds.h"
#include "common/api/proplet.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/federated/round_order.h"
#include "controller/federated/training_task.h"
#include "controller/task/plan/plan_parts.h"

void model_scope_of(const struct kube_kind *kind, const cJSON *json, struct model_scope *ret)
{
    const cJSON *metadata = json_get(json, "metadata");

    *ret = (struct model_scope){ .kind = kind, .uid = json_string(json_get(metadata, "uid"), "") };
    if (!kube_name_set(&ret->owner, json_string(json_get(metadata, "namespace"), ""),
                       json_string(json_get(metadata, "name"), "")))
        ret->owner = (struct kube_name){ 0 };
}

bool round_has_job(const struct round_turn *turn)
{
    const char *owner = kube_controller_uid(turn->json);

    return turn->job && (!owner || str_equal(owner, turn->job_scope.uid));
}

/* The time until which a participant has to be there. */
static int64_t end_us(const struct round_observed *observed)
{
    int64_t start_us = observed->round.status.start_time_us;

    return (start_us ? start_us : observed->now_us) +
           plan_limit_us(traininground_timeout_seconds(&observed->round.spec));
}

/* As its status says: whether it is open from now until end_us (0: as long as it takes). */
static enum member_device observe_opening(const cJSON *status, int64_t end_us,
                                          const struct round_observed *observed, int64_t *ret_us)
{
    const cJSON *availability = json_get(status, "availability");
    const char *state = json_string(json_get(availability, "state"), "");
    int64_t next_us = 0;

    rfc3339_parse(json_string(json_get(availability, "nextTransition"), ""), &next_us);
    if (!availability || (str_equal(state, AVAILABILITY_STATE_NAMES[AVAILABILITY_OPEN]) &&
                          (!next_us || (end_us <= next_us && observed->now_us < next_us))))
        return DEVICE_HERE;
    /* One that is open now and closes too early has not told when it opens again. */
    *ret_us = str_equal(state, AVAILABILITY_STATE_NAMES[AVAILABILITY_OPEN]) ? INT64_MAX : next_us;
    return next_us ? DEVICE_UNAVAILABLE : DEVICE_OFFLINE;
}

static enum member_device observe_device(const struct traininground_deps *deps,
                                         struct reconcile *rc, const char *proplet,
                                         const struct round_observed *observed, int64_t *ret_us)
{
    struct kube_name name;

    if (!kube_name_set(&name, rc->name.ns, proplet))
        return DEVICE_MISSING;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->proplets), &name);
    if (!object || object->deleting)
        return DEVICE_MISSING;

    CLEANUP(arena_destroyp) struct arena *scratch = arena_create(); /* there may be many */
    const cJSON *status = json_get(kube_object_json(scratch, object), "status");
    const char *phase = json_string(json_get(status, "phase"), "");
    bool limited = traininground_timeout_seconds(&observed->round.spec) > 0;
    enum member_device device =
        observe_opening(status, limited ? end_us(observed) : 0, observed, ret_us);
    /* The pods of a closed Proplet are Offline, and come back by time. */
    return device == DEVICE_HERE && str_equal(phase, PROPLET_PHASE_NAMES[PROPLET_OFFLINE])
               ? DEVICE_OFFLINE
               : device;
}

static void observe_task(const struct traininground_deps *deps, struct reconcile *rc,
                         const char *uid, struct round_member *member)
{
    struct kube_name name;

    if (!kube_name_set(&name, rc->name.ns, member->task))
        return;

    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(deps->tasks), &name);
    if (!object)
        return;

    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    const cJSON *json = kube_object_json(scratch, object);
    member->foreign = !str_equal(kube_controller_uid(json), uid);
    if (member->foreign)
        return;
    member->outcome = task_outcome(json);
    member->reason =
        arena_strdup(rc->arena, json_string(json_path(json, "status", "reason", NULL), ""));
}

const struct map *rounds_read(struct arena *arena, const struct object_list *rounds)
{
    struct map *counted = map_of_arena(arena);

    for (size_t i = 0; i < rounds->len; i++) {
        const cJSON *round = kube_object_json(arena, rounds->items[i]);
        json_for_each (part, json_path(round, "status", "participants", NULL)) {
            const char *task = json_string(json_path(part, "taskRef", "name", NULL), NULL);
            if (!task)
                continue;
            if (json_bool(json_get(part, "updateReceived"), false) ||
                str_equal(json_string(json_get(part, "status"), ""), PART_REJECTED))
                map_set(counted, task, counted);
        }
    }
    return counted;
}

static bool is_completed(const struct traininground_deps *deps, struct reconcile *rc,
                         const char *task, const char *round_uid)
{
    struct round_member member = { .task = task };

    observe_task(deps, rc, round_uid, &member);
    return member.outcome == OUTCOME_COMPLETED;
}

/* Of rounds before this one the latest whose Task ended after its round had gone on without it. */
static void observe_late(const struct traininground_deps *deps, struct reconcile *rc,
                         struct round_turn *turn)
{
    const struct traininground_spec *spec = &turn->observed.round.spec;
    struct object_list list =
        store_find(informer_store(deps->rounds), rc->arena, INDEX_ROUND_JOB, turn->job_scope.uid);
    const struct map *counted = rounds_read(rc->arena, &list);
    int64_t *numbers = arena_array(rc->arena, int64_t, list.len + 1);
    bool *has_failed = arena_array(rc->arena, bool, list.len + 1);

    for (size_t i = 0; i < list.len; i++) {
        const cJSON *round = kube_object_json(rc->arena, list.items[i]);
        numbers[i] = training_round_number(round);
        has_failed[i] = str_equal(json_string(json_path(round, "status", "phase", NULL), ""),
                                  ROUND_PHASE_NAMES[ROUND_FAILED]);
    }
    for (size_t m = 0; m < spec->participants.len; m++) {
        int64_t best = 0;

        for (size_t i = 0; i < list.len; i++) {
            if (numbers[i] <= best || numbers[i] >= turn->number || has_failed[i])
                continue;
            const char *task =
                training_task_name(rc->arena, list.items[i]->name, spec->participants.items[m]);
            if (map_get(counted, task) || !is_completed(deps, rc, task, list.items[i]->uid))
                continue;
            best = numbers[i];
            turn->members[m].late = task;
        }
    }
}

/* Only when it matters: the answer no makes the round wait for a marker. */
static bool observe_backlog(const struct traininground_deps *deps, const struct round_turn *turn)
{
    const struct traininground *round = &turn->observed.round;
    int64_t seconds = traininground_timeout_seconds(&round->spec);
    int64_t start_us = round->status.start_time_us;

    return !deps->backlog_drained || round->status.phase != ROUND_RUNNING || seconds <= 0 ||
           !start_us || round_age_us(&turn->observed, start_us) < plan_limit_us(seconds) ||
           !round->spec.participants.len || deps->backlog_drained(deps->backlog_ctx);
}

int round_observe(const struct traininground_deps *deps, struct reconcile *rc,
                  const struct kube_object *object, struct round_turn *ret, struct error *err)
{
    const cJSON *json = kube_object_json(rc->arena, object);
    struct round_observed *observed = &ret->observed;

    *ret = (struct round_turn){ .json = json,
                                .uid = object->uid,
                                .number = training_round_number(json),
                                .job = round_job(informer_store(deps->jobs), rc->arena, json) };
    *observed = (struct round_observed){ .generation = object->generation };
    observed->now_us = timeline_now_us(deps->timeline, &observed->time);
    int r = traininground_decode(rc->arena, json, &observed->round, err);
    if (r < 0)
        return r;

    const struct str_list *participants = &observed->round.spec.participants;
    model_scope_of(&KIND_TRAININGROUND, json, &ret->scope);
    if (ret->job)
        model_scope_of(&KIND_FEDERATEDJOB, ret->job, &ret->job_scope);
    observed->suspended = json_bool(json_path(ret->job, "spec", "suspend", NULL), false);
    ret->keeps_late = str_equal(json_string(json_path(ret->job, "spec", "lateUpdates", NULL), ""),
                                LATE_UPDATES_NAMES[LATE_STALENESS_WEIGHTED]);
    ret->members = arena_array(rc->arena, struct round_member, participants->len + 1);
    observed->members = ret->members;
    for (size_t i = 0; i < participants->len; i++) {
        struct round_member *member = &ret->members[i];
        member->task = training_task_name(rc->arena, object->name, participants->items[i]);
        member->device =
            observe_device(deps, rc, participants->items[i], observed, &member->opens_us);
        observe_task(deps, rc, object->uid, member);
    }
    if (ret->keeps_late && round_has_job(ret) && ret->number > 1)
        observe_late(deps, rc, ret);
    observed->backlog_drained = observe_backlog(deps, ret);
    return 0;
}
