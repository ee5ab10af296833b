#include "common/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "common/base/alloc.h"

#define FIRST_CAP 64

/* Room for len more bytes and the NUL. */
static bool reserve(struct buf *buf, size_t len)
{
    if (len > buf->max - buf->len)
        return false;

    size_t needed = buf->len + len + 1;
    if (needed <= buf->cap)
        return true;

    size_t cap = buf->cap ? buf->cap : FIRST_CAP;
    while (cap < needed)
        cap = cap > SIZE_MAX / 2 ? needed : cap * 2;
    if (cap > buf->max)
        cap = buf->max + 1;
    buf->data = xrealloc(buf->data, cap);
    buf->cap = cap;
    return true;
}

bool buf_append(struct buf *buf, const void *bytes, size_t len)
{
    if (!reserve(buf, len))
        return false;
    if (len)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

bool buf_prepend(struct buf *buf, const void *bytes, size_t len)
{
    if (!reserve(buf, len))
        return false;
    memmove(buf->data + len, buf->data, buf->len);
    memcpy(buf->data, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

bool buf_append_string(struct buf *buf, const char *s)
{
    return buf_append(buf, s, strlen(s));
}

bool buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(len >= 0); /* a format that C does not know: a bug at the caller */

    if (!reserve(buf, (size_t)len))
        return false;
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
    return true;
}

const char *buf_string(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

size_t buf_line_of_nul(const struct buf *buf)
{
    const char *text = buf_string(buf), *nul = memchr(text, '\0', buf->len);
    size_t line = 1;

    for (const char *at = text; nul && at < nul; at++)
        line += *at == '\n';
    return nul ? line : 0;
}

void buf_consume(struct buf *buf, size_t len)
{
    assert(len <= buf->len);
    if (!len)
        return;
    buf->len -= len;
    memmove(buf->data, buf->data + len, buf->len + 1);
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void buf_release(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf)BUF_INIT(buf->max);
}
