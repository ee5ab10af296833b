#include "plugin/cli/session.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"

/* Shells, timeout(1) and supervisors may send a signal to the process and to its group. */
#define REPEATED_MS 1000

struct session_guard {
    pthread_t thread;
    int signals;                /* signalfd */
    int limit;                  /* timerfd */
    int stop, ended;            /* eventfds */
    atomic_int status;          /* session_ended */
    pthread_mutex_t lock;       /* held while the end comes and while it is forgotten */
    struct kube_client *client; /* whose requests the end cancels */
    int64_t deaf_until_ms;      /* a signal before it repeats the one that was forgotten */
};

static void on_request(void *ctx, const char *method UNUSED, int status UNUSED,
                       int64_t duration_ms UNUSED)
{
    ((struct session *)ctx)->has_asked = true;
}

static struct kube_client *client_create(struct session *session)
{
    struct kube_client *client =
        kube_client_create(session->config, (uint32_t)session->flags->request_timeout_ms);

    kube_client_set_observer(client, on_request, session);
    return client;
}

int session_connect(struct session *session, struct error *err)
{
    const struct common_flags *flags = session->flags;
    const struct kube_config_person person = {
        .context = flags->context,
        .cluster = flags->cluster,
        .user = flags->user,
        .server = flags->server,
        .token = flags->token,
        .ns = flags->ns,
        .as = flags->as,
        .as_uid = flags->as_uid,
        .as_groups = flags->as_groups.items,
        .as_group_count = flags->as_groups.len,
        .insecure = flags->insecure,
    };
    const struct kube_config_options options = { .path = flags->kubeconfig, .person = &person };

    if (session->client)
        return 0;
    int r = kube_config_load_with(&options, &session->config, err);
    if (r < 0)
        return r;
    session->client = client_create(session);
    session->ns = kube_config_namespace(session->config);
    return 0;
}

static void end_guard(struct session *session)
{
    struct session_guard *guard = TAKE(session->guard);

    if (!guard)
        return;
    (void)eventfd_write(guard->stop, 1);
    pthread_join(guard->thread, NULL);
    (void)close(guard->signals);
    (void)close(guard->limit);
    (void)close(guard->stop);
    (void)close(guard->ended);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

void session_end(struct session *session)
{
    end_guard(session);
    kube_client_destroy(session->client);
    kube_config_destroy(session->config);
    session->client = NULL;
    session->config = NULL;
}

int session_status(const struct session *session, const struct error *err)
{
    if (err->code == ERROR_CANCELED && session_ended(session))
        return session_ended(session);
    return err->code == ERROR_INVALID && !session->has_asked ? EXIT_BAD_USE : EXIT_API;
}

static void end_with(struct session_guard *guard, int status)
{
    pthread_mutex_lock(&guard->lock);
    bool is_repeated =
        status != EXIT_TIME_OUT && clock_monotonic_ms(&CLOCK_SYSTEM) < guard->deaf_until_ms;
    if (!atomic_load(&guard->status) && !is_repeated) {
        atomic_store(&guard->status, status);
        (void)eventfd_write(guard->ended, 1);
        kube_client_cancel(guard->client);
    }
    pthread_mutex_unlock(&guard->lock);
}

static void *watch(void *ctx)
{
    struct session_guard *guard = ctx;
    struct pollfd fds[] = { { .fd = guard->stop, .events = POLLIN },
                            { .fd = guard->signals, .events = POLLIN },
                            { .fd = guard->limit, .events = POLLIN } };

    while (!fds[0].revents) {
        struct signalfd_siginfo info;
        uint64_t count;

        if (poll(fds, ARRAY_LEN(fds), -1) < 0)
            continue;
        if (read(guard->signals, &info, sizeof(info)) == sizeof(info))
            end_with(guard, 128 + (int)info.ssi_signo);
        if (read(guard->limit, &count, sizeof(count)) == sizeof(count))
            end_with(guard, EXIT_TIME_OUT);
    }
    return NULL;
}

void session_guard(struct session *session)
{
    struct session_guard *guard;
    sigset_t set;

    assert(session->client);
    if (session->guard)
        return;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* threads inherit it */

    guard = xcalloc(1, sizeof(*guard));
    guard->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    guard->limit = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    guard->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    guard->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    guard->client = session->client;
    pthread_mutex_init(&guard->lock, NULL);
    int code = pthread_create(&guard->thread, NULL, watch, guard);
    assert(code == 0); /* out of memory, and nothing else */
    session->guard = guard;
}

void session_set_limit(struct session *session, int64_t timeout_ms)
{
    const struct itimerspec when = { .it_value = { .tv_sec = timeout_ms / 1000,
                                                   .tv_nsec = timeout_ms % 1000 * 1000000 } };

    (void)timerfd_settime(session->guard->limit, 0, &when, NULL);
}

int session_ended(const struct session *session)
{
    return session->guard ? atomic_load(&session->guard->status) : 0;
}

int session_ended_fd(const struct session *session)
{
    return session->guard->ended;
}

void session_go_on(struct session *session)
{
    struct session_guard *guard = session->guard;
    struct kube_client *client = client_create(session);
    eventfd_t count;

    session_set_limit(session, 0);
    pthread_mutex_lock(&guard->lock);
    guard->client = client;
    guard->deaf_until_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + REPEATED_MS;
    (void)eventfd_read(guard->ended, &count);
    atomic_store(&guard->status, 0);
    pthread_mutex_unlock(&guard->lock);
    kube_client_destroy(session->client);
    session->client = client;
}

int session_sleep(struct session *session, int64_t ms)
{
    struct pollfd fd = { .events = POLLIN };

    session_guard(session);
    fd.fd = session_ended_fd(session);
    (void)poll(&fd, 1, (int)ms);
    return session_ended(session);
}
