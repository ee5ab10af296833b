#include "common/runtime/manager.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/observe.h"
#include "common/tests/patience.h"
#include "common/tests/suite.h"

/* Without wakes they take longer than the test may. */
#define MANY_ASKS 4000

/* What was called, in order: "start a; ready a; …". */
static struct buf trace = BUF_INIT(1 << 20);
static struct manager *manager;
static struct arena *arena;

struct part {
    const char *name;
    int asks;            /* ready() says 1 the time after so many */
    int signal_at_start; /* 0: none */
    int signals_at_join; /* SIGTERMs, one after the other */
    bool start_fails, ready_fails;
    bool start_hangs;
    bool hangs;                      /* join() does not return */
    atomic_bool hangs_until_hurried; /* nor this one, before hurry() */
    bool wakes;                      /* ready() asks to be asked again */
    const char *fails_at_start;      /* manager_fail is called with this */
};

static unsigned ticks;

static void note(const struct part *part, const char *what)
{
    ck_assert(buf_printf(&trace, "%s %s; ", what, part->name));
}

static int start(void *self, struct error *err)
{
    const struct part *part = self;

    note(part, "start");
    if (part->signal_at_start)
        ck_assert_int_eq(kill(getpid(), part->signal_at_start), 0);
    if (part->fails_at_start) {
        struct error why;

        (void)error_set(&why, ERROR_UNAVAILABLE, "%s", part->fails_at_start);
        manager_fail(manager, &why);
    }
    while (part->start_hangs)
        (void)poll(NULL, 0, 1000);
    return part->start_fails ? error_set(err, ERROR_INVALID, "address 'x' is taken") : 0;
}

static int ready(void *self, struct error *err)
{
    struct part *part = self;

    note(part, "ready");
    if (part->ready_fails)
        return error_set(err, ERROR_FORBIDDEN, "list 'tasks': no");
    if (part->wakes)
        manager_wake(manager);
    return part->asks-- == 0;
}

static void stop(void *self)
{
    note(self, "stop");
}

static void join(void *self)
{
    const struct part *part = self;

    note(part, "join");
    for (int i = 0; i < part->signals_at_join; i++) {
        ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
        sigset_t pending;
        do { /* until it was taken: two that wait at the same time count as one */
            (void)poll(NULL, 0, 1);
            ck_assert_int_eq(sigpending(&pending), 0);
        } while (sigismember(&pending, SIGTERM));
    }
    while (part->hangs)
        (void)poll(NULL, 0, 1000);
    while (atomic_load(&part->hangs_until_hurried))
        (void)poll(NULL, 0, 1);
}

static void hurry(void *self)
{
    atomic_store(&((struct part *)self)->hangs_until_hurried, false);
}

static void add(struct part *part, const char *name, enum run_group group)
{
    struct runnable runnable = { .name = name,
                                 .group = group,
                                 .self = part,
                                 .start = start,
                                 .ready = ready,
                                 .stop = stop,
                                 .join = join,
                                 .hurry = hurry };

    part->name = name;
    manager_add(manager, &runnable);
}

static void set_up(void)
{
    arena = arena_create();
    manager = manager_create();
}

static void tear_down(void)
{
    manager_destroy(manager);
    buf_release(&trace);
    arena_destroy(arena);
}

TEST_GROUP("order", set_up, tear_down);

TEST(groups_start_when_the_one_before_is_ready_and_stop_in_reverse)
{
    struct part server = { 0 };
    struct part cache_one = { .asks = 2 };
    struct part cache_two = { .asks = 1 };
    struct part known = { 0 };
    struct part leader = { .signal_at_start = SIGTERM };
    struct error err;

    add(&leader, "leader", RUN_LEADER); /* the order of adding counts within a group only */
    add(&known, "known", RUN_CATCH_UP);
    add(&server, "server", RUN_SERVERS);
    add(&cache_one, "one", RUN_CACHES);
    add(&cache_two, "two", RUN_CACHES);
    ck_assert_int_eq(manager_run(manager, &err), 0);
    ck_assert_str_eq(buf_string(&trace),
                     "start server; ready server; "
                     "start one; start two; ready one; ready two; ready one; ready two; "
                     "ready one; "
                     "start known; ready known; "
                     "start leader; ready leader; "
                     "stop leader; join leader; "
                     "stop known; join known; "
                     "stop two; stop one; join two; join one; "
                     "stop server; join server; ");
}

static void tick(void *self)
{
    note(self, "tick");
    if (++ticks == 2)
        ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
}

TEST(what_ticks_does_so_again_and_again_from_its_start_on)
{
    struct part early = { .name = "early" };
    struct part late = { .name = "late" };
    struct runnable runnables[] = {
        { .name = "early", .group = RUN_SERVERS, .self = &early, .start = start, .tick = tick },
        { .name = "late", .group = RUN_LEADER, .self = &late, .start = start },
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(runnables); i++)
        manager_add(manager, &runnables[i]);
    manager_set_tick_period(manager, 20);
    ck_assert_int_eq(manager_run(manager, &err), 0);
    ck_assert_uint_ge(ticks, 2);
    ck_assert(str_has_prefix(buf_string(&trace), "start early; tick early; "));
}

TEST(what_needs_no_ready_stop_and_join_has_none)
{
    struct part part = { .name = "plain", .signal_at_start = SIGINT };
    struct runnable runnable = { .name = "plain", .self = &part, .start = start };
    struct error err;

    manager_add(manager, &runnable);
    ck_assert_int_eq(manager_run(manager, &err), 0);
    ck_assert_str_eq(buf_string(&trace), "start plain; ");
}

TEST_TIMES(a_terminal_that_is_closed_stops_too_unless_that_is_ignored, 2)
{
    struct part part = { .name = "plain", .signal_at_start = _i ? SIGTERM : SIGHUP };
    struct runnable runnable = { .name = "plain", .self = &part, .start = start };
    sigset_t signals;
    struct error err;

    manager_destroy(manager);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGHUP);
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &signals, NULL), 0);
    (void)signal(SIGHUP, _i ? SIG_IGN : SIG_DFL);
    manager = manager_create();
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &signals), 0);
    ck_assert_int_eq(sigismember(&signals, SIGHUP), !_i);
    manager_add(manager, &runnable);
    ck_assert_int_eq(manager_run(manager, &err), 0);
}

TEST(a_signal_ends_the_wait_for_readiness)
{
    struct part part = { .asks = INT32_MAX, .signal_at_start = SIGTERM };
    struct part next = { 0 };
    struct error err;

    add(&part, "standby", RUN_ELECTION);
    add(&next, "leader", RUN_LEADER);
    ck_assert_int_eq(manager_run(manager, &err), 0);
    ck_assert_ptr_nonnull(
        strstr(buf_string(&trace), "ready standby; stop standby; join standby; "));
    ck_assert_ptr_null(strstr(buf_string(&trace), "leader"));
}

TEST(what_fails_to_start_is_named_and_only_what_has_started_is_stopped)
{
    struct part server = { 0 };
    struct part good = { 0 };
    struct part bad = { .start_fails = true };
    struct part after = { 0 };
    struct error err;

    add(&server, "server", RUN_SERVERS);
    add(&good, "good", RUN_CACHES);
    add(&bad, "bad", RUN_CACHES);
    add(&after, "after", RUN_CACHES);
    ck_assert_int_eq(manager_run(manager, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "start 'bad': address 'x' is taken");
    ck_assert_str_eq(buf_string(&trace), "start server; ready server; start good; start bad; "
                                         "stop good; join good; stop server; join server; ");
}

TEST(what_gives_up_becoming_ready_ends_the_process)
{
    struct part part = { .ready_fails = true };
    struct error err;

    add(&part, "watches", RUN_CACHES);
    ck_assert_int_eq(manager_run(manager, &err), -ERROR_FORBIDDEN);
    ck_assert_str_eq(err.message, "'watches' does not become ready: list 'tasks': no");
    ck_assert_str_eq(buf_string(&trace),
                     "start watches; ready watches; stop watches; join watches; ");
}

TEST(the_first_failure_is_returned)
{
    struct part first = { .fails_at_start = "lease lost" };
    struct part second = { .fails_at_start = "something else" };
    struct error err;

    add(&first, "first", RUN_LEADER);
    add(&second, "second", RUN_LEADER);
    ck_assert_int_eq(manager_run(manager, &err), -ERROR_UNAVAILABLE);
    ck_assert_str_eq(err.message, "lease lost");
    ck_assert_ptr_nonnull(strstr(buf_string(&trace), "join second; join first; "));
}

static void *fail_later(void *ctx)
{
    struct error why;

    (void)error_set(&why, ERROR_INTERNAL, "from another thread");
    manager_fail(ctx, &why);
    return NULL;
}

TEST(a_failure_on_another_thread_ends_the_run)
{
    struct part part = { 0 };
    struct error err;
    pthread_t thread;

    add(&part, "part", RUN_LEADER);
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_later, manager), 0);
    ck_assert_int_eq(manager_run(manager, &err), -ERROR_INTERNAL);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_str_eq(err.message, "from another thread");
}

TEST(a_wake_asks_again_at_once)
{
    struct part part = { .asks = MANY_ASKS, .wakes = true };
    struct part leader = { .signal_at_start = SIGTERM };
    struct error err;

    add(&part, "election", RUN_ELECTION);
    add(&leader, "leader", RUN_LEADER);
    ck_assert_int_eq(manager_run(manager, &err), 0);
    ck_assert_ptr_nonnull(strstr(buf_string(&trace), "start leader; "));
}

static void *signals_of_thread(void *ctx)
{
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, ctx), 0);
    return NULL;
}

TEST(threads_are_not_interrupted_and_broken_pipes_are_errors)
{
    sigset_t blocked;
    pthread_t thread;
    int fds[2];

    ck_assert_int_eq(pthread_create(&thread, NULL, signals_of_thread, &blocked), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(sigismember(&blocked, SIGTERM));
    ck_assert(sigismember(&blocked, SIGINT));

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(close(fds[0]), 0);
    ck_assert_int_eq(write(fds[1], "x", 1), -1);
    ck_assert_int_eq(close(fds[1]), 0);
}

/* Exit status of a process that runs these two parts; its log is in *ret_log. */
static int exit_status(struct part *server, struct part *leader, uint32_t budget_ms,
                       const char **ret_log)
{
    int status;

    capture_start(STDERR_FILENO);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct error err;

        manager_set_stop_budget(manager, budget_ms);
        add(server, "server", RUN_SERVERS);
        add(leader, "leader", RUN_LEADER);
        int r = manager_run(manager, &err);
        _exit(r == 0 ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    *ret_log = capture_text(arena);
    capture_stop();
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST_GROUP("endings", set_up, tear_down);

TEST(a_second_signal_ends_the_process_at_once)
{
    struct part server = { 0 };
    struct part leader = { .signal_at_start = SIGTERM, .signals_at_join = 1, .hangs = true };
    const char *log;

    ck_assert_int_eq(exit_status(&server, &leader, 0, &log), 130);
    ck_assert_ptr_nonnull(strstr(log, "\"stopping\",\"signal\":\"SIGTERM\""));
    ck_assert_ptr_nonnull(strstr(log, "second signal"));
}

TEST(after_a_failure_one_signal_lets_the_stop_go_on)
{
    struct part server = { 0 };
    struct part leader = { .fails_at_start = "lost", .signals_at_join = 1 };
    const char *log;

    ck_assert_int_eq(exit_status(&server, &leader, 0, &log), 2);
}

TEST(after_a_failure_the_second_signal_counts)
{
    struct part server = { 0 };
    struct part leader = { .fails_at_start = "lost", .signals_at_join = 2, .hangs = true };
    const char *log;

    ck_assert_int_eq(exit_status(&server, &leader, 0, &log), 130);
}

/* On a machine that does something else for all of the time it is already over before the server's turn. */
static bool is_server_named(struct part leader, uint32_t budget_ms)
{
    struct part server = { .hangs = true };
    const char *log;

    ck_assert_int_eq(exit_status(&server, &leader, budget_ms, &log), 1);
    return strstr(log, "\"not stopped in time, ending at once\",\"waiting_for\":\"server\"");
}

static bool is_named_after_a_signal(uint32_t ms)
{
    return is_server_named((struct part){ .signal_at_start = SIGTERM }, ms);
}

TEST(what_does_not_end_in_time_is_named_and_ends_the_process)
{
    /* real time: the time to stop passes */
    ck_timed(is_named_after_a_signal, 50);
}

static bool is_named_after_a_failure(uint32_t ms)
{
    return is_server_named((struct part){ .fails_at_start = "lost" }, ms);
}

TEST(the_time_to_stop_counts_from_a_failure_too)
{
    /* real time: the time to stop passes */
    ck_timed(is_named_after_a_failure, 50);
}

static bool is_hurried(uint32_t ms)
{
    struct part server = { .hangs_until_hurried = true };
    struct part leader = { .signal_at_start = SIGTERM, .hangs_until_hurried = true };
    const char *log;
    int status = exit_status(&server, &leader, ms, &log);

    ck_assert_int_le(status, 1); /* 1: it did not end in the other half */
    ck_assert_ptr_nonnull(
        strstr(log, "\"not stopped in half of the time, giving up what is waited for\","
                    "\"waiting_for\":\"leader\""));
    ck_assert_int_eq(status == 1, strstr(log, "ending at once") != NULL);
    return status == 0;
}

TEST(at_half_of_the_time_what_is_waited_for_is_given_up)
{
    /* real time: half of the time to stop passes */
    ck_timed(is_hurried, 1000);
}

TEST(the_time_to_stop_counts_from_the_signal_even_if_something_is_still_starting)
{
    struct part server = { 0 };
    struct part leader = { .signal_at_start = SIGTERM, .start_hangs = true };
    const char *log;

    ck_assert_int_eq(exit_status(&server, &leader, 50, &log), 1);
    ck_assert_ptr_nonnull(strstr(log, "\"waiting_for\":\"leader\""));
}
