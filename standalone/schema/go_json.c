#include "standalone/schema/go_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/compiler.h"
#include "common/schema/field_errors.h"

#define MAX_DEPTH 10000
#define MAX_CHARACTER 16
#define SAFE_NUMBER 300

struct scan {
    const char *text;
    size_t len, at;
    size_t depth;
    char *closing;    /* the bracket that ends each level */
    const char *huge; /* the first number that is too large for a double; NULL: none */
    struct arena *arena;
    struct error *err;
};

/* What comes at the end is to Go a space, and an error only where a space is one. */
static int next(const struct scan *scan)
{
    return scan->at < scan->len ? (unsigned char)scan->text[scan->at] : ' ';
}

static int refuse_end(const struct scan *scan)
{
    return error_set(scan->err, ERROR_INVALID, "unexpected end of JSON input");
}

/* A byte is shown as the character of this number. */
static int refuse(const struct scan *scan, const char *where)
{
    CLEANUP(buf_releasep) struct buf shown = BUF_INIT(MAX_CHARACTER);
    unsigned char c = (unsigned char)next(scan);
    const char wide[] = { (char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f)) }, narrow = (char)c;

    if (c == '\'' || c == '"')
        return error_set(scan->err, ERROR_INVALID, "invalid character '%s%c' %s",
                         c == '\'' ? "\\" : "", c, where);
    if (!buf_append_quoted(&shown, c < 0x80 ? &narrow : wide, c < 0x80 ? 1 : 2))
        return error_set(scan->err, ERROR_INVALID, "invalid character %s", where);
    return error_set(scan->err, ERROR_INVALID, "invalid character '%.*s' %s", (int)shown.len - 2,
                     buf_string(&shown) + 1, where);
}

/* false: nothing else comes. */
static bool skip_blanks(struct scan *scan)
{
    while (scan->at < scan->len && strchr(" \t\r\n", scan->text[scan->at]) && next(scan))
        scan->at++;
    return scan->at < scan->len;
}

/* --- scalars ---------------------------------------------------------------------------------- */

static int scan_escape(struct scan *scan)
{
    int c = next(scan);

    if (!c || !strchr("\"\\/bfnrtu", c))
        return refuse(scan, "in string escape code");
    scan->at++;
    for (int i = 0; i < 4 && c == 'u'; i++, scan->at++) {
        if (!next(scan) || !strchr("0123456789abcdefABCDEF", next(scan)))
            return refuse(scan, "in \\u hexadecimal character escape");
    }
    return 0;
}

/* What is no UTF-8 is taken, too. */
static int scan_string(struct scan *scan)
{
    for (scan->at++; scan->at < scan->len;) {
        int c = next(scan), r = 0;

        if (c < 0x20)
            return refuse(scan, "in string literal");
        scan->at++;
        if (c == '"')
            return 0;
        if (c == '\\')
            r = scan_escape(scan);
        if (r < 0)
            return r;
    }
    return refuse_end(scan);
}

static bool skip_digits(struct scan *scan)
{
    size_t start = scan->at;

    while (scan->at < scan->len && next(scan) >= '0' && next(scan) <= '9')
        scan->at++;
    return scan->at > start;
}

static int scan_number_form(struct scan *scan)
{
    scan->at += next(scan) == '-';
    if (next(scan) == '0')
        scan->at++;
    else if (!skip_digits(scan))
        return refuse(scan, "in numeric literal");
    if (next(scan) == '.') {
        scan->at++;
        if (!skip_digits(scan))
            return refuse(scan, "after decimal point in numeric literal");
    }
    if (next(scan) != 'e' && next(scan) != 'E')
        return 0;
    scan->at++;
    scan->at += next(scan) == '+' || next(scan) == '-';
    return skip_digits(scan) ? 0 : refuse(scan, "in exponent of numeric literal");
}

/* Go makes doubles of numbers. Most are too short for any that is too large. */
static bool is_huge(struct scan *scan, const char *number, size_t len)
{
    if (len < SAFE_NUMBER && !memchr(number, 'e', len) && !memchr(number, 'E', len))
        return false;
    return isinf(strtod(arena_strndup(scan->arena, number, len), NULL));
}

static int scan_number(struct scan *scan)
{
    const char *number = scan->text + scan->at;
    size_t start = scan->at;

    int r = scan_number_form(scan);
    if (r == 0 && !scan->huge && is_huge(scan, number, scan->at - start))
        scan->huge = arena_strndup(scan->arena, number, scan->at - start);
    return r;
}

static int scan_word(struct scan *scan, const char *word)
{
    char where[64];

    scan->at++;
    for (const char *c = word + 1; *c; c++, scan->at++) {
        (void)snprintf(where, sizeof(where), "in literal %s (expecting '%c')", word, *c);
        if (next(scan) != *c)
            return refuse(scan, where);
    }
    return 0;
}

static int scan_scalar(struct scan *scan)
{
    switch (next(scan)) {
    case '"':
        return scan_string(scan);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    default:
        break;
    }
    if (next(scan) != '-' && (next(scan) < '0' || next(scan) > '9'))
        return refuse(scan, "looking for beginning of value");
    return scan_number(scan);
}

/* --- the document ----------------------------------------------------------------------------- */

static bool in_object(const struct scan *scan)
{
    return scan->depth && scan->closing[scan->depth - 1] == '}';
}

static int scan_key(struct scan *scan)
{
    if (!skip_blanks(scan))
        return refuse_end(scan);
    if (next(scan) != '"')
        return refuse(scan, "looking for beginning of object key string");

    int r = scan_string(scan);
    if (r < 0)
        return r;
    if (!skip_blanks(scan))
        return refuse_end(scan);
    if (next(scan) != ':')
        return refuse(scan, "after object key");
    scan->at++;
    return 0;
}

/* A scalar, or an opened container; 1: its first value comes. */
static int begin_value(struct scan *scan)
{
    if (!skip_blanks(scan))
        return refuse_end(scan);

    int c = next(scan);

    if (c != '{' && c != '[')
        return scan_scalar(scan);
    if (scan->depth == MAX_DEPTH)
        return refuse(scan, "exceeded max depth");
    scan->closing[scan->depth++] = c == '{' ? '}' : ']';
    scan->at++;
    if (skip_blanks(scan) && next(scan) == scan->closing[scan->depth - 1])
        return 0; /* end_values closes it */
    if (!in_object(scan))
        return 1;

    int r = scan_key(scan);
    return r < 0 ? r : 1;
}

/* Closes what ends here. 1: another value comes. */
static int end_values(struct scan *scan)
{
    while (scan->depth) {
        if (!skip_blanks(scan))
            return refuse_end(scan);
        if (next(scan) == scan->closing[scan->depth - 1]) {
            scan->depth--;
            scan->at++;
            continue;
        }
        if (next(scan) != ',')
            return refuse(scan,
                          in_object(scan) ? "after object key:value pair" : "after array element");
        scan->at++;

        int r = in_object(scan) ? scan_key(scan) : 0;
        return r < 0 ? r : 1;
    }
    return skip_blanks(scan) ? refuse(scan, "after top-level value") : 0;
}

static int scan_document(struct scan *scan)
{
    int r;

    do {
        r = begin_value(scan);
        if (r == 0)
            r = end_values(scan);
    } while (r > 0);
    return r;
}

static const char *word_of(int c)
{
    if (c == '[')
        return "array";
    if (c == '"')
        return "string";
    return c == 't' || c == 'f' ? "bool" : "number";
}

int go_json_check_map(const char *text, size_t len, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct scan scan = { .text = text, .len = len, .arena = arena, .err = err };

    scan.closing = arena_alloc(arena, len < MAX_DEPTH ? len + 1 : MAX_DEPTH, 1);
    int r = scan_document(&scan);
    if (r < 0)
        return r;
    scan.at = 0;
    (void)skip_blanks(&scan);
    if (!strchr("{n", next(&scan)))
        return error_set(err, ERROR_INVALID,
                         "json: cannot unmarshal %s into Go value of type map[string]interface {}",
                         word_of(next(&scan)));
    if (scan.huge)
        return error_set(err, ERROR_INVALID,
                         "json: cannot unmarshal number %s into Go value of type float64",
                         scan.huge);
    return 0;
}
