/* Events of transitions: written apart, repeated ones as a series, never more than fit. */
#include "common/runtime/events.h"

#include <check.h>
#include <string.h>

#include "common/kube/kinds.h"
#include "common/tests/fake_api.h"
#include "common/tests/suite.h"

static struct fake_api *api;
static struct kube_client *client;
static struct events *events;
static struct kube_object *task;

static void set_up(void)
{
    struct error err = { 0 };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"sum\",\"uid\":\"u-1\","
                       "\"resourceVersion\":\"7\"}}";
    const cJSON *json;

    json_init();
    api = fake_api_create();
    client = kube_client_create_with(fake_api_roundtrip, api);
    events = events_create(client, "example.com/controller", "one", &CLOCK_SYSTEM);
    ck_assert_int_eq(json_parse(arena, text, strlen(text), &json, &err), 0);
    ck_assert_int_eq(kube_object_create(json, &task, &err), 0);
}

static void tear_down(void)
{
    events_destroy(events);
    kube_client_destroy(client);
    fake_api_destroy(api);
    kube_object_unref(task);
}

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

START_TEST(an_event_names_its_object_and_its_reason)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    events_emit(events, &KIND_TASK, task, EVENT_WARNING, "Failed", "%s", "no luck");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    const cJSON *regarding = json_get(found.last, "regarding");
    ck_assert_str_eq(json_string(json_get(regarding, "uid"), ""), "u-1");
    ck_assert_str_eq(json_string(json_get(regarding, "kind"), ""), "Task");
    ck_assert_str_eq(json_string(json_get(regarding, "apiVersion"), ""),
                     "propeller.propeller.abstractmachines.fr/v1");
    ck_assert_str_eq(json_string(json_path(found.last, "metadata", "namespace", NULL), ""), "ns");
    ck_assert_str_eq(json_string(json_get(found.last, "reason"), ""), "Failed");
    ck_assert_str_eq(json_string(json_get(found.last, "type"), ""), "Warning");
    ck_assert_str_eq(json_string(json_get(found.last, "note"), ""), "no luck");
    ck_assert_str_eq(json_string(json_get(found.last, "reportingController"), ""),
                     "example.com/controller");
}
END_TEST

START_TEST(the_same_again_raises_the_count_of_a_series)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    start();
    for (int i = 0; i < 3; i++)
        events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Started", "started on 'a'");
    events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Started", "started on 'b'");
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
END_TEST

START_TEST(more_than_fit_are_dropped_and_nobody_waits)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    for (int i = 0; i < 2000; i++) /* no thread takes any */
        events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Started", "%d", i);
    start();
    events_stop(events);
    ck_assert_uint_eq(stored(arena).count, 1024);
}
END_TEST

START_TEST(a_failed_write_loses_that_event_only)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();

    fake_api_fail(api, 1, FAKE_SERVER_ERROR);
    start();
    events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Scheduled", "one");
    events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Started", "two");
    events_stop(events);

    struct found found = stored(arena);
    ck_assert_uint_eq(found.count, 1);
    ck_assert_str_eq(json_string(json_get(found.last, "reason"), ""), "Started");
}
END_TEST

START_TEST(a_long_note_is_cut_at_a_character)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    char note[1026];

    memset(note, 'x', sizeof(note));
    note[1023] = '\xc3'; /* an ä across the limit */
    note[1024] = '\xa4';
    note[1025] = '\0';
    start();
    events_emit(events, &KIND_TASK, task, EVENT_NORMAL, "Failed", "%s", note);
    events_stop(events);

    const char *kept = json_string(json_get(stored(arena).last, "note"), "");
    ck_assert_uint_eq(strlen(kept), 1023);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("events");
    TCase *tcase = tcase_create("events");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_event_names_its_object_and_its_reason);
    tcase_add_test(tcase, the_same_again_raises_the_count_of_a_series);
    tcase_add_test(tcase, more_than_fit_are_dropped_and_nobody_waits);
    tcase_add_test(tcase, a_failed_write_loses_that_event_only);
    tcase_add_test(tcase, a_long_note_is_cut_at_a_character);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
