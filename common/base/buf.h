/* A growing byte buffer with a maximum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

/*
 * Invariants: len <= max; data[len] is NUL once anything was appended, so data is a C string if the
 * bytes are. What would go over max changes nothing and returns false.
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
const char *buf_string(const struct buf *buf); /* "" if nothing was appended */
/* From 1, of the first NUL, behind which a C string would lose the rest; 0: there is none. */
size_t buf_line_of_nul(const struct buf *buf);
void buf_consume(struct buf *buf, size_t len); /* drops the first len bytes */
void buf_clear(struct buf *buf);               /* keeps the memory */
void buf_release(struct buf *buf);             /* frees it; usable again afterwards */
DEFINE_CLEANUP_OF(struct buf, buf_release)
