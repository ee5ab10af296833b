#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/cond.h"
#include "common/base/str.h"
#include "common/tests/loop_fixture.h"
#include "common/tests/suite.h"

#define PATIENCE_MS 120000
#define MANY 20

#define ITEM(name, version)                                                                        \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
#define LIST(version, items)                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define ADDED(name, version) "{\"type\":\"ADDED\",\"object\":" ITEM(name, version) "}\n"
#define BOOKMARK(version)                                                                          \
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"" version "\"}}}\n"

static const struct kube_kind KIND_GADGET = { .group = "example.org",
                                              .version = "v1",
                                              .kind = "Gadget",
                                              .plural = "gadgets",
                                              .namespaced = true };
static const struct kube_kind KIND_WIDGET = { .group = "example.org",
                                              .version = "v1",
                                              .kind = "Widget",
                                              .plural = "widgets",
                                              .namespaced = true };

/* What the sinks were told: the newest version of each kind, guarded by the lock. */
struct told {
    const struct kube_kind *kind;
    struct watch_machine *machine;
    char version[32];
    unsigned lists;
};
static struct told gadgets = { .kind = &KIND_GADGET };
static struct told widgets = { .kind = &KIND_WIDGET };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static void sink(void *ctx, enum watch_event_type type, struct kube_object *object UNUSED,
                 const char *version)
{
    struct told *told = ctx;

    pthread_mutex_lock(&lock);
    if (version)
        ck_assert(str_copy(told->version, sizeof(told->version), version));
    told->lists += type == WATCH_INIT_DONE;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for_version(struct told *told, const char *version)
{
    struct timespec deadline = cond_deadline(PATIENCE_MS);

    pthread_mutex_lock(&lock);
    while (!str_equal(told->version, version))
        ck_assert_msg(cond_wait_until(&changed, &lock, &deadline), "%s at '%s' instead of '%s'",
                      told->kind->plural, told->version, version);
    pthread_mutex_unlock(&lock);
}

/* Waits until there is a problem with these words (NULL: until there is none); as readyz, by
 * asking. */
static void wait_for_problem(const char *words)
{
    char problem[400] = "";
    int64_t end_ms = clock_monotonic_ms(&CLOCK_SYSTEM) + PATIENCE_MS;

    for (;;) {
        bool found = watch_loop_problem(loop, problem, sizeof(problem));
        if (words ? found && strstr(problem, words) : !found)
            return;
        ck_assert_msg(clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms, "problem '%s' instead of '%s'",
                      found ? problem : "", words);
        struct timespec deadline = cond_deadline(10);
        pthread_mutex_lock(&lock);
        (void)!cond_wait_until(&changed, &lock, &deadline);
        pthread_mutex_unlock(&lock);
    }
}

static void add(struct told *told)
{
    struct watch_options options = { .kind = told->kind };

    told->machine = watch_machine_create(&options, sink, told);
    watch_loop_add(loop, told->machine);
}

static void answer_both(const char *version)
{
    char list[100];

    snprintf(list, sizeof(list), LIST("%s", ""), version);
    tiny_server_answer(server, "/gadgets?", 200, list);
    tiny_server_answer(server, "/widgets?", 200, list);
    tiny_server_answer(server, "watch=true", 200, "");
}

/* Whoever waits for a server may be there before it has been told what to answer. */
static void start_server_again(uint16_t port, const char *version)
{
    server = tiny_server_listen(port);
    answer_both(version);
    tiny_server_serve(server);
}

static void set_up(void)
{
    cond_init(&changed);
    loop_set_up();
    add(&gadgets);
    add(&widgets);
}

static void tear_down(void)
{
    watch_loop_stop(loop);
    watch_machine_destroy(gadgets.machine);
    watch_machine_destroy(widgets.machine);
    loop_tear_down();
}

TEST_GROUP("watch_loop", set_up, tear_down);

TEST(each_machine_lists_and_then_watches)
{
    answer_both("10");
    loop_start();
    wait_for_version(&gadgets, "10");
    wait_for_version(&widgets, "10");
    tiny_server_push(server, "/gadgets?watch=true", ADDED("a", "12"));
    wait_for_version(&gadgets, "12");
    tiny_server_push(server, "/widgets?watch=true", BOOKMARK("13"));
    wait_for_version(&widgets, "13");
    ck_assert_str_eq(gadgets.version, "12");

    tiny_server_end(server, "/gadgets?watch=true"); /* orderly: again from the last version */
    tiny_server_wait(server, "/gadgets?watch=true&allowWatchBookmarks=true&resourceVersion=12", 1);
    ck_assert_uint_eq(gadgets.lists, 1);
    wait_for_problem(NULL);
}

TEST(a_stream_that_stalls_does_not_hold_up_the_others)
{
    answer_both("10");
    loop_start();
    tiny_server_push(server, "/gadgets?watch=true", "{\"type\":\"ADDED\",\"object\":{\"meta");
    tiny_server_push(server, "/widgets?watch=true", ADDED("a", "12"));
    wait_for_version(&widgets, "12");
    ck_assert_str_eq(gadgets.version, "10");
    tiny_server_push(server, "/gadgets?watch=true",
                     "data\":{\"name\":\"a\",\"resourceVersion\":\"14\"}}}");
    wait_for_version(&gadgets, "14");
}

TEST(a_new_server_is_watched_from_the_last_version)
{
    uint16_t port = tiny_server_port(server);

    answer_both("10");
    loop_start();
    tiny_server_push(server, "/gadgets?watch=true", ADDED("a", "12"));
    wait_for_version(&gadgets, "12");
    wait_for_version(&widgets, "10");
    tiny_server_stop(server);
    wait_for_problem("watch gadgets.example.org: Unavailable: ");

    start_server_again(port, "99");
    tiny_server_wait(server, "/gadgets?watch=true&allowWatchBookmarks=true&resourceVersion=12", 1);
    tiny_server_wait(server, "/widgets?watch=true&allowWatchBookmarks=true&resourceVersion=10", 1);
    tiny_server_push(server, "/widgets?watch=true", ADDED("b", "15"));
    wait_for_version(&widgets, "15");
    wait_for_problem(NULL);
    ck_assert_uint_eq(gadgets.lists, 1);
}

TEST(nobody_there_is_a_problem_until_somebody_is)
{
    uint16_t port = tiny_server_port(server);

    tiny_server_stop(server);
    server = NULL;
    loop_start();
    wait_for_problem("list gadgets.example.org: Unavailable: Failed to connect to 127.0.0.1");
    start_server_again(port, "10");
    wait_for_version(&gadgets, "10");
    wait_for_version(&widgets, "10");
    wait_for_problem(NULL);
}

TEST(a_refusal_is_told_in_the_server_s_words)
{
    answer_both("10");
    tiny_server_answer(
        server, "/widgets?", 403,
        "{\"kind\":\"Status\",\"message\":\"widgets is forbidden: User \\\"u\\\"\"}");
    loop_start();
    wait_for_problem("list widgets.example.org: Forbidden: widgets is forbidden: User \"u\"");
    ck_assert(watch_loop_is_refused(loop));
    wait_for_version(&gadgets, "10");
    answer_both("20");
    wait_for_version(&widgets, "20");
    wait_for_problem(NULL);
    ck_assert(!watch_loop_is_refused(loop));
}

TEST(a_refused_request_is_not_repeated_before_its_time)
{
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    tiny_server_answer(server, "/gadgets?", 503, "");
    tiny_server_answer(server, "/widgets?", 200, LIST("10", ""));
    tiny_server_answer(server, "watch=true", 200, "");
    loop_start();
    tiny_server_push(server, "/widgets?watch=true", BOOKMARK("11")); /* the loop goes round */
    tiny_server_wait(server, "/gadgets?", 3);
    ck_assert_int_ge(clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms,
                     (WATCH_BACKOFF_MIN_MS + 2 * WATCH_BACKOFF_MIN_MS) / 2);
}

TEST(gone_lists_again)
{
    answer_both("10");
    loop_start();
    tiny_server_wait(server, "watch=true", 2);
    answer_both("90"); /* before it is asked for */
    tiny_server_push(server, "/gadgets?watch=true",
                     "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Expired\"}}");
    wait_for_version(&gadgets, "90");
    ck_assert_uint_eq(gadgets.lists, 2);
    wait_for_problem(NULL);
}

TEST(a_list_that_breaks_off_is_asked_for_again)
{
    answer_both("10");
    tiny_server_answer_in_part(server, "/gadgets?limit", "{\"items\":[" ITEM("a", "3"));
    loop_start();
    tiny_server_wait(server, "/gadgets?limit", 1);
    wait_for_version(&widgets, "10");
    uint16_t port = tiny_server_port(server);
    tiny_server_stop(server);
    start_server_again(port, "20");
    wait_for_version(&gadgets, "20");
    ck_assert_uint_eq(gadgets.lists, 1);
}

TEST(a_new_token_is_used_without_a_restart)
{
    answer_both("10");
    loop_start();
    tiny_server_wait(server, "/gadgets?watch", 1);
    ck_assert(tiny_server_saw(server, "/gadgets?limit", "Authorization: Bearer first-token"));
    ck_assert(tiny_server_saw(server, "/gadgets?watch", "Authorization: Bearer first-token"));

    loop_write_token("second-token\n");
    tiny_server_answer(server, "/gadgets?watch", 401, "");
    tiny_server_end(server, "/gadgets?watch");
    tiny_server_wait(server, "/gadgets?watch", 2);
    wait_for_problem(
        "watch gadgets.example.org: Unavailable: the credentials are not accepted: HTTP 401");
    ck_assert(!watch_loop_is_refused(loop)); /* it may have been the old token */
    tiny_server_answer(server, "/gadgets?watch", 200, "");
    tiny_server_wait(server, "/gadgets?watch", 3);
    ck_assert(tiny_server_saw(server, "/gadgets?watch", "Authorization: Bearer second-token"));
}

TEST(a_token_that_is_the_newest_and_is_not_accepted_is_a_refusal)
{
    answer_both("10");
    tiny_server_answer(server, "/gadgets?", 401, "");
    loop_start();
    tiny_server_wait(server, "/gadgets?", 3);
    ck_assert(watch_loop_is_refused(loop));
}

/* Otherwise it would be 15 s at the least, each time; a machine may be busy for so long once. */
#define STOP_MS 14000
#define STOPS 4
static bool stops_at_once(void)
{
    int64_t begin_ms = clock_monotonic_ms(&CLOCK_SYSTEM);

    watch_loop_stop(loop);
    return clock_monotonic_ms(&CLOCK_SYSTEM) - begin_ms < STOP_MS;
}

static void check_stop(void (*begin)(void))
{
    begin();
    for (int i = 1; !stops_at_once(); i++) {
        ck_assert_int_lt(i, STOPS);
        tear_down();
        set_up();
        begin();
    }
}

static void wait_for_streams_and_lists(void)
{
    answer_both("10");
    tiny_server_answer_in_part(server, "/widgets?limit", "{\"items\":[");
    loop_start();
    tiny_server_wait(server, "/gadgets?watch", 1);
    tiny_server_wait(server, "/widgets?limit", 1);
}

TEST(stop_does_not_wait_for_streams_or_lists)
{
    check_stop(wait_for_streams_and_lists);
    watch_loop_stop(loop);
    wait_for_problem(NULL);
}

static void wait_for_a_back_off(void)
{
    tiny_server_answer(server, "/", 429, "{\"details\":{\"retryAfterSeconds\":30}}");
    loop_start();
    wait_for_problem("list gadgets.example.org: Unavailable: HTTP 429");
    tiny_server_wait(server, "/widgets?", 1);
}

TEST(stop_does_not_wait_for_a_back_off)
{
    check_stop(wait_for_a_back_off);
}

TEST(many_machines_share_the_thread)
{
    struct told more[MANY] = { 0 };

    for (size_t i = 0; i < MANY; i++) {
        more[i].kind = i % 2 ? &KIND_GADGET : &KIND_WIDGET;
        add(&more[i]);
    }
    answer_both("10");
    loop_start();
    for (size_t i = 0; i < MANY; i++)
        wait_for_version(&more[i], "10");
    tiny_server_wait(server, "watch=true", MANY + 2);
    watch_loop_stop(loop);
    for (size_t i = 0; i < MANY; i++)
        watch_machine_destroy(more[i].machine);
}
