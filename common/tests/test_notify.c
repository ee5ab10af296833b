#include "common/runtime/notify.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/runtime/manager.h"
#include "common/runtime/program.h"
#include "common/tests/observe.h"
#include "common/tests/patience.h"
#include "common/tests/process.h"
#include "common/tests/suite.h"

static char *dir;
static struct arena *arena;
static int service_manager = -1;

static void set_up(void)
{
    dir = temp_dir_create();
    arena = arena_create();
}

static void tear_down(void)
{
    if (service_manager >= 0)
        (void)close(service_manager);
    arena_destroy(arena);
    temp_dir_destroy(dir);
}

/* A service manager that listens on this address, and the environment that it gives. */
static void listen_at(const char *address)
{
    struct sockaddr_un own = { .sun_family = AF_UNIX };
    size_t len = strlen(address);

    ck_assert_uint_lt(len, sizeof(own.sun_path));
    memcpy(own.sun_path, address, len);
    if (*address == '@')
        own.sun_path[0] = '\0';
    service_manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(service_manager, 0);
    ck_assert_int_eq(bind(service_manager, (struct sockaddr *)&own,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", address, 1), 0);
}

static void listen_in_folder(void)
{
    listen_at(arena_printf(arena, "%s/notify", dir));
}

/* The next message; "" if there is none yet. */
static const char *message(void)
{
    char text[4096];
    ssize_t len = recv(service_manager, text, sizeof(text) - 1, 0);

    text[len < 0 ? 0 : len] = '\0';
    return arena_strdup(arena, text);
}

TEST_GROUP("messages", set_up, tear_down);

TEST(message_has_state_and_status)
{
    listen_in_folder();
    notify_send("READY=1", "serving");
    ck_assert_str_eq(message(), "READY=1\nSTATUS=serving");
}

TEST(state_and_status_may_come_alone)
{
    listen_in_folder();
    notify_send("WATCHDOG=1", NULL);
    notify_send(NULL, "waiting");
    ck_assert_str_eq(message(), "WATCHDOG=1");
    ck_assert_str_eq(message(), "STATUS=waiting");
}

TEST(abstract_address_is_supported)
{
    listen_at(arena_printf(arena, "@propeller-test-%d", (int)getpid()));
    notify_send("READY=1", NULL);
    ck_assert_str_eq(message(), "READY=1");
}

TEST(line_break_in_a_status_starts_no_variable)
{
    listen_in_folder();
    notify_send("STOPPING=1", "it failed\nMAINPID=1\n");
    ck_assert_str_eq(message(), "STOPPING=1\nSTATUS=it failed MAINPID=1 ");
}

TEST(long_status_is_cut)
{
    char status[2 * NOTIFY_MAX];

    memset(status, 'x', sizeof(status) - 1);
    status[sizeof(status) - 1] = '\0';
    listen_in_folder();
    notify_send("READY=1", status);
    ck_assert_uint_eq(strlen(message()), NOTIFY_MAX - 1);
}

TEST(process_without_a_service_manager_sends_nothing)
{
    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
    capture_start(STDERR_FILENO);
    notify_send("READY=1", "serving");
    ck_assert_str_eq(capture_text(arena), "");
    capture_stop();
}

TEST(unusable_address_is_logged_and_ignored)
{
    char too_long[2 * sizeof(struct sockaddr_un)];

    memset(too_long, '/', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';

    const char *const addresses[] = { "vsock:2:1234", "@", "relative", too_long,
                                      arena_printf(arena, "%s/missing", dir) };

    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", addresses[i], 1), 0);
        capture_start(STDERR_FILENO);
        notify_send("READY=1", NULL);
        ck_assert_ptr_nonnull(
            strstr(capture_text(arena), "the service manager cannot be notified, ignoring"));
        capture_stop();
    }
}

TEST(error_that_ends_a_program_is_its_status)
{
    struct error err = { 0 };
    int r = error_set(&err, ERROR_INVALID, "listen on '192.0.2.1:6443': no such address");

    listen_in_folder();
    capture_start(STDERR_FILENO);
    ck_assert_int_eq(program_end("prog", r, &err), 1);
    ck_assert_int_eq(program_end_of_options("prog", r, &err), 2);
    capture_stop();
    ck_assert_str_eq(message(), "STATUS=listen on '192.0.2.1:6443': no such address");
    ck_assert_str_eq(message(), "STATUS=listen on '192.0.2.1:6443': no such address");
    ck_assert_str_eq(message(), "");
}

static const struct {
    const char *period, *process;
    uint32_t expected;
} PERIODS[] = {
    { "60000000", NULL, 30000 },
    { NULL, NULL, 0 },
    { "", NULL, 0 },
    { "0", NULL, 0 },
    { "-5000", NULL, 0 },
    { "60000000x", NULL, 0 },
    { "9223372036854775807", NULL, UINT32_MAX },
    { "60000000", "own", 30000 },
    { "60000000", "1", 0 },
    { "60000000", "", 0 },
};

TEST_EACH(watchdog_is_notified_at_half_of_its_period, PERIODS)
{
    const char *process = PERIODS[_i].process;

    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    if (PERIODS[_i].period)
        ck_assert_int_eq(setenv("WATCHDOG_USEC", PERIODS[_i].period, 1), 0);
    if (process && strcmp(process, "own") == 0)
        process = arena_printf(arena, "%d", (int)getpid());
    if (process)
        ck_assert_int_eq(setenv("WATCHDOG_PID", process, 1), 0);
    ck_assert_uint_eq(notify_watchdog_ms(), PERIODS[_i].expected);
}

/* --- a manager --- */

#define WATCHDOG_US 40000

static unsigned ticks;
static unsigned hang_after; /* 0: never */
static uint32_t period_ms;

/* Ends the process with the third tick, or hangs in one. */
static void tick(void *self UNUSED)
{
    ticks++;
    while (hang_after && ticks >= hang_after)
        (void)poll(NULL, 0, 1000);
    if (ticks == 3)
        ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
}

static void note_period(void *self)
{
    period_ms = manager_tick_period_ms(self);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
}

static int refuse(void *self UNUSED, struct error *err)
{
    return error_set(err, ERROR_INVALID, "address 'x' is taken");
}

/* Runs the part with the watchdog of a service manager. `self` of the part is the manager. */
static int run_with(const struct runnable *part, uint32_t tick_ms)
{
    struct manager *manager = manager_create();
    struct runnable copy = *part;
    struct error err;

    listen_in_folder();
    ck_assert_int_eq(setenv("WATCHDOG_USEC", arena_printf(arena, "%d", WATCHDOG_US), 1), 0);
    manager_set_tick_period(manager, tick_ms);
    copy.self = manager;
    manager_add(manager, &copy);
    int r = manager_run(manager, &err);
    manager_destroy(manager);
    return r;
}

static int run(const struct runnable *part)
{
    return run_with(part, 3600000); /* the watchdog is sooner */
}

TEST_GROUP("manager", set_up, tear_down);

static const struct {
    uint32_t tick_ms, expected;
} TICKS[] = { { 3600000, WATCHDOG_US / 2000 }, { WATCHDOG_US / 2000 - 1, WATCHDOG_US / 2000 - 1 } };

TEST_EACH(ticks_are_as_frequent_as_the_watchdog_asks_for, TICKS)
{
    const struct runnable part = { .name = "part", .group = RUN_SERVERS, .tick = note_period };

    ck_assert_int_eq(run_with(&part, TICKS[_i].tick_ms), 0);
    ck_assert_uint_eq(period_ms, TICKS[_i].expected);
}

TEST(manager_reports_start_watchdog_and_stop)
{
    const struct runnable part = { .name = "part", .group = RUN_SERVERS, .tick = tick };
    const char *text;
    unsigned watchdogs = 0;
    bool ready = false;

    ck_assert_int_eq(run(&part), 0);
    while (text = message(), strncmp(text, "STOPPING=1", 10) != 0) {
        ck_assert_str_ne(text, "");
        watchdogs += strcmp(text, "WATCHDOG=1") == 0 || strncmp(text, "EXTEND_", 7) == 0;
        ready = ready || strcmp(text, "READY=1\nSTATUS=serving") == 0;
    }
    ck_assert(ready);
    ck_assert_uint_eq(watchdogs, ticks);
    ck_assert_str_eq(text, "STOPPING=1\nSTATUS=stopping");
    ck_assert_str_eq(message(), "");
}

TEST(failure_is_the_status_of_the_stop)
{
    const struct runnable part = { .name = "part", .group = RUN_SERVERS, .start = refuse };

    ck_assert_int_eq(run(&part), -ERROR_INVALID);
    ck_assert_str_eq(message(), "STOPPING=1\nSTATUS=start 'part': address 'x' is taken");
}

static int never(void *self UNUSED, struct error *err UNUSED)
{
    return 0;
}

TEST(start_that_takes_long_asks_for_more_time)
{
    const struct runnable part = {
        .name = "part", .group = RUN_CACHES, .ready = never, .tick = tick
    };
    unsigned asked = 0;

    ck_assert_int_eq(run(&part), 0);
    for (const char *text = message(); *text; text = message()) {
        ck_assert_ptr_null(strstr(text, "READY=1"));
        asked += strcmp(text, "EXTEND_TIMEOUT_USEC=60000000") == 0;
    }
    ck_assert_uint_ge(asked, ticks); /* one is of the group before */
}

TEST(standby_is_ready_for_the_service_manager)
{
    const struct runnable part = {
        .name = "part", .group = RUN_ELECTION, .ready = never, .tick = tick
    };
    bool ready = false;

    ck_assert_int_eq(run(&part), 0);
    for (const char *text = message(); *text; text = message())
        ready = ready || strcmp(text, "READY=1\nSTATUS=serving") == 0;
    ck_assert(ready);
}

/* The threads of the manager live on, and send nothing. */
static bool is_silent(uint32_t ms)
{
    struct pollfd fd = { .fd = service_manager, .events = POLLIN };

    while (*message())
        ;
    return poll(&fd, 1, (int)ms) == 0;
}

TEST(main_thread_that_hangs_does_not_notify_the_watchdog)
{
    const struct runnable part = { .name = "part", .group = RUN_SERVERS, .tick = tick };
    struct pollfd fd;

    listen_in_folder();
    fd = (struct pollfd){ .fd = service_manager, .events = POLLIN };
    hang_after = 2;

    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        struct manager *manager = manager_create();

        (void)setenv("WATCHDOG_USEC", arena_printf(arena, "%d", WATCHDOG_US), 1);
        manager_add(manager, &part);
        (void)!manager_run(manager, NULL);
        _exit(0);
    }
    ck_assert_int_eq(poll(&fd, 1, -1), 1);
    /* real time: several periods of the watchdog pass in silence */
    ck_timed(is_silent, 4 * WATCHDOG_US / 1000);
    (void)process_end(pid, SIGKILL);
}
