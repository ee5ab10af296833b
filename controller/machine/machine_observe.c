/* Reads what a turn needs to know. Nothing here writes. */
#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "controller/machine/machine.h"

#define MAX_PODS 4096
/* Pods that are to end within this time need no other deletion in an emergency. */
#define SHORT_GRACE_S 1

static int64_t time_of(const char *text)
{
    int64_t at_us = 0;

    return text && rfc3339_parse(text, &at_us) ? at_us : 0;
}

/* --- the three objects ------------------------------------------------------------------------- */

static void set_presence(struct machine_turn *turn, struct machine_object *object,
                         const cJSON *json)
{
    static const enum machine_presence PRESENCE[] = { [MACHINE_CLAIM_OURS] = MACHINE_PRESENT,
                                                      [MACHINE_CLAIM_GOING] = MACHINE_GOING,
                                                      [MACHINE_CLAIM_TAKEN] = MACHINE_FOREIGN };

    object->json = json;
    object->presence = PRESENCE[machine_claim_of(json, turn->object->uid)];
}

static bool is_left(const struct machine_object *object)
{
    return object->presence == MACHINE_PRESENT || object->presence == MACHINE_GOING ||
           object->presence == MACHINE_HIDDEN;
}

static int get_object(struct machine_turn *turn, struct machine_object *object, struct error *err)
{
    cJSON *json = NULL;

    if (!object->kind)
        return 0;
    int r = kube_get(turn->rc->client, turn->rc->arena, object->kind, &turn->rc->name, &json, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r == 0)
        set_presence(turn, object, json);
    return r;
}

/* The Machine is removed although the other two cannot be read. */
static bool is_urgent(const struct machine_turn *turn)
{
    const struct machine_observed *observed = &turn->observed;

    return observed->kill_switch || observed->reclaimed ||
           observed->phase == MACHINE_EMERGENCY_REMOVE || observed->phase == MACHINE_TERMINATED;
}

static int find_part(struct machine_turn *turn, const char *api_version, const char *kind,
                     struct machine_object *ret, struct error *err)
{
    struct error failure = { 0 };

    *ret = (struct machine_object){ .presence = MACHINE_ABSENT };
    int r = machine_discovery_kind(turn->deps->discovery, turn->rc->client, turn->rc->arena,
                                   api_version, kind, &ret->kind, &failure);
    if (r == 0)
        r = get_object(turn, ret, &failure);
    if (r == -ERROR_FORBIDDEN || (r < 0 && r != -ERROR_CANCELED && is_urgent(turn))) {
        ret->denied = arena_strdup(turn->rc->arena, failure.message);
        ret->presence = r == -ERROR_FORBIDDEN ? MACHINE_ABSENT : MACHINE_HIDDEN;
        return 0;
    }
    if (r < 0)
        *err = failure;
    return r;
}

/* The kind may have been edited since the object was made: as long as that one exists, it is the one that counts. An
 * object that no status names was not made, since it is read before. */
static int observe_part(struct machine_turn *turn, const struct machine_reference *reference,
                        const struct machine_part *part, struct machine_object *ret,
                        struct error *err)
{
    if (reference && reference->api_version && reference->kind) {
        int r = find_part(turn, reference->api_version, reference->kind, ret, err);

        if (r == 0 && ret->denied)
            ret->presence = MACHINE_HIDDEN;
        if (r < 0 || is_left(ret))
            return r;
    }
    *ret = (struct machine_object){ .presence = MACHINE_ABSENT };
    if (machine_spec_problem(turn->rc->arena, &turn->spec))
        return 0;
    return find_part(turn, part->api_version, part->kind, ret, err);
}

static int find_machine_kind(struct machine_turn *turn, struct error *err)
{
    static const char *const VERSIONS[] = { MACHINE_API_GROUP "/v1beta2",
                                            MACHINE_API_GROUP "/v1beta1" };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(VERSIONS) && r == 0 && !turn->machine.kind; i++)
        r = machine_discovery_kind(turn->deps->discovery, turn->rc->client, turn->rc->arena,
                                   VERSIONS[i], "Machine", &turn->machine.kind, err);
    return r;
}

/* The cache has no Machine that lost its label, nor one whose creation was answered by a time-out. */
static int observe_machine(struct machine_turn *turn, struct error *err)
{
    int r = find_machine_kind(turn, err);
    if (r < 0)
        return r;

    CLEANUP(kube_object_unrefp)
    struct kube_object *cached = store_get(informer_store(turn->deps->machines), &turn->rc->name);
    if (!cached)
        return get_object(turn, &turn->machine, err);
    set_presence(turn, &turn->machine, kube_object_json(turn->rc->arena, cached));
    return 0;
}

static int observe_objects(struct machine_turn *turn, struct error *err)
{
    int r = observe_part(turn, turn->was.bootstrap, turn->spec.bootstrap,
                         &turn->parts[PART_BOOTSTRAP], err);

    if (r == 0)
        r = observe_part(turn, turn->was.infrastructure, turn->spec.infrastructure,
                         &turn->parts[PART_INFRASTRUCTURE], err);
    if (r < 0)
        return r;
    turn->observed.any_left = is_left(&turn->machine);
    turn->observed.all_exist = turn->machine.presence == MACHINE_PRESENT;
    for (size_t i = 0; i < MACHINE_PARTS; i++) {
        turn->observed.any_left = turn->observed.any_left || is_left(&turn->parts[i]);
        turn->observed.all_exist =
            turn->observed.all_exist && turn->parts[i].presence == MACHINE_PRESENT;
    }
    return 0;
}

/* --- the Node ---------------------------------------------------------------------------------- */

/* NULL: there is none. */
static const cJSON *cached_node(struct machine_turn *turn, const char *text)
{
    struct kube_name name;

    if (str_is_empty(text) || !kube_name_set(&name, "", text))
        return NULL;
    CLEANUP(kube_object_unrefp)
    struct kube_object *object = store_get(informer_store(turn->deps->nodes), &name);
    return object ? kube_object_json(turn->rc->arena, object) : NULL;
}

/* A Node may outlive its Machine. It is then known by its uid alone, and only its annotations are of interest. */
static void observe_former_node(struct machine_turn *turn)
{
    const struct machine_reference *reference = turn->was.node;
    const cJSON *node = reference ? cached_node(turn, reference->name) : NULL;

    if (turn->observed.phase != MACHINE_EMERGENCY_REMOVE || !node ||
        !str_equal(kube_uid(node), reference->uid))
        return;
    turn->node = node;
    turn->observed.has_annotations = node_has_reclaim_annotations(node);
}

static void observe_node(struct machine_turn *turn)
{
    if (!is_left(&turn->machine)) {
        observe_former_node(turn);
        return;
    }
    const cJSON *node = cached_node(turn, machine_node_name(turn->machine.json));
    turn->where = machine_node_of(turn->machine.json, node);
    if (turn->where != MACHINE_NODE_HERE)
        return;
    turn->node = node;
    turn->observed.reclaimed = node_is_reclaimed(node);
    turn->observed.has_annotations = node_has_reclaim_annotations(node);
}

static bool needs_deletion(const cJSON *pod)
{
    const cJSON *metadata = json_get(pod, "metadata");

    return !kube_is_deleting(pod) ||
           json_int(json_get(metadata, "deletionGracePeriodSeconds"), 0) > SHORT_GRACE_S;
}

static int take_pod(void *ctx, const cJSON *pod, struct error *err UNUSED)
{
    struct machine_turn *turn = ctx;
    const cJSON *metadata = json_get(pod, "metadata");
    bool emergency = turn->observed.phase == MACHINE_EMERGENCY_REMOVE;

    if (turn->pods_len == MAX_PODS || !drain_counts(pod) || (emergency && !needs_deletion(pod)))
        return 0;

    struct drain_pod *to = &turn->pods[turn->pods_len++];
    struct arena *arena = turn->rc->arena;
    *to = (struct drain_pod){
        .ns = arena_strdup(arena, json_string(json_get(metadata, "namespace"), "")),
        .name = arena_strdup(arena, json_string(json_get(metadata, "name"), "")),
        .uid = arena_strdup(arena, kube_uid(pod)),
        .deleting = kube_is_deleting(pod),
    };
    const int64_t *not_before_ms = map_get(turn->note->blocked, to->uid);
    to->not_before_ms = not_before_ms ? *not_before_ms : 0;
    return 0;
}

/* An emergency tries to delete pods a few times, and waits for none of them. */
static int observe_pods(struct machine_turn *turn, struct error *err)
{
    bool drains = turn->observed.phase == MACHINE_SHUTTING_DOWN && turn->observed.draining &&
                  turn->machine.presence == MACHINE_PRESENT;
    bool clears =
        turn->observed.phase == MACHINE_EMERGENCY_REMOVE && turn->note->clears < MACHINE_MAX_CLEARS;

    if (turn->where != MACHINE_NODE_HERE || turn->observed.deleted_us || (!drains && !clears))
        return 0;

    const struct kube_list_options options = { .field_selector = arena_printf(
                                                   turn->rc->arena, "spec.nodeName=%s",
                                                   machine_node_name(turn->machine.json)) };
    turn->pods = arena_array(turn->rc->arena, struct drain_pod, MAX_PODS);
    int r = kube_list(turn->rc->client, &KIND_POD, &options, take_pod, turn, err);
    bool late = drains && turn->observed.now_us >= turn->observed.next_cleanup_us +
                                                       turn->observed.stepped_us +
                                                       turn->observed.drain_ms * 1000;
    if (r < 0 && clears)
        turn->note->clears++;
    /* Nothing holds up an emergency, nor a drain beyond its timeout. */
    if (r < 0 && r != -ERROR_CANCELED && (late || turn->note->clears >= MACHINE_MAX_CLEARS))
        return 0;
    turn->observed.drains = turn->pods_len > 0;
    return r;
}

/* --- all of it --------------------------------------------------------------------------------- */

static int decode(struct machine_turn *turn, struct error *err)
{
    const cJSON *spec = json_get(turn->json, "spec"), *status = json_get(turn->json, "status");
    int r = spec ? json_decode(turn->rc->arena, &SCHEDULEDMACHINE_SPEC, spec, &turn->spec, err) : 0;

    if (r < 0)
        return error_wrap(err, "spec");
    r = status ? json_decode(turn->rc->arena, &SCHEDULEDMACHINE_STATUS, status, &turn->was, err)
               : 0;
    return r < 0 ? error_wrap(err, "status") : 0;
}

/* The clean-up that the status names, and by which a drain ends. Its time is taken over once, within the grace period, and
 * counted by the steady clock. */
static int64_t step_since_known(const struct machine_turn *turn)
{
    const struct machine_observed *observed = &turn->observed;
    struct machine_note *note = turn->note;
    int64_t cleanup_us = observed->phase == MACHINE_SHUTTING_DOWN ? observed->next_cleanup_us : 0;
    int64_t now_ms = clock_boot_ms(turn->rc->clock);
    int64_t left_ms = (cleanup_us - observed->now_us) / 1000;
    int64_t most_ms = observed->draining ? 0 : observed->grace_ms;

    if (note->cleanup_us != cleanup_us)
        note->cleanup_ms = now_ms + (left_ms < most_ms ? left_ms : most_ms);
    note->cleanup_us = cleanup_us;
    return cleanup_us ? observed->now_us + (note->cleanup_ms - now_ms) * 1000 - cleanup_us : 0;
}

static void observe_itself(struct machine_turn *turn)
{
    struct machine_observed *observed = &turn->observed;
    const char *deleted =
        json_string(json_path(turn->json, "metadata", "deletionTimestamp", NULL), NULL);

    turn->times = machine_times_read(turn->rc->arena, turn->spec.schedule, NULL);
    *observed = (struct machine_observed){
        .phase = machine_phase_of(turn->was.phase),
        .deleted_us = time_of(deleted),
        .has_finalizer = finalizer_has(turn->json, MACHINE_FINALIZER),
        .force_release = turn->deps->flags->force_release,
        .kill_switch = turn->spec.kill_switch,
        .times = &turn->times,
        .edited = turn->was.observed_generation.set &&
                  turn->was.observed_generation.value != turn->object->generation,
        .grace_ms = machine_timeout_ms(turn->spec.graceful_shutdown_timeout),
        .drain_ms = machine_timeout_ms(turn->spec.node_drain_timeout),
        .next_cleanup_us = time_of(turn->was.next_cleanup),
        .draining = condition_is(turn->was.conditions, "Draining", CONDITION_TRUE),
        .now_us = clock_wall_us(turn->rc->clock),
    };
    observed->stepped_us = step_since_known(turn);
    int64_t wait_ms = machine_note_wait_ms(turn->note, true, clock_monotonic_ms(turn->rc->clock));
    if (wait_ms)
        observed->retry_us = observed->now_us + wait_ms * 1000;
    if (!turn->times.problem)
        observed->window = machine_window_at(&turn->times, observed->now_us);
}

static bool asks_for_objects(const struct machine_observed *observed)
{
    if (observed->deleted_us || !observed->has_finalizer)
        return observed->deleted_us && observed->has_finalizer;
    return observed->phase != MACHINE_NEW && observed->phase != MACHINE_INACTIVE &&
           observed->phase != MACHINE_DISABLED;
}

int machine_observe(struct machine_turn *turn, struct error *err)
{
    turn->json = kube_object_json(turn->rc->arena, turn->object);
    int r = decode(turn, err);
    if (r < 0)
        return r;
    turn->note = machine_notes_of(turn->deps->notes, &turn->rc->name, turn->object->uid);
    observe_itself(turn);
    if (turn->observed.phase != MACHINE_EMERGENCY_REMOVE)
        turn->note->clears = 0;
    if (!asks_for_objects(&turn->observed))
        return 0;
    r = observe_machine(turn, err);
    if (r < 0)
        return r;
    observe_node(turn);
    r = observe_objects(turn, err);
    if (r < 0)
        return r;
    return observe_pods(turn, err);
}
