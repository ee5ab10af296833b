#include "common/runtime/manager.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/runtime/notify.h"
#include "common/runtime/thread.h"

#define READY_FIRST_MS 20
#define READY_MAX_MS 1000
/* Without a deadline the watchdog looks again after this. */
#define MAX_POLL_MS (INT64_C(60) * 60 * 1000)
/* The last group that does not wait for others: for the Lease, or for a broker. */
#define READY_GROUP RUN_CACHES
/* A start may take long, as long as its ticks come: several of them fit into this. */
#define MORE_TIME "EXTEND_TIMEOUT_USEC=60000000"
/* What a shell reports for a program that was interrupted. */
#define EXIT_INTERRUPTED 130

struct manager {
    struct runnable runnables[MANAGER_MAX_RUNNABLES];
    bool started[MANAGER_MAX_RUNNABLES];
    bool ready[MANAGER_MAX_RUNNABLES]; /* has been once: not asked again */
    size_t count;
    uint32_t stop_budget_ms;
    uint32_t tick_period_ms;
    int64_t tick_ms;        /* monotonic: when the next one is due */
    bool notifies_watchdog; /* of the service manager, with each tick */
    bool is_up;             /* the service manager was told that it is ready */

    int news; /* eventfd for main: a signal, a failure, readiness perhaps */
    _Atomic(const char *) waiting_for; /* name of the runnable whose function main is in */
    atomic_bool interrupted;           /* the first signal has come */
    atomic_bool stopping;              /* main stops what was started */
    atomic_bool ended;                 /* and has done so */

    pthread_t watchdog;
    int signals; /* signalfd of those that stop */
    int control; /* eventfd for the watchdog: stopping or ended was set */

    pthread_mutex_t lock;
    struct error failure; /* with the lock held; code is ERROR_NONE without one */
};

/* Blocked, a signal comes even where it is ignored, as SIGHUP is below nohup. */
static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static sigset_t stop_signals(void)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    if (!is_ignored(SIGHUP))
        (void)sigaddset(&signals, SIGHUP);
    return signals;
}

void manager_block_signals(void)
{
    sigset_t signals = stop_signals();

    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* a peer that hangs up is an error of that connection */
}

struct manager *manager_create(void)
{
    struct manager *manager = xcalloc(1, sizeof(*manager));
    sigset_t signals = stop_signals();

    manager_block_signals();
    manager->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    manager->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    manager->control = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert(manager->signals >= 0 && manager->news >= 0 && manager->control >= 0);
    manager->stop_budget_ms = MANAGER_STOP_BUDGET_MS;
    manager->tick_period_ms = MANAGER_TICK_MS;
    (void)pthread_mutex_init(&manager->lock, NULL);
    return manager;
}

void manager_destroy(struct manager *manager)
{
    if (!manager)
        return;
    (void)close(manager->signals);
    (void)close(manager->news);
    (void)close(manager->control);
    (void)pthread_mutex_destroy(&manager->lock);
    free(manager);
}

void manager_add(struct manager *manager, const struct runnable *runnable)
{
    assert(manager->count < MANAGER_MAX_RUNNABLES);
    manager->runnables[manager->count++] = *runnable;
}

void manager_set_stop_budget(struct manager *manager, uint32_t budget_ms)
{
    manager->stop_budget_ms = budget_ms ? budget_ms : MANAGER_STOP_BUDGET_MS;
}

void manager_set_tick_period(struct manager *manager, uint32_t period_ms)
{
    manager->tick_period_ms = period_ms ? period_ms : MANAGER_TICK_MS;
}

uint32_t manager_tick_period_ms(const struct manager *manager)
{
    return manager->tick_period_ms;
}

static void raise_event(int fd)
{
    uint64_t one = 1;
    ssize_t written = write(fd, &one, sizeof(one));

    assert(written == sizeof(one) || errno == EAGAIN); /* EAGAIN: raised 2^64 - 2 times already */
}

/* Waits until it is raised, for a time at most; -1: for ever. */
static void wait_event(int fd, int timeout_ms)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
    uint64_t times;

    (void)poll(&poll_fd, 1, timeout_ms);
    ssize_t n UNUSED = read(fd, &times, sizeof(times)); /* not raised: nothing to take back */
}

void manager_wake(struct manager *manager)
{
    raise_event(manager->news);
}

void manager_fail(struct manager *manager, const struct error *why)
{
    pthread_mutex_lock(&manager->lock);
    if (manager->failure.code == ERROR_NONE)
        manager->failure = *why;
    pthread_mutex_unlock(&manager->lock);
    manager_wake(manager);
}

/* The failure told by manager_fail, or 0. */
static int failure(struct manager *manager, struct error *err)
{
    pthread_mutex_lock(&manager->lock);
    struct error copy = manager->failure;
    pthread_mutex_unlock(&manager->lock);

    if (copy.code == ERROR_NONE)
        return 0;
    if (err)
        *err = copy;
    return -(int)copy.code;
}

/* Returns how long until the next one. */
static int tick(struct manager *manager)
{
    int64_t now_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    if (now_ms < manager->tick_ms)
        return (int)(manager->tick_ms - now_ms);
    for (size_t i = 0; i < manager->count; i++) {
        const struct runnable *runnable = &manager->runnables[i];

        if (manager->started[i] && runnable->tick)
            runnable->tick(runnable->self);
    }
    if (manager->notifies_watchdog)
        notify_send(manager->is_up ? "WATCHDOG=1" : MORE_TIME, NULL);
    manager->tick_ms = now_ms + manager->tick_period_ms;
    return (int)manager->tick_period_ms;
}

/* Waits for a signal, a failure, a wake or the time (-1: for long). 1: a signal came; 0: anything
 * else; < 0. */
static int wait_for_news(struct manager *manager, int timeout_ms, struct error *err)
{
    int tick_ms = tick(manager);

    if (timeout_ms < 0 || timeout_ms > tick_ms)
        timeout_ms = tick_ms;
    wait_event(manager->news, timeout_ms);
    return atomic_load(&manager->interrupted) ? 1 : failure(manager, err);
}

static int start_group(struct manager *manager, enum run_group group, struct error *err)
{
    for (size_t i = 0; i < manager->count; i++) {
        const struct runnable *runnable = &manager->runnables[i];

        if (runnable->group != group)
            continue;
        atomic_store(&manager->waiting_for, runnable->name);
        int r = runnable->start ? runnable->start(runnable->self, err) : 0;
        if (r < 0)
            return error_wrap(err, "start '%s'", runnable->name);

        manager->started[i] = true;
        log_debug("started", "what", runnable->name, NULL);
    }
    return 0;
}

/* 1: all of the group are. */
static int group_ready(struct manager *manager, enum run_group group, struct error *err)
{
    int all = 1;

    for (size_t i = 0; i < manager->count; i++) {
        const struct runnable *runnable = &manager->runnables[i];

        if (runnable->group != group || !runnable->ready || manager->ready[i])
            continue;
        atomic_store(&manager->waiting_for, runnable->name);
        int r = runnable->ready(runnable->self, err);
        if (r < 0)
            return error_wrap(err, "'%s' does not become ready", runnable->name);
        manager->ready[i] = r > 0;
        if (r == 0)
            all = 0;
    }
    return all;
}

/* 1: a signal came; 0: the group is ready; < 0. */
static int wait_ready(struct manager *manager, enum run_group group, struct error *err)
{
    for (int delay_ms = READY_FIRST_MS;; delay_ms *= 2) {
        int r = group_ready(manager, group, err);
        if (r < 0)
            return r;

        bool ready = r;
        if (delay_ms > READY_MAX_MS)
            delay_ms = READY_MAX_MS;
        r = wait_for_news(manager, ready ? 0 : delay_ms, err);
        if (r != 0 || ready)
            return r;
    }
}

/* 1: a signal came; < 0: something failed. */
static int start_and_wait(struct manager *manager, struct error *err)
{
    for (enum run_group group = RUN_SERVERS; group <= RUN_LEADER; group++) {
        int r = start_group(manager, group, err);
        if (r < 0)
            return r;
        r = wait_ready(manager, group, err);
        if (r != 0)
            return r;
        if (group == READY_GROUP) {
            notify_send("READY=1", "serving");
            manager->is_up = true;
            alloc_give_back_code();
        }
    }
    log_info("everything has started", NULL);
    notify_send(NULL, "serving, everything has started");
    for (;;) {
        int r = wait_for_news(manager, -1, err);
        if (r != 0)
            return r;
    }
}

static const char *name_of(int number)
{
    if (number == SIGHUP)
        return "SIGHUP";
    return number == SIGINT ? "SIGINT" : "SIGTERM";
}

static void take_signals(struct manager *manager)
{
    struct signalfd_siginfo info;

    while (read(manager->signals, &info, sizeof(info)) == sizeof(info)) {
        const char *name = name_of((int)info.ssi_signo);

        if (atomic_exchange(&manager->interrupted, true)) {
            log_warn("second signal, ending at once", "signal", name, NULL);
            _exit(EXIT_INTERRUPTED);
        }
        log_info("stopping", "signal", name, NULL);
        raise_event(manager->news);
    }
}

static void hurry_all(struct manager *manager)
{
    const char *name = atomic_load(&manager->waiting_for);

    log_warn("not stopped in half of the time, giving up what is waited for", "waiting_for", name,
             NULL);
    for (size_t i = 0; i < manager->count; i++)
        if (manager->runnables[i].hurry)
            manager->runnables[i].hurry(manager->runnables[i].self);
}

static void give_up(const struct manager *manager)
{
    const char *name = atomic_load(&manager->waiting_for);

    log_error("not stopped in time, ending at once", "waiting_for", name, NULL);
    _exit(EXIT_FAILURE);
}

/* Its thread takes the signals, whatever main is waiting for, and ends what does not end. */
static void *watchdog(void *ctx)
{
    struct manager *manager = ctx;
    int64_t deadline_ms = INT64_MAX; /* not stopping */
    bool hurried = false;

    while (!atomic_load(&manager->ended)) {
        struct pollfd fds[] = { { .fd = manager->signals, .events = POLLIN },
                                { .fd = manager->control, .events = POLLIN } };
        int64_t left_ms = deadline_ms - clock_monotonic_ms(&CLOCK_SYSTEM);

        if (left_ms <= 0)
            give_up(manager);
        if (!hurried)
            left_ms -= manager->stop_budget_ms / 2;
        if (left_ms <= 0) {
            hurried = true;
            hurry_all(manager);
            continue;
        }
        (void)poll(fds, ARRAY_LEN(fds), left_ms < MAX_POLL_MS ? (int)left_ms : (int)MAX_POLL_MS);
        take_signals(manager);
        wait_event(manager->control, 0);

        bool stops = atomic_load(&manager->interrupted) || atomic_load(&manager->stopping);
        if (stops && deadline_ms == INT64_MAX)
            deadline_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + manager->stop_budget_ms;
    }
    return NULL;
}

static void stop_group(struct manager *manager, enum run_group group)
{
    for (size_t i = manager->count; i-- > 0;) {
        const struct runnable *runnable = &manager->runnables[i];

        if (!manager->started[i] || runnable->group != group || !runnable->stop)
            continue;
        atomic_store(&manager->waiting_for, runnable->name);
        runnable->stop(runnable->self);
    }
    for (size_t i = manager->count; i-- > 0;) {
        const struct runnable *runnable = &manager->runnables[i];

        if (!manager->started[i] || runnable->group != group)
            continue;
        atomic_store(&manager->waiting_for, runnable->name);
        if (runnable->join)
            runnable->join(runnable->self);
        manager->started[i] = false;
        log_debug("ended", "what", runnable->name, NULL);
    }
}

/* A tick that hangs, or is not reached, is a process that the service manager restarts, also during the start. */
static void follow_watchdog(struct manager *manager)
{
    uint32_t period_ms = notify_watchdog_ms();

    manager->notifies_watchdog = period_ms > 0;
    if (manager->notifies_watchdog && period_ms < manager->tick_period_ms)
        manager->tick_period_ms = period_ms;
}

int manager_run(struct manager *manager, struct error *err)
{
    follow_watchdog(manager);

    int r = thread_start(&manager->watchdog, "signals", watchdog, manager, err);
    if (r < 0)
        return r;

    r = start_and_wait(manager, err);
    notify_send("STOPPING=1", r < 0 && err ? err->message : "stopping");
    atomic_store(&manager->stopping, true);
    raise_event(manager->control);
    for (int group = RUN_LEADER; group >= RUN_SERVERS; group--)
        stop_group(manager, (enum run_group)group);
    atomic_store(&manager->ended, true);
    raise_event(manager->control);
    thread_join(manager->watchdog);
    return r > 0 ? 0 : r;
}
