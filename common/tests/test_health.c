#include "common/runtime/health.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/runtime/metrics.h"
#include "common/tests/suite.h"

static struct health *health;
static struct arena *arena;
static bool mqtt_ready;

static void set_up(void)
{
    arena = arena_create();
    health = health_create();
    mqtt_ready = true;
}

static void tear_down(void)
{
    health_destroy(health);
    arena_destroy(arena);
}

TEST_GROUP("answers", set_up, tear_down);

static void start(const char *health_address, const char *metrics_address)
{
    struct error err = { 0 };

    ck_assert_msg(health_start(health, health_address, metrics_address, &err) == 0, "%s",
                  err.message);
}

/* "<status> <body>" of a request, on a connection of its own. */
static const char *ask(unsigned port, const char *method, const char *target)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct buf reply = BUF_INIT(METRICS_MAX_TEXT + 4096);
    char chunk[4096];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    const char *request = arena_printf(
        arena, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, target);
    ck_assert_int_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    for (ssize_t n; (n = recv(fd, chunk, sizeof(chunk), 0)) > 0;)
        ck_assert(buf_append(&reply, chunk, (size_t)n));
    ck_assert_int_eq(close(fd), 0);

    const char *text = arena_strdup(arena, buf_string(&reply));
    buf_release(&reply);
    const char *body = strstr(text, "\r\n\r\n");
    ck_assert_ptr_nonnull(body);
    ck_assert_int_eq(strncmp(text, "HTTP/1.1 ", 9), 0);
    return arena_printf(arena, "%.3s %s", text + 9, body + 4);
}

static const char *get(const char *target)
{
    return ask(health_port(health), "GET", target);
}

static int check_caches(void *ctx, char *why, size_t size)
{
    (void)snprintf(why, size, "must not be seen");
    ck_assert_str_eq(ctx, "caches");
    return 1;
}

static int check_mqtt(void *ctx UNUSED, char *why, size_t size)
{
    if (!mqtt_ready)
        (void)snprintf(why, size, "connecting to 'tcp://broker:1883': refused");
    return mqtt_ready;
}

static void add_checks(void)
{
    static char caches[] = "caches";

    health_add_check(health, "caches", check_caches, caches);
    health_add_check(health, "mqtt", check_mqtt, NULL);
}

TEST(healthz_is_ok_whatever_the_checks_say)
{
    mqtt_ready = false;
    add_checks();
    health_set_stopping(health);
    start("127.0.0.1:0", "");
    ck_assert_str_eq(get("/healthz"), "200 ok\n");
}

TEST(readyz_is_ok_when_every_check_is)
{
    add_checks();
    start("127.0.0.1:0", "");
    ck_assert_str_eq(get("/readyz"), "200 ok\n");
    ck_assert_str_eq(get("/readyz?verbose"), "200 [+]caches ok\n[+]mqtt ok\nreadyz check passed\n");
}

TEST(readyz_lists_what_fails_and_why)
{
    add_checks();
    start("127.0.0.1:0", "");
    mqtt_ready = false;
    ck_assert_str_eq(get("/readyz"),
                     "503 [-]mqtt failed: connecting to 'tcp://broker:1883': refused\n");
    ck_assert_str_eq(get("/readyz?verbose"),
                     "503 [+]caches ok\n"
                     "[-]mqtt failed: connecting to 'tcp://broker:1883': refused\n"
                     "readyz check failed\n");
    mqtt_ready = true;
    ck_assert_str_eq(get("/readyz"), "200 ok\n");
}

static int check_store(void *ctx UNUSED, char *why, size_t size)
{
    (void)snprintf(why, size, "it had lost writes");
    return HEALTH_REMARK;
}

TEST(readyz_tells_a_remark_of_what_is_ready)
{
    add_checks();
    health_add_check(health, "store", check_store, NULL);
    start("127.0.0.1:0", "");
    ck_assert_str_eq(get("/readyz"), "200 ok\n");
    ck_assert_str_eq(get("/readyz?verbose"), "200 [+]caches ok\n[+]mqtt ok\n"
                                             "[+]store ok: it had lost writes\n"
                                             "readyz check passed\n");
}

TEST(readyz_is_not_ok_while_stopping)
{
    add_checks();
    start("127.0.0.1:0", "");
    health_set_stopping(health);
    ck_assert_str_eq(get("/readyz"), "503 [-]process failed: shutting down\n");
}

static const struct {
    const char *query;
    bool verbose;
} QUERIES[] = {
    { "?verbose", true },    { "?verbose=true", true }, { "?a=b&verbose&c", true },
    { "?verbosely", false }, { "?a=verbose", false },   { "?averbose", false },
    { "?", false },          { "?&&verbose", true },
};

TEST_EACH(verbose_is_a_part_of_the_query, QUERIES)
{
    start("127.0.0.1:0", "");
    ck_assert_str_eq(get(arena_printf(arena, "/readyz%s", QUERIES[_i].query)),
                     QUERIES[_i].verbose ? "200 readyz check passed\n" : "200 ok\n");
}

TEST(metrics_have_an_address_of_their_own)
{
    static struct metric metric = { .type = METRIC_GAUGE, .name = "t_health", .help = "A test." };

    metric_set(&metric, 5, NULL);
    start("127.0.0.1:0", "127.0.0.1:00");
    ck_assert_uint_ne(health_port(health), health_metrics_port(health));
    const char *text = ask(health_metrics_port(health), "GET", "/metrics");
    ck_assert_int_eq(strncmp(text, "200 # HELP ", 11), 0);
    ck_assert_ptr_nonnull(strstr(text, "\nt_health 5\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nprocess_resident_memory_bytes "));
    ck_assert_str_eq(ask(health_metrics_port(health), "GET", "/healthz"), "404 not found\n");
    ck_assert_str_eq(get("/metrics"), "404 not found\n");
}

TEST(metrics_and_health_may_share_an_address)
{
    start("127.0.0.1:0", "127.0.0.1:0");
    ck_assert_uint_eq(health_port(health), health_metrics_port(health));
    ck_assert_int_eq(strncmp(get("/metrics"), "200 # HELP ", 11), 0);
    ck_assert_str_eq(get("/healthz"), "200 ok\n");
}

TEST(what_is_off_does_not_listen)
{
    start("0", "");
    ck_assert_uint_eq(health_port(health), 0);
    ck_assert_uint_eq(health_metrics_port(health), 0);
    health_stop(health);
    start("", "127.0.0.1:0");
    ck_assert_uint_eq(health_port(health), 0);
    ck_assert_uint_ne(health_metrics_port(health), 0);
}

static int echo_page(void *ctx, struct arena *page_arena, const char *query, const char **ret_body)
{
    *ret_body = arena_printf(page_arena, "%s %s", (const char *)ctx, query);
    return 202;
}

TEST(a_page_answers_with_its_query)
{
    static char page[] = "page";

    health_add_page(health, "/debug/echo", echo_page, page);
    start("127.0.0.1:0", "127.0.0.1:00");
    ck_assert_str_eq(get("/debug/echo?a=b"), "202 page a=b");
    ck_assert_str_eq(get("/debug/echo"), "202 page ");
    ck_assert_str_eq(get("/debug"), "404 not found\n");
    ck_assert_str_eq(ask(health_metrics_port(health), "GET", "/debug/echo"), "404 not found\n");
}

TEST(only_reading_is_allowed)
{
    start("127.0.0.1:0", "");
    ck_assert_str_eq(ask(health_port(health), "POST", "/healthz"), "405 only GET\n");
    ck_assert_str_eq(ask(health_port(health), "HEAD", "/healthz"), "200 ");
}

TEST(an_address_that_cannot_be_used_is_named_and_nothing_is_left_listening)
{
    struct error err;

    ck_assert_int_lt(health_start(health, "127.0.0.1:0", "nowhere", &err), 0);
    ck_assert_msg(strstr(err.message, "--metrics-bind-address: ") == err.message, "%s",
                  err.message);
    ck_assert_uint_eq(health_port(health), 0);
    ck_assert_int_lt(health_start(health, "127.0.0.1:99999", "", &err), 0);
    ck_assert_msg(strstr(err.message, "--health-probe-bind-address: ") == err.message, "%s",
                  err.message);
}
