#include "controller/tests/sim/sim_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/process/process.h"
#include "controller/tests/sim/sim_api.h"
#include "controller/tests/sim/sim_broker.h"
#include "controller/tests/sim/sim_changes.h"
#include "controller/tests/sim/sim_fleet.h"
#include "controller/tests/sim/sim_judge.h"
#include "controller/tests/sim/sim_users.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define MAX_REPLICAS 3
/* After the last fault every Task must have ended within this time: the longest chain of time-outs is
 * a Proplet that is lost (2 min), a back-off (5 min), and starts that are not confirmed (4 x 30 s). */
#define SETTLE_TIME (45 * MINUTE)
/* Without news the controller writes each Proplet at most once a minute. These minutes are longer than all that comes
 * before them, so that one seed in four has them. */
#define QUIET_MINUTES 5
#define QUIET_ONE_IN 4

const char *sim_kubeconfig;

static struct sim_device devices[] = { { .client_id = "device-1", .channel = "m/d/c/one" },
                                       { .client_id = "device-2", .channel = "m/d/c/one" },
                                       { .client_id = "device-3", .channel = "m/d/c/two" } };

struct host {
    struct replica *replica; /* the process that runs on it, or did last */
    struct process *process; /* NULL: it has ended */
    int64_t wall_step_us;    /* its wall clock is wrong by this */
};

static struct {
    struct host hosts[MAX_REPLICAS];
    size_t host_count;
    unsigned started;
    bool
        dies_publishing; /* the next controller that publishes a start is killed within milliseconds */
    bool calm;           /* no more faults */
    bool clocks_set;     /* at any time */
    bool gentle;         /* controllers are stopped in order, and nothing else happens */
} world;

/* ---- controllers ---- */

static void *run_controller(void *ctx)
{
    struct host *host = ctx;
    struct process *process = xcalloc(1, sizeof(*process));
    char *const arguments[] = {
        (char *)"controller",
        (char *)"--kubeconfig",
        (char *)sim_kubeconfig,
        (char *)"--mqtt-address=tcp://127.0.0.1:1",
        (char *)"--metrics-bind-address=0",
        (char *)"--health-probe-bind-address=0",
        (char *)"--manage-webhook-certificates=false",
        (char *)"--workers=task=3,proplet=2,propellerjob=1,federatedjob=1,traininground=1",
        NULL
    };
    struct error err = { 0 };

    process->arena = arena_create();
    if (controller_options_parse(process->arena, ARRAY_LEN(arguments) - 1, arguments,
                                 &process->settings, &err) < 0 ||
        process_create(process, &err) < 0)
        sim_fail("a controller does not start: %s", err.message);
    host->process = process;
    int r = manager_run(process->host.manager, &err);
    host->process = NULL;
    process_destroy(process);
    free(process);
    sim_trace("ended: %s", r < 0 ? err.message : "stopped");
    if (world.gentle && sim_api_holder() == sim_replica())
        sim_fail("controller %u was stopped and keeps the Lease", sim_replica()->number);
    sim_replica()->dead = true;
    return NULL;
}

static void start_controller(void *ctx, int64_t argument UNUSED)
{
    struct host *host = ctx;

    if (host->replica && !host->replica->dead)
        return;
    host->replica = xcalloc(1, sizeof(*host->replica));
    host->replica->number = ++world.started;
    host->replica->wall_step_us = host->wall_step_us;
    host->process = NULL;
    sim_trace("controller %u starts", world.started);
    sim_spawn(host->replica, run_controller, host);
}

static struct host *any_host(void)
{
    return &world.hosts[sim_random(world.host_count)];
}

/* ---- faults: each begins now and returns how long it lasts ---- */

static void end_api_faults(void *ctx UNUSED, int64_t argument UNUSED)
{
    sim_api_faults = (struct sim_api_faults){ 0 };
}

static void api_errors(void)
{
    sim_api_faults = (struct sim_api_faults){ .refused = 2 + (unsigned)sim_random(20),
                                              .lost_reply = 2 + (unsigned)sim_random(20),
                                              .server_error = 2 + (unsigned)sim_random(20),
                                              .conflict = 2 + (unsigned)sim_random(20),
                                              .slow_watch = 1 + (unsigned)sim_random(5),
                                              .gone = 1 + (unsigned)sim_random(3) };
    sim_after((int64_t)sim_random(30 * SECOND), end_api_faults, NULL, 0);
}

static void rights_missing(void)
{
    sim_api_faults.forbidden = 1;
    sim_after((int64_t)sim_random(90 * SECOND), end_api_faults, NULL, 0);
}

static void broker_returns(void *ctx UNUSED, int64_t argument UNUSED)
{
    sim_broker_faults = (struct sim_broker_faults){ 0 };
}

static void broker_away(void)
{
    sim_broker_restart(sim_chance(2));
    sim_broker_faults.away = true;
    sim_after((int64_t)sim_random(60 * SECOND), broker_returns, NULL, 0);
}

static void broker_flaky(void)
{
    sim_broker_faults.lost_puback = 1 + (unsigned)sim_random(5);
    sim_broker_faults.cut = 1 + (unsigned)sim_random(5);
    sim_after((int64_t)sim_random(60 * SECOND), broker_returns, NULL, 0);
}

static void broker_slow(void)
{
    sim_broker_faults.slow_us = 3 * SECOND;
    sim_after((int64_t)sim_random(90 * SECOND), broker_returns, NULL, 0);
}

static void device_starts(void *ctx, int64_t argument UNUSED)
{
    struct sim_device *device = ctx;

    if (!device->on)
        sim_fleet_on(device);
}

static void device_loses_power(void)
{
    struct sim_device *device = &devices[sim_random(ARRAY_LEN(devices))];

    if (!device->on)
        return;
    sim_fleet_off(device);
    sim_after((int64_t)sim_random(sim_chance(3) ? 200 * SECOND : 20 * SECOND), device_starts,
              device, 0);
}

static void device_reachable(void *ctx, int64_t argument UNUSED)
{
    ((struct sim_device *)ctx)->reachable = true;
}

static void device_loses_network(void)
{
    struct sim_device *device = &devices[sim_random(ARRAY_LEN(devices))];

    device->reachable = false;
    sim_after((int64_t)sim_random(sim_chance(3) ? 200 * SECOND : 40 * SECOND), device_reachable,
              device, 0);
}

/* A gateway sets the retain flag on what passes it. */
static void messages_are_retained(void)
{
    sim_broker_faults.retains = 2;
    sim_after((int64_t)sim_random(60 * SECOND), broker_returns, NULL, 0);
}

static void results_are_forged(void)
{
    sim_fleet_faults.forged = 2;
}

static void one_task_is_refused(void)
{
    (void)snprintf(sim_api_faults.refused_task, sizeof(sim_api_faults.refused_task), "task-%02u",
                   1 + (unsigned)sim_random(20));
    sim_after((int64_t)sim_random(200 * SECOND), end_api_faults, NULL, 0);
}

static void starts_are_lost(void)
{
    sim_fleet_faults.lost_start = 2;
}

static void kill_controller(void *ctx, int64_t argument UNUSED)
{
    struct host *host = ctx;

    if (host->replica->dead)
        return;
    sim_trace("controller %u is killed", host->replica->number);
    sim_kill(host->replica);
    sim_broker_drop(host->replica);
    sim_after((int64_t)sim_random(30 * SECOND), start_controller, host, 0);
}

static void controller_is_killed(void)
{
    kill_controller(any_host(), 0);
}

/* Between the publish of a start and the write of what follows it. */
static void controller_dies_publishing(void)
{
    world.dies_publishing = true;
}

static void on_publish(const char *topic, const char *payload, int qos)
{
    sim_fleet_receive(topic, payload, qos);
    if (!world.dies_publishing || !strstr(topic, "/manager/start"))
        return;
    world.dies_publishing = false;
    for (size_t i = 0; i < world.host_count; i++) {
        if (world.hosts[i].replica == sim_replica())
            sim_after((int64_t)sim_random(4000), kill_controller, &world.hosts[i], 0);
    }
}

/* SIGTERM: the manager stops in order. */
static void controller_is_stopped(void)
{
    struct host *host = any_host();
    const struct error why = { .code = ERROR_CANCELED, .message = "the test stops it" };

    if (host->replica->dead || !host->process)
        return;
    sim_trace("controller %u is stopped", host->replica->number);
    manager_fail(host->process->host.manager, &why);
    sim_after(26 * SECOND + (int64_t)sim_random(10 * SECOND), start_controller, host, 0);
}

static void controller_goes_on(void *ctx, int64_t argument UNUSED)
{
    sim_pause(ctx, false);
}

static void controller_is_paused(void)
{
    struct host *host = any_host();

    if (host->replica->dead)
        return;
    sim_trace("controller %u is paused", host->replica->number);
    sim_pause(host->replica, true);
    sim_after((int64_t)sim_random(60 * SECOND), controller_goes_on, host->replica, 0);
}

/* A wall clock is set: by a second up to a day, forwards or backwards. */
static void clock_is_set(void)
{
    static const int64_t STEPS[] = { SECOND, 10 * SECOND, 60 * MINUTE, 24 * 60 * MINUTE };
    struct host *host = any_host();
    int64_t step_us = STEPS[sim_random(ARRAY_LEN(STEPS))];

    world.clocks_set = true;
    host->wall_step_us += sim_chance(2) ? step_us : -step_us;
    host->replica->wall_step_us = host->wall_step_us;
    sim_trace("the clock of controller %u is wrong by %lld s", host->replica->number,
              (long long)(host->wall_step_us / SECOND));
}

static void networks_work(void *ctx, int64_t argument UNUSED)
{
    struct replica *replica = ctx;

    replica->no_api = replica->no_broker = false;
}

static void controller_is_cut_off(void)
{
    struct host *host = any_host();

    host->replica->no_api = sim_chance(2);
    host->replica->no_broker = sim_chance(2);
    sim_after((int64_t)sim_random(60 * SECOND), networks_work, host->replica, 0);
}

static void act_of_nature(void *ctx UNUSED, int64_t argument UNUSED)
{
    static void (*const FAULTS[])(
        void) = { api_errors,           rights_missing,        broker_away,
                  broker_flaky,         device_loses_power,    device_loses_network,
                  starts_are_lost,      controller_is_killed,  controller_is_stopped,
                  controller_is_paused, controller_is_cut_off, controller_dies_publishing,
                  broker_slow,          clock_is_set,          messages_are_retained,
                  results_are_forged,   one_task_is_refused };

    if (world.calm)
        return;
    if (world.gentle)
        controller_is_stopped();
    else
        FAULTS[sim_random(ARRAY_LEN(FAULTS))]();
    sim_after((int64_t)sim_random(30 * SECOND), act_of_nature, NULL, 0);
}

/* ---- the end ---- */

static void make_calm(void)
{
    sim_trace("no more faults");
    world.calm = true;
    sim_users_rest();
    world.dies_publishing = false;
    sim_api_faults = (struct sim_api_faults){ 0 };
    sim_broker_faults = (struct sim_broker_faults){ 0 };
    sim_fleet_faults.lost_start = 0;
    sim_fleet_faults.forged = 0;
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        devices[i].reachable = true;
        device_starts(&devices[i], 0);
    }
    for (size_t i = 0; i < world.host_count; i++) {
        sim_pause(world.hosts[i].replica, false);
        networks_work(world.hosts[i].replica, 0);
        start_controller(&world.hosts[i], 0);
    }
}

static void settle(void)
{
    int64_t calm_us = sim_now_us();
    bool schedules_ended = false;
    const char *first;

    for (;;) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        /* One that was stopped when the calm began may have ended since. */
        for (size_t i = 0; i < world.host_count; i++)
            start_controller(&world.hosts[i], 0);
        sim_world_until(sim_now_us() + MINUTE / 2);
        if (sim_judge_all_ended(arena, world.clocks_set ? 0 : calm_us, &first))
            return;
        /* A broadcast needs several places at once, which recurring Tasks may never leave free at once. */
        if (!schedules_ended && sim_now_us() > calm_us + SETTLE_TIME / 2) {
            sim_users_end_schedules();
            schedules_ended = true;
        }
        if (sim_now_us() > calm_us + SETTLE_TIME)
            sim_fail("not ended within %d minutes: %s", (int)(SETTLE_TIME / MINUTE), first);
    }
}

/* Lets what is on its way arrive, then counts. */
static void judge_quiet(void)
{
    sim_world_until(sim_now_us() + 3 * MINUTE);
    unsigned before = sim_api_writes();
    sim_world_until(sim_now_us() + QUIET_MINUTES * MINUTE);
    unsigned writes = sim_api_writes() - before;
    if (writes > (QUIET_MINUTES + 1) * ARRAY_LEN(devices))
        sim_fail("%u writes in %d minutes in which nothing happened", writes, QUIET_MINUTES);
}

void sim_world(void)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    world.host_count = sim_chance(2) ? 1 : 1 + sim_random(MAX_REPLICAS);
    sim_fleet_faults.longest_us = sim_chance(3) ? 60 * SECOND : 5 * SECOND;
    world.gentle = sim_chance(8);
    sim_fleet_faults.no_repeats = world.gentle;
    sim_api_begin(sim_change);
    sim_broker_faults.retains = sim_chance(2) ? 1 : 0; /* the first `create` of each device */
    sim_broker_begin(on_publish, sim_fleet_forgotten);
    sim_users_begin(devices, ARRAY_LEN(devices));
    sim_fleet_begin(devices, ARRAY_LEN(devices));
    for (size_t i = 0; i < world.host_count; i++)
        start_controller(&world.hosts[i], 0);
    sim_after((int64_t)sim_random(40 * SECOND), act_of_nature, NULL, 0);
    sim_world_until(sim_now_us() + MINUTE + (int64_t)sim_random(4 * MINUTE));

    make_calm();
    settle();
    sim_judge_results(arena);
    sim_judge_starts();
    sim_judge_jobs(arena);
    sim_judge_rounds(arena);
    sim_users_end_schedules();
    if (!sim_chance(QUIET_ONE_IN))
        return;
    judge_quiet();
    sim_judge_results(arena);
}
