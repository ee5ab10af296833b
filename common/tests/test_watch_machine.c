#include "common/tests/watch_harness.h"

static const struct kube_kind KIND_NODE = {
    .group = "", .version = "v1", .kind = "Node", .plural = "nodes"
};

/* --- requests --- */

TEST_GROUP("requests", watch_set_up, watch_tear_down);

TEST(the_first_list_is_the_cache_s_and_the_watch_starts_at_its_version)
{
    request(LIST_CACHED);
    reply(LIST(ITEM("a", "3") "," ITEM("b", "7"), "10"), 5);
    expect_told("init\nitem n/a\nitem n/b\ndone @10\n");

    ck_assert_int_eq(request(WATCH_FROM("10")), 0);
    reply(EVENT("ADDED", "c", "11") EVENT("MODIFIED", "a", "12") EVENT("DELETED", "b", "14"), 5);
    expect_told("apply n/c @11\napply n/a @12\ndelete n/b @14\n");

    ck_assert_int_eq(request(WATCH_FROM("14")), 0);
}

TEST(pages_are_one_set_at_the_version_of_the_first)
{
    request(LIST_CACHED);
    reply(PAGE(ITEM("a", "3"), "10", "t/k+1="), 5);
    ck_assert_int_eq(request(LIST_PAGE("t%2Fk%2B1%3D")), 0);
    reply(PAGE(ITEM("b", "4"), "11", "t2"), 5);
    ck_assert_int_eq(request(LIST_PAGE("t2")), 0);
    reply(PAGE(ITEM("c", "5"), "12", ""), 5);
    expect_told("init\nitem n/a\nitem n/b\nitem n/c\ndone @10\n");
    request(WATCH_FROM("10"));
}

TEST(options_go_into_the_path)
{
    struct watch_options options = { .kind = &KIND_GADGET,
                                     .ns = "team-1",
                                     .label_selector = "app in (a,b)",
                                     .page_size = 20,
                                     .watch_timeout_s = 60 };
    struct watch_request next;

    watch_set_up_with(&options);
    request("/apis/example.org/v1/namespaces/team-1/gadgets"
            "?labelSelector=app%20in%20%28a%2Cb%29&limit=20&resourceVersion=0");
    reply(LIST("", "10"), 5);
    request("/apis/example.org/v1/namespaces/team-1/gadgets?labelSelector=app%20in%20%28a%2Cb%29"
            "&watch=true&allowWatchBookmarks=true&resourceVersion=10&timeoutSeconds=60");
    watch_machine_next(machine, now_ms, &next);
    ck_assert_uint_eq(next.timeout_ms, 65000);
    ck_assert_str_eq(watch_machine_resource(machine), "gadgets.example.org of namespace 'team-1'");

    watch_set_up_with(&(struct watch_options){ .kind = &KIND_NODE, .ns = "ignored" });
    request("/api/v1/nodes?limit=500&resourceVersion=0");
    ck_assert_str_eq(watch_machine_resource(machine), "nodes");

    watch_set_up_with(&(struct watch_options){ .kind = &KIND_NODE, .newest = true });
    request("/api/v1/nodes?limit=500");

    watch_set_up_with(&(struct watch_options){ .kind = &KIND_NODE, .name = "n-1" });
    request("/api/v1/nodes?fieldSelector=metadata.name%3Dn-1&limit=500&resourceVersion=0");
    reply(LIST("", "10"), 5);
    request("/api/v1/nodes?fieldSelector=metadata.name%3Dn-1&watch=true&allowWatchBookmarks=true"
            "&resourceVersion=10&timeoutSeconds=290");
}

TEST(asking_twice_gives_the_same_request)
{
    request(LIST_CACHED);
    request(LIST_CACHED);
    reply(LIST("", "10"), 5);
    request(WATCH_FROM("10"));
    request(WATCH_FROM("10"));
}

TEST(a_bookmark_moves_the_version_forward_only)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    reply(BOOKMARK("25"), 5);
    expect_told("bookmark @25\n");
    request(WATCH_FROM("25"));
    reply(BOOKMARK("24") BOOKMARK("9"), 2000);
    expect_told("");
    request(WATCH_FROM("25"));
}

/* --- any split, any break --- */

#define STREAM                                                                                     \
    EVENT("ADDED", "a", "11")                                                                      \
    EVENT("MODIFIED", "a", "12")                                                                   \
    BOOKMARK("13") EVENT("DELETED", "a", "14") EVENT("ADDED", "b", "15")
#define STREAM_TOLD "apply n/a @11\napply n/a @12\nbookmark @13\ndelete n/a @14\napply n/b @15\n"

/* What a server sends that is asked for everything after a version. */
static const struct {
    const char *version;
    const char *rest;
} RESUMED[] = {
    { "10", STREAM },
    { "11", EVENT("MODIFIED", "a", "12") EVENT("DELETED", "a", "14") EVENT("ADDED", "b", "15") },
    { "12", EVENT("DELETED", "a", "14") EVENT("ADDED", "b", "15") },
    { "13", EVENT("DELETED", "a", "14") EVENT("ADDED", "b", "15") },
    { "14", EVENT("ADDED", "b", "15") },
    { "15", "" },
};

static const char *rest_after(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(RESUMED); i++) {
        char asked[40];
        snprintf(asked, sizeof(asked), "resourceVersion=%s&", RESUMED[i].version);
        if (strstr(path, asked))
            return RESUMED[i].rest;
    }
    ck_abort_msg("asked for an unknown version: %s", path);
    return NULL;
}

TEST(chunks_of_every_size_tell_the_same)
{
    static const char list[] = LIST(ITEM("a", "3") "," ITEM("b", "7"), "10");

    for (size_t chunk = 1; chunk <= sizeof(STREAM); chunk++) {
        request(LIST_CACHED);
        ck_assert_int_eq(feed(list, strlen(list), chunk), 0);
        watch_machine_finish(machine, 200, NULL, now_ms);
        expect_told("init\nitem n/a\nitem n/b\ndone @10\n");
        request(WATCH_FROM("10"));
        ck_assert_int_eq(feed(STREAM, strlen(STREAM), chunk), 0);
        expect_told(STREAM_TOLD);
        watch_tear_down();
        watch_set_up();
    }
}

TEST(a_stream_broken_at_every_byte_tells_the_same_events)
{
    for (size_t cut = 0; cut <= strlen(STREAM); cut++) {
        struct watch_request next;

        get_to_watch();
        request(WATCH_FROM("10"));
        ck_assert_int_eq(feed(STREAM, cut, SIZE_MAX), 0);
        watch_machine_finish(machine, 0, "connection reset", now_ms);

        watch_machine_next(machine, now_ms, &next);
        now_ms = next.not_before_ms;
        const char *rest = rest_after(next.path);
        ck_assert_int_eq(feed(rest, strlen(rest), SIZE_MAX), 0);

        /* a bookmark is not repeated to who comes back after it */
        if (!strstr(told_so_far(), "bookmark"))
            expect_told("apply n/a @11\napply n/a @12\ndelete n/a @14\napply n/b @15\n");
        else
            expect_told(STREAM_TOLD);
        watch_tear_down();
        watch_set_up();
    }
}

TEST(a_list_broken_at_any_byte_starts_over)
{
    static const char list[] = LIST(ITEM("a", "3") "," ITEM("b", "7"), "10");
    size_t end = strlen(list) - 1; /* the closing bracket is the byte before the line feed */

    for (size_t cut = 0; cut < end; cut++) {
        request(LIST_CACHED);
        ck_assert_int_eq(feed(list, cut, SIZE_MAX), 0);
        watch_machine_finish(machine, cut % 2 ? 200 : 0, NULL, now_ms);
        ck_assert_ptr_nonnull(watch_machine_problem(machine));
        ck_assert_ptr_null(strstr(told_so_far(), "done"));
        forget_told();

        ck_assert_int_ge(request(LIST_CACHED), WATCH_BACKOFF_MIN_MS / 2);
        reply(list, 5);
        expect_told("init\nitem n/a\nitem n/b\ndone @10\n");
        ck_assert_ptr_null(watch_machine_problem(machine));
        watch_tear_down();
        watch_set_up();
    }

    request(LIST_CACHED); /* complete, then a broken connection: that is no loss */
    ck_assert_int_eq(feed(list, end, SIZE_MAX), 0);
    watch_machine_finish(machine, 0, "connection reset", now_ms);
    ck_assert_int_eq(request(WATCH_FROM("10")), 0);
}

TEST(a_page_that_did_not_come_is_asked_for_again)
{
    request(LIST_CACHED);
    reply(PAGE(ITEM("a", "3"), "10", "t1"), 5);
    request(LIST_PAGE("t1"));
    refuse(503, NULL);
    ck_assert_int_gt(request(LIST_PAGE("t1")), 0);
    refuse(0, "connection refused");
    ck_assert_int_gt(request(LIST_PAGE("t1")), 0);
    reply(PAGE(ITEM("b", "4"), "10", ""), 5);
    expect_told("init\nitem n/a\nitem n/b\ndone @10\n");
}

/* --- Gone --- */

TEST_GROUP("gone", watch_set_up, watch_tear_down);

TEST_TIMES(gone_lists_again_at_the_known_version_and_goes_on_from_there, GONE_COUNT)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    reply(EVENT("ADDED", "a", "12"), 20000);
    request(WATCH_FROM("12"));
    forget_told();

    GONE[_i]();
    expect_told("");
    int64_t wait_ms = request(LIST_FROM("12"));
    ck_assert_int_ge(wait_ms, WATCH_BACKOFF_MIN_MS / 2); /* all clients at once: a storm */
    reply(LIST(ITEM("b", "50"), "90"), 5);
    expect_told("init\nitem n/b\ndone @90\n");
    request(WATCH_FROM("90"));
}

TEST_TIMES(gone_after_an_outage_waits_no_longer_than_gone_alone, GONE_COUNT)
{
    get_to_watch();
    for (int i = 0; i < 6; i++) {
        request(WATCH_FROM("10"));
        refuse(0, "connection refused");
    }
    request(WATCH_FROM("10"));
    GONE[_i]();
    ck_assert_ptr_null(watch_machine_problem(machine));
    ck_assert_int_le(request(LIST_FROM("10")), WATCH_BACKOFF_MIN_MS);
}

TEST_TIMES(gone_again_lists_fresh, GONE_COUNT)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    GONE[_i]();
    request(LIST_FROM("10"));
    refuse(410, STATUS(410, "Expired", "The provided resource version is too old"));
    check_wait(request(LIST_FRESH), INT64_C(2) * WATCH_BACKOFF_MIN_MS);
    reply(LIST("", "90"), 5);
    request(WATCH_FROM("90"));
    GONE[_i]();
    request(LIST_FROM("90"));
}

TEST(a_version_from_the_future_lists_fresh)
{
    static const char body[] =
        "{\"kind\":\"Status\",\"message\":\"Timeout: Too large resource version: 10, current: 4\","
        "\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\","
        "\"message\":\"Too large resource version\"}],\"retryAfterSeconds\":1},\"code\":504}";

    get_to_watch();
    request(WATCH_FROM("10"));
    GONE[0]();
    request(LIST_FROM("10"));
    refuse(504, body);
    request(LIST_FRESH);
}

TEST(gone_on_a_continue_token_starts_a_new_set)
{
    request(LIST_CACHED); /* nothing known yet */
    reply(PAGE(ITEM("a", "3"), "10", "t1"), 5);
    request(LIST_PAGE("t1"));
    refuse(410, STATUS(410, "Expired", "The provided continue parameter is too old"));
    expect_told("init\nitem n/a\n");
    request(LIST_FRESH);
    reply(LIST(ITEM("b", "5"), "20"), 5);
    expect_told("init\nitem n/b\ndone @20\n");

    request(WATCH_FROM("20")); /* the same with a known version */
    GONE[0]();
    request(LIST_FROM("20"));
    reply(PAGE(ITEM("b", "5"), "30", "t2"), 5);
    request(LIST_PAGE("t2"));
    refuse(410, STATUS(410, "Expired", "The provided continue parameter is too old"));
    request(LIST_FRESH);
    reply(LIST(ITEM("b", "5"), "40"), 5);
    expect_told("init\nitem n/b\ninit\nitem n/b\ndone @40\n");
}
