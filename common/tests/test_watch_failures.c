#include "common/tests/watch_harness.h"

/* --- what cannot be kept --- */

/* A list or stream with an object that is one byte over the limit, between two others. */
static char *oversized(const char *before, const char *after, size_t *ret_len)
{
    static const char head[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"";
    struct buf text = BUF_INIT(8u << 20);
    size_t fill = WATCH_MAX_ITEM + 1 - strlen(head) - strlen("\"}}}");
    char *filler = xmalloc(fill);

    memset(filler, 'x', fill);
    ck_assert(buf_append_string(&text, before) && buf_append_string(&text, head) &&
              buf_append(&text, filler, fill) && buf_append_string(&text, "\"}}}") &&
              buf_append_string(&text, after));
    free(filler);
    *ret_len = text.len;
    return text.data;
}

TEST_GROUP("unreadable", watch_set_up, watch_tear_down);

TEST(an_item_over_the_limit_is_left_out_of_the_list)
{
    size_t len;
    char *list = oversized("{\"items\":[" ITEM("a", "3") ",",
                           "," ITEM("b", "4") "],\"metadata\":{\"resourceVersion\":\"10\"}}", &len);

    request(LIST_CACHED);
    ck_assert_int_eq(feed(list, len, 16384), 0);
    watch_machine_finish(machine, 200, NULL, now_ms);
    expect_told("init\nitem n/a\nkeep\nitem n/b\ndone @10\n"); /* it may be any */
    request(WATCH_FROM("10"));
    free(list);
}

TEST(an_event_over_the_limit_ends_the_stream_and_lists_again)
{
    size_t len;
    char *stream = oversized(EVENT("ADDED", "a", "11"), EVENT("ADDED", "b", "13"), &len);

    get_to_watch();
    request(WATCH_FROM("10"));
    ck_assert_int_eq(feed(stream, len, 16384), -ERROR_TOO_LARGE);
    ck_assert_int_eq(feed("{}", 2, 2), -ERROR_TOO_LARGE);
    watch_machine_finish(machine, 0, "aborted", now_ms);
    expect_told("apply n/a @11\n");
    ck_assert_str_eq(watch_machine_problem(machine),
                     "watch gadgets.example.org: TooLarge: an event of 4194305 bytes is over the "
                     "limit of 4194304");
    ck_assert_int_gt(request(LIST_FROM("11")), 0);
    free(stream);
}

/* None of these can be kept, wherever it comes. */
static const char *const UNREADABLE[] = {
    "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"12\"},\"spec\":\"\\u0000\"}",
    "{\"metadata\":{\"name\":\"x\",\"name\":\"y\",\"resourceVersion\":\"12\"}}",
    "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"12\"},\"spec\":{\"a\":1]}",
    "{\"metadata\":{\"name\":\"x\"}}",
    "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":12}}",
    "{\"metadata\":{\"resourceVersion\":\"12\"}}",
    "{\"metadata\":\"x\"}",
    "{\"metadata\":[1]}",
    "{\"a\":1e}",
    "{}",
};

TEST_EACH(an_unreadable_item_is_left_out_of_the_list, UNREADABLE)
{
    struct buf list = BUF_INIT(4096);

    ck_assert(buf_printf(&list, "{\"items\":[%s,%s,%s],\"metadata\":{\"resourceVersion\":\"10\"}}",
                         ITEM("a", "3"), UNREADABLE[_i], ITEM("b", "4")));
    request(LIST_CACHED);
    reply(list.data, 5);
    expect_told("init\nitem n/a\nitem n/b\ndone @10\n");
    ck_assert_ptr_null(watch_machine_problem(machine));
    request(WATCH_FROM("10"));
    buf_release(&list);
}

/* More levels than JSON_MAX_DEPTH in its status, and names in it that are not its own. */
#define NINE "{\"metadata\":{\"name\":\"\\\"}\"},\"a\":[[[[[[["
#define CLOSED_NINE "]]]]]]]}"
#define DEEP(x) x x x x x x x x x x x x x
#define DELETING                                                                                   \
    "{\"spec\":" NINE CLOSED_NINE ",\"metadata\":{\"name\":\"x\",\"namespace\":\"n\","             \
    "\"resourceVersion\":\"12\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"status\":"       \
    "{\"results\":" DEEP("[[[[[[[[[") DEEP("]]]]]]]]]") "}}"

TEST(object_that_is_deleted_and_has_too_many_levels_is_told_with_its_metadata)
{
    request(LIST_CACHED);
    reply("{\"items\":[" ITEM("a", "3") "," DELETING "],\"metadata\":{\"resourceVersion\":\"13\"}}",
          5);
    expect_told("init\nitem n/a\nitem n/x\ndone @13\n");
    request(WATCH_FROM("13"));
    reply("{\"type\":\"MODIFIED\",\"object\":" DELETING
          "}{\"type\":\"DELETED\",\"object\":" DELETING "}",
          5000);
    expect_told("apply n/x @13\ndelete n/x @13\n");
    ck_assert_int_eq(request(LIST_FROM("13")), 0);
}

TEST_EACH(an_unreadable_event_is_passed_over_and_followed_by_a_list, UNREADABLE)
{
    static const char *const TYPES[] = { "ADDED", "MODIFIED", "DELETED" };

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        struct buf stream = BUF_INIT(4096);

        ck_assert(buf_printf(&stream, "%s{\"type\":\"%s\",\"object\":%s}%s",
                             EVENT("ADDED", "a", "11"), TYPES[i], UNREADABLE[_i],
                             EVENT("ADDED", "b", "13")));
        get_to_watch();
        request(WATCH_FROM("10"));
        reply(stream.data, 5000);
        expect_told("apply n/a @11\napply n/b @13\n");
        ck_assert_int_eq(request(LIST_FROM("13")), 0);
        reply(LIST("", "20"), 5);
        request(WATCH_FROM("20"));
        reply(EVENT("ADDED", "b", "21"), 5);
        request(WATCH_FROM("21"));
        buf_release(&stream);
        watch_tear_down();
        watch_set_up();
    }
}

TEST_TIMES(bytes_that_are_no_events_end_the_stream, 5)
{
    static const char *const STREAMS[] = { "<html>", "[]", "null", "\"ADDED\"", "}{" };

    get_to_watch();
    request(WATCH_FROM("10"));
    ck_assert_int_eq(feed(STREAMS[_i], strlen(STREAMS[_i]), SIZE_MAX), -ERROR_INVALID);
    watch_machine_finish(machine, 200, NULL, now_ms);
    ck_assert_str_eq(watch_machine_problem(machine),
                     "watch gadgets.example.org: Invalid: not a JSON object");
    ck_assert_int_gt(request(LIST_FROM("10")), 0);
}

TEST_TIMES(a_reply_that_is_no_list_is_an_error_and_no_set, 7)
{
    static const char *const REPLIES[] = { "<html>",
                                           "{}",
                                           "{\"items\":[]}",
                                           "{\"metadata\":{\"resourceVersion\":7},\"items\":[]}",
                                           "{\"items\":[1]}",
                                           STATUS(200, "", ""),
                                           "{\"metadata\":{\"resourceVersion\":\"1\"},]}" };
    size_t len = strlen(REPLIES[_i]);

    request(LIST_CACHED);
    ck_assert_int_eq(feed(REPLIES[_i], len, SIZE_MAX), -ERROR_INVALID);
    watch_machine_finish(machine, 200, NULL, now_ms);
    ck_assert_ptr_null(strstr(told_so_far(), "done"));
    ck_assert_ptr_nonnull(watch_machine_problem(machine));
    ck_assert_int_gt(request(LIST_CACHED), 0);
}

TEST(versions_and_tokens_beyond_reason_are_refused)
{
    struct buf list = BUF_INIT(1 << 20);

    ck_assert(buf_printf(&list, "{\"metadata\":{\"resourceVersion\":\"%0200d\"}}", 1));
    request(LIST_CACHED);
    ck_assert_int_eq(feed(list.data, list.len, SIZE_MAX), -ERROR_INVALID);
    watch_machine_finish(machine, 200, NULL, now_ms);

    buf_clear(&list);
    ck_assert(buf_printf(&list,
                         "{\"metadata\":{\"resourceVersion\":\"1\",\"continue\":\"%09000d\"}}", 1));
    request(LIST_CACHED);
    ck_assert_int_eq(feed(list.data, list.len, SIZE_MAX), -ERROR_INVALID);
    watch_machine_finish(machine, 200, NULL, now_ms);
    request(LIST_CACHED);
    buf_release(&list);
}

TEST(an_unknown_type_of_event_is_ignored)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    reply(EVENT("REPLACED", "a", "11") "{}{\"type\":7}" EVENT("ADDED", "b", "13"), 5);
    expect_told("apply n/b @13\n");
    request(WATCH_FROM("13"));
}

static void drop_spec(cJSON *object)
{
    json_remove(object, "spec");
}

TEST_TIMES(what_nobody_reads_is_removed_before_an_object_is_kept, 3)
{
#define FULL                                                                                       \
    "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"manager\":\"m\"}],"                       \
    "\"resourceVersion\":\"11\"},\"spec\":{\"file\":\"x\"},\"status\":{}}"
    static const char kept[] = "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"11\"}";
    static const char *const UNREAD[] = { "spec.other", "spec", NULL };
    struct watch_options options = { .kind = &KIND_GADGET,
                                     .project = _i == 1 ? drop_spec : NULL,
                                     .unread = _i == 2 ? UNREAD : NULL };
    const char *rest = _i ? ",\"status\":{}}" : ",\"spec\":{\"file\":\"x\"},\"status\":{}}";
    struct buf expected = BUF_INIT(4096);

    watch_set_up_with(&options);
    ck_assert(buf_printf(&expected, "%s%s", kept, rest));
    request(LIST_CACHED);
    reply(LIST(FULL, "11"), 5);
    ck_assert_str_eq(last_text, expected.data);

    request(WATCH_FROM("11"));
    static const char *const TYPES[] = { "ADDED", "MODIFIED", "DELETED" };
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        struct buf event = BUF_INIT(4096);
        free(last_text);
        last_text = NULL;
        ck_assert(buf_printf(&event, "{\"type\":\"%s\",\"object\":%s}", TYPES[i], FULL));
        ck_assert_int_eq(feed(event.data, event.len, SIZE_MAX), 0);
        ck_assert_str_eq(last_text, expected.data);
        buf_release(&event);
    }
    buf_release(&expected);
}

/* --- failures --- */

TEST_GROUP("failures", watch_set_up, watch_tear_down);

TEST_TIMES(failures_in_a_row_wait_longer_and_longer, 2)
{
    static const int64_t WHOLE_MS[] = { 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000 };

    request(LIST_CACHED);
    for (size_t i = 0; i < ARRAY_LEN(WHOLE_MS); i++) {
        refuse(_i ? 503 : 0, NULL);
        check_wait(request(LIST_CACHED), WHOLE_MS[i]);
    }
}

TEST(waits_are_not_all_the_same)
{
    int64_t first_ms = 0;
    bool differ = false;

    for (int i = 0; i < 50; i++) {
        request(LIST_CACHED);
        refuse(0, NULL);
        int64_t wait_ms = request(LIST_CACHED);
        differ = differ || (first_ms && wait_ms != first_ms);
        first_ms = wait_ms;
        watch_tear_down();
        watch_set_up();
    }
    ck_assert(differ);
}

TEST(only_a_stream_that_lasted_makes_failures_forgotten)
{
    request(LIST_CACHED);
    refuse(0, NULL);
    request(LIST_CACHED);
    refuse(0, NULL);
    request(LIST_CACHED);
    reply(LIST("", "10"), 5);

    request(WATCH_FROM("10"));
    reply(EVENT("ADDED", "a", "11"), 5); /* an orderly end: no wait, but no proof either */
    ck_assert_int_eq(request(WATCH_FROM("11")), 0);
    refuse(0, "connection reset");
    check_wait(request(WATCH_FROM("11")), 6400);
    now_ms += WATCH_STEADY_MS; /* without a 200: only a connection that hangs */
    refuse(0, "time-out");
    check_wait(request(WATCH_FROM("11")), 12800);
    ck_assert_int_eq(feed(BOOKMARK("20"), strlen(BOOKMARK("20")), SIZE_MAX), 0);
    now_ms += WATCH_STEADY_MS;
    refuse(0, "connection reset");
    check_wait(request(WATCH_FROM("20")), 1600);
}

TEST(a_stream_that_ends_at_once_without_a_word_is_a_failure)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    reply("", WATCH_HASTY_MS - 1);
    check_wait(request(WATCH_FROM("10")), 1600);
    ck_assert_str_eq(watch_machine_problem(machine),
                     "watch gadgets.example.org: Unavailable: the stream ended at once");
    reply("", WATCH_HASTY_MS - 1);
    check_wait(request(WATCH_FROM("10")), 3200);
    reply("", WATCH_HASTY_MS);
    ck_assert_int_eq(request(WATCH_FROM("10")), 0);
    ck_assert_ptr_null(watch_machine_problem(machine));
}

TEST(the_server_may_ask_for_more_patience_within_bounds)
{
    request(LIST_CACHED);
    refuse(429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7},\"code\":429}");
    ck_assert_int_eq(request(LIST_CACHED), 7000);
    refuse(429, "{\"kind\":\"Status\",\"details\":{\"retryAfterSeconds\":7000},\"code\":429}");
    ck_assert_int_eq(request(LIST_CACHED), WATCH_BACKOFF_MAX_MS);
}

struct refusal {
    int status;
    const char *body;
    const char *problem;
    bool lists_again; /* from a watch */
};

static const struct refusal REFUSALS[] = {
    { 0, "Couldn't connect to server", "Unavailable: Couldn't connect to server", false },
    { 0, NULL, "Unavailable: no reply", false },
    { 401, STATUS(401, "Unauthorized", "Unauthorized"),
      "Unavailable: the credentials are not accepted: Unauthorized", false },
    { 403, STATUS(403, "Forbidden", "gadgets.example.org is forbidden: User \\\"u\\\" cannot"),
      "Forbidden: gadgets.example.org is forbidden: User \"u\" cannot", false },
    { 404, "404 page not found\n",
      "NotFound: the API server does not have this kind, is its CRD installed?", true },
    { 400, STATUS(400, "BadRequest", "invalid"), "Invalid: invalid", true },
    { 429, STATUS(429, "TooManyRequests", "slow down"), "Unavailable: slow down", false },
    { 500, "boom", "Internal: HTTP 500: boom", false },
    { 502, "<html>\n<body>", "Internal: HTTP 502", false },
    { 503, "", "Unavailable: HTTP 503", false },
    { 504, STATUS(504, "Timeout", "later"), "Timeout: later", false },
};

TEST_EACH(a_refused_list_is_a_problem_until_a_list_succeeds, REFUSALS)
{
    const struct refusal *refusal = &REFUSALS[_i];
    struct buf problem = BUF_INIT(1024);

    ck_assert(buf_printf(&problem, "list gadgets.example.org: %s", refusal->problem));
    request(LIST_CACHED);
    ck_assert_ptr_null(watch_machine_problem(machine));
    refuse(refusal->status, refusal->body);
    ck_assert_str_eq(watch_machine_problem(machine), problem.data);
    ck_assert_int_ge(request(LIST_CACHED), WATCH_BACKOFF_MIN_MS / 2);
    ck_assert_str_eq(watch_machine_problem(machine), problem.data);
    reply(LIST("", "10"), 5);
    ck_assert_ptr_null(watch_machine_problem(machine));
    buf_release(&problem);
}

TEST_EACH(a_refused_watch_is_a_problem_until_one_is_accepted, REFUSALS)
{
    const struct refusal *refusal = &REFUSALS[_i];
    struct buf problem = BUF_INIT(1024);

    ck_assert(buf_printf(&problem, "watch gadgets.example.org: %s", refusal->problem));
    get_to_watch();
    request(WATCH_FROM("10"));
    refuse(refusal->status, refusal->body);
    ck_assert_str_eq(watch_machine_problem(machine), problem.data);
    if (refusal->lists_again) {
        ck_assert_int_gt(request(LIST_FROM("10")), 0);
        reply(LIST("", "10"), 5);
    } else {
        ck_assert_int_gt(request(WATCH_FROM("10")), 0);
        ck_assert_int_eq(watch_machine_feed(machine, "", 0, NULL), 0); /* 200, nothing to say */
    }
    ck_assert_ptr_null(watch_machine_problem(machine));
    buf_release(&problem);
}

TEST(an_error_event_is_a_problem_until_something_else_is_told)
{
    static const char event[] = ERROR_EVENT(500, "InternalError", "etcd is away");

    get_to_watch();
    request(WATCH_FROM("10"));
    ck_assert_int_eq(feed(event, strlen(event), SIZE_MAX), -ERROR_INTERNAL);
    watch_machine_finish(machine, 0, "aborted", now_ms);
    ck_assert_int_gt(request(WATCH_FROM("10")), 0);
    ck_assert_int_eq(watch_machine_feed(machine, "", 0, NULL), 0); /* as it began before, too */
    ck_assert_str_eq(watch_machine_problem(machine),
                     "watch gadgets.example.org: Internal: etcd is away");
    ck_assert_int_eq(feed(BOOKMARK("20"), strlen(BOOKMARK("20")), SIZE_MAX), 0);
    ck_assert_ptr_null(watch_machine_problem(machine));
}

TEST(gone_is_a_problem_only_when_it_comes_again)
{
    get_to_watch();
    request(WATCH_FROM("10"));
    GONE[1]();
    ck_assert_ptr_null(watch_machine_problem(machine));
    request(LIST_FROM("10"));
    refuse(410, STATUS(410, "Expired", "too old"));
    ck_assert_str_eq(watch_machine_problem(machine), "list gadgets.example.org: Gone: too old");
}

TEST(an_orderly_end_is_no_problem_and_needs_no_wait)
{
    get_to_watch();
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(request(WATCH_FROM("10")), 0);
        reply("", 290000);
        ck_assert_ptr_null(watch_machine_problem(machine));
    }
}

TEST_GROUP("versions", NULL, watch_tear_down);

TEST(version_that_is_not_served_is_followed_by_the_other_one)
{
    static const struct kube_kind newer = { .group = "example.org",
                                            .version = "v2",
                                            .kind = "Gadget",
                                            .plural = "gadgets",
                                            .namespaced = true };
    const struct watch_options options = { .kind = &newer, .other = &KIND_GADGET };

    watch_set_up_with(&options);
    request("/apis/example.org/v2/gadgets?limit=500&resourceVersion=0");
    refuse(404, "404 page not found");
    request(LIST_CACHED);
    refuse(404, "404 page not found");
    request("/apis/example.org/v2/gadgets?limit=500&resourceVersion=0");
    refuse(404, "404 page not found");
    request(LIST_CACHED);
    reply(LIST(ITEM("a", "5"), "10"), 100);
    request(WATCH_FROM("10"));
}
