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

/* Up to the end of the name of a webhook, whose words or whose server's come behind it, with any status. 0: none is
 * named. */
static size_t own_len_of_webhook(const char *message)
{
    static const char *const BEGINNINGS[] = {
        "admission webhook \"", "Internal error occurred: failed calling webhook \""
    };

    for (size_t i = 0; i < ARRAY_LEN(BEGINNINGS); i++) {
        size_t len = strlen(BEGINNINGS[i]);
        const char *end =
            str_has_prefix(message, BEGINNINGS[i]) ? strchr(message + len, '"') : NULL;

        if (end)
            return (size_t)(end + 1 - message);
    }
    return 0;
}

/* By the API server's own plugins, which name users, quotas, containers and namespaces. */
static bool is_forbidden_by_name(const char *message)
{
    static const char *const WORDS[] = { "User \"", "exceeded quota", "violates PodSecurity",
                                         "unable to create new content in namespace" };
    static const char FORBIDDEN[] = "forbidden: ";
    const char *why = strstr(message, FORBIDDEN);

    for (size_t i = 0; why && i < ARRAY_LEN(WORDS); i++) {
        if (str_has_prefix(why + strlen(FORBIDDEN), WORDS[i]))
            return true;
    }
    return false;
}

/* The length of the beginning of the message that repeats nothing of the request. */
static size_t own_len(enum error_code code, const char *message)
{
    size_t of_webhook = own_len_of_webhook(message);

    if (of_webhook)
        return of_webhook;
    switch (code) {
    case ERROR_INVALID:
        return 0;
    case ERROR_FORBIDDEN:
        return is_forbidden_by_name(message) ? strlen(message) : 0;
    case ERROR_TOO_LARGE:
    case ERROR_INTERNAL:
        return strcspn(message, "\"");
    default:
        return strlen(message);
    }
}

int kube_status_error(struct error *err, int http_status, const cJSON *status)
{
    const char *message = json_string(json_get(status, "message"), "");
    enum error_code code = code_of(http_status, status);

    int r = *message ? error_set(err, code, "%s", message)
                     : error_set(err, code, "HTTP %d", http_status);
    if (*message)
        error_quote_after(err, own_len(code, message));
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

    int r = error_set_quoting(err, code_of(http_status, NULL), "%.*s", (int)len, body);
    (void)error_wrap(err, "HTTP %d", http_status);
    return explain(err, http_status, r);
}
