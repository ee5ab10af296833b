#include "plugin/cli/follow.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/kube/watch.h"

/* Between two looks at how the watch is. */
#define PROBLEM_INTERVAL_MS 500

/* The thread of the watch loop leaves this for the main thread. */
struct mailbox {
    int event; /* eventfd: there is something new */
    pthread_mutex_t lock;
    struct kube_object *newest; /* NULL: it does not exist */
    bool is_known;              /* the first list has ended */
};

static void put(struct mailbox *box, struct kube_object *object)
{
    kube_object_unref(box->newest);
    box->newest = kube_object_ref(object);
}

static void sink(void *ctx, enum watch_event_type type, struct kube_object *object,
                 const char *version UNUSED)
{
    struct mailbox *box = ctx;

    if (type == WATCH_REFUSED) /* check_problem sees it */
        return;
    pthread_mutex_lock(&box->lock);
    if (type == WATCH_INIT)
        put(box, NULL);
    if (type == WATCH_INIT_APPLY || type == WATCH_APPLY)
        put(box, object);
    if (type == WATCH_DELETE)
        put(box, NULL);
    box->is_known =
        type != WATCH_INIT && type != WATCH_INIT_APPLY; /* not in the middle of a list */
    bool is_news = box->is_known;
    pthread_mutex_unlock(&box->lock);
    if (is_news)
        (void)eventfd_write(box->event, 1);
}

/* The newest state, a new reference; false: nothing is known yet. */
static bool take(struct mailbox *box, struct kube_object **ret)
{
    pthread_mutex_lock(&box->lock);
    bool is_known = box->is_known;
    *ret = kube_object_ref(box->newest);
    pthread_mutex_unlock(&box->lock);
    return is_known;
}

static int look_once(struct mailbox *box, follow_fn *look, void *ctx)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;

    if (!take(box, &object))
        return FOLLOW_ON;
    return look(ctx, object ? kube_object_json(arena, object) : NULL);
}

/* Says once that the watch has a problem. < 0: it is one that stays. */
static int check_problem(struct watch_loop *loop, bool *was_told, struct error *err)
{
    char problem[ERROR_MESSAGE_LEN];

    if (!watch_loop_problem(loop, problem, sizeof(problem))) {
        *was_told = false;
        return 0;
    }
    if (watch_loop_is_refused(loop))
        return error_set(err, ERROR_FORBIDDEN, "%s", problem);
    if (!*was_told)
        output_line(stderr, "%s (trying again)", problem);
    *was_told = true;
    return 0;
}

static int run(struct session *session, struct mailbox *box, struct watch_loop *loop,
               follow_fn *look, void *ctx, struct error *err)
{
    bool was_told = false;
    int r = FOLLOW_ON;

    while (r == FOLLOW_ON) {
        struct pollfd fds[] = { { .fd = box->event, .events = POLLIN },
                                { .fd = session_ended_fd(session), .events = POLLIN } };
        eventfd_t count;

        (void)poll(fds, ARRAY_LEN(fds), PROBLEM_INTERVAL_MS);
        if (session_ended(session))
            return session_ended(session);
        if (eventfd_read(box->event, &count) == 0)
            r = look_once(box, look, ctx);
        else if (check_problem(loop, &was_told, err) < 0)
            return -ERROR_FORBIDDEN;
    }
    return r;
}

static int watch(struct session *session, const struct object_ref *ref, follow_fn *look, void *ctx,
                 struct error *err)
{
    const struct watch_options options = { .kind = ref->kind,
                                           .ns = ref->name.ns,
                                           .name = ref->name.name,
                                           /* a cache may not know yet what `run` created */
                                           .newest = true };
    struct mailbox box = { .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };

    pthread_mutex_init(&box.lock, NULL);
    struct watch_machine *machine = watch_machine_create(&options, sink, &box);
    struct watch_loop *loop = watch_loop_create(session->config);
    watch_loop_add(loop, machine);

    int r = watch_loop_start(loop, err);
    if (r == 0)
        r = run(session, &box, loop, look, ctx, err);
    watch_loop_stop(loop);
    watch_loop_destroy(loop);
    watch_machine_destroy(machine);
    kube_object_unref(box.newest);
    pthread_mutex_destroy(&box.lock);
    (void)close(box.event);
    return r;
}

int follow(struct session *session, const struct object_ref *ref, follow_fn *look, void *ctx,
           struct error *err)
{
    const cJSON *object = NULL;

    session_guard(session);
    int r = object_get(session, ref, &object, err);
    if (session_ended(session))
        return session_ended(session);
    if (r < 0 && r != -ERROR_NOT_FOUND)
        return r;
    r = look(ctx, object);
    return r == FOLLOW_ON ? watch(session, ref, look, ctx, err) : r;
}
