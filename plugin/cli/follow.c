#include "plugin/cli/follow.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/kube/watch.h"

/* The thread of the watch loop leaves this for the main thread. */
struct mailbox {
    int event; /* eventfd: there is something new */
    pthread_mutex_t lock;
    struct kube_object *newest; /* NULL: it does not exist */
    bool is_known;              /* the first list has ended */
    bool is_refused;
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

    pthread_mutex_lock(&box->lock);
    if (type == WATCH_INIT)
        put(box, NULL);
    if (type == WATCH_INIT_APPLY || type == WATCH_APPLY)
        put(box, object);
    if (type == WATCH_DELETE)
        put(box, NULL);
    if (type == WATCH_REFUSED)
        box->is_refused = true;
    box->is_known =
        type != WATCH_INIT && type != WATCH_INIT_APPLY; /* not in the middle of a list */
    bool is_news = box->is_known;
    pthread_mutex_unlock(&box->lock);
    if (is_news)
        (void)eventfd_write(box->event, 1);
}

/* The newest state, a new reference; false: nothing is known yet. */
static bool take(struct mailbox *box, struct kube_object **ret, bool *ret_is_refused)
{
    pthread_mutex_lock(&box->lock);
    bool is_known = box->is_known;
    *ret = kube_object_ref(box->newest);
    *ret_is_refused = box->is_refused;
    pthread_mutex_unlock(&box->lock);
    return is_known;
}

static int look_once(struct mailbox *box, follow_fn *look, void *ctx, struct watch_loop *loop,
                     struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(kube_object_unrefp) struct kube_object *object = NULL;
    char problem[ERROR_MESSAGE_LEN];
    bool is_refused;

    if (!take(box, &object, &is_refused))
        return FOLLOW_ON;
    if (is_refused)
        return error_set(err, ERROR_FORBIDDEN, "%s",
                         watch_loop_problem(loop, problem, sizeof(problem)) ? problem
                                                                            : "forbidden");
    return look(ctx, object ? kube_object_json(arena, object) : NULL);
}

static int run(struct session *session, struct mailbox *box, struct watch_loop *loop,
               int64_t timeout_ms, follow_fn *look, void *ctx, struct error *err)
{
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + timeout_ms;

    for (;;) {
        struct pollfd fds[] = { { .fd = box->event, .events = POLLIN },
                                { .fd = session->signals, .events = POLLIN } };
        int64_t left_ms = end_ms - clock_monotonic_ms(&CLOCK_SYSTEM);
        eventfd_t count;

        if (timeout_ms && left_ms <= 0)
            return EXIT_TIME_OUT;
        if (poll(fds, 2, timeout_ms ? (int)(left_ms < 60000 ? left_ms : 60000) : -1) <= 0)
            continue;
        if (fds[1].revents)
            return session_signal_status(session);
        if (!fds[0].revents)
            continue;

        (void)eventfd_read(box->event, &count);
        int r = look_once(box, look, ctx, loop, err);
        if (r != FOLLOW_ON)
            return r;
    }
}

int follow(struct session *session, const struct object_ref *ref, int64_t timeout_ms,
           follow_fn *look, void *ctx, struct error *err)
{
    const struct watch_options options = { .kind = ref->kind,
                                           .ns = ref->name.ns,
                                           .name = ref->name.name,
                                           /* a cache may not know yet what `run` created */
                                           .newest = true };
    struct mailbox box = { .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };

    pthread_mutex_init(&box.lock, NULL);
    session->has_asked = true;
    session_catch_signals(session);
    struct watch_machine *machine = watch_machine_create(&options, sink, &box);
    struct watch_loop *loop = watch_loop_create(session->config);
    watch_loop_add(loop, machine);

    int r = watch_loop_start(loop, err);
    if (r == 0)
        r = run(session, &box, loop, timeout_ms, look, ctx, err);
    watch_loop_stop(loop);
    watch_loop_destroy(loop);
    watch_machine_destroy(machine);
    kube_object_unref(box.newest);
    pthread_mutex_destroy(&box.lock);
    (void)close(box.event);
    return r;
}
