/* Errors as values: a code to branch on and a message to log, on the caller's stack. */
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
    ERROR_INTERNAL,    /* a reply nobody promised, or a broken invariant */
};

#define ERROR_MESSAGE_LEN 240

struct error {
    enum error_code code;
    uint32_t retry_after_ms; /* 0: the sender named no time */
    /* The last bytes of the message, which quote what a device, a pod, a server or a user wrote. */
    uint32_t quoted_len;
    /* Cut at a character; names its subject in single quotes, no full stop. */
    char message[ERROR_MESSAGE_LEN];
};

/*
 * Both return -code. A NULL err is fine. error_wrap puts "context: " before what is there already.
 *
 *   int error_set(struct error *err, enum error_code code, const char *format, ...);
 *   int error_wrap(struct error *err, const char *format, ...);
 */
#define error_set(...) error_negative(error_set_message(__VA_ARGS__))
/* As error_set, for a message that quotes. */
#define error_set_quoting(...) error_negative(error_set_quoting_message(__VA_ARGS__))
#define error_wrap(...) error_negative(error_wrap_message(__VA_ARGS__))

int error_set_message(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
int error_set_quoting_message(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
int error_wrap_message(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Compilers and analyzers see here that what follows a successful call has its result. */
static inline int error_negative(int r)
{
    if (r >= 0)
        __builtin_unreachable();
    return r;
}

/* Marks what follows the first own_len bytes of the message as quoted. A NULL err is fine. */
void error_quote_after(struct error *err, size_t own_len);

/* True for what may be different when tried again: CONFLICT, TIMEOUT, UNAVAILABLE, GONE, INTERNAL.
 */
bool error_is_transient(const struct error *err);

/* The message for a log: in place of what it quotes, which belongs to a status alone, the name of the code. Lives to
 * the end of the block. */
#define ERROR_TEXT(err) error_own_text((err), (char[ERROR_MESSAGE_LEN]){ 0 })
const char *error_own_text(const struct error *err, char ret[static ERROR_MESSAGE_LEN]);

/* "Conflict", "NotFound", …: for log fields and metrics. */
const char *error_code_name(enum error_code code);
