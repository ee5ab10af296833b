#include "controller/tests/sim/sim_users.h"

#include <stdio.h>
#include <string.h>

#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "controller/tests/sim/sim_api.h"

#define MAX_TASKS 64
#define MAX_FEDERATED 2
#define PAUSE_US INT64_C(15000000)
#define MODULE "\"file\":\"AGFzbQEAAAA=\""

static struct {
    const struct sim_device *devices;
    size_t device_count;
    struct arena *arena;
    unsigned tasks, jobs, federated; /* that they made so far */
    bool resting;
} users;

static void put(const struct kube_kind *kind, const char *name, const char *spec)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *object;
    const char *json = arena_printf(arena,
                                    "{\"apiVersion\":\"%s/"
                                    "v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\","
                                    "\"namespace\":\"default\"},\"spec\":%s}",
                                    API_GROUP, kind->kind, name, spec);

    if (json_parse(arena, json, strlen(json), &object, NULL) < 0)
        sim_fail("not JSON: %s", json);
    sim_trace("user makes %s %s: %s", kind->kind, name, spec);
    sim_atomic_begin();
    fake_api_put(sim_api, kind, object);
    sim_atomic_end();
}

static void put_proplet(const struct sim_device *device)
{
    put(&KIND_PROPLET, device->client_id,
        arena_printf(users.arena,
                     "{\"type\":\"external\",\"connectionConfig\":{\"mqttAddress\":\"tcp://"
                     "broker\",\"domainId\":\"d\",\"channelId\":\"%s\",\"clientId\":\"%s\","
                     "\"clientKeySecretRef\":{\"name\":\"k\",\"key\":\"k\"}},"
                     "\"external\":{\"maxTasks\":%d,\"heartbeatTimeout\":\"%ds\"}}",
                     device->channel + strlen("m/d/c/"), device->client_id, 1 + (int)sim_random(3),
                     20 + (int)sim_random(40)));
}

/* ---- members of a Task's spec, as JSON that begins with a comma ---- */

static const char *any_retries(void)
{
    return arena_printf(users.arena, ",\"backoffLimit\":%d,\"priority\":%d", (int)sim_random(3),
                        (int)sim_random(101));
}

static const char *any_deadline(void)
{
    return arena_printf(users.arena, ",\"activeDeadlineSeconds\":%d", 60 + (int)sim_random(60));
}

static const char *any_proplet(void)
{
    return arena_printf(users.arena, ",\"propletSelector\":{\"propletId\":\"%s\"}",
                        users.devices[sim_random(users.device_count)].client_id);
}

static const char *any_time_to_live(void)
{
    return arena_printf(users.arena, ",\"ttlSecondsAfterFinished\":%d", 60 + (int)sim_random(60));
}

static const char *waits_for_proplet(void)
{
    return ",\"propletLostPolicy\":\"Wait\"";
}

static const char *any_losses(void)
{
    return arena_printf(users.arena, ",\"lostAttemptsLimit\":%d,\"propletLostSeconds\":%d",
                        (int)sim_random(3), (int)sim_random(30));
}

/* One Task that is there, and perhaps one that comes later, or never, or waits for this one. */
static const char *any_dependencies(void)
{
    const char *later = "";

    if (users.tasks < 2)
        return "";
    if (sim_chance(3))
        later = arena_printf(users.arena, ",\"task-%02u\"", users.tasks + 1);
    return arena_printf(users.arena, ",\"dependsOn\":[\"task-%02u\"%s],\"runIf\":\"%s\"",
                        1 + (unsigned)sim_random(users.tasks - 1), later,
                        sim_chance(3) ? "failure" : "success");
}

static const char *any_schedule(void)
{
    return arena_printf(
        users.arena,
        ",\"isRecurring\":true,\"schedule\":\"@every %ds\",\"concurrencyPolicy\":\"%s\"",
        10 + (int)sim_random(60), sim_chance(2) ? "Forbid" : "Replace");
}

static const char *broadcast(void)
{
    return sim_chance(2) ? ",\"broadcast\":true" : ",\"broadcast\":true,\"broadcastQuorum\":2";
}

static const char *any_members(void)
{
    static const char *(*const MEMBERS[])(
        void) = { any_retries,      any_retries,       any_deadline,     any_proplet,
                  any_time_to_live, waits_for_proplet, any_dependencies, any_dependencies,
                  any_schedule,     broadcast,         any_losses };

    return MEMBERS[sim_random(ARRAY_LEN(MEMBERS))]();
}

/* ---- what they do ---- */

static void make_task(void)
{
    users.tasks++;
    put(&KIND_TASK, arena_printf(users.arena, "task-%02u", users.tasks),
        arena_printf(users.arena, "{\"name\":\"t\"," MODULE ",\"inputs\":[1,2]%s}", any_members()));
}

#define RUN_AGAIN "\"faultTolerance\":{\"retryLimit\":2,\"retryPausePeriod\":\"5s\"}"

static void make_job(void)
{
    static const char *const ORDERS[] = { "\"executionMode\":\"parallel\"",
                                          "\"executionMode\":\"sequential\"",
                                          "\"failurePolicy\":\"Continue\",\"parallelism\":1",
                                          "\"backoffLimit\":1", RUN_AGAIN };
    static const char *const LAST[] = { "", ",\"dependsOn\":[\"a\",\"b\"]",
                                        ",\"dependsOn\":[\"a\"],\"runIf\":\"failure\"" };

    put(&KIND_PROPELLERJOB, arena_printf(users.arena, "job-%02u", ++users.jobs),
        arena_printf(users.arena,
                     "{\"name\":\"j\",%s,\"tasks\":[{\"name\":\"a\"," MODULE
                     "},{\"name\":\"b\"," MODULE "},{\"name\":\"c\"," MODULE "%s}]}",
                     ORDERS[sim_random(ARRAY_LEN(ORDERS))], LAST[sim_random(ARRAY_LEN(LAST))]));
}

/* Two of all devices make a round. */
static void make_federated_job(void)
{
    const char *list = "";

    for (size_t i = 0; i < users.device_count; i++)
        list = arena_printf(users.arena, "%s%s{\"propletId\":\"%s\"}", list, i ? "," : "",
                            users.devices[i].client_id);
    put(&KIND_FEDERATEDJOB, arena_printf(users.arena, "train-%u", ++users.federated),
        arena_printf(
            users.arena,
            "{\"experimentId\":\"e\",\"taskWasmImage\":\"http://modules/train.wasm\","
            "\"kOfN\":2,\"rounds\":{\"total\":2},\"timeoutSeconds\":300,\"historyLimit\":10,"
            "\"participants\":[%s]%s}",
            list, sim_chance(2) ? "" : ",\"lateUpdates\":\"StalenessWeighted\""));
}

static void create(void)
{
    if (users.tasks == MAX_TASKS)
        return;
    if (sim_chance(6))
        make_job();
    else if (users.federated < MAX_FEDERATED && sim_chance(8))
        make_federated_job();
    else
        make_task();
}

static struct kube_name any_task(void)
{
    struct kube_name name = { .ns = "default" };

    snprintf(name.name, sizeof(name.name), "task-%02u", 1 + (unsigned)sim_random(users.tasks));
    return name;
}

static void delete_task(const struct kube_name *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    sim_atomic_begin();
    if (fake_api_get(sim_api, arena, &KIND_TASK, name))
        fake_api_delete(sim_api, &KIND_TASK, name);
    sim_atomic_end();
    sim_trace("user deletes %s", name->name);
}

static void suspend(const struct kube_name *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    sim_atomic_begin();
    const cJSON *task = fake_api_get(sim_api, arena, &KIND_TASK, name);
    if (task && !json_path(task, "metadata", "deletionTimestamp", NULL)) {
        cJSON *changed = arena_own(arena, json_copy(task), json_free);
        cJSON *spec = arena_own(arena, json_copy(json_get(task, "spec")), json_free);
        json_set_bool(spec, "suspend", !json_bool(json_get(spec, "suspend"), false));
        json_set_copy(changed, "spec", spec);
        fake_api_put(sim_api, &KIND_TASK, changed);
    }
    sim_atomic_end();
    sim_trace("user suspends or resumes %s", name->name);
}

/* ---- Proplets that close ---- */

/* Of a Proplet; value NULL: the member goes. */
static void set_member(const char *proplet, const char *member, const cJSON *value)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name = { .ns = "default" };

    (void)str_copy(name.name, sizeof(name.name), proplet);
    sim_atomic_begin();
    const cJSON *object = fake_api_get(sim_api, arena, &KIND_PROPLET, &name);
    if (object) {
        cJSON *changed = arena_own(arena, json_copy(object), json_free);
        cJSON *spec = (cJSON *)json_get(changed, "spec");

        json_remove(spec, member);
        if (value)
            json_set_copy(spec, member, value);
        fake_api_put(sim_api, &KIND_PROPLET, changed);
    }
    sim_atomic_end();
    sim_trace("user changes %s of %s", member, proplet);
}

/* device: its number. */
static void open_again(void *ctx UNUSED, int64_t device)
{
    set_member(users.devices[device].client_id, "killSwitch", NULL);
    set_member(users.devices[device].client_id, "availability", NULL);
}

/* With a grace, or by the kill switch. It opens within a minute and a half, also when users rest. */
static void close_proplet(void)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t device = sim_random(users.device_count);
    const cJSON *spec = NULL;
    const char *text =
        sim_chance(3)
            ? "{\"killSwitch\":true}"
            : arena_printf(arena,
                           "{\"availability\":{\"gracefulShutdownTimeout\":\"%ds\",\"schedule\":{"
                           "\"enabled\":false,\"daysOfWeek\":[\"mon\"],\"hoursOfDay\":[\"1\"]}}}",
                           (int)sim_random(40));

    if (json_parse(arena, text, strlen(text), &spec, NULL) < 0)
        sim_fail("not JSON: %s", text);
    set_member(users.devices[device].client_id, json_first(spec)->string, json_first(spec));
    sim_after((int64_t)sim_random(6 * PAUSE_US), open_again, NULL, (int64_t)device);
}

static void act(void *ctx UNUSED, int64_t argument UNUSED)
{
    if (users.resting)
        return;
    const struct kube_name name = users.tasks ? any_task() : (struct kube_name){ .ns = "" };
    if (users.tasks && sim_chance(8))
        delete_task(&name);
    else if (users.tasks && sim_chance(12))
        suspend(&name);
    else if (sim_chance(10))
        close_proplet();
    else
        create();
    sim_after((int64_t)sim_random(PAUSE_US), act, NULL, 0);
}

void sim_users_begin(const struct sim_device *devices, size_t count)
{
    users.arena = arena_create();
    users.devices = devices;
    users.device_count = count;
    for (size_t i = 0; i < count; i++)
        put_proplet(&devices[i]);
    sim_after((int64_t)sim_random(PAUSE_US), act, NULL, 0);
}

void sim_users_rest(void)
{
    users.resting = true;
}

void sim_users_end_schedules(void)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name = { .ns = "default" };

    for (unsigned i = 1; i <= users.tasks; i++) {
        snprintf(name.name, sizeof(name.name), "task-%02u", i);
        sim_atomic_begin();
        const cJSON *task = fake_api_get(sim_api, arena, &KIND_TASK, &name);
        sim_atomic_end();
        if (json_bool(json_path(task, "spec", "isRecurring", NULL), false))
            delete_task(&name);
    }
}
