#include "common/tests/json_documents.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/json/json.h"
#include "common/tests/random.h"

#define MAX_DOCUMENT ((size_t)1 << 20)

static struct buf text = BUF_INIT(MAX_DOCUMENT);
static uint64_t seed;

static bool happens(unsigned in)
{
    return random_below(&seed, in) == 0;
}

static void put(const char *bytes, size_t len)
{
    ck_assert(buf_append(&text, bytes, len));
}

#define PICK(list) (list)[random_below(&seed, ARRAY_LEN(list))]

static void put_one_of(const char *const *list, size_t len)
{
    const char *chosen = list[random_below(&seed, len)];

    put(chosen, strlen(chosen));
}

static void put_blanks(void)
{
    static const char *const BLANKS[] = { " ", "\n", "\t", "\r\n", "   ", " ", "\n" };

    if (happens(3))
        put_one_of(BLANKS, ARRAY_LEN(BLANKS));
    if (happens(2000))
        put("\f", 1);
}

static void put_unit(unsigned code)
{
    if (happens(2))
        ck_assert(buf_printf(&text, "\\u%04x", code));
    else
        ck_assert(buf_printf(&text, "\\u%04X", code));
}

static void put_code(void)
{
    static const unsigned EDGES[] = { 1,     0x1f,   0x20,   0x22,   0x5c,   0x7f,   0x80,  0x7ff,
                                      0x800, 0xd7ff, 0xe000, 0xfeff, 0xfffe, 0xffff, 0x2028 };
    unsigned code = happens(2) ? PICK(EDGES) : (unsigned)random_below(&seed, 0xd800);

    if (happens(4)) { /* a pair, more often than not */
        put_unit(0xd800 + (unsigned)random_below(&seed, happens(20) ? 0x900 : 0x400));
        code = happens(20) ? code : 0xdc00 + (unsigned)random_below(&seed, 0x400);
    }
    put_unit(happens(100) ? 0 : code);
}

static void put_string(void)
{
    static const char *const PIECES[] = {
        "a",
        "key",
        "some words: {[,]}",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b\\f\\n\\r\\t",
        "\x7f",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
    };
    static const char *const BAD[] = {
        "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xff", "\xc3",     "\x01",         "\x1f",         "\n",
        "\\x",  "\\u12",    "\\u00g0",      "\\ud800",      "\\udc00"
    };

    put("\"", 1);
    for (uint64_t i = random_below(&seed, 5); i; i--) {
        if (happens(4))
            put_code();
        else
            put_one_of(PIECES, ARRAY_LEN(PIECES));
    }
    if (happens(200))
        put_one_of(BAD, ARRAY_LEN(BAD));
    put("\"", 1);
}

static const char *const NUMBERS[] = {
    "0",
    "-0",
    "-0.0",
    "0e0",
    "1e400",
    "-1e400",
    "1e-400",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "999999999999999",
    "1000000000000000",
    "1e15",
    "1E15",
    "1e+15",
    "1e-7",
    "0.1",
    "0.10",
    "1.0",
    "1.50",
    "12345678901234567",
    "0.12345678901234567",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1.7976931348623157e308",
    "1.7976931348623159e308",
    "4.9e-324",
    "2e-324",
    "2.2250738585072014e-308",
    "0.30000000000000004",
    "5e-1",
    "100e-2",
    "1e0",
    "1E+02",
    "111111111111111111111111111111111111111111111111111111111111111",  /* 63 */
    "1111111111111111111111111111111111111111111111111111111111111111", /* 64 */
    "0.00000000000000000000000000000000000000000000000000000000000001",
};
static const char *const NO_NUMBERS[] = { "01",  "-01", "00",  "1.",        "-.5",  ".5",
                                          "+1",  "1e",  "1e+", "-",         "1.e2", "0x1",
                                          "1-2", "--1", "NaN", "-Infinity", "1_0" };

static void put_number(void)
{
    uint64_t big = random_below(&seed, 1u << 30), small = 1 + random_below(&seed, 1000);
    int digits = (int)random_below(&seed, 18) + 1;
    bool negative = happens(2);

    if (happens(200))
        put_one_of(NO_NUMBERS, ARRAY_LEN(NO_NUMBERS));
    else if (happens(2))
        put_one_of(NUMBERS, ARRAY_LEN(NUMBERS));
    else if (happens(2))
        ck_assert(buf_printf(&text, "%.*g", digits,
                             (double)big / (double)small * (negative ? -1e-5 : 1e9)));
    else
        ck_assert(
            buf_printf(&text, "%s%llu", negative ? "-" : "", (unsigned long long)(big * 1000003)));
}

static void put_value(int depth);

static void put_object(int depth)
{
    uint64_t len = random_below(&seed, happens(10) ? 30 : 5); /* more than are compared in pairs */

    put("{", 1);
    for (uint64_t i = 0; i < len; i++) {
        put_blanks();
        if (happens(400))
            put(i % 2 ? "\"k0\"" : "\"\\u006b0\"", i % 2 ? 4 : 9);
        else
            ck_assert(buf_printf(&text, "\"%s%llu\"",
                                 PICK(((const char *[]){ "k", "\\u006b", "" })),
                                 (unsigned long long)i));
        put_blanks();
        put(":", 1);
        put_value(depth - 1);
        if (i + 1 < len)
            put(",", 1);
    }
    put_blanks();
    put("}", 1);
}

static void put_array(int depth)
{
    uint64_t len = random_below(&seed, 5);

    put("[", 1);
    for (uint64_t i = 0; i < len; i++) {
        put_value(depth - 1);
        if (i + 1 < len)
            put(",", 1);
    }
    put_blanks();
    put("]", 1);
}

static void put_value(int depth)
{
    static const char *const WORDS[] = { "true", "false", "null" };

    put_blanks();
    switch (random_below(&seed, depth ? 8 : 5)) {
    case 0:
        put_one_of(WORDS, ARRAY_LEN(WORDS));
        break;
    case 1:
    case 2:
        put_number();
        break;
    case 3:
    case 4:
        put_string();
        break;
    case 5:
        put_array(depth);
        break;
    default:
        put_object(depth);
    }
    put_blanks();
}

/* Around the limit, brackets and braces mixed. */
static void put_deep(void)
{
    size_t levels = JSON_MAX_DEPTH - 2 + (size_t)random_below(&seed, 5);
    uint64_t kinds = seed;

    for (size_t i = 0; i < levels; i++)
        put(kinds >> i % 60 & 1 ? "{\"a\":" : "[", kinds >> i % 60 & 1 ? 5 : 1);
    put("0", 1);
    for (size_t i = levels; i-- > 0;)
        put(kinds >> i % 60 & 1 ? "}" : "]", 1);
}

/* One byte or a run of them is another one, gone, or there again. */
static void damage(void)
{
    static const char BYTES[] =
        "{}[]\",:\\ \t\n0123456789eE+-.utrfalsn\x01\x10\x1f\x7f\x80\xbf\xc3\xef\xf0\xff";
    char *bytes = xmalloc(text.len);
    size_t len = text.len, at = (size_t)random_below(&seed, len),
           run = (size_t)random_below(&seed, 8);

    run = run > len - at ? len - at : run;
    memcpy(bytes, text.data, len); /* with what is NUL in it */
    buf_clear(&text);
    put(bytes, at);
    switch (random_below(&seed, 6)) {
    case 0:
        put(bytes + at + run, len - at - run); /* gone */
        break;
    case 1:
        put(bytes + at, run); /* twice */
        put(bytes + at, len - at);
        break;
    case 2:
        break; /* cut */
    case 3:
        put(BYTES + random_below(&seed, sizeof(BYTES)), 1); /* one more; NUL, too */
        put(bytes + at, len - at);
        break;
    case 4:
        put(bytes + at, len - at);
        put(BYTES + random_below(&seed, sizeof(BYTES)), 1); /* behind the end */
        break;
    default:
        put(BYTES + random_below(&seed, sizeof(BYTES)), 1); /* another one */
        put(bytes + at + 1, len - at - 1);
    }
    free(bytes);
}

const char *json_document(uint64_t number, size_t *ret_len)
{
    seed = number;
    buf_clear(&text);
    if (happens(300))
        put("\xef\xbb\xbf", 3);
    if (happens(50))
        put_deep();
    else
        put_value(4);
    for (uint64_t i = happens(2) ? random_below(&seed, 4) : 0; i && text.len; i--)
        damage();
    *ret_len = text.len;
    return buf_string(&text);
}

void json_document_release(void)
{
    buf_release(&text);
}
