/* drain: no new Tasks on a Proplet, and an end of those that run there. */
#include "common/api/kinds.h"
#include "common/api/task.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/task/task_placement.h"
#include "plugin/cli/follow.h"
#include "plugin/commands/commands.h"

struct settings {
    struct common_flags common;
    struct option_strings objects;
    const char *selector;
    bool interrupt;
    int64_t timeout_ms;
};

#define OPTION(flag, kind, member)                                                                 \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member)
static const struct option OPTIONS[] = {
    { OPTION("selector", OPTION_STRING, selector), .letter = 'l', .value_name = "LABELS",
      .help = "labels of the Proplets, in place of a name" },
    { OPTION("interrupt", OPTION_BOOL, interrupt),
      .help = "move Tasks that other Proplets may run, which begins them again there" },
    { OPTION("timeout", OPTION_DURATION, timeout_ms), .fallback = "0s", .max = 86400000,
      .help = "time after which it gives up for each Proplet; 0s is never" },
    COMMON_FLAGS,
};

/* Between two looks at the Tasks; longer where a look takes long, so that most of the time the API server rests. */
#define LOOK_INTERVAL_MS 1000
#define REST_FACTOR 10

/* The controller's cache may still have the Proplet without the cordon when the first look finds no Task. */
#define EMPTY_LOOKS 2

/* It takes room there, as one of the targets of a broadcast too. */
static bool is_active_on(const cJSON *task, const char *proplet)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct placement placement = task_placement(arena, task);

    for (size_t i = 0; i < placement.target_count; i++) {
        if (str_equal(placement.targets[i].proplet, proplet))
            return true;
    }
    return placement.active && str_equal(placement.on.proplet, proplet);
}

struct counting {
    const char *proplet;
    int64_t active;
};

static int count_task(void *ctx, const cJSON *task, struct error *err UNUSED)
{
    struct counting *counting = ctx;

    counting->active += is_active_on(task, counting->proplet);
    return 0;
}

/* status.activeTaskCount of a Proplet may be some seconds old, so the Tasks themselves are counted. */
static int count_active(struct session *session, const struct object_ref *proplet, int64_t *ret,
                        struct error *err)
{
    struct counting counting = { .proplet = proplet->name.name };
    int r = object_each(session, &KIND_TASK, proplet->name.ns, count_task, &counting, err);

    *ret = counting.active;
    return r;
}

/* Until no Task is active there; an exit status, or an error. */
static int wait_until_empty(struct session *session, const struct object_ref *proplet,
                            int64_t timeout_ms, struct error *err)
{
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM), said = 0;
    int empty = 0;

    for (;;) {
        int64_t look_ms = clock_monotonic_ms(&CLOCK_SYSTEM), active = 0;
        int r = count_active(session, proplet, &active, err);

        empty = active ? 0 : empty + 1;
        if (r < 0 || empty == EMPTY_LOOKS)
            return r;
        if (active && active != said)
            output_line(stderr, "%s: %lld Tasks are active",
                        object_ref_text(session->arena, proplet), (long long)active);
        said = active;

        int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);
        int64_t rest_ms = (now_ms - look_ms) * REST_FACTOR;
        if (timeout_ms && now_ms - begin_ms >= timeout_ms)
            return EXIT_TIME_OUT;
        r = session_sleep(session, rest_ms > LOOK_INTERVAL_MS ? rest_ms : LOOK_INTERVAL_MS);
        if (r)
            return r;
    }
}

/* It is active on this Proplet, and another one may run it. */
static bool may_move(struct arena *arena, const cJSON *object, const char *proplet)
{
    struct task task = { 0 };

    if (task_decode(arena, object, &task, NULL) < 0)
        return false;
    return is_active_on(object, proplet) && !task_pinned_proplet(&task.spec) && !task.spec.suspend;
}

/* It has no Proplet any more, so that it gets another one when it is resumed. */
static int look_left(void *ctx, const cJSON *object)
{
    return is_active_on(object, ctx) ? FOLLOW_ON : EXIT_DONE;
}

/* Suspends the Task, waits until it has stopped, and resumes it. */
static int move(struct session *session, const struct object_ref *task, const char *proplet,
                int64_t timeout_ms, struct error *err)
{
    int r = object_set_spec_bool(session, task, "suspend", true, err);
    if (r < 0)
        return r;

    int waited = follow(session, task, timeout_ms, look_left, (void *)(uintptr_t)proplet, err);
    /* whatever the wait said: it must not stay suspended */
    r = object_set_spec_bool(session, task, "suspend", false, waited < 0 ? NULL : err);
    return waited < 0 || r == 0 ? waited : r;
}

static int interrupt(struct session *session, const struct object_ref *proplet, int64_t timeout_ms,
                     struct error *err)
{
    const cJSON *tasks = NULL;
    int r = object_list(session, &KIND_TASK, session->ns, NULL, &tasks, err);

    json_for_each (task, tasks) {
        struct object_ref ref = { .kind = &KIND_TASK, .takes = TAKES_TASK };

        if (r != 0 || !may_move(session->arena, task, proplet->name.name) ||
            !kube_name_of(task, &ref.name))
            continue;
        output_line(stderr, "%s begins again on another Proplet",
                    object_ref_text(session->arena, &ref));
        r = move(session, &ref, proplet->name.name, timeout_ms, err);
    }
    return r;
}

static int drain(struct session *session, const struct settings *settings,
                 const struct object_ref *ref, struct error *err)
{
    int r = object_set_spec_bool(session, ref, "unschedulable", true, err);

    if (r == 0 && settings->interrupt)
        r = interrupt(session, ref, settings->timeout_ms, err);
    if (r == 0)
        r = wait_until_empty(session, ref, settings->timeout_ms, err);
    if (r == 0)
        output_line(stdout, "%s drained", object_ref_text(session->arena, ref));
    if (r == EXIT_TIME_OUT)
        output_line(stderr, "%s: time is over", object_ref_text(session->arena, ref));
    return r;
}

static int drain_selected(struct session *session, const struct settings *settings,
                          struct error *err)
{
    const cJSON *proplets = NULL;
    int r = object_list(session, &KIND_PROPLET, session->ns, settings->selector, &proplets, err);

    if (r == 0 && !json_len(proplets))
        r = error_set(err, ERROR_NOT_FOUND, "no Proplet has the labels '%s'", settings->selector);
    json_for_each (proplet, proplets) {
        struct object_ref ref = { .kind = &KIND_PROPLET, .takes = TAKES_PROPLET };

        if (r == 0 && kube_name_of(proplet, &ref.name))
            r = drain(session, settings, &ref, err);
    }
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    struct object_ref ref;
    int r = session_connect(session, err);

    if (r == 0 && s->selector && !*s->selector) /* it would select every Proplet */
        r = error_set(err, ERROR_INVALID, "--selector: must not be empty");
    if (r == 0 && s->selector && s->objects.len)
        r = error_set(err, ERROR_INVALID, "--selector and a name: one of them");
    if (r < 0)
        return r;
    if (s->selector)
        return drain_selected(session, s, err);
    r = object_ref_only(session, TAKES_PROPLET, &s->objects, &ref, err);
    return r < 0 ? r : drain(session, s, &ref, err);
}

const struct command COMMAND_DRAIN =
    COMMAND("drain", run, struct settings, OPTIONS, TAKES_PROPLET,
            "Cordons a Proplet and waits until no Task is active on it.",
            ARGUMENTS(struct settings, objects, "[PROPLET]"),
            EXAMPLES("drain device-1 --timeout 10m", "drain -l site=lab --interrupt"));
