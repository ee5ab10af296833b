/* The answers of the page: rows, details without secrets, feeds, and HTTP. */
#include <string.h>
#include <unistd.h>

#include "common/api/kinds.h"
#include "common/base/str.h"
#include "common/tests/http_talk.h"
#include "common/tests/parsed.h"
#include "controller/tests/page_fixture.h"

#define TASK(name, version, phase)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"lab\",\"uid\":\"u-" name                 \
    "\",\"resourceVersion\":\"" version "\"},\"spec\":{\"name\":\"" name                           \
    "\"},\"status\":{\"phase\":\"" phase "\",\"assignedProplet\":\"alpha\"}}"

TEST_GROUP("rows", arena_set_up, arena_tear_down);

TEST(a_row_has_the_cells_of_its_kind)
{
    cJSON *row = json_object(arena);

    page_row(&KIND_TASK, parsed(arena, TASK("one", "1", "running")), row);
    ck_assert_str_eq(json_text(arena, row, NULL),
                     "{\"ns\":\"lab\",\"name\":\"one\",\"phase\":\"running\",\"reason\":\"\","
                     "\"title\":\"one\",\"proplet\":\"alpha\"}");
}

static const char *const SECRETS[] = {
    "{\"spec\":{\"env\":{\"PASSWORD\":\"planted\"}}}",
    "{\"spec\":{\"file\":\"planted\"}}",
    "{\"spec\":{\"imageUrl\":\"https://user:planted@files.example/a?signature=planted\"}}",
    "{\"spec\":{\"taskWasmImage\":\"https://files.example/a?token=planted\"}}",
    "{\"spec\":{\"metadata\":{\"a\":\"planted\"}}}",
    "{\"spec\":{\"tasks\":[{\"env\":{\"A\":\"planted\"},\"file\":\"planted\"}]}}",
    "{\"spec\":{\"connectionConfig\":{\"clientKey\":\"planted\"}}}",
    "{\"spec\":{\"k8s\":{\"podTemplate\":{\"spec\":\"planted\"}}}}",
    "{\"metadata\":{\"annotations\":{\"last-applied\":\"planted\"}}}",
    "{\"metadata\":{\"managedFields\":[\"planted\"]}}",
    "{\"status\":{\"lastCheckpoint\":{\"uri\":\"https://u:planted@files.example/a?sig=planted\"}}}",
};

TEST_EACH(details_have_no_secrets, SECRETS)
{
    cJSON *object = json_object(arena);

    json_for_each (member, parsed(arena, SECRETS[_i]))
        json_set_copy(object, member->string, member);
    page_clean(arena, object);
    ck_assert_ptr_null(strstr(json_text(arena, object, NULL), "planted"));
}

TEST(names_of_env_stay_and_long_results_are_cut)
{
    cJSON *object = json_object(arena);
    char *result = arena_alloc(arena, PAGE_MAX_RESULT + 3, 1);

    memset(result, 'x', PAGE_MAX_RESULT + 2);
    result[PAGE_MAX_RESULT + 2] = '\0';
    json_set_string(json_set_object(json_set_object(object, "spec"), "env"), "NAME", "v");
    json_set_string(json_set_object(object, "status"), "results", result);
    page_clean(arena, object);
    ck_assert_str_eq(json_text(arena, json_path(object, "spec", "env", NULL), NULL), "[\"NAME\"]");
    ck_assert_uint_eq(strlen(json_string(json_path(object, "status", "results", NULL), "")),
                      PAGE_MAX_RESULT);
    ck_assert_int_eq(json_int(json_path(object, "status", "resultBytes", NULL), 0),
                     PAGE_MAX_RESULT + 2);
}

TEST_GROUP("feeds", page_set_up, page_tear_down);

static const struct http_stream *feed;
static struct viewer *viewer;

static void open_feed(const char *token, size_t list, const char *ns)
{
    viewer = page_login(token);
    feed = feed_open(page_fixture.feeds, arena, viewer, list, ns);
    ck_assert_ptr_nonnull(feed);
}

static void close_feed(void)
{
    feed->close(feed->ctx);
    viewer_unref(viewer);
}

/* The next event, without its newlines; "": nothing now; "END". */
static const char *next(void)
{
    const char *text = "";
    size_t len = 0;
    int r = feed->next(feed->ctx, arena, &text, &len);

    if (r <= 0)
        return r < 0 ? "END" : "";
    return arena_strndup(arena, text, len - 2);
}

TEST(a_feed_begins_with_all_rows_and_goes_on_with_changes)
{
    page_put("tasks", TASK("one", "1", "pending"));
    open_feed("good", page_list_find("tasks"), NULL);
    ck_assert(str_has_prefix(next(), "event: snapshot\ndata: {\"rows\":[{\"ns\":\"lab\""));
    ck_assert_str_eq(next(), "");
    page_put("tasks", TASK("one", "2", "running"));
    ck_assert_str_eq(next(), ""); /* more may come */
    page_put("tasks", TASK("two", "3", "pending"));
    page_put("proplets", "{\"metadata\":{\"name\":\"p\",\"namespace\":\"lab\",\"uid\":\"p\","
                         "\"resourceVersion\":\"4\"}}");
    fake_clock_advance(&page_fixture.clock, FEED_GATHER_MS);
    const char *change = next();
    ck_assert(str_has_prefix(change, "event: change\n"));
    ck_assert_ptr_nonnull(strstr(change, "\"name\":\"one\",\"phase\":\"running\""));
    ck_assert_ptr_nonnull(strstr(change, "\"name\":\"two\""));
    ck_assert_ptr_null(strstr(change, "\"name\":\"p\""));
    fake_clock_advance(&page_fixture.clock, FEED_PING_MS);
    ck_assert_str_eq(next(), arena_printf(arena, "event: ping\ndata: {\"now\":%lld}",
                                          (long long)(FAKE_CLOCK_WALL_US / 1000 + FEED_GATHER_MS +
                                                      FEED_PING_MS)));
    close_feed();
}

TEST(a_feed_of_a_namespace_has_its_rows_alone)
{
    page_put("tasks", TASK("one", "1", "pending"));
    open_feed("good", page_list_find("tasks"), "other");
    ck_assert_str_eq(next(), "event: snapshot\ndata: {\"rows\":[]}");
    page_put("tasks", TASK("one", "2", "running"));
    fake_clock_advance(&page_fixture.clock, FEED_GATHER_MS);
    ck_assert_str_eq(next(), "");
    close_feed();
}

TEST(a_reader_that_is_far_behind_gets_everything_anew)
{
    open_feed("good", page_list_find("tasks"), NULL);
    ck_assert(str_has_prefix(next(), "event: snapshot\n"));
    for (int i = 0; i <= FEED_MAX_DIRTY; i++) {
        page_put("tasks",
                 arena_printf(arena,
                              "{\"metadata\":{\"name\":\"t-%d\",\"namespace\":\"lab\",\"uid\":"
                              "\"u-%d\",\"resourceVersion\":\"%d\"}}",
                              i, i, i + 1));
    }
    fake_clock_advance(&page_fixture.clock, FEED_GATHER_MS);
    ck_assert(str_has_prefix(next(), "event: snapshot\n"));
    close_feed();
}

TEST(a_feed_ends_with_the_login)
{
    open_feed("good", page_list_find("tasks"), NULL);
    (void)next();
    viewers_logout(page_fixture.viewers, viewer);
    ck_assert_str_eq(next(), "event: end\ndata: {\"why\":\"the login has ended\",\"login\":true}");
    ck_assert_str_eq(next(), "END");
    close_feed();
}

TEST(a_feed_ends_with_the_token_and_lives_through_an_outage)
{
    open_feed("good", page_list_find("tasks"), NULL);
    (void)next();
    page_fixture.is_away = true;
    fake_clock_advance(&page_fixture.clock, VIEWER_RIGHTS_MS);
    ck_assert(str_has_prefix(next(), "event: ping\n"));
    page_fixture.is_away = false;
    page_fixture.is_revoked = true;
    fake_clock_advance(&page_fixture.clock, VIEWER_RETRY_MS);
    ck_assert(str_has_prefix(next(), "event: end\n"));
    close_feed();
}

TEST(the_fleet_is_sent_when_it_is_another_one)
{
    open_feed("good", FEED_FLEET, NULL);
    ck_assert_str_eq(next(),
                     "event: counts\ndata: {\"kinds\":{\"proplets\":{\"Running\":2},\"tasks\":"
                     "{\"pending\":3}},\"of\":\"all\"}");
    fake_clock_advance(&page_fixture.clock, FEED_COUNTS_MS);
    ck_assert_str_eq(next(), "");
    close_feed();
}

TEST(the_fleet_has_the_kinds_that_the_viewer_may_list)
{
    open_feed("tasks", FEED_FLEET, NULL);
    ck_assert_str_eq(next(),
                     "event: counts\ndata: {\"kinds\":{\"tasks\":{\"pending\":3}},\"of\":\"all\"}");
    close_feed();
}

TEST(a_user_with_many_logins_leaves_feeds_for_others)
{
    const struct http_stream *feeds[FEEDS_OF_A_USER];
    struct viewer *logins[FEEDS_OF_A_USER / FEEDS_OF_A_VIEWER + 1];

    for (size_t i = 0; i < ARRAY_LEN(logins); i++)
        logins[i] = page_login("good");
    for (size_t i = 0; i < FEEDS_OF_A_USER; i++) {
        feeds[i] = feed_open(page_fixture.feeds, arena, logins[i / FEEDS_OF_A_VIEWER], 0, NULL);
        ck_assert_ptr_nonnull(feeds[i]);
    }
    ck_assert_ptr_null(
        feed_open(page_fixture.feeds, arena, logins[ARRAY_LEN(logins) - 1], 0, NULL));
    open_feed("good-2", 0, NULL);
    close_feed();
    for (size_t i = 0; i < FEEDS_OF_A_USER; i++)
        feeds[i]->close(feeds[i]->ctx);
    for (size_t i = 0; i < ARRAY_LEN(logins); i++)
        viewer_unref(logins[i]);
}

TEST(a_viewer_has_four_feeds_at_most)
{
    const struct http_stream *feeds[FEEDS_OF_A_VIEWER];

    viewer = page_login("good");
    for (size_t i = 0; i < FEEDS_OF_A_VIEWER; i++)
        feeds[i] = feed_open(page_fixture.feeds, arena, viewer, 0, NULL);
    ck_assert_ptr_null(feed_open(page_fixture.feeds, arena, viewer, 0, NULL));
    for (size_t i = 0; i < FEEDS_OF_A_VIEWER; i++)
        feeds[i]->close(feeds[i]->ctx);
    feed = feed_open(page_fixture.feeds, arena, viewer, 0, NULL); /* there is room again */
    ck_assert_ptr_nonnull(feed);
    close_feed();
}

static struct page *page;
static char heard[HTTP_TALK_MAX];

static void http_set_up(void)
{
    struct error err = { 0 };

    page_set_up();
    struct page_options options = { .address = "127.0.0.1:0",
                                    .clock = &page_fixture.clock.clock,
                                    .viewers = page_fixture.viewers,
                                    .feeds = page_fixture.feeds,
                                    .fleet = page_fixture.fleet };
    memcpy(options.informers, page_fixture.informers, sizeof(options.informers));
    int r = page_start(&options, &page, &err);
    ck_assert_msg(r == 0, "%s", err.message);
}

static void http_tear_down(void)
{
    page_stop(page);
    page_tear_down();
}

TEST_GROUP("http", http_set_up, http_tear_down);

static const char *answer(const char *line, const char *headers, const char *body)
{
    int fd = http_dial(page_port(page));

    say(fd,
        arena_printf(arena, "%s HTTP/1.1\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
                     line, headers, strlen(body), body));
    const char *text = arena_strdup(arena, hear(fd, heard, NULL));
    (void)close(fd);
    return text;
}

#define OWN "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"

static void expect_status(const char *text, int status)
{
    ck_assert_msg(str_has_prefix(text, arena_printf(arena, "HTTP/1.1 %d ", status)), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "Content-Security-Policy: default-src 'none'; script-src "
                                       "'self'; style-src 'self'; connect-src 'self'; img-src "
                                       "'self' data:; base-uri 'none'; form-action 'self'; "
                                       "frame-ancestors 'none'\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "X-Content-Type-Options: nosniff\r\n"));
    ck_assert_ptr_nonnull(strstr(text, "Referrer-Policy: no-referrer\r\n"));
}

/* "Cookie: propeller=…\r\n" */
static const char *log_in(const char *token)
{
    const char *text =
        answer("POST /login", OWN JSON, arena_printf(arena, "{\"token\":\"%s\"}", token));
    const char *cookie = strstr(text, "Set-Cookie: ");

    expect_status(text, 204);
    ck_assert_ptr_nonnull(cookie);
    ck_assert_ptr_nonnull(strstr(cookie, "; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200\r\n"));
    cookie += strlen("Set-Cookie: ");
    return arena_printf(arena, OWN "Cookie: %.*s\r\n", (int)strcspn(cookie, ";"), cookie);
}

TEST(other_hosts_and_sites_get_nothing)
{
    expect_status(answer("GET /", OWN, ""), 200);
    expect_status(answer("GET /", "Host: evil.example\r\n", ""), 403);
    expect_status(answer("GET /", OWN "Sec-Fetch-Site: cross-site\r\n", ""), 403);
}

#define LINK OWN "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "

TEST(a_link_on_another_site_opens_the_page_and_no_data)
{
    expect_status(answer("GET /", LINK "document\r\n", ""), 200);
    expect_status(answer("GET /", LINK "iframe\r\n", ""), 403);
    expect_status(answer("GET /api/me", LINK "document\r\n", ""), 403);
    expect_status(answer("POST /login", LINK "document\r\n" JSON, "{\"token\":\"good\"}"), 403);
}

/* Two tunnels to two clusters, in one browser. */
TEST(each_port_has_a_cookie_of_its_own)
{
    const char *text =
        answer("POST /login", "Host: localhost:8082\r\n" JSON, "{\"token\":\"good\"}");
    const char *at = strstr(text, "Set-Cookie: ");

    ck_assert_msg(at && str_has_prefix(at, "Set-Cookie: propeller-8082="), "%s", text);
    const char *cookie = arena_strndup(arena, at + 12, strcspn(at + 12, ";"));
    expect_status(
        answer("GET /api/me",
               arena_printf(
                   arena,
                   "Host: localhost:8082\r\nCookie: my_propeller-8082=x; propeller-8083=x; %s\r\n",
                   cookie),
               ""),
        200);
    expect_status(answer("GET /api/me",
                         arena_printf(arena, "Host: localhost:8083\r\nCookie: %s\r\n", cookie), ""),
                  401);
}

TEST(only_a_login_opens_the_data)
{
    static const char *const PATHS[] = { "/api/me", "/api/stream?list=tasks", "/api/events",
                                         "/api/object?list=tasks&ns=lab&name=one" };

    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++)
        expect_status(answer(arena_printf(arena, "GET %s", PATHS[i]), OWN, ""), 401);
    expect_status(answer("GET /api/me", OWN "Cookie: propeller-=guessed\r\n", ""), 401);
    expect_status(answer("POST /login", OWN JSON, "{\"token\":\"bad\"}"), 401);
    expect_status(answer("POST /login", OWN, "{\"token\":\"good\"}"), 400);
    expect_status(answer("POST /login", OWN JSON, "{\"token\":\"good\\u0007\"}"), 400);
    expect_status(answer("GET /login", OWN, ""), 405);
    const char *text = answer("GET /api/me", log_in("good"), "");
    expect_status(text, 200);
    ck_assert_ptr_nonnull(strstr(text, "{\"user\":\"user-good\",\"now\":1795255200000,"
                                       "\"all\":{\"proplets\":true"));
}

TEST(a_viewer_of_one_namespace_sees_no_other)
{
    const char *own = log_in("lab");

    expect_status(answer("GET /api/stream?list=tasks", own, ""), 403);
    expect_status(answer("GET /api/stream?list=fleet&ns=other", own, ""), 403);
    expect_status(answer("GET /api/stream?list=pods&ns=lab", own, ""), 400);
    expect_status(answer("GET /api/stream?list=tasks&ns=../x", own, ""), 400);
    int fd = http_dial(page_port(page));
    say(fd, arena_printf(arena, "GET /api/stream?list=tasks&ns=lab HTTP/1.1\r\n%s\r\n", own));
    ck_assert_ptr_nonnull(strstr(hear(fd, heard, "event: snapshot"), "text/event-stream"));
    (void)close(fd);
}

/* The head of the answer to a GET, and what it says about the length of the body. */
static void expect_head(const char *path, const char *headers, int status)
{
    const char *got = answer(arena_printf(arena, "GET %s", path), headers, "");
    const char *head = answer(arena_printf(arena, "HEAD %s", path), headers, "");
    const char *length = strstr(got, "Content-Length: ");

    expect_status(got, status);
    expect_status(head, status);
    ck_assert_str_eq(strstr(head, "\r\n\r\n"), "\r\n\r\n");
    ck_assert_ptr_nonnull(length);
    length = arena_strndup(arena, length, strcspn(length, "\r"));
    ck_assert_msg(strstr(head, length), "%s: %s", length, head);
}

TEST(head_is_answered_as_get_without_a_body)
{
    const char *own = log_in("good");

    expect_head("/", OWN, 200);
    expect_head("/api/me", own, 200);
    expect_head("/api/me", OWN, 401);
    expect_head("/login", OWN, 405);
    expect_head("/none", OWN, 404);
    expect_status(answer("HEAD /", LINK "document\r\n", ""), 200);
    expect_status(answer("HEAD /", "Host: evil.example\r\n", ""), 403);
}

TEST(head_of_a_stream_keeps_no_feed)
{
    const char *own = log_in("good");

    for (int i = 0; i <= FEEDS_OF_A_VIEWER; i++) {
        const char *head = answer("HEAD /api/stream?list=tasks", own, "");

        expect_status(head, 200);
        ck_assert_ptr_nonnull(strstr(head, "Content-Type: text/event-stream\r\n"));
        ck_assert_str_eq(strstr(head, "\r\n\r\n"), "\r\n\r\n");
    }
}

TEST(details_come_with_why_and_what_happened)
{
    const char *own = log_in("good");

    expect_status(answer("GET /api/object?list=tasks&ns=lab&name=one", own, ""), 404);
    page_fixture.object =
        "{\"kind\":\"Task\",\"metadata\":{\"name\":\"one\",\"namespace\":\"lab\",\"uid\":\"u\","
        "\"resourceVersion\":\"1\",\"creationTimestamp\":\"2026-11-21T10:00:00Z\"},"
        "\"spec\":{\"env\":{\"KEY\":\"planted\"}},\"status\":{\"phase\":\"pending\",\"conditions\":"
        "[{\"type\":\"Reconciling\",\"status\":\"True\",\"reason\":\"NoProplet\",\"message\":\"m\"}"
        "]}}";
    page_fixture.events_of_u =
        "{\"metadata\":{\"name\":\"e\",\"namespace\":\"lab\",\"uid\":\"e\",\"resourceVersion\":"
        "\"2\"},\"eventTime\":\"2026-11-21T10:00:01Z\",\"reason\":\"Seen\",\"regarding\":{\"uid\":"
        "\"u\"}}";
    page_fixture.events =
        "{\"metadata\":{\"name\":\"f\",\"namespace\":\"lab\",\"uid\":\"f\",\"resourceVersion\":"
        "\"3\"},\"reason\":\"Foreign\",\"regarding\":{\"uid\":\"v\"}}";
    const char *text = answer("GET /api/object?list=tasks&ns=lab&name=one", own, "");
    expect_status(text, 200);
    ck_assert_ptr_nonnull(strstr(text, "\"reason\":\"NoProplet\""));
    ck_assert_ptr_nonnull(strstr(text, "\"remedy\":\"Create a Proplet"));
    ck_assert_ptr_nonnull(strstr(text, "\"what\":\"Seen\""));
    ck_assert_ptr_null(strstr(text, "Foreign"));
    ck_assert_ptr_null(strstr(text, "planted"));
    ck_assert_ptr_nonnull(strstr(answer("GET /api/events?ns=lab", own, ""), "Foreign"));
}

TEST(a_proplet_has_the_load_of_its_device)
{
    const struct sample sample = { .cpu_milli_percent = 42000, .memory_milli_percent = -1 };
    const char *own = log_in("good");

    page_fixture.object =
        "{\"kind\":\"Proplet\",\"metadata\":{\"name\":\"p\",\"namespace\":\"lab\",\"uid\":\"u-p\"},"
        "\"spec\":{\"type\":\"external\",\"connectionConfig\":{\"domainId\":\"d\",\"channelId\":"
        "\"c\","
        "\"clientId\":\"one\"}}}";
    ck_assert_ptr_null(
        strstr(answer("GET /api/object?list=proplets&ns=lab&name=p", own, ""), "load"));
    fleet_metrics(page_fixture.fleet, "d/c/one", &sample, clock_wall_us(&page_fixture.clock.clock));
    const char *text = answer("GET /api/object?list=proplets&ns=lab&name=p", own, "");
    ck_assert_msg(strstr(text, "null,42],\"memory\":[null,"), "%s", text);
}

/* Users of another namespace may write any owner into their Tasks. */
TEST(a_job_has_the_tasks_of_its_namespace_alone)
{
    static const char FORMAT[] = "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%"
                                 "s\",\"resourceVersion\":\"1\","
                                 "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"
                                 "\"PropellerJob\",\"name\":\"job\",\"uid\":"
                                 "\"u-job\",\"controller\":true}]},\"spec\":{\"name\":\"a\"}}";
    const char *own = log_in("good");

    page_put("tasks", arena_printf(arena, FORMAT, "own", "lab", "own"));
    page_put("tasks", arena_printf(arena, FORMAT, "foreign", "elsewhere", "foreign"));
    page_fixture.object = "{\"kind\":\"PropellerJob\",\"metadata\":{\"name\":\"job\",\"namespace\":"
                          "\"lab\",\"uid\":\"u-job\"}}";
    const char *text = answer("GET /api/object?list=jobs&ns=lab&name=job", own, "");
    expect_status(text, 200);
    ck_assert_msg(strstr(text, "\"name\":\"own\"") && !strstr(text, "foreign"), "%s", text);
}

#define ROUND(name, phase, state)                                                                  \
    "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"lab\",\"uid\":\"u-" name                 \
    "\",\"resourceVersion\":\"1\",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":"           \
    "\"FederatedJob\",\"name\":\"job\",\"uid\":\"u-job\",\"controller\":true}]},\"spec\":{},"      \
    "\"status\":{\"phase\":\"" phase                                                               \
    "\",\"participants\":[{\"propletId\":\"alpha\",\"status\":\"" state "\"}]}}"

/* The status of the job has the states of the round before. */
TEST(a_federated_job_has_the_participants_of_the_round_that_runs)
{
    const char *own = log_in("good");

    page_fixture.object = "{\"kind\":\"FederatedJob\",\"metadata\":{\"name\":\"job\","
                          "\"namespace\":\"lab\",\"uid\":\"u-job\"}}";
    page_put("rounds", ROUND("round-1", "Completed", "Received"));
    const char *text = answer("GET /api/object?list=federated&ns=lab&name=job", own, "");
    expect_status(text, 200);
    ck_assert_msg(!strstr(text, "\"participants\""), "%s", text);
    page_put("rounds", ROUND("round-2", "Running", "Training"));
    text = answer("GET /api/object?list=federated&ns=lab&name=job", own, "");
    ck_assert_msg(
        strstr(text, "\"participants\":[{\"propletId\":\"alpha\",\"status\":\"Training\"}]"), "%s",
        text);
}

TEST(an_enrollment_lists_the_devices_that_wait)
{
    const char *own = log_in("good");

    page_fixture.object =
        "{\"kind\":\"Enrollment\",\"metadata\":{\"name\":\"demo\",\"namespace\":\"lab\",\"uid\":"
        "\"u-demo\"},\"status\":{\"pending\":[{\"clientId\":\"sensor-7\",\"channelId\":\"c\"}],"
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Listening\"}]}}";
    const char *text = answer("GET /api/object?list=enrollments&ns=lab&name=demo", own, "");
    expect_status(text, 200);
    ck_assert_msg(strstr(text, "\"clientId\":\"sensor-7\"") &&
                      strstr(text, "\"reason\":\"Listening\""),
                  "%s", text);
}

TEST(a_token_that_counts_no_more_ends_the_login)
{
    const char *own = log_in("good");

    page_fixture.is_revoked = true;
    expect_status(answer("GET /api/object?list=tasks&ns=lab&name=one", own, ""), 401);
}

TEST(a_logout_closes_the_data)
{
    const char *own = log_in("good");

    expect_status(answer("POST /logout", own, ""), 204);
    expect_status(answer("GET /api/me", own, ""), 401);
}
