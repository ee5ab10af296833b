#include "common/runtime/health.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/base/alloc.h"
#include "common/base/str.h"
#include "common/net/http_server.h"
#include "common/runtime/metrics.h"

#define MAX_CHECKS 16
#define MAX_PAGES 4
#define MAX_WHY ((size_t)256)
#define MAX_READYZ ((MAX_CHECKS + 2) * (MAX_WHY + 64))
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct check {
    const char *name;
    health_check_fn *function;
    void *ctx;
};
struct page {
    const char *path;
    health_page_fn *function;
    void *ctx;
};

struct health {
    struct check checks[MAX_CHECKS]; /* fixed before the servers start, like the pages */
    size_t check_count;
    struct page pages[MAX_PAGES];
    size_t page_count;
    atomic_bool stopping;
    bool shared_address; /* one server answers for both */
    struct http_server *health_server;
    struct http_server *metrics_server;
};

struct health *health_create(void)
{
    return xcalloc(1, sizeof(struct health));
}

void health_destroy(struct health *health)
{
    if (!health)
        return;
    health_stop(health);
    free(health);
}

void health_add_check(struct health *health, const char *name, health_check_fn *check, void *ctx)
{
    assert(health->check_count < MAX_CHECKS);
    health->checks[health->check_count++] = (struct check){ name, check, ctx };
}

void health_add_page(struct health *health, const char *path, health_page_fn *page, void *ctx)
{
    assert(health->page_count < MAX_PAGES);
    health->pages[health->page_count++] = (struct page){ path, page, ctx };
}

void health_set_stopping(struct health *health)
{
    atomic_store(&health->stopping, true);
}

static void reply_text(struct arena *arena, struct http_server_reply *ret, int status,
                       const char *text, size_t len)
{
    ret->status = status;
    ret->body = arena_strndup(arena, text, len);
    ret->body_len = len;
}

static void reply_buf(struct arena *arena, struct http_server_reply *ret, int status,
                      struct buf *buf, bool complete)
{
    if (!complete)
        status = 500; /* over its limit: half an answer would be a wrong one */
    reply_text(arena, ret, status, buf_string(buf), complete ? buf->len : 0);
    buf_release(buf);
}

/* As the API server prints it: "[+]name ok", "[-]name failed: why"; and "[+]name ok: why" with a remark.
 * Returns whether the line fits. */
static bool append_check(struct buf *buf, const struct check *check, bool verbose, bool *ready)
{
    char why[MAX_WHY] = "";
    int verdict = check->function(check->ctx, why, sizeof(why));

    if (verdict <= 0) {
        *ready = false;
        return buf_printf(buf, "[-]%s failed: %s\n", check->name, why);
    }
    if (!verbose)
        return true;
    if (verdict == HEALTH_REMARK)
        return buf_printf(buf, "[+]%s ok: %s\n", check->name, why);
    return buf_printf(buf, "[+]%s ok\n", check->name);
}

static void readyz(struct health *health, struct arena *arena, bool verbose,
                   struct http_server_reply *ret)
{
    struct buf buf = BUF_INIT(MAX_READYZ);
    bool ready = !atomic_load(&health->stopping);
    bool fits = ready || buf_append_string(&buf, "[-]process failed: shutting down\n");

    for (size_t i = 0; i < health->check_count; i++)
        fits = append_check(&buf, &health->checks[i], verbose, &ready) && fits;
    if (verbose)
        fits = fits && buf_printf(&buf, "readyz check %s\n", ready ? "passed" : "failed");
    else if (ready)
        fits = fits && buf_append_string(&buf, "ok\n");
    reply_buf(arena, ret, ready ? 200 : 503, &buf, fits);
}

static void metrics(struct arena *arena, struct http_server_reply *ret)
{
    struct buf buf = BUF_INIT(METRICS_MAX_TEXT);
    bool fits = metrics_write(&buf);

    ret->content_type = METRICS_TYPE;
    reply_buf(arena, ret, 200, &buf, fits);
}

static bool answer_page(struct health *health, struct arena *arena,
                        const struct http_server_request *request, struct http_server_reply *ret)
{
    for (size_t i = 0; i < health->page_count; i++) {
        const struct page *page = &health->pages[i];
        const char *body = "";
        if (!str_equal(page->path, request->path))
            continue;
        int status = page->function(page->ctx, arena, request->query ? request->query : "", &body);
        reply_text(arena, ret, status, body, strlen(body));
        return true;
    }
    return false;
}

/* "verbose", with or without a value, among the parts of the query. */
static bool asks_verbose(const char *query)
{
    static const char NAME[] = "verbose";

    for (const char *part = query; part && *part;) {
        size_t name_len = strcspn(part, "=&");

        if (name_len == strlen(NAME) && strncmp(part, NAME, name_len) == 0)
            return true;
        part += strcspn(part, "&");
        part += *part == '&';
    }
    return false;
}

static void answer(struct health *health, bool with_health, bool with_metrics, struct arena *arena,
                   const struct http_server_request *request, struct http_server_reply *ret)
{
    if (!str_equal(request->method, "GET") && !str_equal(request->method, "HEAD"))
        reply_text(arena, ret, 405, "only GET\n", 9);
    else if (with_metrics && str_equal(request->path, "/metrics"))
        metrics(arena, ret);
    else if (with_health && str_equal(request->path, "/healthz"))
        reply_text(arena, ret, 200, "ok\n", 3);
    else if (with_health && str_equal(request->path, "/readyz"))
        readyz(health, arena, asks_verbose(request->query), ret);
    else if (!with_health || !answer_page(health, arena, request, ret))
        reply_text(arena, ret, 404, "not found\n", 10);
}

static void health_answer(void *ctx, struct arena *arena, const struct http_server_request *request,
                          struct http_server_reply *ret)
{
    struct health *health = ctx;

    answer(health, true, health->shared_address, arena, request, ret);
}

static void metrics_answer(void *ctx, struct arena *arena,
                           const struct http_server_request *request, struct http_server_reply *ret)
{
    answer(ctx, false, true, arena, request, ret);
}

static bool is_off(const char *address)
{
    return str_is_empty(address) || str_equal(address, "0");
}

static int start_server(struct health *health, const char *address, http_handler_fn *handler,
                        struct http_server **ret, struct error *err)
{
    const struct http_server_options options = { .address = address,
                                                 .handler = handler,
                                                 .ctx = health };

    return http_server_start(&options, ret, err);
}

int health_start(struct health *health, const char *health_address, const char *metrics_address,
                 struct error *err)
{
    health->shared_address = !is_off(health_address) && str_equal(health_address, metrics_address);
    if (!is_off(health_address)) {
        int r = start_server(health, health_address, health_answer, &health->health_server, err);
        if (r < 0)
            return error_wrap(err, "--health-probe-bind-address");
    }
    if (!is_off(metrics_address) && !health->shared_address) {
        int r = start_server(health, metrics_address, metrics_answer, &health->metrics_server, err);
        if (r < 0) {
            health_stop(health);
            return error_wrap(err, "--metrics-bind-address");
        }
    }
    return 0;
}

void health_stop(struct health *health)
{
    if (health->metrics_server)
        http_server_stop(health->metrics_server);
    if (health->health_server)
        http_server_stop(health->health_server);
    health->metrics_server = NULL;
    health->health_server = NULL;
}

unsigned health_port(const struct health *health)
{
    return health->health_server ? http_server_port(health->health_server) : 0;
}

unsigned health_metrics_port(const struct health *health)
{
    if (health->shared_address)
        return health_port(health);
    return health->metrics_server ? http_server_port(health->metrics_server) : 0;
}
