#include "common/kube/status.h"

#include "common/base/str.h"

/* A server may ask for a pause, not for a day of it. */
#define MAX_RETRY_AFTER_S 300
/* Of a body that is no Status object: a proxy's page, "404 page not found". */
#define MAX_PLAIN 120

static const struct {
    int http_status;
    enum error_code code;
} CODES[] = {
    { 400, ERROR_INVALID },     { 401, ERROR_UNAVAILABLE }, { 403, ERROR_FORBIDDEN },
    { 404, ERROR_NOT_FOUND },   { 409, ERROR_CONFLICT },    { 410, ERROR_GONE },
    { 413, ERROR_TOO_LARGE },   { 422, ERROR_INVALID },     { 429, ERROR_UNAVAILABLE },
    { 503, ERROR_UNAVAILABLE }, { 504, ERROR_TIMEOUT },
};

/* The resourceVersion asked for is in the future of this server: told as a time-out with a cause.
 */
static bool is_version_unknown(const cJSON *status)
{
    json_for_each (cause, json_path(status, "details", "causes", NULL)) {
        if (str_equal(json_string(json_get(cause, "reason"), ""), "ResourceVersionTooLarge"))
            return true;
    }
    return strstr(json_string(json_get(status, "message"), ""), "Too large resource version");
}

/* What the refusals of etcd, and of its client, look like when they come through the API server. */
static bool says_too_large(const char *message)
{
    return strstr(message, "request is too large") ||
           strstr(message, "trying to send message larger than max");
}

static enum error_code code_of(int http_status, const cJSON *status)
{
    const char *reason = json_string(json_get(status, "reason"), "");
    const char *message = json_string(json_get(status, "message"), "");

    if (http_status == 409 && str_equal(reason, "AlreadyExists"))
        return ERROR_EXISTS;
    if (http_status == 500 && says_too_large(message))
        return ERROR_TOO_LARGE;
    if (http_status == 504 && is_version_unknown(status))
        return ERROR_GONE;
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        if (CODES[i].http_status == http_status)
            return CODES[i].code;
    }
    return ERROR_INTERNAL;
}

static void set_retry_after(struct error *err, const cJSON *status)
{
    int64_t seconds = json_int(json_path(status, "details", "retryAfterSeconds", NULL), 0);

    if (seconds <= 0)
        return;
    if (seconds > MAX_RETRY_AFTER_S)
        seconds = MAX_RETRY_AFTER_S;
    err->retry_after_ms = (uint32_t)seconds * 1000;
}

/* What "Unauthorized" means is not known to everybody. */
static int explain(struct error *err, int http_status, int r)
{
    return http_status == 401 ? error_wrap(err, "the credentials are not accepted") : r;
}

int kube_status_error(struct error *err, int http_status, const cJSON *status)
{
    const char *message = json_string(json_get(status, "message"), "");
    enum error_code code = code_of(http_status, status);

    int r = *message ? error_set(err, code, "%s", message)
                     : error_set(err, code, "HTTP %d", http_status);
    if (err)
        set_retry_after(err, status);
    return explain(err, http_status, r);
}

static bool is_printable(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~')
            return false;
    }
    return len > 0;
}

int kube_status_error_text(struct error *err, int http_status, const char *body, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const cJSON *status = NULL;

    if (len && json_parse(arena, body, len, &status, NULL) == 0)
        return kube_status_error(err, http_status, status);

    while (len && (body[len - 1] == '\n' || body[len - 1] == '\r'))
        len--;
    if (len > MAX_PLAIN || !is_printable(body, len))
        return kube_status_error(err, http_status, NULL);

    int r =
        error_set(err, code_of(http_status, NULL), "HTTP %d: %.*s", http_status, (int)len, body);
    return explain(err, http_status, r);
}
