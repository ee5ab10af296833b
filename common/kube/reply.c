#include "common/kube/reply.h"

#include <string.h>

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/kube/json_splitter.h"
#include "common/kube/watch.h"

/* The longest piece of a reply that is not a Status, put into a message. */
#define MAX_QUOTE 120
/* A server that names a longer time is not waited for any longer. */
#define MAX_RETRY_AFTER_S 300

static enum error_code code_of_conflict(const char *reason)
{
    return str_equal(reason, "AlreadyExists") ? ERROR_EXISTS : ERROR_CONFLICT;
}

/* What etcd's refusals look like when they come through the API server as a 500. */
static bool says_too_large(const char *message)
{
    return strstr(message, "request is too large") ||
           strstr(message, "trying to send message larger than max");
}

static enum error_code code_of(int status, const char *reason, const char *message)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_FORBIDDEN;
    case 404:
        return ERROR_NOT_FOUND;
    case 408:
    case 504:
        return ERROR_TIMEOUT;
    case 409:
        return code_of_conflict(reason);
    case 410:
        return ERROR_GONE;
    case 413:
        return ERROR_TOO_LARGE;
    case 429:
    case 503:
        return ERROR_UNAVAILABLE;
    case 500:
        return says_too_large(message) ? ERROR_TOO_LARGE : ERROR_INTERNAL;
    default:
        return status >= 400 && status < 500 ? ERROR_INVALID : ERROR_INTERNAL;
    }
}

/* The beginning of a text that is no Status, if it looks like one made for people. */
static const char *quote(struct arena *arena, const struct http_response *response)
{
    size_t len = strcspn(response->body, "\r\n");

    if (!len || response->body[0] == '<' || response->body[0] == '{' ||
        !str_is_utf8(response->body, response->body_len))
        return arena_printf(arena, "HTTP %d", response->status);
    len = str_utf8_cut(response->body, len, MAX_QUOTE);
    return arena_printf(arena, "HTTP %d: %.*s", response->status, (int)len, response->body);
}

static uint32_t retry_after_ms(const struct http_response *response, const cJSON *status)
{
    int64_t seconds = json_int(json_path(status, "details", "retryAfterSeconds", NULL), 0);

    if (response->retry_after_ms)
        return response->retry_after_ms;
    if (seconds <= 0)
        return 0;
    return (uint32_t)(seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S) * 1000;
}

int reply_error(struct arena *arena, const char *subject, const struct http_response *response,
                bool hide, struct error *err)
{
    const cJSON *status = NULL;
    if (json_parse(arena, response->body, response->body_len, &status, NULL) < 0 ||
        !str_equal(json_string(json_get(status, "kind"), NULL), "Status"))
        status = NULL;

    const char *reason = json_string(json_get(status, "reason"), "");
    const char *message = json_string(json_get(status, "message"), "");
    enum error_code code = code_of(response->status, reason, message);

    if (!*message)
        message = quote(arena, response);
    if (hide && code == ERROR_INVALID)
        message = arena_printf(arena, "refused: HTTP %d %s", response->status, reason);

    int r = error_set(err, code, "%s: %s", subject, message);
    if (err)
        err->retry_after_ms = retry_after_ms(response, status);
    return r;
}

static int unreadable(struct error *err, const char *subject, const char *why)
{
    return error_set(err, ERROR_INTERNAL, "%s: unreadable reply: %s", subject, why);
}

int reply_object(struct arena *arena, const char *subject, const struct http_response *response,
                 struct kube_object **ret, struct error *err)
{
    const cJSON *json;
    struct error cause;

    if (json_parse(arena, response->body, response->body_len, &json, &cause) < 0 ||
        kube_object_create(json, ret, &cause) < 0)
        return unreadable(err, subject, cause.message);
    return 0;
}

struct page {
    struct arena *arena;
    const char *subject;
    kube_item_fn *item;
    void *ctx;
    bool stopped;          /* by the item function: its error is the caller's */
    const cJSON *envelope; /* NULL: the end did not come */
};

static int on_item(struct page *page, const char *text, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *json;
    struct error cause;
    int r = text ? json_parse(arena, text, len, &json, &cause)
                 : error_set(&cause, ERROR_TOO_LARGE, "%zu bytes", len);

    if (r < 0) { /* one object must not hold up all others */
        log_warn("object of a list cannot be read, leaving it out", "request", page->subject,
                 "error", cause.message, NULL);
        return 0;
    }
    r = page->item(page->ctx, json, err);
    page->stopped = r < 0;
    return r;
}

static int on_part(void *ctx, enum json_part part, const char *text, size_t len, struct error *err)
{
    struct page *page = ctx;

    if (part == JSON_PART_ITEM)
        return on_item(page, text, len, err);
    if (!text)
        return error_set(err, ERROR_INVALID, "%zu bytes besides the items", len);
    return json_parse(page->arena, text, len, &page->envelope, err);
}

int reply_items(struct arena *arena, const char *subject, const struct http_response *response,
                kube_item_fn *item, void *ctx, const char **ret_continue, struct error *err)
{
    struct page page = { .arena = arena, .subject = subject, .item = item, .ctx = ctx };
    struct error cause = { .message = "it ends too early" };

    struct json_splitter *splitter = json_splitter_create(WATCH_MAX_ITEM, on_part, &page);
    json_splitter_start(splitter, JSON_SPLIT_LIST);
    int r = json_splitter_feed(splitter, response->body, response->body_len, &cause);
    json_splitter_destroy(splitter);

    if (page.stopped) {
        if (err)
            *err = cause;
        return r;
    }
    if (r < 0 || !page.envelope)
        return unreadable(err, subject, cause.message);

    const char *token = json_string(json_path(page.envelope, "metadata", "continue", NULL), NULL);
    *ret_continue = str_is_empty(token) ? NULL : token;
    return 0;
}
