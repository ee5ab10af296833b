/* drain: no new Tasks on a Proplet, and an end of those that run there. */
#include "common/api/kinds.h"
#include "common/api/task.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "controller/scheduler/scheduler.h"
#include "controller/task/task_placement.h"
#include "plugin/cli/follow.h"
#include "plugin/commands/commands.h"
#include "plugin/commands/snapshot_read.h"

struct settings {
    struct common_flags common;
    struct str_list objects;
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
/* Requests that fail one after the other before it gives up. */
#define MAX_FAILURES 5

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

/* A look that failed is repeated, unless its error stays. */
static bool may_look_again(const struct error *err, int failures)
{
    bool passes = err->code == ERROR_UNAVAILABLE || err->code == ERROR_TIMEOUT ||
                  err->code == ERROR_INTERNAL || err->code == ERROR_GONE;

    return passes && failures <= MAX_FAILURES;
}

static const char *active_text(struct arena *arena, int64_t active)
{
    return active == 1 ? "1 Task is active"
                       : arena_printf(arena, "%lld Tasks are active", (long long)active);
}

/* Until no Task is active there; an exit status, or an error. */
static int wait_until_empty(struct session *session, const struct object_ref *proplet,
                            struct error *err)
{
    const char *name = object_ref_text(session->arena, proplet);
    int64_t said = 0;
    int empty = 0, failures = 0, r = 0;

    while (r == 0 && empty < EMPTY_LOOKS) {
        int64_t look_ms = clock_monotonic_ms(&CLOCK_SYSTEM), active = 0;

        r = count_active(session, proplet, &active, err);
        failures = r < 0 ? failures + 1 : 0;
        if (r < 0 && !may_look_again(err, failures))
            return r;
        empty = r < 0 || active ? 0 : empty + 1;
        if (r < 0)
            output_line(stderr, "%s: %s (trying again)", name, err->message);
        else if (active && active != said)
            output_line(stderr, "%s: %s", name, active_text(session->arena, active));
        said = active;

        int64_t rest_ms = (clock_monotonic_ms(&CLOCK_SYSTEM) - look_ms) * REST_FACTOR;
        r = empty == EMPTY_LOOKS
                ? 0
                : session_sleep(session, rest_ms > LOOK_INTERVAL_MS ? rest_ms : LOOK_INTERVAL_MS);
    }
    return r;
}

/* --- moving Tasks --- */

struct mover {
    struct object_ref task;
    struct mover *next;
};
struct moving {
    struct session *session;
    const char *proplet;
    struct schedule_context context; /* the Proplets, those that are drained cordoned */
    struct mover *first, **end;      /* Tasks that another Proplet may run */
};

/* A Proplet that has no room now counts: the Task waits for it then. */
static bool fits_elsewhere(const struct moving *moving, const struct task_spec *spec)
{
    for (size_t i = 0; i < moving->context.len; i++) {
        const struct candidate *candidate = &moving->context.candidates[i];
        enum schedule_filter filter = schedule_filter(spec, candidate);

        if (!str_equal(candidate->name, moving->proplet) &&
            (filter == FILTER_PASSED || filter == FILTER_CAPACITY))
            return true;
    }
    return false;
}

/* Why a Task that is active on the Proplet stays there; NULL: it may move. */
static const char *why_it_stays(const struct moving *moving, const struct task_spec *spec)
{
    if (spec->suspend)
        return "it is suspended, so it ends by itself";
    if (spec->broadcast)
        return "a broadcast would begin again on all of its Proplets";
    return fits_elsewhere(moving, spec) ? NULL : "no other Proplet that is ready may run it";
}

static int take_task(void *ctx, const cJSON *object, struct error *err UNUSED)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct mover mover = { .task = { .kind = &KIND_TASK, .takes = TAKES_TASK } };
    struct moving *moving = ctx;
    struct task task = { 0 };

    if (!is_active_on(object, moving->proplet) || task_decode(arena, object, &task, NULL) < 0 ||
        !kube_name_of(object, &mover.task.name))
        return 0;
    const char *stays = why_it_stays(moving, &task.spec);
    if (stays) {
        output_line(stderr, "%s stays: %s", object_ref_text(arena, &mover.task), stays);
        return 0;
    }
    *moving->end = arena_new(moving->session->arena, struct mover);
    **moving->end = mover;
    moving->end = &(*moving->end)->next;
    return 0;
}

/* It has no Proplet any more, so that it gets another one when it is resumed. */
static int look_left(void *ctx, const cJSON *object)
{
    return object && is_active_on(object, ctx) ? FOLLOW_ON : EXIT_DONE;
}

/* A Task that this command suspended must not stay so, whatever happened meanwhile. */
static int resume(struct session *session, const struct object_ref *task, struct error *err)
{
    const char *name = object_ref_text(session->arena, task);
    int r = -ERROR_UNAVAILABLE;

    if (session_ended(session))
        session_go_on(session);
    for (int i = 0; i < MAX_FAILURES && r < 0 && r != -ERROR_NOT_FOUND; i++) {
        if (i && session_sleep(session, LOOK_INTERVAL_MS))
            break;
        r = object_set_spec_bool(session, task, "suspend", false, err);
    }
    if (r == 0 || r == -ERROR_NOT_FOUND)
        return 0;
    output_line(stderr, "%s stays suspended; to resume it: " PLUGIN " resume %s -n %s", name, name,
                task->name.ns);
    return r;
}

/* Suspends the Task, waits until it has stopped, and resumes it. */
static int move(struct session *session, const struct object_ref *task, const char *proplet,
                struct error *err)
{
    int r = object_set_spec_bool(session, task, "suspend", true, err);

    if (r == -ERROR_NOT_FOUND) /* it has just been deleted */
        return 0;
    output_line(stderr, "%s begins again on another Proplet",
                object_ref_text(session->arena, task));
    if (r < 0 && session_ended(session))
        r = session_ended(session);
    if (r == 0)
        r = follow(session, task, look_left, (void *)(uintptr_t)proplet, err);

    struct error problem;
    int resumed = resume(session, task, r < 0 ? &problem : err);
    return r ? r : resumed;
}

static int interrupt(struct session *session, const struct object_ref *proplet, struct error *err)
{
    struct snapshot *snapshot = snapshot_create(session->arena);
    struct moving moving = { .session = session, .proplet = proplet->name.name };
    int r = snapshot_read(session, snapshot, &KIND_PROPLET, proplet->name.ns, err);

    if (r < 0)
        return r;
    moving.end = &moving.first;
    moving.context =
        snapshot_context(snapshot, session->arena, proplet->name.ns, session->output.now_us);
    r = object_each(session, &KIND_TASK, proplet->name.ns, take_task, &moving, err);
    for (const struct mover *mover = moving.first; mover && r == 0; mover = mover->next)
        r = move(session, &mover->task, proplet->name.name, err);
    return r;
}

/* --- the command --- */

static int cordon_all(struct session *session, const struct object_ref *refs, size_t len,
                      struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < len && r == 0; i++)
        r = object_set_spec_bool(session, &refs[i], "unschedulable", true, err);
    return r;
}

/* An exit status, or an error. */
static int drain(struct session *session, const struct settings *settings,
                 const struct object_ref *ref, struct error *err)
{
    session_set_limit(session, settings->timeout_ms);
    int r = settings->interrupt ? interrupt(session, ref, err) : 0;

    if (r == 0)
        r = wait_until_empty(session, ref, err);
    return r < 0 && session_ended(session) ? session_ended(session) : r;
}

/* All are cordoned before the first one is drained, so that no Task moves from one to the other. */
static int drain_all(struct session *session, const struct settings *settings,
                     const struct object_ref *refs, size_t len, struct error *err)
{
    struct results results = results_begin(session, "Drain");
    int status = EXIT_DONE;

    session_guard(session);
    int r = cordon_all(session, refs, len, err);
    for (size_t i = 0; i < len && r == 0; i++) {
        r = drain(session, settings, &refs[i], err);
        if (r == 0)
            results_add(&results, &refs[i], "drained");
        if (r != EXIT_TIME_OUT)
            continue;
        status = EXIT_TIME_OUT; /* the others have their own time */
        session_go_on(session);
        r = 0;
    }
    results_end(&results);
    return r ? r : status;
}

static int find_selected(struct session *session, const char *selector, struct object_ref **ret,
                         size_t *ret_len, struct error *err)
{
    const cJSON *proplets = NULL;
    int r = object_list(session, &KIND_PROPLET, session->ns, selector, &proplets, err);

    if (r == 0 && !json_len(proplets))
        r = error_set(err, ERROR_NOT_FOUND, "no Proplet has the labels '%s'", selector);
    *ret = arena_array(session->arena, struct object_ref, json_len(proplets) + 1);
    json_for_each (proplet, proplets) {
        struct object_ref ref = { .kind = &KIND_PROPLET, .takes = TAKES_PROPLET };

        if (kube_name_of(proplet, &ref.name))
            (*ret)[(*ret_len)++] = ref;
    }
    return r;
}

static int run(struct session *session, const void *settings, struct error *err)
{
    const struct settings *s = settings;
    struct object_ref *refs = arena_new(session->arena, struct object_ref);
    size_t len = 0;
    int r = session_connect(session, err);

    if (r == 0 && s->selector && !*s->selector) /* it would select every Proplet */
        r = error_set(err, ERROR_INVALID, "--selector: must not be empty");
    if (r == 0 && s->selector && s->objects.len)
        r = error_set(err, ERROR_INVALID, "--selector and a name: one of them");
    if (r < 0)
        return r;
    if (s->selector) {
        r = find_selected(session, s->selector, &refs, &len, err);
    } else {
        r = object_ref_only(session, TAKES_PROPLET, &s->objects, refs, err);
        len = 1;
    }
    return r < 0 ? r : drain_all(session, s, refs, len, err);
}

const struct command COMMAND_DRAIN =
    COMMAND("drain", run, struct settings, OPTIONS, TAKES_PROPLET,
            "Cordons a Proplet and waits until no Task is active on it.",
            ARGUMENTS(struct settings, objects, "[PROPLET]"),
            EXAMPLES("drain device-1 --timeout 10m", "drain -l site=lab --interrupt"));
