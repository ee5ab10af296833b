#include "common/runtime/controller.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/log.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

#define MAX_CALLS 64

/* A reconciler that does as told and notes whom it was called for. */
struct script {
    pthread_mutex_t lock;
    char names[MAX_CALLS][32];
    atomic_uint calls; /* ended */
    atomic_uint entered;
    enum error_code code;
    uint32_t retry_after_ms;
    uint32_t requeue_after_ms;
    atomic_bool hold; /* calls do not end while this is set */
};

static struct script script;
static struct fake_clock fake;
static struct controller *controller;
static struct arena *arena;

static int reconcile(void *self, struct reconcile *rc, struct error *err)
{
    struct script *told = self;

    atomic_fetch_add(&told->entered, 1);
    while (atomic_load(&told->hold))
        (void)poll(NULL, 0, 1);
    ck_assert_ptr_eq(rc->clock, &fake.clock);
    ck_assert_ptr_nonnull(arena_strdup(rc->arena, "freed after the call"));

    pthread_mutex_lock(&told->lock);
    unsigned call = atomic_load(&told->calls);
    ck_assert_uint_lt(call, MAX_CALLS);
    (void)snprintf(told->names[call], sizeof(told->names[call]), "%.15s/%.15s", rc->name.ns,
                   rc->name.name);
    int r = 0;
    if (told->code && strcmp(rc->name.name, "a") == 0) {
        r = error_set(err, told->code, "object 'x' is not as it should be");
        err->retry_after_ms = told->retry_after_ms;
    } else if (strcmp(rc->name.name, "a") == 0) {
        rc->requeue_after_ms = told->requeue_after_ms;
    }
    atomic_fetch_add(&told->calls, 1);
    pthread_mutex_unlock(&told->lock);
    return r;
}

static void create(const struct controller_source *sources, size_t source_count, unsigned workers)
{
    struct controller_options options = {
        .name = "test", .self = &script, .reconcile = reconcile, .workers = workers
    };

    controller = controller_create(&options, NULL, NULL, &fake.clock);
    for (size_t i = 0; i < source_count; i++) {
        const struct controller_source source = { sources[i].informer, sources[i].map, &script };
        controller_watch(controller, &source);
    }
}

static void start(void)
{
    struct error err;

    ck_assert_int_eq(controller_start(controller, &err), 0);
}

static void set_up(void)
{
    script = (struct script){ 0 };
    (void)pthread_mutex_init(&script.lock, NULL);
    fake_clock_init(&fake);
    arena = arena_create();
}

static void tear_down(void)
{
    controller_destroy(controller);
    controller = NULL;
    (void)pthread_mutex_destroy(&script.lock);
    arena_destroy(arena);
}

TEST_GROUP("results", set_up, tear_down);

static void add(const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, "ns", name));
    workqueue_add(controller_queue(controller), &key);
}

static void wait_for(atomic_uint *counter, unsigned count)
{
    while (atomic_load(counter) < count)
        (void)poll(NULL, 0, 1);
}

/* Whatever is due would be reconciled before a name that is added now, as there is one worker. */
static void settle(void)
{
    static unsigned count;
    char name[16];
    char wanted[32];

    (void)snprintf(name, sizeof(name), "last-%u", ++count);
    (void)snprintf(wanted, sizeof(wanted), "ns/%s", name);
    add(name);
    for (;;) {
        unsigned calls = atomic_load(&script.calls);

        if (calls && strcmp(script.names[calls - 1], wanted) == 0)
            return;
        (void)poll(NULL, 0, 1);
    }
}

static unsigned calls_for(const char *name)
{
    unsigned count = 0;

    settle();
    for (unsigned i = 0; i < atomic_load(&script.calls); i++)
        count += strcmp(script.names[i], name) == 0;
    return count;
}

static void advance(int64_t ms)
{
    fake_clock_advance(&fake, ms);
    workqueue_poke(controller_queue(controller));
}

#define NEVER INT64_MAX
static const struct {
    enum error_code code;
    uint32_t retry_after_ms, requeue_after_ms;
    int64_t low_ms, high_ms; /* when it comes again */
    const char *result;
} OUTCOMES[] = {
    { ERROR_NONE, 0, 0, NEVER, NEVER, "success" },
    { ERROR_NONE, 0, 700, 700, 700, "requeue_after" },
    { ERROR_INVALID, 0, 0, NEVER, NEVER, "error" },
    { ERROR_INVALID, 5, 5, NEVER, NEVER, "error" },
    { ERROR_CONFLICT, 0, 0, 4, 5, "requeue" },
    { ERROR_CANCELED, 0, 0, 1000, 1000, "requeue" },
    { ERROR_UNAVAILABLE, 0, 0, 4, 5, "error" },
    { ERROR_UNAVAILABLE, 3000, 0, 3000, 3000, "error" },
    { ERROR_TIMEOUT, 0, 900, 4, 5, "error" },
    { ERROR_FORBIDDEN, 0, 0, 4, 5, "error" },
    { ERROR_NOT_FOUND, 0, 0, 4, 5, "error" },
    { ERROR_INTERNAL, 0, 0, 4, 5, "error" },
};

TEST_EACH(the_result_decides_when_the_name_comes_again, OUTCOMES)
{
    script.code = OUTCOMES[_i].code;
    script.retry_after_ms = OUTCOMES[_i].retry_after_ms;
    script.requeue_after_ms = OUTCOMES[_i].requeue_after_ms;
    create(NULL, 0, 1);
    start();
    add("a");
    ck_assert_uint_eq(calls_for("ns/a"), 1);
    if (OUTCOMES[_i].low_ms == NEVER) {
        ck_assert_uint_eq(workqueue_len(controller_queue(controller)), 0);
        return;
    }
    ck_assert_uint_eq(workqueue_len(controller_queue(controller)), 1);
    advance(OUTCOMES[_i].low_ms - 1);
    ck_assert_uint_eq(calls_for("ns/a"), 1);
    advance(OUTCOMES[_i].high_ms - OUTCOMES[_i].low_ms + 1);
    ck_assert_uint_eq(calls_for("ns/a"), 2);
}

TEST_EACH(results_and_times_are_counted, OUTCOMES)
{
    char line[128];

    script.code = OUTCOMES[_i].code;
    script.requeue_after_ms = OUTCOMES[_i].requeue_after_ms;
    create(NULL, 0, 1);
    add("a");
    start();
    wait_for(&script.calls, 1);
    controller_stop(controller);
    controller_join(controller);
    (void)snprintf(line, sizeof(line),
                   "controller_runtime_reconcile_total{controller=\"test\",result=\"%s\"} 1",
                   OUTCOMES[_i].result);
    ck_metric(line);
    ck_metric("controller_runtime_reconcile_time_seconds_count{controller=\"test\"} 1");
}

TEST(a_call_that_ends_well_forgets_earlier_failures)
{
    create(NULL, 0, 1);
    script.code = ERROR_INTERNAL;
    start();
    add("a");
    ck_assert_uint_eq(calls_for("ns/a"), 1);
    for (unsigned i = 1; i < 10; i++) {
        advance(6000);
        ck_assert_uint_eq(calls_for("ns/a"), 1 + i);
    }
    script.code = ERROR_NONE;
    advance(6000);
    ck_assert_uint_eq(calls_for("ns/a"), 11);
    script.code = ERROR_INTERNAL;
    add("a");
    ck_assert_uint_eq(calls_for("ns/a"), 12);
    advance(5);
    ck_assert_uint_eq(calls_for("ns/a"), 13);
}

static const struct {
    enum error_code code;
    const char *message; /* NULL: no line at level info */
    const char *reason;
} LINES[] = {
    { ERROR_NONE, NULL, NULL },
    { ERROR_CONFLICT, NULL, NULL },
    { ERROR_CANCELED, NULL, NULL },
    { ERROR_INVALID, "reconcile failed, waiting for a change", "Invalid" },
    { ERROR_UNAVAILABLE, "reconcile failed, trying again", "Unavailable" },
};

TEST_EACH(a_failure_is_one_line_that_names_controller_and_object, LINES)
{
    capture_start(STDERR_FILENO);
    script.code = LINES[_i].code;
    create(NULL, 0, 1);
    start();
    add("a");
    settle();
    controller_stop(controller);
    controller_join(controller);
    const char *text = capture_text(arena);
    capture_stop();

    if (!LINES[_i].message) {
        ck_assert_str_eq(text, "");
        return;
    }
    const char *wanted = arena_printf(
        arena,
        "\"level\":\"warn\",\"msg\":\"%s\",\"controller\":\"test\",\"namespace\":\"ns\","
        "\"name\":\"a\",\"reason\":\"%s\",\"error\":\"object 'x' is not as it should be\"}\n",
        LINES[_i].message, LINES[_i].reason);
    ck_assert_msg(strstr(text, wanted), "no %s in %s", wanted, text);
    ck_assert_ptr_eq(strchr(text, '\n'), strrchr(text, '\n'));
}

TEST(a_line_has_no_field_of_an_earlier_object)
{
    struct kube_name cluster;

    capture_start(STDERR_FILENO);
    script.code = ERROR_INVALID;
    create(NULL, 0, 1);
    start();
    ck_assert(kube_name_set(&cluster, "", "a"));
    add("a");
    wait_for(&script.calls, 1);
    workqueue_add(controller_queue(controller), &cluster);
    settle();
    const char *text = capture_text(arena);
    capture_stop();
    ck_assert_ptr_nonnull(
        strstr(text, "\"controller\":\"test\",\"namespace\":\"ns\",\"name\":\"a\""));
    ck_assert_ptr_nonnull(strstr(text, "\"controller\":\"test\",\"name\":\"a\""));
}

TEST(workers_reconcile_different_names_at_the_same_time)
{
    create(NULL, 0, 3);
    atomic_store(&script.hold, true);
    start();
    add("a");
    add("b");
    add("c");
    add("d");
    wait_for(&script.entered, 3);
    ck_assert_uint_eq(workqueue_len(controller_queue(controller)), 1);
    atomic_store(&script.hold, false);
    wait_for(&script.calls, 4);
}

TEST(after_stop_what_is_under_way_ends_and_nothing_else_begins)
{
    create(NULL, 0, 1);
    atomic_store(&script.hold, true);
    start();
    add("a");
    wait_for(&script.entered, 1);
    add("b");
    controller_stop(controller);
    ck_assert_uint_eq(atomic_load(&script.calls), 0);
    atomic_store(&script.hold, false);
    controller_join(controller);
    ck_assert_uint_eq(atomic_load(&script.calls), 1);
    ck_assert_uint_eq(atomic_load(&script.entered), 1);
}

/* An informer that gets its objects from the test instead of from the loop. */
static struct kube_config *config;
static struct watch_loop *loop;
static struct informer *informer;

static void source_set_up(void)
{
    static const char KUBECONFIG[] =
        "{\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://127.0.0.1:1\"}}],"
        "\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"c\"}}],"
        "\"current-context\":\"c\"}";
    struct watch_options options = { .kind = &KIND_TASK };
    struct error err;

    json_init();
    set_up();
    const char *path = temp_file(arena, temp_dir(arena), "kubeconfig", KUBECONFIG);
    ck_assert_msg(kube_config_load(path, &config, &err) == 0, "%s", err.message);
    loop = watch_loop_create(config);
    informer = informer_create(loop, &options);
}

static void source_tear_down(void)
{
    controller_destroy(controller);
    controller = NULL;
    watch_loop_destroy(loop);
    informer_destroy(informer);
    kube_config_destroy(config);
    tear_down();
}

static void observe(const char *name, int version)
{
    const char *text = arena_printf(arena,
                                    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
                                    "\"uid\":\"u-%s\",\"resourceVersion\":\"%d\"}}",
                                    name, name, version);

    informer_observed(informer, (cJSON *)(uintptr_t)parsed(arena, text));
}

TEST_GROUP("sources", source_set_up, source_tear_down);

TEST(what_changes_before_start_is_queued_once_by_start)
{
    struct controller_source source = { .informer = informer, .map = map_self };

    create(&source, 1, 1);
    observe("one", 1);
    observe("one", 2);
    observe("two", 3);
    ck_assert_uint_eq(workqueue_len(controller_queue(controller)), 0);
    start();
    ck_assert_uint_eq(calls_for("ns/one"), 1);
    ck_assert_uint_eq(calls_for("ns/two"), 1);
}

TEST(what_changes_after_start_is_queued)
{
    struct controller_source source = { .informer = informer, .map = map_self };

    create(&source, 1, 1);
    start();
    settle();
    observe("one", 1);
    ck_assert_uint_eq(calls_for("ns/one"), 1);
    observe("one", 2);
    ck_assert_uint_eq(calls_for("ns/one"), 2);
}

/* Every Task concerns the object "of-tasks", and a change of one another. */
static void map_tasks(void *self, struct kube_object *old, struct kube_object *current,
                      struct workqueue *queue)
{
    struct kube_name name;

    ck_assert_ptr_eq(self, &script);
    ck_assert_ptr_nonnull(current);
    ck_assert(kube_name_set(&name, "ns", old ? "changed" : "created"));
    workqueue_add(queue, &name);
}

TEST(a_source_maps_its_objects_to_other_names)
{
    struct controller_source source = { .informer = informer, .map = map_tasks };

    create(&source, 1, 1);
    observe("one", 1);
    start();
    ck_assert_uint_eq(calls_for("ns/created"), 1);
    observe("one", 2);
    ck_assert_uint_eq(calls_for("ns/changed"), 1);
    ck_assert_uint_eq(calls_for("ns/one"), 0);
}

TEST(map_self_takes_the_name_of_what_was_deleted)
{
    CLEANUP(kube_object_unrefp) struct kube_object *old = NULL;
    struct kube_name got;
    struct error err;

    create(NULL, 0, 1);
    ck_assert_int_eq(
        kube_object_create(parsed(arena, "{\"metadata\":{\"name\":\"gone\"}}"), &old, &err), 0);
    map_self(NULL, old, NULL, controller_queue(controller));
    ck_assert(workqueue_get(controller_queue(controller), &got));
    ck_assert_str_eq(got.name, "gone");
    workqueue_done(controller_queue(controller), &got);
}
