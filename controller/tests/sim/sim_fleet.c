#include "controller/tests/sim/sim_fleet.h"

#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/tests/device_model.h"
#include "controller/tests/sim/sim_broker.h"

#define MAX_RUNS 4096
#define MAX_TIMERS 8192
#define HEARTBEAT_US 10000000
#define METRICS_US 10000000
#define RESEND_US 1000000
#define CROSSING_US 10000000

struct sim_fleet_faults sim_fleet_faults;

static struct {
    struct sim_device *devices;
    size_t count;
    struct sim_run runs[MAX_RUNS];
    size_t run_count;
} fleet;

/* ---- timers of the world ---- */

struct timer {
    int64_t due_us;
    sim_timer_fn *function;
    void *ctx;
    int64_t argument;
};
static struct timer timers[MAX_TIMERS];
static size_t timer_count;

void sim_after(int64_t us, sim_timer_fn *function, void *ctx, int64_t argument)
{
    if (timer_count == MAX_TIMERS)
        sim_fail("more than %d timers", MAX_TIMERS);
    timers[timer_count++] = (struct timer){ sim_now_us() + us, function, ctx, argument };
    sim_wake(timers);
}

static size_t earliest(void)
{
    size_t found = 0;

    for (size_t i = 1; i < timer_count; i++) {
        if (timers[i].due_us < timers[found].due_us)
            found = i;
    }
    return found;
}

void sim_world_until(int64_t us)
{
    while (sim_now_us() < us) {
        size_t next = earliest();
        int64_t due_us = timer_count && timers[next].due_us < us ? timers[next].due_us : us;

        if (due_us > sim_now_us()) {
            (void)sim_wait(timers, due_us);
            continue;
        }
        struct timer timer = timers[next];
        timers[next] = timers[--timer_count];
        timer.function(timer.ctx, timer.argument);
    }
}

/* ---- what a device says ---- */

static bool say(const struct sim_device *device, const char *suffix, const char *payload, int qos)
{
    char topic[256];

    snprintf(topic, sizeof(topic), "%s/control/proplet/%s", device->channel, suffix);
    return device->reachable && sim_broker_publish(topic, payload, qos);
}

static void heartbeat(void *ctx, int64_t boot)
{
    struct sim_device *device = ctx;
    char payload[256];

    if (!device->on || device->boot != boot)
        return;
    snprintf(payload, sizeof(payload),
             "{\"proplet_id\":\"%s\",\"status\":\"alive\",\"namespace\":\"default\"}",
             device->client_id);
    if (say(device, "alive", payload, 1))
        device->spoke_us = sim_now_us();
    sim_after(HEARTBEAT_US, heartbeat, device, boot);
}

/* Queued in the device until the broker has it. */
static void announce(void *ctx, int64_t boot)
{
    struct sim_device *device = ctx;
    char payload[256];

    if (!device->on || device->boot != boot)
        return;
    snprintf(payload, sizeof(payload),
             "{\"proplet_id\":\"%s\",\"namespace\":\"default\",\"metadata\":{\"os\":\"linux\"}}",
             device->client_id);
    if (!say(device, "create", payload, 1)) {
        sim_after(RESEND_US, announce, device, boot);
        return;
    }
    device->created_us = device->spoke_us = sim_now_us();
    heartbeat(device, boot);
}

/* Another one for each attempt and device. */
unsigned sim_fleet_update(const struct sim_run *run)
{
    unsigned sum = (unsigned)(run->device - fleet.devices);

    for (const char *c = run->id; *c; c++)
        sum = sum * 31 + (unsigned char)*c;
    return sum % 1000000;
}

const char *sim_fleet_answer(const struct sim_run *run, char ret[static 2 * SIM_ID_LEN])
{
    if (run->trains && !run->fails) {
        snprintf(ret, 2 * SIM_ID_LEN, "[%u]", sim_fleet_update(run));
        return ret;
    }
    snprintf(ret, 2 * SIM_ID_LEN, "%s of %s on %s", run->fails ? "trap" : "result", run->id,
             run->device->client_id);
    return ret;
}

static void send_result(void *ctx, int64_t boot)
{
    struct sim_run *run = ctx;
    char payload[512], text[2 * SIM_ID_LEN];

    if (!run->device->on || run->device->boot != boot)
        return;
    (void)sim_fleet_answer(run, text);
    snprintf(payload, sizeof(payload),
             "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",\"results\":\"%s\",\"error\":%s%s%s}",
             run->id, run->device->client_id, run->fails ? "" : text, run->fails ? "\"" : "",
             run->fails ? text : "null", run->fails ? "\"" : "");
    if (!say(run->device, "results", payload, 1)) {
        sim_after(RESEND_US, send_result, run, boot);
        return;
    }
    if (run->results++ == 0)
        run->result_us = sim_now_us();
}

static void finish(void *ctx, int64_t boot)
{
    struct sim_run *run = ctx;

    if (!run->running || !run->device->on || run->device->boot != boot)
        return;
    run->running = false;
    send_result(run, boot);
}

static void sample(void *ctx, int64_t boot)
{
    struct sim_run *run = ctx;
    char payload[512];

    if (!run->running || !run->device->on || run->device->boot != boot)
        return;
    snprintf(
        payload, sizeof(payload),
        "{\"task_id\":\"%s\",\"proplet_id\":\"%s\",\"metrics\":{\"cpu_percent\":1.5,\"memory_"
        "bytes\":1048576,"
        "\"memory_percent\":0.1,\"disk_read_bytes\":0,\"disk_write_bytes\":0,\"uptime_seconds\":1,"
        "\"thread_count\":1,\"file_descriptor_count\":3},\"aggregated\":null,\"timestamp\":{\"secs_"
        "since_epoch\":"
        "1767225600,\"nanos_since_epoch\":0}}",
        run->id, run->device->client_id);
    (void)say(run->device, "task_metrics", payload, 0);
    sim_after(METRICS_US, sample, run, boot);
}

/* Results of it that are not its device's: of another attempt, of another device, on another channel;
 * and garbage. */
static void forge(const struct sim_run *run)
{
    static const char RESULT[] = "{\"task_id\":\"%s%s\",\"proplet_id\":\"%s\",\"results\":"
                                 "\"forged\",\"error\":null}";
    const struct sim_device *self = run->device, *other = &fleet.devices[0];
    char topic[256], payload[512];

    for (size_t i = 0; i < fleet.count; i++) {
        if (!str_equal(fleet.devices[i].channel, self->channel))
            other = &fleet.devices[i];
    }
    snprintf(topic, sizeof(topic), "%s/control/proplet/results", self->channel);
    snprintf(payload, sizeof(payload), RESULT, run->id, ".7", self->client_id);
    (void)sim_broker_publish(topic, payload, 1);
    snprintf(payload, sizeof(payload), RESULT, run->id, "", "a-stranger");
    (void)sim_broker_publish(topic, payload, 1);
    (void)sim_broker_publish(topic, "{\"task_id\":7", 1);
    snprintf(topic, sizeof(topic), "%s/control/proplet/results", other->channel);
    snprintf(payload, sizeof(payload), RESULT, run->id, "", self->client_id);
    (void)sim_broker_publish(topic, payload, 1);
}

/* ---- what a device hears ---- */

static struct sim_run *run_of(struct sim_device *device, const char *id)
{
    for (size_t i = 0; i < fleet.run_count; i++) {
        if (fleet.runs[i].device == device && str_equal(fleet.runs[i].id, id))
            return &fleet.runs[i];
    }
    if (fleet.run_count == MAX_RUNS)
        sim_fail("more than %d runs", MAX_RUNS);
    struct sim_run *run = &fleet.runs[fleet.run_count++];
    *run = (struct sim_run){ .device = device, .fails = sim_chance(6) };
    (void)str_copy(run->id, sizeof(run->id), id);
    return run;
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of an attempt that this device has computed, or begun to compute. */
static void judge_repeat(const struct sim_run *run)
{
    const struct sim_device *device = run->device;
    bool is_restarted = run->boot != device->boot;
    /* G2: its result was in the broker's queue, where the controller must look first. One that
     * crosses its own result, for as long as a marker takes through the queue, may be repeated. */
    int64_t queued_us = latest(run->result_us, sim_broker_slow_us());

    if (run->results > run->forgotten && !is_restarted && sim_now_us() - queued_us > CROSSING_US)
        sim_fail("the start of '%s' is repeated, and its result was stored %.1f s before", run->id,
                 (double)(sim_now_us() - run->result_us) / 1e6);
    /* After a reconnection a `create` may be older than the start, and the device's silence counts. */
    if (is_restarted && device->created_us && run->connects == sim_broker_connects() &&
        sim_now_us() - device->created_us > CROSSING_US)
        sim_fail("the start of '%s' is repeated, which '%s' lost with its process, as its `create` "
                 "said %.1f s before",
                 run->id, device->client_id, (double)(sim_now_us() - device->created_us) / 1e6);
}

static void start(struct sim_device *device, const cJSON *message)
{
    const char *why;
    enum device_verdict verdict = device_start(message, device->client_id, &why);

    if (verdict == DEVICE_DROPS)
        sim_fail("a device drops a start: %s", why);
    if (verdict == DEVICE_IGNORES)
        return;
    struct sim_run *run = run_of(device, json_string(json_get(message, "id"), ""));
    if (run->executions && sim_fleet_faults.no_repeats)
        sim_fail("the start of '%s' is repeated although nothing happened", run->id);
    if (run->running && run->boot == device->boot)
        return;
    if (run->executions)
        judge_repeat(run);
    run->trains = json_path(message, "env", "ROUND_ID", NULL) != NULL;
    run->running = true;
    run->executions++;
    run->boot = device->boot;
    run->connects = sim_broker_connects();
    if (sim_fleet_faults.forged && sim_chance(sim_fleet_faults.forged))
        forge(run);
    sim_after(100000, sample, run, device->boot);
    sim_after(1000 + (int64_t)sim_random((uint64_t)sim_fleet_faults.longest_us), finish, run,
              device->boot);
}

static void stop(struct sim_device *device, const cJSON *message)
{
    const char *id = json_string(json_get(message, "id"), "");

    for (size_t i = 0; i < fleet.run_count; i++) {
        struct sim_run *run = &fleet.runs[i];

        if (run->device == device && str_equal(run->id, id))
            run->running = false;
    }
}

void sim_fleet_receive(const char *topic, const char *payload, int qos UNUSED)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    bool starts = strstr(topic, "/control/manager/start") != NULL;
    const cJSON *message;

    if (!starts && !strstr(topic, "/control/manager/stop"))
        return;
    if (json_parse(arena, payload, strlen(payload), &message, NULL) < 0)
        sim_fail("a controller publishes what is not JSON: %s", payload);
    for (size_t i = 0; i < fleet.count; i++) {
        struct sim_device *device = &fleet.devices[i];

        if (!device->on || !device->reachable || !str_has_prefix(topic, device->channel))
            continue;
        if (!starts)
            stop(device, message);
        else if (!sim_fleet_faults.lost_start || !sim_chance(sim_fleet_faults.lost_start))
            start(device, message);
    }
}

void sim_fleet_forgotten(const char *topic, const char *payload, int qos UNUSED)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *message;

    if (json_parse(arena, payload, strlen(payload), &message, NULL) < 0)
        return;
    const char *id = json_string(json_get(message, "task_id"), "");
    const char *device = json_string(json_get(message, "proplet_id"), "");
    for (size_t i = 0; i < fleet.run_count && strstr(topic, "/proplet/results"); i++) {
        struct sim_run *run = &fleet.runs[i];

        if (str_equal(run->id, id) && str_equal(run->device->client_id, device) &&
            str_has_prefix(topic, run->device->channel) && !strstr(payload, "\"forged\""))
            run->forgotten++;
    }
    for (size_t i = 0; i < fleet.count && strstr(topic, "/proplet/create"); i++) {
        if (str_equal(fleet.devices[i].client_id, device))
            fleet.devices[i].created_us = 0;
    }
}

void sim_fleet_off(struct sim_device *device)
{
    device->on = false;
    for (size_t i = 0; i < fleet.run_count; i++) {
        if (fleet.runs[i].device == device)
            fleet.runs[i].running = false;
    }
}

void sim_fleet_on(struct sim_device *device)
{
    device->on = true;
    device->boot++;
    device->created_us = 0;
    announce(device, device->boot);
}

void sim_fleet_begin(struct sim_device *devices, size_t count)
{
    fleet.devices = devices;
    fleet.count = count;
    for (size_t i = 0; i < count; i++) {
        devices[i].reachable = true;
        sim_fleet_on(&devices[i]);
    }
}

size_t sim_fleet_runs(const struct sim_run **ret)
{
    *ret = fleet.runs;
    return fleet.run_count;
}

const struct sim_device *sim_fleet_device(const char *client_id)
{
    for (size_t i = 0; i < fleet.count; i++) {
        if (str_equal(fleet.devices[i].client_id, client_id))
            return &fleet.devices[i];
    }
    return NULL;
}
