#include "common/base/str.h"

#include <ctype.h>
#include <math.h>

#include "common/base/compiler.h"

bool str_equal(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool str_has_prefix(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
    size_t len = strlen(s);
    size_t suffix_len = strlen(suffix);

    return len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

bool str_is_empty(const char *s)
{
    return !s || !*s;
}

bool str_is_one_of(const char *s, const char *const *list)
{
    while (*list && !str_equal(*list, s))
        list++;
    return *list;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool str_to_int64(const char *s, int64_t *ret)
{
    bool negative = *s == '-';
    int64_t value = 0;

    s += negative;
    if (!*s)
        return false;
    for (; *s; s++) {
        int digit = *s - '0';

        /* counts downwards when negative, so that INT64_MIN can be reached */
        if (!is_digit(*s) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

bool str_to_double(const char *s, double *ret)
{
    /* strtod also takes blanks, hexadecimal, "inf" and "nan" */
    if (!*s || strspn(s, "0123456789.eE+-") != strlen(s) || *s == '+')
        return false;

    char *end;
    double value = strtod(s, &end);

    if (*end || end == s || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

bool str_to_bool(const char *s, bool *ret)
{
    if (str_equal(s, "true") || str_equal(s, "1"))
        *ret = true;
    else if (str_equal(s, "false") || str_equal(s, "0"))
        *ret = false;
    else
        return false;
    return true;
}

static const struct unit {
    const char *name;
    int64_t ns;
} UNITS[] = {
    /* a name before any other name that it starts with */
    { "ns", 1 },           { "us", 1000 },      { "\xc2\xb5s", 1000 }, /* micro sign */
    { "\xce\xbcs", 1000 },                                             /* Greek mu */
    { "ms", 1000000 },     { "s", 1000000000 }, { "m", 60000000000 },  { "h", 3600000000000 },
};

static const struct unit *find_unit(const char *s)
{
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (str_has_prefix(s, UNITS[i].name))
            return &UNITS[i];
    }
    return NULL;
}

/* One "12.5s"; adds to *ns and moves *at. */
static bool take_duration_part(const char **at, int64_t *ns)
{
    const char *s = *at;
    int64_t whole = 0;
    double fraction = 0;
    double scale = 1;
    size_t digits = 0;

    for (; is_digit(*s); s++, digits++) {
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, *s - '0', &whole))
            return false;
    }
    if (*s == '.') {
        for (s++; is_digit(*s); s++, digits++) {
            scale /= 10;
            fraction += (*s - '0') * scale;
        }
    }

    const struct unit *unit = digits ? find_unit(s) : NULL;
    /* half a nanosecond: what binary fractions lose must not cost a whole millisecond */
    if (!unit || __builtin_mul_overflow(whole, unit->ns, &whole) ||
        __builtin_add_overflow(whole, (int64_t)(fraction * (double)unit->ns + 0.5), &whole) ||
        __builtin_add_overflow(*ns, whole, ns))
        return false;
    *at = s + strlen(unit->name);
    return true;
}

bool str_to_duration_ms(const char *s, int64_t *ret_ms)
{
    int64_t ns = 0;

    if (*s == '+')
        s++;
    if (!*s)
        return false;
    while (*s && strcmp(s, "0") != 0) {
        if (!take_duration_part(&s, &ns))
            return false;
        if (strcmp(s, "0") == 0)
            return false; /* only a lone 0 needs no unit */
    }
    *ret_ms = ns / 1000000 + (ns % 1000000 != 0);
    return true;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* RFC 3629: what may follow the first byte is narrower after these. */
static bool is_second_byte(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0: /* overlong */
        return second >= 0xa0;
    case 0xed: /* surrogates */
        return second <= 0x9f;
    case 0xf0: /* overlong */
        return second >= 0x90;
    case 0xf4: /* beyond U+10FFFF */
        return second <= 0x8f;
    default:
        return true;
    }
}

int str_hex_digit(char c)
{
    static const char DIGITS[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(DIGITS, c) : NULL;

    return at ? (int)(at - DIGITS) % 16 : -1;
}

size_t str_utf8_char(const char *bytes, size_t len)
{
    if (!len)
        return 0;

    unsigned char first = (unsigned char)bytes[0];
    if (first < 0x80)
        return 1;

    size_t need = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || len < need)
        return 0;
    for (size_t i = 1; i < need; i++) {
        if (!is_continuation(bytes[i]))
            return 0;
    }
    return is_second_byte(first, (unsigned char)bytes[1]) ? need : 0;
}

bool str_is_utf8(const char *bytes, size_t len)
{
    while (len) {
        size_t step = str_utf8_char(bytes, len);

        if (!step)
            return false;
        bytes += step;
        len -= step;
    }
    return true;
}

size_t str_utf8_cut(const char *bytes, size_t len, size_t max)
{
    if (len <= max)
        return len;

    size_t cut = max;
    while (cut && max - cut < 3 && is_continuation(bytes[cut]))
        cut--;
    /* Not UTF-8 anyway: no place is better than another. */
    return is_continuation(bytes[cut]) ? max : cut;
}

#define MAX_DNS_LABEL 63
#define MAX_DNS_SUBDOMAIN 253

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c);
}

static bool is_label(const char *s, size_t len)
{
    if (!len || !is_alphanumeric(s[0]) || !is_alphanumeric(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_alphanumeric(s[i]) && s[i] != '-')
            return false;
    }
    return true;
}

bool str_is_dns_label(const char *s)
{
    size_t len = strlen(s);

    return len <= MAX_DNS_LABEL && is_label(s, len);
}

bool str_is_dns_subdomain(const char *s)
{
    if (strlen(s) > MAX_DNS_SUBDOMAIN)
        return false;

    /* The API server limits the whole only, not the length of a label in it. */
    for (;;) {
        size_t len = strcspn(s, ".");

        if (!is_label(s, len))
            return false;
        if (!s[len])
            return true;
        s += len + 1;
    }
}

bool str_is_label_value(const char *s)
{
    size_t len = strlen(s);

    if (len > MAX_DNS_LABEL)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool inner = i > 0 && i + 1 < len;

        if (!isalnum((unsigned char)s[i]) && !(inner && strchr("-_.", s[i])))
            return false;
    }
    return true;
}

bool str_is_label_key(const char *s)
{
    const char *slash = strchr(s, '/');
    char prefix[MAX_DNS_SUBDOMAIN + 2]; /* one that is longer is too long also where it is cut */

    (void)snprintf(prefix, sizeof(prefix), "%.*s", slash ? (int)(slash - s) : 0, s);
    if (slash && !str_is_dns_subdomain(prefix))
        return false;
    s = slash ? slash + 1 : s;
    return *s && str_is_label_value(s);
}

bool str_copy(char *ret, size_t size, const char *s)
{
    size_t len = strlen(s);

    if (len >= size) {
        if (size)
            ret[0] = '\0';
        return false;
    }
    memcpy(ret, s, len + 1);
    return true;
}
