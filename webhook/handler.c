#include "webhook/handler.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/runtime/metrics.h"

#define JSON_TYPE "application/json"

/* Paths that exist, so that nobody can make series. */
static struct metric requests = { .type = METRIC_COUNTER,
                                  .name = "controller_runtime_webhook_requests_total",
                                  .help = "Number of admission requests by HTTP status code.",
                                  .labels = { "webhook", "code" } };
static struct metric in_flight = { .type = METRIC_GAUGE,
                                   .name = "controller_runtime_webhook_requests_in_flight",
                                   .help = "Number of admission requests in progress.",
                                   .labels = { "webhook" } };
static struct metric latency = { .type = METRIC_HISTOGRAM,
                                 .name = "controller_runtime_webhook_latency_seconds",
                                 .help = "Time to answer an admission request.",
                                 .labels = { "webhook" } };
static struct metric verdicts = { .type = METRIC_COUNTER,
                                  .name = "propeller_webhook_reviews_total",
                                  .help = "Number of reviews by outcome.",
                                  .labels = { "webhook", "allowed" } };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void reply_text(struct arena *arena, struct http_server_reply *ret, int status,
                       const char *text)
{
    ret->status = status;
    ret->body = arena_printf(arena, "%s\n", text);
    ret->body_len = strlen(ret->body);
}

/* "application/json", with or without parameters. */
static bool is_json(const char *content_type)
{
    size_t len = strlen(JSON_TYPE);

    return content_type && strncasecmp(content_type, JSON_TYPE, len) == 0 &&
           (!content_type[len] || strchr("; \t", content_type[len]));
}

static void review(struct arena *arena, const struct admission_hook *hook,
                   const struct admission_settings *settings,
                   const struct http_server_request *request, struct http_server_reply *ret)
{
    struct admission_answer answer;
    struct error err = { 0 };
    int r =
        admission_review(arena, hook, settings, request->body, request->body_len, &answer, &err);

    if (r < 0) {
        log_debug("review refused", "path", hook->path, "error", ERROR_TEXT(&err), NULL);
        reply_text(arena, ret, r == -ERROR_TOO_LARGE ? 413 : 400, err.message);
        return;
    }
    metric_add(&verdicts, 1, hook->path, answer.allowed ? "true" : "false", NULL);
    *ret = (struct http_server_reply){
        .status = 200, .content_type = JSON_TYPE, .body = answer.body, .body_len = answer.body_len
    };
}

static void answer(struct arena *arena, const struct admission_hook *hook,
                   const struct admission_settings *settings,
                   const struct http_server_request *request, struct http_server_reply *ret)
{
    if (!hook)
        reply_text(arena, ret, 404, "no such path");
    else if (!str_equal(request->method, "POST"))
        reply_text(arena, ret, 405, "only POST");
    else if (!is_json(request->content_type))
        reply_text(arena, ret, 415, "only " JSON_TYPE);
    else
        review(arena, hook, settings, request, ret);
}

/* NULL: nothing is served there. */
static const struct admission_hook *find_hook(const struct admission_settings *settings,
                                              const char *path)
{
    const struct admission_hook *hook = admission_hook_find(path);

    return hook && hook->admission->extension && !settings->has_vmafx ? NULL : hook;
}

void admission_handle(void *ctx, struct arena *arena, const struct http_server_request *request,
                      struct http_server_reply *ret)
{
    const struct admission_hook *hook = find_hook(ctx, request->path);
    const char *path = hook ? hook->path : "other";
    int64_t start_ns = now_ns();
    char code[16];

    metric_add(&in_flight, 1, path, NULL);
    answer(arena, hook, ctx, request, ret);
    metric_add(&in_flight, -1, path, NULL);

    (void)snprintf(code, sizeof(code), "%d", ret->status);
    metric_add(&requests, 1, path, code, NULL);
    metric_observe(&latency, (double)(now_ns() - start_ns) / 1e9, path, NULL);
}
