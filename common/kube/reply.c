#include "common/kube/reply.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/json/json_splitter.h"
#include "common/kube/status.h"
#include "common/kube/watch.h"

int reply_error(const char *subject, const struct http_response *response, bool hide,
                struct error *err)
{
    struct error cause;
    int r = kube_status_error_text(&cause, response->status, response->body, response->body_len);
    uint32_t retry_after_ms =
        response->retry_after_ms ? response->retry_after_ms : cause.retry_after_ms;

    if (hide && cause.quoted_len)
        r = error_set(&cause, cause.code, "refused with HTTP %d", response->status);
    cause.retry_after_ms = retry_after_ms;
    error_wrap(&cause, "%s", subject);
    if (err)
        *err = cause;
    return r;
}

static int unreadable(struct error *err, const char *subject, struct error *cause)
{
    cause->code = ERROR_INTERNAL;
    int r = error_wrap(cause, "%s: unreadable reply", subject);
    if (err)
        *err = *cause;
    return r;
}

int reply_object(struct arena *arena, const char *subject, const struct kube_kind *kind,
                 const struct http_response *response, bool is_write, cJSON **ret,
                 struct error *err)
{
    static const char *const UNREAD[] = { "metadata.managedFields", NULL };
    const struct json_reading reading = { .texts = kind->texts,
                                          .unread = is_write ? UNREAD : NULL };
    const cJSON *json = NULL;
    struct error cause;
    int r = json_parse_with(arena, response->body, response->body_len, &reading, &json, &cause);

    if (r == 0 && str_is_empty(json_string(json_path(json, "metadata", "name", NULL), NULL)))
        r = error_set(&cause, ERROR_INVALID, "object without 'metadata.name'");
    if (r < 0)
        return unreadable(err, subject, &cause);
    *ret = (cJSON *)(uintptr_t)json; /* parsed for the caller alone */
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
    const cJSON *json = NULL;
    struct error cause;
    int r = text ? json_parse(arena, text, len, &json, &cause)
                 : error_set(&cause, ERROR_TOO_LARGE, "%zu bytes", len);

    if (r < 0) { /* one object must not hold up all others */
        log_warn("an object of a list cannot be read and is omitted", "request", page->subject,
                 "error", ERROR_TEXT(&cause), NULL);
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
        return unreadable(err, subject, &cause);

    const cJSON *items = json_get(page.envelope, "items");
    if (!cJSON_IsArray(items) && !cJSON_IsNull(items))
        return error_set(err, ERROR_INTERNAL, "%s: unreadable reply: it is not a list", subject);

    const char *token = json_string(json_path(page.envelope, "metadata", "continue", NULL), NULL);
    *ret_continue = str_is_empty(token) ? NULL : token;
    return 0;
}
