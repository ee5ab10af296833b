#include "controller/tests/machine_stage.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/conditions.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "common/tests/parsed.h"
#include "common/tests/temp_dir.h"
#include "controller/tests/staged.h"

#define PATIENCE_S 60
#define PATIENCE_MS 20000
#define PROVIDER_ID "kind://one"
#define NODE_NAME "node-1"
#define MANAGER "machine.cluster.x-k8s.io"
#define MAX_TURNS 400

struct machine_stage mstage;

#define PART_KIND(group_name, kind_name, plural_name)                                              \
    {                                                                                              \
        .group = (group_name), .version = "v1beta1", .kind = (kind_name), .plural = (plural_name), \
        .namespaced = true                                                                         \
    }
const struct kube_kind STAGE_BOOTSTRAP =
    PART_KIND("bootstrap.cluster.x-k8s.io", "K0sWorkerConfig", "k0sworkerconfigs");
/* Its plural is no kind and s. */
const struct kube_kind STAGE_INFRASTRUCTURE =
    PART_KIND("infrastructure.cluster.x-k8s.io", "RemoteProxy", "remoteproxies");

static const struct kube_kind *const KINDS[] = { &KIND_SCHEDULEDMACHINE, &KIND_MACHINE,
                                                 &KIND_NODE };

static struct {
    struct kube_config *config;
    struct kube_client *client;
    struct kube_client *other; /* of everybody else */
    struct events *events;
    struct watch_loop *loop;
} process;

/* --- the API server ---------------------------------------------------------------------------- */

static void answer(struct arena *arena, int status, const char *body, struct http_response *ret)
{
    *ret = (struct http_response){ .status = status,
                                   .body = arena_strdup(arena, body),
                                   .body_len = strlen(body) };
}

static bool discover(struct arena *arena, const char *path, struct http_response *ret)
{
    static const struct kube_kind *const SERVED[] = { &KIND_MACHINE, &STAGE_BOOTSTRAP,
                                                      &STAGE_INFRASTRUCTURE };

    for (size_t i = 0; i < ARRAY_LEN(SERVED); i++) {
        const struct kube_kind *kind = SERVED[i];

        if (kind == &KIND_MACHINE && mstage.has_no_machines)
            continue;
        if (str_equal(path, arena_printf(arena, "/apis/%s/%s", kind->group, kind->version))) {
            answer(arena, 200,
                   arena_printf(arena,
                                "{\"resources\":[{\"name\":\"%s\",\"kind\":\"%s\","
                                "\"namespaced\":true}]}",
                                kind->plural, kind->kind),
                   ret);
            return true;
        }
    }
    return false;
}

static bool evict(struct arena *arena, const struct http_request *request,
                  struct http_response *ret)
{
    struct kube_name name;
    const char *uid;
    const cJSON *body, *pod;

    if (!str_equal(request->method, "POST") || !str_has_suffix(request->path, "/eviction"))
        return false;
    body = parsed(arena, arena_strndup(arena, request->body, request->body_len));
    uid = json_string(json_path(body, "deleteOptions", "preconditions", "uid", NULL), "");
    ck_assert(kube_name_of(body, &name));
    pod = fake_api_get(mstage.api, arena, &KIND_POD, &name);
    if (mstage.eviction != 201) {
        answer(arena, mstage.eviction, "{\"kind\":\"Status\",\"message\":\"no\"}", ret);
    } else if (!pod) {
        answer(arena, 404, "{\"kind\":\"Status\"}", ret);
    } else if (!str_equal(kube_uid(pod), uid)) {
        answer(arena, 409, "{\"kind\":\"Status\"}", ret);
    } else {
        mstage.evictions++;
        fake_api_delete(mstage.api, &KIND_POD, &name);
        answer(arena, 201, "{}", ret);
    }
    return true;
}

/* Nothing of another owner is changed, and no pod of a drain is deleted. */
static void watch_guarantees(const struct http_request *request)
{
    bool emergency = str_equal(machine_stage_phase(), "EmergencyRemove");

    if (str_equal(request->method, "DELETE") && strstr(request->path, "/pods/")) {
        mstage.pods_deleted++;
        if (!emergency)
            mstage.broken = "a pod was deleted without asking its budget";
    }
    if (emergency && str_equal(request->method, "DELETE") && strstr(request->path, "/machines/") &&
        json_bool(json_path(machine_stage_get(&KIND_SCHEDULEDMACHINE, "one"), "spec", "schedule",
                            "enabled", NULL),
                  true))
        mstage.broken = "a Machine was deleted before its schedule was disabled";
}

static bool is_of(const struct http_request *request, const char *method,
                  const struct kube_kind *kind)
{
    return kind && str_equal(request->method, method) && strstr(request->path, kind->plural);
}

/* Others write between the read and the write. */
static void interfere(const struct http_request *request)
{
    const struct kube_name name = staged_name("one");

    if (is_of(request, "POST", mstage.intruder)) {
        machine_stage_put_foreign(mstage.intruder);
        mstage.intruder = NULL;
    } else if (is_of(request, "DELETE", mstage.usurper)) {
        fake_api_delete(mstage.api, mstage.usurper, &name);
        machine_stage_put_foreign(mstage.usurper);
        mstage.usurper = NULL;
    }
}

static int serve(void *ctx, struct arena *arena, const struct http_request *request,
                 struct http_response *ret, struct error *err)
{
    watch_guarantees(request);
    interfere(request);
    if (mstage.refusal && str_equal(request->method, "POST") &&
        strstr(request->path, ".cluster.x-k8s.io/")) {
        answer(arena, mstage.refusal, "{\"kind\":\"Status\",\"message\":\"not allowed\"}", ret);
        return 0;
    }
    if (mstage.node_refusal && is_of(request, "PATCH", &KIND_NODE)) {
        answer(arena, mstage.node_refusal, "{\"kind\":\"Status\",\"message\":\"not this Node\"}",
               ret);
        return 0;
    }
    if (is_of(request, "GET", mstage.unreadable)) {
        answer(arena, mstage.unread, "{\"kind\":\"Status\",\"message\":\"not readable\"}", ret);
        return 0;
    }
    if (mstage.hides_pods && strstr(request->path, "/pods?")) {
        answer(arena, 500, "{\"kind\":\"Status\",\"message\":\"no\"}", ret);
        return 0;
    }
    if (discover(arena, request->path, ret) || evict(arena, request, ret))
        return 0;
    return fake_api_roundtrip(ctx, arena, request, ret, err);
}

static int fail_request(void *ctx, struct arena *arena, const struct http_request *request,
                        struct http_response *ret, struct error *err)
{
    bool can_conflict = str_equal(request->method, "PATCH") || str_equal(request->method, "DELETE");

    switch (mstage.fault) {
    case FAULT_REFUSED:
        return error_set(err, ERROR_UNAVAILABLE, "refused");
    case FAULT_LOST_REPLY:
        (void)!serve(ctx, arena, request, ret, err);
        return error_set(err, ERROR_TIMEOUT, "no reply");
    case FAULT_CRASH_AFTER:
        (void)!serve(ctx, arena, request, ret, err);
        mstage.dead = true;
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    case FAULT_CRASH_BEFORE:
        mstage.dead = true;
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    default:
        answer(arena, mstage.fault == FAULT_CONFLICT && can_conflict ? 409 : 500,
               "{\"kind\":\"Status\",\"message\":\"asked for\"}", ret);
        return 0;
    }
}

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (mstage.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    return ++mstage.steps == mstage.fail_at ? fail_request(ctx, arena, request, ret, err)
                                            : serve(ctx, arena, request, ret, err);
}

/* --- watches ----------------------------------------------------------------------------------- */

static struct informer *informer_of(const struct kube_kind *kind)
{
    if (kind == &KIND_SCHEDULEDMACHINE)
        return mstage.deps.objects;
    return kind == &KIND_MACHINE ? mstage.deps.machines : mstage.deps.nodes;
}

static const struct kube_kind *kind_of(const cJSON *object)
{
    const char *kind = json_string(json_get(object, "kind"), "");

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (str_equal(KINDS[i]->kind, kind))
            return KINDS[i];
    }
    return NULL;
}

static bool is_watched(const struct kube_kind *kind, const cJSON *object)
{
    return kind != &KIND_MACHINE || json_path(object, "metadata", "labels", MACHINE_LABEL, NULL);
}

static void bring(const struct kube_kind *kind, const cJSON *object)
{
    cJSON *reply = json_copy(object);

    informer_observed(informer_of(kind), reply);
    json_free(reply);
}

static void forget(const struct kube_kind *kind, const cJSON *old)
{
    struct kube_name name;

    ck_assert(kube_name_of(old, &name));
    kube_object_unref(
        store_remove(informer_store(informer_of(kind)), &name,
                     json_string(json_path(old, "metadata", "resourceVersion", NULL), "")));
}

static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const struct kube_kind *kind = kind_of(current ? current : old);

    if (kind == &KIND_MACHINE && !old && current)
        mstage.machines++;
    if (!kind || mstage.dead || mstage.is_late)
        return;
    if (current && is_watched(kind, current))
        bring(kind, current);
    else if (old)
        forget(kind, old);
}

/* --- the process ------------------------------------------------------------------------------- */

/* Of the watch loop: lists are empty, and watches stay open. */
static struct kube_config *make_config(void)
{
    static const char *const LISTS[] = { "/apis/5spot.finos.org/", "/apis/cluster.x-k8s.io/",
                                         "/api/v1/nodes" };
    const char *text =
        arena_printf(mstage.arena,
                     "{apiVersion: v1, kind: Config, current-context: c,\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                     "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}],\n"
                     "users: [{name: u, user: {}}]}\n",
                     tiny_server_port(mstage.http));
    const char *dir = temp_dir(mstage.arena);
    struct kube_config *config;
    struct error err = { 0 };
    int r = kube_config_load(temp_file(mstage.arena, dir, "config", text), &config, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
        tiny_server_answer(mstage.http, LISTS[i], 200,
                           "{\"metadata\":{\"resourceVersion\":\"0\"},\"items\":[]}");
    tiny_server_answer(mstage.http, "watch=true", 200, "");
    return config;
}

static int on_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    if (is_watched(ctx, item))
        bring(ctx, item);
    return 0;
}

static void start_process(void)
{
    const struct kube_list_options all = { 0 };
    struct error err = { 0 };

    mstage.dead = false;
    process.client = kube_client_create_with(roundtrip, mstage.api);
    process.events = events_create(process.other, "test", "test", &CLOCK_SYSTEM);
    process.loop = watch_loop_create(process.config);
    mstage.deps =
        (struct machine_deps){ .objects = staged_cache(process.loop, &KIND_SCHEDULEDMACHINE),
                               .machines = staged_cache(process.loop, &KIND_MACHINE),
                               .nodes = staged_cache(process.loop, &KIND_NODE),
                               .ns = STAGE_NS,
                               .flags = &mstage.flags,
                               .discovery = machine_discovery_create(&mstage.clock.clock),
                               .notes = machine_notes_create() };
    ck_assert_int_eq(watch_loop_start(process.loop, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (KINDS[i] == &KIND_MACHINE && mstage.has_no_machines)
            continue;
        ck_assert(informer_wait_synced(informer_of(KINDS[i]), PATIENCE_MS));
        ck_assert_int_eq(
            kube_list(process.other, KINDS[i], &all, on_item, (void *)(uintptr_t)KINDS[i], &err),
            0);
    }
}

static void end_process(void)
{
    events_destroy(process.events);
    watch_loop_stop(process.loop);
    watch_loop_destroy(process.loop);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        informer_destroy(informer_of(KINDS[i]));
    machine_discovery_destroy(mstage.deps.discovery);
    machine_notes_destroy(mstage.deps.notes);
    kube_client_destroy(process.client);
}

void machine_stage_set_up(void)
{
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(PATIENCE_S);
    log_configure(LOG_ERROR, LOG_TEXT);
    mstage = (struct machine_stage){ .arena = arena_create(),
                                     .api = fake_api_create(),
                                     .http = tiny_server_start(0),
                                     .provider_id = PROVIDER_ID,
                                     .eviction = 201 };
    fake_clock_init(&mstage.clock);
    fake_api_set_clock(mstage.api, &mstage.clock.clock);
    process.config = make_config();
    process.other = kube_client_create_with(fake_api_roundtrip, mstage.api);
    start_process();
    fake_api_on_change(mstage.api, on_change, NULL);
}

void machine_stage_tear_down(void)
{
    end_process();
    kube_client_destroy(process.other);
    kube_config_destroy(process.config);
    tiny_server_stop(mstage.http);
    fake_api_destroy(mstage.api);
    arena_destroy(mstage.arena);
}

/* --- what others do ---------------------------------------------------------------------------- */

static void put(const struct kube_kind *kind, const char *ns, const char *name, const char *more)
{
    cJSON *object = (cJSON *)(uintptr_t)parsed(
        mstage.arena,
        arena_printf(mstage.arena, "{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\"%s}", kind->group,
                     *kind->group ? "/" : "", kind->version, kind->kind, more));
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(object, "metadata");

    if (!metadata)
        metadata = json_set_object(object, "metadata");
    json_set_string(metadata, "name", name);
    json_set_string(metadata, "namespace", *ns ? ns : NULL);
    fake_api_put(mstage.api, kind, object);
}

void machine_stage_put(const char *schedule, const char *more)
{
    const cJSON *spec = parsed(
        mstage.arena,
        arena_printf(mstage.arena,
                     "{\"schedule\":{%s},\"clusterName\":\"c\",\"gracefulShutdownTimeout\":\"5s\","
                     "\"nodeDrainTimeout\":\"60s\","
                     "\"bootstrapSpec\":{\"apiVersion\":\"bootstrap.cluster.x-k8s.io/v1beta1\","
                     "\"kind\":\"K0sWorkerConfig\",\"spec\":{}},"
                     "\"infrastructureSpec\":{\"apiVersion\":"
                     "\"infrastructure.cluster.x-k8s.io/v1beta1\",\"kind\":\"RemoteProxy\","
                     "\"spec\":{}}%s}",
                     schedule, more));

    staged_put(mstage.api, &KIND_SCHEDULEDMACHINE, "one", spec, NULL);
}

void machine_stage_put_pod(const char *name)
{
    put(&KIND_POD, "default", name, ",\"spec\":{\"nodeName\":\"" NODE_NAME "\"}");
}

void machine_stage_put_foreign(const struct kube_kind *kind)
{
    put(kind, "default", "one",
        ",\"metadata\":{\"labels\":{\"" MACHINE_LABEL "\":\"one\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"5spot.finos.org/v1alpha1\",\"kind\":\"ScheduledMachine\","
        "\"name\":\"one\",\"uid\":\"of-before\"}]}");
}

static int patch_metadata(const struct kube_kind *kind, const struct kube_name *name,
                          const char *patch)
{
    struct error err = { 0 };

    return kube_patch(process.other, NULL, kind, name, KUBE_MAIN, KUBE_PATCH_MERGE,
                      parsed(mstage.arena, patch), NULL, &err);
}

void machine_stage_annotate_node(const char *key, const char *value)
{
    const struct kube_name name = { "", NODE_NAME };

    ck_assert_int_eq(patch_metadata(&KIND_NODE, &name,
                                    arena_printf(mstage.arena,
                                                 "{\"metadata\":{\"annotations\":{\"%s\":\"%s\"}}}",
                                                 key, value)),
                     0);
}

void machine_stage_delete(void)
{
    const struct kube_name name = staged_name("one");

    fake_api_delete(mstage.api, &KIND_SCHEDULEDMACHINE, &name);
}

const cJSON *machine_stage_get(const struct kube_kind *kind, const char *name)
{
    struct kube_name key = staged_name(name);

    if (!kind->namespaced)
        *key.ns = '\0';
    return fake_api_get(mstage.api, mstage.arena, kind, &key);
}

static bool is_ours(const cJSON *object)
{
    return object && !str_equal(json_string(json_get(json_first(json_path(object, "metadata",
                                                                          "ownerReferences", NULL)),
                                                     "uid"),
                                            ""),
                                "of-before");
}

bool machine_stage_manage(void)
{
    const struct kube_name name = staged_name("one"), node_name = { "", NODE_NAME };
    const cJSON *object = machine_stage_get(&KIND_MACHINE, "one");
    struct error err = { 0 };

    if (mstage.still || !is_ours(object))
        return false;
    if (kube_is_deleting(object)) {
        if (!mstage.keeps_node)
            fake_api_delete(mstage.api, &KIND_NODE, &node_name);
        ck_assert_int_eq(finalizer_remove(process.other, &KIND_MACHINE, object, MANAGER, &err), 0);
        return true;
    }
    if (json_path(object, "status", "nodeRef", NULL))
        return false;
    put(&KIND_NODE, "", NODE_NAME,
        arena_printf(mstage.arena,
                     ",\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"providerID\":\"%s\","
                     "\"taints\":[{\"key\":\"theirs\",\"effect\":\"NoSchedule\"}]},"
                     "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
                     mstage.provider_id));
    cJSON *copy = json_copy(object);
    cJSON *status = json_set_object(copy, "status");
    json_add_string(json_set_array((cJSON *)(uintptr_t)json_get(copy, "metadata"), "finalizers"),
                    MANAGER);
    json_set_string((cJSON *)(uintptr_t)json_get(copy, "spec"), "providerID", PROVIDER_ID);
    json_set_string(json_set_object(status, "nodeRef"), "name", NODE_NAME);
    cJSON *ready = json_add_object(json_set_array(status, "conditions"));
    json_set_string(ready, "type", "Ready");
    json_set_string(ready, "status", "True");
    fake_api_put(mstage.api, &KIND_MACHINE, copy);
    json_free(copy);
    (void)name;
    return true;
}

void machine_stage_end_cluster_api(void)
{
    tiny_server_answer(mstage.http, "/apis/cluster.x-k8s.io/", 404, "404 page not found");
    mstage.has_no_machines = true;
    mstage.dead = true;
}

int machine_stage_turn(void)
{
    if (mstage.dead) {
        end_process();
        start_process();
    }
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct reconcile rc = { .name = staged_name("one"),
                            .arena = arena,
                            .client = process.client,
                            .events = process.events,
                            .clock = &mstage.clock.clock };
    struct error err = { 0 };
    int r = machine_reconcile(&mstage.deps, &rc, &err);

    mstage.again_ms = rc.requeue_after_ms;
    return r;
}

void machine_stage_wait_ms(int64_t ms)
{
    fake_clock_advance(&mstage.clock, ms);
}

static const char *state(void)
{
    const cJSON *object = machine_stage_get(&KIND_SCHEDULEDMACHINE, "one");

    return arena_printf(mstage.arena, "%s %s",
                        json_string(json_path(object, "metadata", "resourceVersion", NULL), ""),
                        machine_stage_left());
}

/* Where nothing changed, time passes until the next turn that was asked for, but not for a window or a resync. */
void machine_stage_run(void)
{
    unsigned quiet = 0;

    for (int i = 0; i < MAX_TURNS && quiet < 3; i++) {
        const char *before = state();
        int r = machine_stage_turn();
        bool managed = machine_stage_manage();
        bool changed = managed || !str_equal(before, state());

        quiet = changed || r < 0 ? 0 : quiet + 1;
        if (!changed && mstage.again_ms && mstage.again_ms < 120000) {
            machine_stage_wait_ms(mstage.again_ms);
            quiet = 0;
        }
    }
    ck_assert_uint_ge(quiet, 3);
}

/* --- looking ----------------------------------------------------------------------------------- */

const char *machine_stage_text(const char *member)
{
    return json_string(
        json_path(machine_stage_get(&KIND_SCHEDULEDMACHINE, "one"), "status", member, NULL), "");
}

const char *machine_stage_phase(void)
{
    return machine_stage_get(&KIND_SCHEDULEDMACHINE, "one") ? machine_stage_text("phase") : "gone";
}

const char *machine_stage_condition(const char *type, const char *member)
{
    const cJSON *conditions =
        json_path(machine_stage_get(&KIND_SCHEDULEDMACHINE, "one"), "status", "conditions", NULL);

    return json_string(json_get(condition_get(conditions, type), member), "");
}

const cJSON *machine_stage_agent(void)
{
    const struct kube_name name = { STAGE_NS, "reclaim-agent-" NODE_NAME };

    return fake_api_get(mstage.api, mstage.arena, &KIND_CONFIGMAP, &name);
}

void machine_stage_put_foreign_agent(void)
{
    put(&KIND_CONFIGMAP, STAGE_NS, "reclaim-agent-" NODE_NAME, ",\"data\":{\"a\":\"b\"}");
}

static int count_pod(void *ctx, const cJSON *item UNUSED, struct error *err UNUSED)
{
    ++*(unsigned *)ctx;
    return 0;
}

const char *machine_stage_left(void)
{
    const struct kube_list_options all = { 0 };
    struct error err = { 0 };
    unsigned pods = 0;

    ck_assert_int_eq(kube_list(process.other, &KIND_POD, &all, count_pod, &pods, &err), 0);
    return arena_printf(mstage.arena, "%s%s%s%s%sp%u",
                        machine_stage_get(&STAGE_BOOTSTRAP, "one") ? "B " : "",
                        machine_stage_get(&STAGE_INFRASTRUCTURE, "one") ? "I " : "",
                        machine_stage_get(&KIND_MACHINE, "one") ? "M " : "",
                        machine_stage_get(&KIND_NODE, NODE_NAME) ? "N " : "",
                        machine_stage_agent() ? "A " : "", pods);
}
