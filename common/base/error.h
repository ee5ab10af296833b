/*
 * An error is a value on the stack of the caller: a code to branch on and a message to log.
 *
 * A function that can fail returns a negative code and fills *err. Nothing is allocated, so nothing
 * is freed. Messages are cut at ERROR_MESSAGE_LEN bytes. Any thread; an error belongs to one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/compiler.h"

enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID,     /* the input is wrong: retrying cannot help */
    ERROR_NOT_FOUND,   /* the object does not exist */
    ERROR_EXISTS,      /* the object exists already */
    ERROR_CONFLICT,    /* the object changed since it was read */
    ERROR_FORBIDDEN,   /* RBAC says no */
    ERROR_GONE,        /* the resourceVersion is too old: list again */
    ERROR_TIMEOUT,     /* no answer in time: the request may have been executed */
    ERROR_UNAVAILABLE, /* refused before execution: network, credentials, 429, 503 */
    ERROR_TOO_LARGE,   /* the request or a buffer is over its limit: retrying cannot help */
    ERROR_CANCELED,    /* this process is shutting down, or is not the leader any more */
    ERROR_INTERNAL,    /* a reply that no protocol allows, or a broken invariant */
};

#define ERROR_MESSAGE_LEN 240

struct error {
    enum error_code code;
    uint32_t retry_after_ms; /* 0: the server named no time */
    /* Length of the end of the message that quotes a device, a pod, a server or a user; bytes. */
    uint32_t quoted_len;
    /* Ends with NUL; names its subject in single quotes, without a full stop. */
    char message[ERROR_MESSAGE_LEN];
};

/*
 * Both return -code; err may be NULL. error_wrap puts "context: " before the present message.
 *
 *   int error_set(struct error *err, enum error_code code, const char *format, ...);
 *   int error_wrap(struct error *err, const char *format, ...);
 */
#define error_set(...) error_negative(error_set_message(__VA_ARGS__))
/* As error_set, for a message that quotes another party. */
#define error_set_quoting(...) error_negative(error_set_quoting_message(__VA_ARGS__))
#define error_wrap(...) error_negative(error_wrap_message(__VA_ARGS__))

int error_set_message(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
int error_set_quoting_message(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
int error_wrap_message(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Shows compilers and analyzers that a failing call returns a negative value. */
static inline int error_negative(int r)
{
    if (r >= 0)
        __builtin_unreachable();
    return r;
}

/* Marks everything after the first own_len bytes of the message as quoted. err may be NULL. */
void error_quote_after(struct error *err, size_t own_len);

/* Whether another try may succeed: CONFLICT, TIMEOUT, UNAVAILABLE, GONE, INTERNAL. */
bool error_is_transient(const struct error *err);

/* Makes the message for a log, with the name of the code in place of what it quotes: quotes are for
 * a status only. It lives until the end of the block. */
#define ERROR_TEXT(err) error_own_text((err), (char[ERROR_MESSAGE_LEN]){ 0 })
const char *error_own_text(const struct error *err, char ret[static ERROR_MESSAGE_LEN]);

/* Returns a constant name for log fields and metrics: "Conflict", "NotFound", … */
const char *error_code_name(enum error_code code);
