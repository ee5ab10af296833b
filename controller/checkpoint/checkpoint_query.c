#include "controller/checkpoint/checkpoint_query.h"

#include <ctype.h>
#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"

#define LOWER_HEX "0123456789abcdef"

static int hex_of(char c)
{
    const char *digit = c ? strchr(LOWER_HEX, tolower((unsigned char)c)) : NULL;

    return digit ? (int)(digit - LOWER_HEX) : -1;
}

/* NULL: a "%" without two digits, or a NUL. */
static const char *decode(struct arena *arena, const char *text, size_t len)
{
    char *out = arena_alloc(arena, len + 1, 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int high = 0, low = 0;
        if (text[i] != '%') {
            out[n++] = text[i];
            continue;
        }
        if (i + 2 >= len || (high = hex_of(text[i + 1])) < 0 || (low = hex_of(text[i + 2])) < 0 ||
            high + low == 0)
            return NULL;
        out[n++] = (char)(high * 16 + low);
        i += 2;
    }
    out[n] = '\0';
    return out;
}

/* Digits alone: no sign, no fraction, no exponent. */
static bool read_count(const char *text, int64_t *ret)
{
    return *text && strspn(text, "0123456789") == strlen(text) && str_to_int64(text, ret) &&
           *ret <= CHECKPOINT_MAX_STEP;
}

static bool is_uri(const char *text)
{
    static const char *const SCHEMES[] = { "file://", "s3://", "gs://", "https://" };
    const char *rest = NULL;

    for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++) {
        if (str_has_prefix(text, SCHEMES[i]))
            rest = text + strlen(SCHEMES[i]);
    }
    for (const char *c = text; *c; c++) {
        if (iscntrl((unsigned char)*c))
            return false;
    }
    return rest && *rest && strlen(text) <= CHECKPOINT_MAX_URI &&
           !memchr(rest, '@', strcspn(rest, "/?#"));
}

static bool is_digest(const char *text)
{
    return strspn(text, LOWER_HEX) == SHA256_HEX_LEN - 1 && strlen(text) == SHA256_HEX_LEN - 1;
}

/* NULL: the value is fine. */
static const char *set(struct checkpoint_query *query, const char *name, const char *value)
{
    static const char COUNT[] = "must be an integer from 0 to 2^53 - 1";

    if (str_equal(name, "step"))
        return read_count(value, &query->step) ? NULL : COUNT;
    if (str_equal(name, "samples")) {
        query->samples.set = read_count(value, &query->samples.value);
        return query->samples.set ? NULL : COUNT;
    }
    if (str_equal(name, "sha256")) {
        query->sha256 = value;
        return is_digest(value) ? NULL : "must be 64 lower-case hexadecimal digits";
    }
    if (str_equal(name, "uri")) {
        query->uri = value;
        return is_uri(value) ? NULL
                             : "must be an address of file://, s3://, gs:// or https:// without "
                               "user information, of at most 1024 characters";
    }
    return "is unknown: allowed are step, samples, sha256 and uri";
}

static bool is_before(struct arena *arena, const char *query, const char *end, const char *name)
{
    const char *earlier = arena_strndup(arena, query, (size_t)(end - query));
    const char *wanted = arena_printf(arena, "%s=", name);

    return str_has_prefix(earlier, wanted) || strstr(earlier, arena_printf(arena, "&%s", wanted));
}

int checkpoint_query_parse(struct arena *arena, const char *query, struct checkpoint_query *ret,
                           struct error *err)
{
    *ret = (struct checkpoint_query){ .step = -1 };
    if (query && strlen(query) > CHECKPOINT_MAX_QUERY)
        return error_set(err, ERROR_INVALID, "the query has more than %d bytes",
                         CHECKPOINT_MAX_QUERY);
    for (const char *at = query ? query : ""; *at;) {
        size_t len = strcspn(at, "&"), name_len = strcspn(at, "=&");
        const char *name = arena_strndup(arena, at, name_len);
        const char *value =
            name_len < len ? decode(arena, at + name_len + 1, len - name_len - 1) : "";
        const char *problem = !value ? "is not percent-encoded" : NULL;

        if (!problem && is_before(arena, query, at, name))
            problem = "is given twice";
        if (!problem)
            problem = set(ret, name, value);
        if (problem)
            return error_set(err, ERROR_INVALID, "%.32s: %s", name, problem);
        at += len + (at[len] == '&');
    }
    if (ret->step < 0)
        return error_set(err, ERROR_INVALID, "step: is needed");
    if (ret->uri && !ret->sha256)
        return error_set(err, ERROR_INVALID, "sha256: is needed with uri");
    return 0;
}
