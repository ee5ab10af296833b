/* propeller-controller --uninstall against an API server in memory. */
#include "controller/process/uninstall.h"

#include <string.h>

#include "certs/cluster_place.h"
#include "common/api/kinds.h"
#include "common/api/names.h"
#include "common/base/str.h"
#include "common/kube/finalizer.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "controller/process/uninstall_plan.h"

#define SYSTEM "propeller-system"
#define TIMEOUT_MS 60000
#define OTHER "example.com/other"

static struct arena *arena;
static struct fake_api *api;
static struct fake_clock time_of_test;
static struct uninstall uninstall;
static const char *said;
static struct error err;

/* Other clients act here, between two looks. */
static void (*meanwhile)(unsigned rests);
static unsigned rests;
/* Requests whose path begins so get this answer; NULL: none. */
static const char *refused;
static int refused_status;
static int64_t refused_after_ms; /* the time that such an answer takes */

static int roundtrip(void *ctx, struct arena *reply, const struct http_request *request,
                     struct http_response *ret, struct error *error)
{
    if (!refused || !strstr(request->path, refused))
        return fake_api_roundtrip(ctx, reply, request, ret, error);
    static const char BODY[] = "{\"kind\":\"Status\",\"message\":\"the answer of the test\"}";

    fake_clock_advance(&time_of_test, refused_after_ms);
    *ret = (struct http_response){ .status = refused_status,
                                   .body = arena_strdup(reply, BODY),
                                   .body_len = strlen(BODY) };
    return 0;
}

static void say(void *ctx UNUSED, const char *line)
{
    said = arena_printf(arena, "%s%s\n", said, line);
}

static void rest(void *ctx UNUSED, int64_t ms)
{
    fake_clock_advance(&time_of_test, ms);
    if (meanwhile)
        meanwhile(++rests);
}

static void set_up(void)
{
    json_init();
    arena = arena_create();
    api = fake_api_create();
    fake_clock_init(&time_of_test);
    said = "";
    uninstall = (struct uninstall){
        .client = kube_client_create_with(roundtrip, api),
        .clock = &time_of_test.clock,
        .configuration = "propeller-webhook",
        .webhook_ns = SYSTEM,
        .timeout_ms = TIMEOUT_MS,
        .say = say,
        .rest = rest,
    };
}

static void tear_down(void)
{
    kube_client_destroy(uninstall.client);
    fake_api_destroy(api);
    arena_destroy(arena);
}

TEST_GROUP("uninstall", set_up, tear_down);

static const char *finalizers(const char *first, const char *second)
{
    return arena_printf(arena, "\"finalizers\":[\"%s\"%s%s%s]", first, second ? ",\"" : "",
                        second ? second : "", second ? "\"" : "");
}

/* more: members of its metadata, NULL: none */
static void put(const struct kube_kind *kind, const char *ns, const char *name, const char *more)
{
    fake_api_put(
        api, kind,
        parsed(arena,
               arena_printf(arena, "{\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"%s%s%s%s%s}}",
                            kind->kind, name, *ns ? ",\"namespace\":\"" : "", ns, *ns ? "\"" : "",
                            more ? "," : "", more ? more : "")));
}

static const cJSON *get(const struct kube_kind *kind, const char *ns, const char *name)
{
    struct kube_name key;

    ck_assert(kube_name_set(&key, ns, name));
    return fake_api_get(api, arena, kind, &key);
}

static const char *const PART_OF = "\"labels\":{\"app.kubernetes.io/part-of\":\"propeller\"}";
static const char *const CHILD =
    "\"labels\":{\"app.kubernetes.io/managed-by\":\"propeller\"},\"ownerReferences\":[{"
    "\"controller\":true,\"uid\":\"u\",\"apiVersion\":\"" API_GROUP "/v1\"}]";

static const struct kube_kind *const KINDS[] = { &KIND_FEDERATEDJOB, &KIND_TRAININGROUND,
                                                 &KIND_PROPELLERJOB, &KIND_TASK, &KIND_PROPLET };

static void put_installation(void)
{
    put(&KIND_MUTATING_WEBHOOKS, "", "propeller-webhook", NULL);
    put(&KIND_VALIDATING_WEBHOOKS, "", "propeller-webhook", NULL);
    put(&KIND_SECRET, SYSTEM, CERT_SECRET_CA, PART_OF);
    put(&KIND_SECRET, SYSTEM, CERT_SECRET_LEAF, PART_OF);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        put(KINDS[i], i % 2 ? "lab" : "field", "plain", NULL);
    put(&KIND_TASK, "lab", "running", finalizers(FINALIZER_TASK, NULL));
    put(&KIND_PROPLET, "lab", "device", finalizers(FINALIZER_PROPLET, NULL));
}

/* The log has these requests, too. One that fails is repeated at the next rest. */
static void release(const struct kube_kind *kind, const char *ns, const char *name,
                    const char *finalizer)
{
    const cJSON *found = get(kind, ns, name);
    struct kube_client *client = kube_client_create_with(fake_api_roundtrip, api);

    if (found && kube_is_deleting(found))
        (void)!finalizer_remove(client, kind, found, finalizer, &err);
    kube_client_destroy(client);
}

/* As the controller does. */
static void controller_releases(unsigned count UNUSED)
{
    release(&KIND_TASK, "lab", "running", FINALIZER_TASK);
    release(&KIND_PROPLET, "lab", "device", FINALIZER_PROPLET);
}

static void expect_done(void)
{
    err = (struct error){ 0 };
    int r = uninstall_run(&uninstall, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}

static void expect_failure(enum error_code code, const char *message)
{
    err = (struct error){ 0 };
    ck_assert_int_eq(uninstall_run(&uninstall, &err), -(int)code);
    ck_assert_msg(strstr(err.message, message) != NULL, "'%s' does not say '%s'", err.message,
                  message);
}

static void expect_nothing_left(void)
{
    ck_assert_ptr_null(get(&KIND_MUTATING_WEBHOOKS, "", "propeller-webhook"));
    ck_assert_ptr_null(get(&KIND_VALIDATING_WEBHOOKS, "", "propeller-webhook"));
    ck_assert_ptr_null(get(&KIND_SECRET, SYSTEM, CERT_SECRET_CA));
    ck_assert_ptr_null(get(&KIND_SECRET, SYSTEM, CERT_SECRET_LEAF));
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
        ck_assert_ptr_null(get(KINDS[i], i % 2 ? "lab" : "field", "plain"));
    ck_assert_ptr_null(get(&KIND_TASK, "lab", "running"));
    ck_assert_ptr_null(get(&KIND_PROPLET, "lab", "device"));
}

static size_t log_of(struct fake_request **ret)
{
    return fake_api_requests(api, arena, ret);
}

/* The place of the first request that contains all of this; the length of the log: there is none. */
static size_t first(const char *method, const char *path)
{
    struct fake_request *log;
    size_t len = log_of(&log), i = 0;

    while (i < len && !(str_equal(log[i].method, method) && strstr(log[i].path, path)))
        i++;
    return i;
}

TEST(all_goes_while_the_controller_releases_and_again_finds_nothing)
{
    put_installation();
    meanwhile = controller_releases;
    expect_done();
    expect_nothing_left();
    ck_assert_ptr_null(strstr(said, "finalizer removed"));
    said = "";
    expect_done();
    ck_assert_str_eq(said, "");
}

TEST(configurations_go_first_and_owners_before_what_they_make)
{
    put_installation();
    meanwhile = controller_releases;
    expect_done();
    size_t last = first("DELETE", "validatingwebhookconfigurations/");

    ck_assert_uint_lt(first("DELETE", "mutatingwebhookconfigurations/"), last);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        size_t at = first("DELETE", arena_printf(arena, "/%s/plain", KINDS[i]->plural));

        ck_assert_uint_lt(last, at);
        last = at;
    }
    ck_assert_uint_lt(last, first("DELETE", "/secrets/"));
}

TEST(what_others_have_stays)
{
    put_installation();
    put(&KIND_SECRET, SYSTEM, "propeller-mqtt", PART_OF);
    put(&KIND_SECRET, "lab", CERT_SECRET_CA, PART_OF);
    put(&KIND_VALIDATING_WEBHOOKS, "", "other", NULL);
    put(&KIND_CONFIGMAP, "lab", "settings", NULL);
    meanwhile = controller_releases;
    expect_done();
    ck_assert_ptr_nonnull(get(&KIND_SECRET, SYSTEM, "propeller-mqtt"));
    ck_assert_ptr_nonnull(get(&KIND_SECRET, "lab", CERT_SECRET_CA));
    ck_assert_ptr_nonnull(get(&KIND_VALIDATING_WEBHOOKS, "", "other"));
    ck_assert_ptr_nonnull(get(&KIND_CONFIGMAP, "lab", "settings"));
}

TEST(a_secret_that_the_controller_did_not_make_stays)
{
    put(&KIND_SECRET, SYSTEM, CERT_SECRET_LEAF, NULL);
    expect_done();
    ck_assert_ptr_nonnull(get(&KIND_SECRET, SYSTEM, CERT_SECRET_LEAF));
}

static int64_t elapsed_ms(void)
{
    return atomic_load(&time_of_test.elapsed_ms);
}

static void expect_finalizers_for_three_quarters(unsigned count UNUSED)
{
    if (elapsed_ms() < TIMEOUT_MS / 4 * 3)
        ck_assert_ptr_nonnull(get(&KIND_TASK, "lab", "running"));
}

TEST(without_a_controller_our_finalizers_go_after_three_quarters)
{
    put_installation();
    meanwhile = expect_finalizers_for_three_quarters;
    expect_done();
    expect_nothing_left();
    ck_assert_int_lt(elapsed_ms(), TIMEOUT_MS);
    ck_assert_ptr_nonnull(strstr(said, "finalizer removed: Task 'lab/running'\n"));
    ck_assert_ptr_nonnull(strstr(said, "finalizer removed: Proplet 'lab/device'\n"));
}

static void takes_long(unsigned count UNUSED)
{
    fake_clock_advance(&time_of_test, TIMEOUT_MS);
}

TEST(objects_that_the_last_look_released_are_no_failure)
{
    put_installation();
    meanwhile = takes_long;
    expect_done();
    expect_nothing_left();
}

TEST(a_finalizer_of_others_stays_and_fails_with_its_name)
{
    put(&KIND_TASK, "lab", "held", finalizers(FINALIZER_TASK, OTHER));
    put(&KIND_TASK, "lab", "also", finalizers(OTHER, NULL));
    expect_failure(ERROR_TIMEOUT, "objects are left after 60 s: 2, such as Task 'lab/also' with "
                                  "finalizers of others: " OTHER);
    ck_assert_ptr_nonnull(strstr(said, "finalizer removed: Task 'lab/held', left: " OTHER "\n"));
    ck_assert_str_eq(
        json_text(arena, json_path(get(&KIND_TASK, "lab", "held"), "metadata", "finalizers", NULL),
                  NULL),
        "[\"" OTHER "\"]");
}

static void makes_one_more(unsigned count)
{
    if (count == 3)
        put(&KIND_TASK, "lab", "tardy", NULL);
    if (count > 5)
        controller_releases(count);
}

TEST(an_object_that_is_made_meanwhile_goes)
{
    put_installation();
    meanwhile = makes_one_more;
    expect_done();
    ck_assert_ptr_null(get(&KIND_TASK, "lab", "tardy"));
    expect_nothing_left();
}

TEST(of_single_namespaces_only_their_objects_go)
{
    static const char *namespaces[] = { "lab" };

    put_installation();
    uninstall.namespaces = (struct str_list){ .items = namespaces, .len = 1 };
    meanwhile = controller_releases;
    expect_done();
    ck_assert_ptr_null(get(&KIND_TASK, "lab", "running"));
    ck_assert_ptr_nonnull(get(&KIND_FEDERATEDJOB, "field", "plain"));
    ck_assert_ptr_nonnull(get(&KIND_VALIDATING_WEBHOOKS, "", "propeller-webhook"));
    ck_assert_ptr_nonnull(get(&KIND_SECRET, SYSTEM, CERT_SECRET_CA));
}

static void collector_goes_at_tenth(unsigned count)
{
    if (count == 10)
        fake_api_delete(api, &KIND_DEPLOYMENT,
                        &(struct kube_name){ .ns = "lab", .name = "of-a-proplet" });
}

TEST(what_was_made_for_objects_is_waited_for)
{
    put(&KIND_DEPLOYMENT, "lab", "of-a-proplet", CHILD);
    put(&KIND_CONFIGMAP, "lab", "of-others",
        "\"labels\":{\"app.kubernetes.io/managed-by\":\"propeller\"}");
    meanwhile = collector_goes_at_tenth;
    expect_done();
    ck_assert_uint_eq(rests, 10);
}

TEST(what_the_collector_leaves_is_said_and_no_failure)
{
    put(&KIND_JOB, "lab", "of-a-task", CHILD);
    expect_done();
    ck_assert_ptr_nonnull(strstr(said, "left to the garbage collector"));
    ck_assert_int_ge(elapsed_ms(), TIMEOUT_MS);
}

TEST(a_kind_that_is_not_there_has_no_objects)
{
    refused = "/" API_GROUP "/";
    refused_status = 404;
    expect_done();
}

TEST(a_missing_right_ends_it_at_once_by_name)
{
    put_installation();
    refused = "/propellerjobs";
    refused_status = 403;
    expect_failure(ERROR_FORBIDDEN, "propellerjobs");
    ck_assert_int_eq(elapsed_ms(), 0);
}

TEST(a_server_that_does_not_answer_fails_when_the_time_is_over)
{
    refused = "/";
    refused_status = 503;
    expect_failure(ERROR_UNAVAILABLE, "not uninstalled within 60 s: ");
    ck_assert_int_ge(elapsed_ms(), TIMEOUT_MS);
}

/* Ten seconds for each request, as in uninstall_by_settings(). */
TEST(a_slow_refusal_ends_it_with_the_request_that_is_over_time)
{
    static const char *namespaces[] = { "a", "b", "c" };

    uninstall.namespaces = (struct str_list){ .items = namespaces, .len = ARRAY_LEN(namespaces) };
    refused = "/";
    refused_status = 503;
    refused_after_ms = 10000;
    expect_failure(ERROR_UNAVAILABLE, "not uninstalled within 60 s: ");
    ck_assert_int_eq(elapsed_ms(), TIMEOUT_MS);
}

TEST_TIMES(each_request_may_fail_in_each_way, FAKE_FAILURES)
{
    unsigned count = 0;

    for (unsigned k = 1; k == 1 || k <= count; k++) {
        tear_down();
        set_up();
        put_installation();
        meanwhile = controller_releases;
        rests = 0;
        fake_api_fail(api, k, (enum fake_failure)_i);
        expect_done();
        expect_nothing_left();

        struct fake_request *log;
        if (k == 1)
            count = (unsigned)log_of(&log);
    }
    ck_assert_uint_gt(count, 20);
}

/* --- the plan --- */

static const cJSON *object(const char *metadata)
{
    return parsed(arena, arena_printf(arena, "{\"metadata\":{\"name\":\"a\"%s}}", metadata));
}

#define DELETING ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""
static const struct {
    const char *metadata;
    bool release;
    enum uninstall_action action;
} ACTIONS[] = {
    { "", false, UNINSTALL_DELETE },
    { "", true, UNINSTALL_DELETE },
    { ",\"finalizers\":[\"" FINALIZER_TASK "\"]", true, UNINSTALL_DELETE },
    { DELETING ",\"finalizers\":[\"" FINALIZER_TASK "\"]", false, UNINSTALL_WAIT },
    { DELETING ",\"finalizers\":[\"" FINALIZER_TASK "\"]", true, UNINSTALL_RELEASE },
    { DELETING ",\"finalizers\":[\"" OTHER "\",\"" FINALIZER_PROPLET "\"]", true,
      UNINSTALL_RELEASE },
    { DELETING ",\"finalizers\":[\"" OTHER "\"]", true, UNINSTALL_WAIT },
};

TEST_EACH(an_object_is_deleted_then_waited_for_then_released, ACTIONS)
{
    ck_assert_int_eq(uninstall_action(object(ACTIONS[_i].metadata), ACTIONS[_i].release),
                     ACTIONS[_i].action);
}

TEST(a_long_list_of_finalizers_is_cut)
{
    const char *list = "\"a/0\"";

    for (unsigned i = 1; i < 200; i++)
        list = arena_printf(arena, "%s,\"a/%u\"", list, i);
    const char *text =
        uninstall_foreign(arena, object(arena_printf(arena, ",\"finalizers\":[%s]", list)));

    ck_assert_uint_lt(strlen(text), 200);
    ck_assert(str_has_suffix(text, "..."));
}

#define RELEASED                                                                                   \
    {                                                                                              \
        .objects = 1, .released = 1                                                                \
    }
#define LOOK(objects_left, children_left, has_failed)                                              \
    {                                                                                              \
        .objects = (objects_left), .children = (children_left), .failed = (has_failed)             \
    }
static const struct {
    struct uninstall_look look;
    int64_t elapsed_ms;
    enum uninstall_next next;
} NEXT[] = {
    { LOOK(0, 0, false), 0, UNINSTALL_DONE },    { LOOK(0, 0, false), 100, UNINSTALL_DONE },
    { LOOK(0, 0, true), 99, UNINSTALL_AGAIN },   { LOOK(0, 0, true), 100, UNINSTALL_FAILED },
    { LOOK(1, 0, false), 99, UNINSTALL_AGAIN },  { LOOK(1, 0, false), 100, UNINSTALL_FAILED },
    { RELEASED, 100, UNINSTALL_AGAIN },          { RELEASED, 200, UNINSTALL_FAILED },
    { LOOK(0, 1, false), 99, UNINSTALL_AGAIN },  { LOOK(0, 1, false), 100, UNINSTALL_TO_COLLECTOR },
    { LOOK(0, 1, true), 100, UNINSTALL_FAILED },
};

TEST_EACH(a_look_says_whether_there_is_another_one, NEXT)
{
    static const struct uninstall_times TIMES = { .release_ms = 75, .end_ms = 100 };

    ck_assert_int_eq(uninstall_next(&NEXT[_i].look, &TIMES, NEXT[_i].elapsed_ms), NEXT[_i].next);
}
