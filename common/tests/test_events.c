#include "common/runtime/events.h"

#include <poll.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/fake_clock.h"
#include "common/tests/observe.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static struct fake_api *api;
static struct fake_clock fake;
static int64_t
    request_ms; /* how long each request takes; none ends before the stop asks the time */
static unsigned reads_before_stop;
static bool forbidden; /* each request is refused */
static struct kube_client *client;
static struct events *events;
static struct kube_object *task;
static struct arena *words; /* what the events say */

static int slow_roundtrip(void *ctx, struct arena *arena, const struct http_request *request,
                          struct http_response *ret, struct error *err)
{
    while (request_ms && atomic_load(&fake.reads) == reads_before_stop)
        (void)poll(NULL, 0, 1);
    fake_clock_advance(&fake, request_ms);
    if (forbidden)
        return error_set(err, ERROR_FORBIDDEN, "no");
    return fake_api_roundtrip(ctx, arena, request, ret, err);
}

static struct kube_object *make_task(const char *ns, const char *name)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    struct kube_object *made = NULL;
    const char *text = arena_printf(arena,
                                    "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\","
                                    "\"uid\":\"u-%s\",\"resourceVersion\":\"7\"}}",
                                    ns, name, name);

    ck_assert_int_eq(kube_object_create(parsed(arena, text), &made, &err), 0);
    return made;
}

static void set_up(void)
{
    json_init();
    words = arena_create();
    api = fake_api_create();
    fake_clock_init(&fake);
    client = kube_client_create_with(slow_roundtrip, api);
    events = events_create(client, "example.com/controller", "one", &fake.clock);
    task = make_task("ns", "sum");
}

static void tear_down(void)
{
    events_destroy(events);
    kube_client_destroy(client);
    fake_api_destroy(api);
    kube_object_unref(task);
    arena_destroy(words);
}

TEST_GROUP("events", set_up, tear_down);

static void start(void)
{
    struct error err = { 0 };

    ck_assert_int_eq(events_start(events, &err), 0);
}

struct found {
    size_t count;
    struct arena *arena;
    const cJSON *last;
};

static int on_event(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    struct found *found = ctx;

    found->count++;
    found->last = arena_own(found->arena, json_copy(item), json_free);
    return 0;
}

static struct found stored(struct arena *arena)
{
    struct found found = { .arena = arena };
    struct kube_list_options all = { 0 };
    struct error err = { 0 };

    ck_assert_int_eq(kube_list(client, &KIND_EVENT, &all, on_event, &found, &err), 0);
    return found;
}

static void say(const struct kube_kind *kind, const struct kube_object *about, enum event_type type,
                const char *reason, const char *note)
{
    struct event *event = arena_new(words, struct event);

    *event = (struct event){ type, reason, arena_strdup(words, note) };
    events_emit(events, kind, about, event);
}

static void emit(const char *note)
{
    say(&KIND_TASK, task, EVENT_NORMAL, "Started", note);
}

TEST(an_event_names_its_object_and_its_reason)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    say(&KIND_TASK, task, EVENT_WARNING, "Failed", "no luck");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    const cJSON *regarding = json_get(found.last, "regarding");
    ck_assert_str_eq(json_string(json_get(regarding, "uid"), ""), "u-sum");
    ck_assert_str_eq(json_string(json_get(regarding, "kind"), ""), "Task");
    ck_assert_str_eq(json_string(json_get(regarding, "apiVersion"), ""),
                     "propeller.propeller.abstractmachines.fr/v1");
    ck_assert_str_eq(json_string(json_path(found.last, "metadata", "namespace", NULL), ""), "ns");
    ck_assert_str_eq(json_string(json_get(found.last, "reason"), ""), "Failed");
    ck_assert_str_eq(json_string(json_get(found.last, "type"), ""), "Warning");
    ck_assert_str_eq(json_string(json_get(found.last, "note"), ""), "no luck");
    ck_assert_str_eq(json_string(json_get(found.last, "action"), ""), "Failed");
    ck_assert_str_eq(json_string(json_get(found.last, "eventTime"), ""),
                     "2026-11-21T10:00:00.000000Z");
    ck_assert_str_eq(json_string(json_get(found.last, "reportingController"), ""),
                     "example.com/controller");
    ck_assert_str_eq(json_string(json_get(found.last, "reportingInstance"), ""), "one");
}

TEST(the_same_again_raises_the_count_of_a_series)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    for (int i = 0; i < 3; i++)
        say(&KIND_TASK, task, EVENT_NORMAL, "Started", "started on 'a'");
    say(&KIND_TASK, task, EVENT_NORMAL, "Started", "started on 'b'");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 2);
    size_t requests;
    struct fake_request *log;
    requests = fake_api_requests(api, arena, &log);
    size_t patches = 0;
    for (size_t i = 0; i < requests; i++)
        patches += !strcmp(log[i].method, "PATCH");
    ck_assert_uint_eq(patches, 2);
}

static int64_t series_count(const cJSON *event)
{
    return json_int(json_path(event, "series", "count", NULL), 0);
}

TEST(a_series_has_its_count_and_its_last_time)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    emit("x");
    emit("x");
    fake_clock_advance(&fake, INT64_C(10) * 60 * 1000 - 1);
    emit("x");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(series_count(found.last), 3);
    ck_assert_str_eq(json_string(json_path(found.last, "series", "lastObservedTime", NULL), ""),
                     "2026-11-21T10:09:59.999000Z");
}

TEST(after_ten_minutes_the_same_is_a_new_event)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    emit("x");
    fake_clock_advance(&fake, INT64_C(10) * 60 * 1000);
    emit("x");
    events_stop(events);
    ck_assert_uint_eq(stored(arena).count, 2);
}

TEST(a_series_whose_event_is_gone_begins_again)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_name name;

    start();
    emit("x");
    struct found found;
    do {
        (void)poll(NULL, 0, 1);
        found = stored(arena);
    } while (found.count == 0);
    ck_assert(kube_name_set(&name, "ns",
                            json_string(json_path(found.last, "metadata", "name", NULL), "")));
    fake_api_delete(api, &KIND_EVENT, &name);
    emit("x");
    emit("x");
    events_stop(events);
    found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_int_eq(series_count(found.last), 2);
}

TEST(another_type_reason_or_object_is_another_event)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_object *other = make_task("ns", "other");

    start();
    emit("x");
    say(&KIND_TASK, task, EVENT_WARNING, "Started", "x");
    say(&KIND_TASK, task, EVENT_NORMAL, "Failed", "x");
    say(&KIND_PROPLET, other, EVENT_NORMAL, "Started", "x");
    kube_object_unref(other);
    events_stop(events);
    ck_assert_uint_eq(stored(arena).count, 4);
}

TEST(more_series_than_are_remembered_are_still_written)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    for (int i = 0; i < 600; i++)
        emit(arena_printf(arena, "%d", i));
    events_stop(events);
    ck_assert_uint_eq(stored(arena).count, 600);
    ck_metric("propeller_events_dropped_total 0");
}

TEST(more_than_fit_are_dropped_and_nobody_waits)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (int i = 0; i < 2000; i++) /* no thread takes any */
        emit(arena_printf(arena, "%d", i));
    ck_metric("propeller_events_dropped_total 976");
    start();
    events_stop(events);
    ck_assert_uint_eq(stored(arena).count, 1024);
}

TEST(a_stop_does_not_write_for_longer_than_two_seconds)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (int i = 0; i < 10; i++)
        emit(arena_printf(arena, "%d", i));
    reads_before_stop = atomic_load(&fake.reads);
    request_ms = 400;
    start();
    events_stop(events);
    request_ms = 0;
    ck_assert_uint_eq(stored(arena).count, 5);
    ck_metric("propeller_events_dropped_total 5");
}

TEST(what_is_emitted_after_the_stop_is_counted)
{
    start();
    events_stop(events);
    emit("late");
    ck_metric("propeller_events_dropped_total 1");
}

TEST(the_first_failure_in_a_row_is_a_warning)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    capture_start(STDERR_FILENO);
    forbidden = true;
    for (int i = 0; i < 3; i++)
        emit("bad");
    start();
    events_stop(events);
    const char *text = capture_text(arena);
    capture_stop();
    ck_assert_ptr_nonnull(strstr(text, "\"warn\",\"msg\":\"event not written, ignoring\""));
    ck_assert_ptr_eq(strchr(text, '\n'), strrchr(text, '\n'));
    ck_metric("propeller_events_dropped_total 3");
}

static const struct {
    const char *ns, *name, *expected_ns, *expected_start;
} NAMES[] = {
    { "ns", "sum", "ns", "sum." },
    { "", "sum", "default", "sum." },
    { "ns", "a.b", "ns", "a.b." },
    { "ns",
      "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbb.aaaaaaaaaabbbbbbbbbbaaaaaaaaaa"
      "bbbbbbbbbbaaaaaaaaaabbbbbbbbb.aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbb."
      "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbb.-bbbbbbbbbbbbbbbbb",
      "ns", "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbb.aaa" },
};

TEST_EACH(the_name_of_an_event_is_a_subdomain_that_begins_like_the_object, NAMES)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kube_object *about = make_task(NAMES[_i].ns, NAMES[_i].name);

    start();
    say(&KIND_TASK, about, EVENT_NORMAL, "Started", "x");
    kube_object_unref(about);
    events_stop(events);

    const cJSON *metadata = json_get(stored(arena).last, "metadata");
    const char *name = json_string(json_get(metadata, "name"), "");
    ck_assert_str_eq(json_string(json_get(metadata, "namespace"), ""), NAMES[_i].expected_ns);
    ck_assert_msg(str_has_prefix(name, NAMES[_i].expected_start), "%s", name);
    ck_assert_msg(str_is_dns_subdomain(name), "%s", name);
}

TEST(a_failed_write_loses_that_event_only)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    fake_api_fail(api, 1, FAKE_SERVER_ERROR);
    start();
    say(&KIND_TASK, task, EVENT_NORMAL, "Scheduled", "one");
    say(&KIND_TASK, task, EVENT_NORMAL, "Started", "two");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_str_eq(json_string(json_get(found.last, "reason"), ""), "Started");
}
