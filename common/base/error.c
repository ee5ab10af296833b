#include "common/base/error.h"

#include <assert.h>
#include <stdarg.h>

#include "common/base/str.h"

static const char *const NAMES[] = {
    [ERROR_NONE] = "None",
    [ERROR_INVALID] = "Invalid",
    [ERROR_NOT_FOUND] = "NotFound",
    [ERROR_EXISTS] = "AlreadyExists",
    [ERROR_CONFLICT] = "Conflict",
    [ERROR_FORBIDDEN] = "Forbidden",
    [ERROR_GONE] = "Gone",
    [ERROR_TIMEOUT] = "Timeout",
    [ERROR_UNAVAILABLE] = "Unavailable",
    [ERROR_TOO_LARGE] = "TooLarge",
    [ERROR_CANCELED] = "Canceled",
    [ERROR_INTERNAL] = "Internal",
};

/* The bytes of text that a message may take: all, or up to the last whole character that fits. */
static void store(struct error *err, const char *text, size_t len)
{
    size_t used = str_utf8_cut(text, len, sizeof(err->message) - 1);

    memcpy(err->message, text, used);
    err->message[used] = '\0';
}

PRINTF_LIKE(3, 0)
static int set(struct error *err, enum error_code code, const char *format, va_list args)
{
    assert(code != ERROR_NONE);
    if (!err)
        return -(int)code;

    /* Not straight into the message: the arguments may point into it. Four bytes more, so that
     * the cut sees the whole of the last character. */
    char text[sizeof(err->message) + 4];

    (void)vsnprintf(text, sizeof(text), format, args);
    err->code = code;
    err->retry_after_ms = 0;
    err->quoted_len = 0;
    store(err, text, strlen(text));
    return -(int)code;
}

int error_set_message(struct error *err, enum error_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int r = set(err, code, format, args);
    va_end(args);
    return r;
}

int error_set_quoting_message(struct error *err, enum error_code code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int r = set(err, code, format, args);
    va_end(args);
    error_quote_after(err, 0);
    return r;
}

int error_wrap_message(struct error *err, const char *format, ...)
{
    if (!err)
        return -(int)ERROR_INTERNAL; /* nobody knows better */
    if (err->code == ERROR_NONE)
        err->code = ERROR_INTERNAL;

    char text[2 * sizeof(err->message) + 2];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(err->message) + 4, format, args);
    va_end(args);

    size_t len = str_utf8_cut(text, strlen(text), sizeof(err->message) - 1);
    (void)snprintf(text + len, sizeof(text) - len, "%s%s", err->message[0] ? ": " : "",
                   err->message);

    size_t own = strlen(text) - err->quoted_len;
    store(err, text, strlen(text));
    size_t kept = strlen(err->message);
    err->quoted_len = kept > own ? (uint32_t)(kept - own) : 0;
    return -(int)err->code;
}

void error_quote_after(struct error *err, size_t own_len)
{
    if (!err)
        return;

    size_t len = strlen(err->message);

    err->quoted_len = len > own_len ? (uint32_t)(len - own_len) : 0;
}

const char *error_own_text(const struct error *err, char ret[static ERROR_MESSAGE_LEN])
{
    size_t len = strlen(err->message) - err->quoted_len;

    memcpy(ret, err->message, len);
    while (err->quoted_len && len && strchr(": ", ret[len - 1]))
        len--;
    ret[len] = '\0';
    if (err->quoted_len)
        (void)snprintf(ret + len, ERROR_MESSAGE_LEN - len, "%s%s", len ? ": " : "",
                       error_code_name(err->code));
    return *ret ? ret : error_code_name(err->code);
}

bool error_is_transient(const struct error *err)
{
    switch (err->code) {
    case ERROR_CONFLICT:
    case ERROR_TIMEOUT:
    case ERROR_UNAVAILABLE:
    case ERROR_GONE:
    case ERROR_INTERNAL:
        return true;
    default:
        return false;
    }
}

const char *error_code_name(enum error_code code)
{
    return (size_t)code < ARRAY_LEN(NAMES) ? NAMES[code] : "Unknown";
}
