/* A buf is a growing buffer of bytes with a maximum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

/*
 * A buf is a value that its scope owns and releases. Lengths are in bytes. Not thread-safe. The
 * only failure is a length above max: the function returns false and changes nothing. Out of memory
 * ends the process.
 *
 *  1. len <= max.
 *  2. After the first append data[len] is NUL, so data is a C string if its bytes hold no NUL.
 */
struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
};

#define BUF_INIT(maximum)                                                                          \
    {                                                                                              \
        .max = (maximum)                                                                           \
    }

bool buf_append(struct buf *buf, const void *bytes, size_t len) MUST_CHECK;
bool buf_append_string(struct buf *buf, const char *s) MUST_CHECK;
bool buf_prepend(struct buf *buf, const void *bytes, size_t len) MUST_CHECK;
bool buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3) MUST_CHECK;
const char *buf_string(const struct buf *buf); /* borrowed; "" if nothing was appended */
/* Returns the line, from 1, of the first NUL in the bytes; 0 if there is none. */
size_t buf_line_of_nul(const struct buf *buf);
void buf_consume(struct buf *buf, size_t len); /* drops the first len bytes */
void buf_clear(struct buf *buf);               /* keeps the memory */
void buf_release(struct buf *buf);             /* frees the memory; the buf stays usable */
DEFINE_CLEANUP_OF(struct buf, buf_release)
