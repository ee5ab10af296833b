#include "common/json/scan.h"

#include "common/base/str.h"

/* As deep as encoding/json of Go reads. */
#define LEGAL_DEPTH 10000

struct scan {
    const char *text;
    size_t len;
    size_t at;
    const char *expected; /* what was not found at `at` */
    bool legal;           /* what is JSON and yet not taken is no failure, but noted: */
    const char *beyond;
    size_t depth;
    unsigned char *is_object; /* a bit for each open level */
};

static bool fail(struct scan *scan, const char *expected)
{
    scan->expected = expected;
    return false;
}

/* It is JSON, but not of the sort that is taken. */
static bool fail_beyond(struct scan *scan, const char *expected)
{
    if (!scan->legal)
        return fail(scan, expected);
    if (!scan->beyond)
        scan->beyond = expected;
    return true;
}

/* The byte at this place; '\0' at the end, which is no byte of JSON either. */
static char peek(const struct scan *scan)
{
    return scan->at < scan->len ? scan->text[scan->at] : '\0';
}

static char skip_blanks(struct scan *scan)
{
    while (scan->at < scan->len && json_is_blank(scan->text[scan->at]))
        scan->at++;
    return peek(scan);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(const char *text, size_t len, size_t at)
{
    while (at < len && is_digit(text[at]))
        at++;
    return at;
}

size_t json_number_len(const char *text, size_t len)
{
    size_t at = len && text[0] == '-';
    size_t whole = at;

    at = digits(text, len, at);
    if (at == whole || (text[whole] == '0' && at > whole + 1))
        return 0;
    if (at < len && text[at] == '.') {
        size_t fraction = at + 1;

        at = digits(text, len, fraction);
        if (at == fraction)
            return 0;
    }
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        size_t exponent = at + 1;

        if (exponent < len && (text[exponent] == '+' || text[exponent] == '-'))
            exponent++;
        at = digits(text, len, exponent);
        if (at == exponent)
            return 0;
    }
    return at;
}

const char *json_end_of_string(const char *s, const char *end)
{
    const char *quote = memchr(s, '"', (size_t)(end - s));

    if (quote && !memchr(s, '\\', (size_t)(quote - s)))
        return quote;
    while (s < end && *s != '"')
        s += *s == '\\' && s + 1 < end ? 2 : 1;
    return s;
}

static const char *end_of_scalar(const char *at, const char *end)
{
    while (at < end && !json_is_blank(*at) && *at != ',' && *at != ']' && *at != '}')
        at++;
    return at;
}

const char *json_end_of_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        char c = *at++;

        if (c == '"') {
            at = json_end_of_string(at, end);
            at += at < end;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (!depth) {
            return end_of_scalar(at, end);
        }
        if (!depth)
            return at;
    }
    return end;
}

/* Four hexadecimal digits; moves on. */
static bool scan_hex(struct scan *scan, unsigned *ret)
{
    *ret = 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        static const char HEX[] = "0123456789abcdef0123456789ABCDEF";
        char c = peek(scan);
        const char *found = c ? strchr(HEX, c) : NULL;

        if (!found)
            return fail(scan, "four hexadecimal digits");
        *ret = *ret << 4 | (unsigned)((found - HEX) & 15);
    }
    return true;
}

static bool scan_unicode(struct scan *scan)
{
    static const char PAIR[] = "a pair of surrogates";
    unsigned high;
    unsigned low;

    if (!scan_hex(scan, &high))
        return false;
    if (high == 0)
        return fail_beyond(scan, "a character other than NUL");
    if (high < 0xd800 || high > 0xdfff)
        return true;

    size_t behind = scan->at;
    bool follows =
        high <= 0xdbff && scan->len - behind >= 2 && memcmp(scan->text + behind, "\\u", 2) == 0;
    if (!follows)
        return fail_beyond(scan, PAIR);
    scan->at += 2;
    if (!scan_hex(scan, &low))
        return false;
    if (low >= 0xdc00 && low <= 0xdfff)
        return true;
    scan->at = scan->legal ? behind : scan->at; /* the other one is looked at for itself */
    return fail_beyond(scan, PAIR);
}

static bool scan_escape(struct scan *scan)
{
    char c = peek(scan);

    if (!c || !strchr("\"\\/bfnrtu", c))
        return fail(scan, "an escape sequence");
    scan->at++;
    return c != 'u' || scan_unicode(scan);
}

/* Almost every byte of almost every string. */
static void skip_plain(struct scan *scan)
{
    const char *at = scan->text + scan->at, *end = scan->text + scan->len;

    while (at < end && *at >= 0x20 && *at <= 0x7e && *at != '"' && *at != '\\')
        at++;
    scan->at = (size_t)(at - scan->text);
}

static bool scan_string(struct scan *scan)
{
    if (peek(scan) != '"')
        return fail(scan, "a string");
    scan->at++;
    for (skip_plain(scan); scan->at < scan->len; skip_plain(scan)) {
        char c = scan->text[scan->at];
        size_t step = c == '"' ? 1 : str_utf8_char(scan->text + scan->at, scan->len - scan->at);

        if (!step)
            return fail(scan, "UTF-8");
        if ((unsigned char)c < 0x20)
            return fail(scan, "no control character");
        scan->at += step;
        if (c == '"')
            return true;
        if (c == '\\' && !scan_escape(scan))
            return false;
    }
    return fail(scan, "the end of the string");
}

static bool scan_number(struct scan *scan)
{
    size_t len = json_number_len(scan->text + scan->at, scan->len - scan->at);

    if (!len)
        return fail(scan, "a number");
    if (len > JSON_MAX_NUMBER && !fail_beyond(scan, "a shorter number"))
        return false;
    scan->at += len;
    return true;
}

static bool scan_scalar(struct scan *scan)
{
    static const char *const WORDS[] = { "true", "false", "null" };
    char c = peek(scan);

    if (c == '"')
        return scan_string(scan);
    if (c == '-' || is_digit(c))
        return scan_number(scan);
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        size_t len = strlen(WORDS[i]);

        if (scan->len - scan->at >= len && memcmp(scan->text + scan->at, WORDS[i], len) == 0) {
            scan->at += len;
            return true;
        }
    }
    return fail(scan, "a value");
}

static bool scan_key(struct scan *scan)
{
    (void)skip_blanks(scan);
    if (!scan_string(scan))
        return false;
    if (skip_blanks(scan) != ':')
        return fail(scan, "':'");
    scan->at++;
    return true;
}

static bool in_object(const struct scan *scan)
{
    size_t level = scan->depth - 1;

    return scan->depth && (scan->is_object[level / 8] >> level % 8 & 1);
}

static char closing(const struct scan *scan)
{
    return in_object(scan) ? '}' : ']';
}

static bool open_level(struct scan *scan, bool is_object)
{
    size_t level = scan->depth;
    unsigned char bit = (unsigned char)(1U << level % 8);

    if (level >= JSON_MAX_DEPTH && !fail_beyond(scan, "at most 100 levels"))
        return false;
    if (level == LEGAL_DEPTH)
        return fail(scan, "at most 10000 levels");
    if (level % 8 == 0)
        scan->is_object[level / 8] = 0;
    scan->is_object[level / 8] &= (unsigned char)~bit;
    scan->is_object[level / 8] |= is_object ? bit : 0;
    scan->depth++;
    return true;
}

/* A scalar, or an opened container up to where its first value starts or its end stands. */
static bool begin_value(struct scan *scan, bool *ret_complete)
{
    char c = skip_blanks(scan);

    *ret_complete = true;
    if (c != '{' && c != '[')
        return scan_scalar(scan);
    if (!open_level(scan, c == '{'))
        return false;
    scan->at++;
    if (skip_blanks(scan) == closing(scan))
        return true; /* empty: end_values closes it */
    *ret_complete = false;
    return !in_object(scan) || scan_key(scan);
}

/* Closes what ends here; then a comma leads to the next value, or the document is complete. */
static bool end_values(struct scan *scan, bool *ret_done)
{
    *ret_done = false;
    while (scan->depth) {
        char c = skip_blanks(scan);

        if (c == closing(scan)) {
            scan->depth--;
            scan->at++;
            continue;
        }
        if (c != ',')
            return fail(scan, in_object(scan) ? "',' or '}'" : "',' or ']'");
        scan->at++;
        return !in_object(scan) || scan_key(scan);
    }
    *ret_done = true;
    (void)skip_blanks(scan);
    return scan->at == scan->len || fail(scan, "nothing after the document");
}

static bool scan_document(struct scan *scan)
{
    bool done = false;

    while (!done) {
        bool complete;

        if (!begin_value(scan, &complete) || (complete && !end_values(scan, &done)))
            return false;
    }
    return true;
}

static int scan_text(const char *text, size_t len, bool legal, const char **ret_beyond,
                     struct error *err)
{
    unsigned char is_object[LEGAL_DEPTH / 8 + 1];
    struct scan scan = { .text = text, .len = len, .legal = legal, .is_object = is_object };

    if (!scan_document(&scan))
        return error_set(err, ERROR_INVALID, "invalid JSON at byte %zu: expected %s", scan.at,
                         scan.expected);
    *ret_beyond = scan.beyond;
    return 0;
}

int json_scan(const char *text, size_t len, struct error *err)
{
    const char *beyond;

    return scan_text(text, len, false, &beyond, err);
}

int json_scan_legal(const char *text, size_t len, const char **ret_beyond, struct error *err)
{
    return scan_text(text, len, true, ret_beyond, err);
}
