#include "controller/tests/vmafx_stage.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/temp_dir.h"
#include "controller/tests/staged.h"

#define MAX_TOLD 4096
#define PATIENCE_MS 20000

struct vmafx_stage vmafx;

static const struct kube_kind *const KINDS[] = { &KIND_VMAFXJOB, &KIND_VMAFXNODE,
                                                 &KIND_VMAFXMODELTRAINING };

static struct {
    struct kube_config *config;
    struct kube_client *client;
    struct kube_client *other; /* of events, and of the test */
    struct events *events;
    struct watch_loop *loop;
    char reasons[MAX_TOLD], note[MAX_TOLD]; /* guarded by the lock of the fake API */
} process;

/* As an API server does whose CRD lacks the member. */
static int prune(void *ctx, struct arena *arena, const struct http_request *request,
                 struct http_response *ret, struct error *err)
{
    struct http_request pruned = *request;
    cJSON *kept = json_array(arena);

    if (!vmafx.pruned || !str_equal(request->method, "PATCH"))
        return fake_api_roundtrip(ctx, arena, request, ret, err);
    json_for_each (operation,
                   parsed(arena, arena_strndup(arena, request->body, request->body_len))) {
        if (!str_has_suffix(json_string(json_get(operation, "path"), ""), vmafx.pruned))
            json_add(kept, json_copy(operation));
    }
    pruned.body = json_text(arena, kept, &pruned.body_len);
    return fake_api_roundtrip(ctx, arena, &pruned, ret, err);
}

static int roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                     struct http_response *ret, struct error *err)
{
    if (vmafx.dead)
        return error_set(err, ERROR_UNAVAILABLE, "dead");
    if (++vmafx.steps == vmafx.fail_at)
        return staged_failure(vmafx.fault, &vmafx.dead, ctx, arena, request, ret, err);
    return prune(ctx, arena, request, ret, err);
}

static size_t index_of(const struct kube_kind *kind)
{
    size_t i = 0;

    while (i < ARRAY_LEN(KINDS) - 1 && KINDS[i] != kind)
        i++;
    return i;
}

static struct informer *informer_of(const struct kube_kind *kind)
{
    struct informer *const informers[] = { vmafx.job.objects, vmafx.node.nodes,
                                           vmafx.training.objects };

    return informers[index_of(kind)];
}

/* ctx: the kind. */
static void on_kind(void *ctx, struct kube_object *old, struct kube_object *current)
{
    const struct staged staged[] = { { &KIND_VMAFXJOB, &vmafx.job, vmafx.queues[0] },
                                     { &KIND_VMAFXNODE, &vmafx.node, vmafx.queues[1] },
                                     { &KIND_VMAFXMODELTRAINING, &vmafx.training,
                                       vmafx.queues[2] } };

    staged_changed(staged, ARRAY_LEN(staged), ctx, old, current);
}

static void tell(const cJSON *event)
{
    size_t len = strlen(process.reasons);

    (void)str_copy(process.reasons + len, MAX_TOLD - len,
                   json_string(json_get(event, "reason"), ""));
    len = strlen(process.reasons);
    (void)str_copy(process.reasons + len, MAX_TOLD - len, " ");
    (void)str_copy(process.note, MAX_TOLD, json_string(json_get(event, "note"), ""));
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

/* Brings the object to the cache, as a watch would. */
static void bring(const struct kube_kind *kind, const cJSON *object)
{
    cJSON *reply = json_copy(object);

    informer_observed(informer_of(kind), reply);
    json_free(reply);
}

static void on_change(void *ctx UNUSED, const cJSON *old, const cJSON *current)
{
    const struct kube_kind *kind = kind_of(current ? current : old);

    if (!kind && current && !old)
        tell(current);
    if (!kind || vmafx.dead || vmafx.is_late)
        return;
    if (current) {
        bring(kind, current);
        return;
    }
    struct kube_name name;
    ck_assert(kube_name_of(old, &name));
    CLEANUP(kube_object_unrefp)
    struct kube_object *removed =
        store_remove(informer_store(informer_of(kind)), &name,
                     json_string(json_path(old, "metadata", "resourceVersion", NULL), ""));
    if (removed)
        on_kind((void *)(uintptr_t)kind, removed, NULL);
}

/* Of the watch loop: lists are empty, and watches stay open. */
static struct kube_config *make_config(void)
{
    const char *text =
        arena_printf(vmafx.arena,
                     "{apiVersion: v1, kind: Config, current-context: c,\n"
                     "contexts: [{name: c, context: {cluster: c, user: u}}],\n"
                     "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%u'}}],\n"
                     "users: [{name: u, user: {}}]}\n",
                     tiny_server_port(vmafx.http));
    const char *dir = temp_dir(vmafx.arena);
    struct kube_config *config;
    struct error err = { 0 };
    int r = kube_config_load(temp_file(vmafx.arena, dir, "config", text), &config, &err);

    ck_assert_msg(r == 0, "%s", err.message);
    tiny_server_answer(vmafx.http, "/apis/vmafx.dev/", 200,
                       "{\"metadata\":{\"resourceVersion\":\"0\"},\"items\":[]}");
    tiny_server_answer(vmafx.http, "watch=true", 200, "");
    return config;
}

static struct informer *make_informer(const struct kube_kind *kind)
{
    struct informer *informer = staged_cache(process.loop, kind);

    informer_subscribe(informer, on_kind, (void *)(uintptr_t)kind);
    return informer;
}

static void start_process(void)
{
    struct vmafx_prober_options options = { .address = vmafx.flags.http_address,
                                            .clock = &vmafx.clock.clock };
    struct error err = { 0 };

    vmafx.dead = false;
    process.client = kube_client_create_with(roundtrip, vmafx.api);
    process.events = events_create(process.other, "test", "test", &CLOCK_SYSTEM);
    ck_assert_int_eq(events_start(process.events, &err), 0);
    process.loop = watch_loop_create(process.config);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        vmafx.queues[i] = workqueue_create(KINDS[i]->plural, &vmafx.clock.clock);
    vmafx.job = (struct vmafx_poll_deps){ .objects = make_informer(&KIND_VMAFXJOB),
                                          .flags = &vmafx.flags,
                                          .pool = http_client_pool_create(),
                                          .notes = vmafx_notes_create() };
    vmafx.node = (struct vmafx_node_deps){ .nodes = make_informer(&KIND_VMAFXNODE),
                                           .jobs = vmafx.job.objects,
                                           .notes = vmafx_notes_create() };
    vmafx.training = (struct vmafx_poll_deps){ .objects = make_informer(&KIND_VMAFXMODELTRAINING),
                                               .flags = &vmafx.flags,
                                               .pool = http_client_pool_create(),
                                               .notes = vmafx_notes_create() };
    options.nodes = informer_store(vmafx.node.nodes);
    options.queue = vmafx.queues[1];
    vmafx.node.prober = vmafx_prober_create(&options);
    ck_assert_int_eq(vmafx_prober_start(vmafx.node.prober, &err), 0);
    ck_assert_int_eq(watch_loop_start(process.loop, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        ck_assert(informer_wait_synced(informer_of(KINDS[i]), PATIENCE_MS));
}

static void end_process(void)
{
    vmafx_prober_stop(vmafx.node.prober);
    vmafx_prober_join(vmafx.node.prober);
    vmafx_prober_destroy(vmafx.node.prober);
    events_stop(process.events);
    events_destroy(process.events);
    watch_loop_stop(process.loop);
    watch_loop_destroy(process.loop);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        informer_destroy(informer_of(KINDS[i]));
        workqueue_destroy(vmafx.queues[i]);
    }
    http_client_pool_destroy(vmafx.job.pool);
    http_client_pool_destroy(vmafx.training.pool);
    vmafx_notes_destroy(vmafx.job.notes);
    vmafx_notes_destroy(vmafx.node.notes);
    vmafx_notes_destroy(vmafx.training.notes);
    kube_client_destroy(process.client);
}

static int on_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    bring(ctx, item);
    return 0;
}

static void list_all(void)
{
    const struct kube_list_options all = { 0 };
    struct error err = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        int r =
            kube_list(process.other, KINDS[i], &all, on_item, (void *)(uintptr_t)KINDS[i], &err);
        ck_assert_msg(r == 0, "%s", err.message);
    }
}

void vmafx_stage_restart(void)
{
    end_process();
    start_process();
    list_all();
}

void vmafx_stage_set_up(void)
{
    json_init();
    (void)signal(SIGPIPE, SIG_IGN);
    (void)alarm(PATIENCE_MS / 1000); /* a name that is never queued ends the test */
    log_configure(LOG_ERROR, LOG_TEXT);
    vmafx = (struct vmafx_stage){ .arena = arena_create(),
                                  .api = fake_api_create(),
                                  .http = tiny_server_start(0),
                                  .peer = { .manner = H2_ANSWER } };
    process.reasons[0] = process.note[0] = '\0';
    fake_clock_init(&vmafx.clock);
    vmafx_peer_start(&vmafx.peer);
    tiny_server_answer(vmafx.http, "/healthz", 200, "fine");
    const char *http =
        arena_printf(vmafx.arena, "http://127.0.0.1:%u", tiny_server_port(vmafx.http));
    vmafx.flags = (struct vmafx_flags){
        .is_enabled = true,
        .grpc_address =
            arena_printf(vmafx.arena, "127.0.0.1:%d", h2_server_port(vmafx.peer.server)),
        .http_address = arena_printf(vmafx.arena, "%s/{namespace}", http),
        .trainer_url = arena_printf(vmafx.arena, "%s/{namespace}/{name}/status", http),
    };
    process.config = make_config();
    process.other = kube_client_create_with(fake_api_roundtrip, vmafx.api);
    start_process();
    fake_api_on_change(vmafx.api, on_change, NULL);
}

void vmafx_stage_tear_down(void)
{
    end_process();
    kube_client_destroy(process.other);
    kube_config_destroy(process.config);
    tiny_server_stop(vmafx.http);
    vmafx_peer_stop(&vmafx.peer);
    fake_api_destroy(vmafx.api);
    arena_destroy(vmafx.arena);
}

void vmafx_stage_put(const struct kube_kind *kind, const char *name, const char *status)
{
    staged_put(vmafx.api, kind, name, NULL, status ? parsed(vmafx.arena, status) : NULL);
}

const cJSON *vmafx_stage_status(const struct kube_kind *kind, const char *name)
{
    const struct kube_name key = staged_name(name);

    return json_get(fake_api_get(vmafx.api, vmafx.arena, kind, &key), "status");
}

const char *vmafx_stage_member(const struct kube_kind *kind, const char *name, const char *member)
{
    const cJSON *item = json_get(vmafx_stage_status(kind, name), member);

    return !item || cJSON_IsString(item) ? json_string(item, "")
                                         : json_text(vmafx.arena, item, NULL);
}

int vmafx_stage_turn(const struct kube_kind *kind, const char *name)
{
    static reconcile_fn *const RECONCILE[] = { vmafx_job_reconcile, vmafx_node_reconcile,
                                               vmafx_training_reconcile };
    void *const selves[] = { &vmafx.job, &vmafx.node, &vmafx.training };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct reconcile rc = { .name = staged_name(name),
                            .arena = arena,
                            .client = process.client,
                            .events = process.events,
                            .clock = &vmafx.clock.clock };
    struct error err = { 0 };
    int r = RECONCILE[index_of(kind)](selves[index_of(kind)], &rc, &err);

    vmafx.again_ms = rc.requeue_after_ms;
    return r;
}

void vmafx_stage_expect_turn(const struct kube_kind *kind, const char *name)
{
    ck_assert_int_eq(vmafx_stage_turn(kind, name), 0);
}

void vmafx_stage_wait_ms(int64_t ms)
{
    fake_clock_advance(&vmafx.clock, ms);
}

const char *vmafx_stage_events(void)
{
    struct error err = { 0 };

    events_stop(process.events); /* writes what waits */
    events_destroy(process.events);
    const char *reasons = arena_strdup(vmafx.arena, process.reasons);
    process.reasons[0] = '\0';
    process.events = events_create(process.other, "test", "test", &CLOCK_SYSTEM);
    ck_assert_int_eq(events_start(process.events, &err), 0);
    return reasons;
}

const char *vmafx_stage_last_note(void)
{
    return process.note;
}

unsigned vmafx_stage_patches(void)
{
    struct fake_request *requests;
    size_t len = fake_api_requests(vmafx.api, vmafx.arena, &requests);
    unsigned count = 0;

    for (size_t i = 0; i < len; i++)
        count += str_equal(requests[i].method, "PATCH") &&
                 strstr(requests[i].path, "/vmafx.dev/") && strstr(requests[i].path, "/status");
    return count;
}
