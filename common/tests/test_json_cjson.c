/* json_parse beside cJSON on random and damaged documents: what is JSON, the tree, and its text. */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/tests/json_documents.h"
#include "common/tests/parsed.h"
#include "common/tests/power.h"
#include "common/tests/suite.h"

#define DOCUMENTS ((unsigned)power_count(2000, 10000, 100000))
#define MAX_DOCUMENT ((size_t)1 << 20)

/* What cJSON takes and json_parse refuses, and nothing else. */
enum difference {
    BLANK,     /* any byte below 0x20 between values, or a byte order mark */
    CONTROL,   /* a byte below 0x20 in a string */
    NOT_UTF8,  /* in a string */
    NO_DIGITS, /* \u and something else than four hexadecimal digits, or 0000, which ends a string */
    NUMBER,    /* 01, 1., 1.e1, -.1 */
    DEPTH,     /* more than JSON_MAX_DEPTH levels */
    TWICE,     /* a key */
    LONG,      /* a number of more than JSON_MAX_NUMBER characters; not every cJSON takes it */
    DIFFERENCES
};

static struct arena *arena;
static regex_t number;
/* How often each was seen, how many were accepted or refused by both. */
static size_t seen[DIFFERENCES], accepted, refused, raws;

static void set_up(void)
{
    json_init();
    arena = arena_create();
    ck_assert_int_eq(regcomp(&number, "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$",
                             REG_EXTENDED | REG_NOSUB),
                     0);
}

static void tear_down(void)
{
    arena_destroy(arena);
    regfree(&number);
    json_document_release();
}

TEST_GROUP("json_cjson", set_up, tear_down);

/* --- what is different ------------------------------------------------------------------------- */

static size_t depth_of(const cJSON *item)
{
    size_t deepest = 0;

    json_for_each (child, item) {
        size_t depth = depth_of(child);
        deepest = depth > deepest ? depth : deepest;
    }
    return cJSON_IsArray(item) || cJSON_IsObject(item) ? deepest + 1 : 0;
}

static bool has_key_twice(const cJSON *item)
{
    json_for_each (child, item) {
        if (has_key_twice(child))
            return true;
        for (const cJSON *other = child->next; child->string && other; other = other->next)
            if (str_equal(child->string, other->string))
                return true;
    }
    return false;
}

/* Bytes of the character, by what it encodes; 0: it is none. */
static size_t utf8_len(const unsigned char *at, size_t len)
{
    static const unsigned FIRST[] = { 0, 0, 0x80, 0x800, 0x10000 }; /* that needs so many bytes */
    size_t count = at[0] < 0x80       ? 1
                   : at[0] >> 5 == 6  ? 2
                   : at[0] >> 4 == 14 ? 3
                   : at[0] >> 3 == 30 ? 4
                                      : 0;
    unsigned code = count > 1 ? at[0] & (0xffu >> (count + 1)) : at[0];

    if (!count || count > len)
        return 0;
    for (size_t i = 1; i < count; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    return code < FIRST[count] || code > 0x10ffff || code >> 11 == 0x1b ? 0 : count;
}

static bool has_digits(const char *four)
{
    return strspn(four, "0123456789abcdefABCDEF") >= 4 && strncmp(four, "0000", 4) != 0;
}

/* From the quote that opens it; returns what follows the one that ends it. */
static size_t look_at_string(const char *bytes, size_t at, size_t len, bool ret[static DIFFERENCES])
{
    for (at++; bytes[at] != '"';) {
        size_t step = utf8_len((const unsigned char *)bytes + at, len - at);

        ret[NOT_UTF8] |= !step;
        ret[CONTROL] |= (unsigned char)bytes[at] < 0x20;
        if (bytes[at] == '\\') {
            ret[NO_DIGITS] |= bytes[at + 1] == 'u' && !has_digits(bytes + at + 2);
            step = 2;
        }
        at += step ? step : 1;
    }
    return at + 1;
}

/* The numbers, one to a line, in `numbers`. */
static size_t look_at_number(const char *bytes, size_t at, struct buf *numbers,
                             bool ret[static DIFFERENCES])
{
    size_t len = strspn(bytes + at, "0123456789+-.eE");
    const char *token = arena_strndup(arena, bytes + at, len);

    ret[NUMBER] |= regexec(&number, token, 0, NULL, 0) != 0;
    ret[LONG] |= len > JSON_MAX_NUMBER;
    ck_assert(buf_printf(numbers, "%s\n", token));
    return at + len;
}

/* Of a text that cJSON took for this tree. */
static void look_at(const char *bytes, size_t len, const cJSON *tree, struct buf *numbers,
                    bool ret[static DIFFERENCES])
{
    size_t at = 0;

    ret[BLANK] = len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
    while (at < len) {
        char c = bytes[at];

        if (c == '"') {
            at = look_at_string(bytes, at, len, ret);
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            at = look_at_number(bytes, at, numbers, ret);
        } else if (c >= 'a' && c <= 'z') {
            at += strspn(bytes + at, "truefalsn");
        } else {
            ret[BLANK] |= c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r';
            at++;
        }
    }
    ret[DEPTH] = depth_of(tree) > JSON_MAX_DEPTH;
    ret[TWICE] = has_key_twice(tree);
}

/* --- that they are the same -------------------------------------------------------------------- */

static void expect_same_number(const cJSON *ours, const cJSON *theirs, const char **numbers)
{
    size_t len = strcspn(*numbers, "\n");
    const char *token = arena_strndup(arena, *numbers, len);
    double value = strtod(token, NULL);

    *numbers += len + 1;
    ck_assert(cJSON_IsNumber(theirs));
    ck_assert_mem_eq(&theirs->valuedouble, &value, sizeof(value));
    ck_assert_str_eq(json_text(arena, ours, NULL), token);
    if (cJSON_IsRaw(ours)) {
        raws++;
        ck_assert_str_eq(ours->valuestring, token);
        return;
    }
    ck_assert(cJSON_IsNumber(ours));
    ck_assert_mem_eq(&ours->valuedouble, &value, sizeof(value));
    ck_assert_int_eq(ours->valueint, theirs->valueint);
}

/* Their numbers are those of *numbers, in their order. */
static void expect_same(const cJSON *ours, const cJSON *theirs, const char **numbers)
{
    const cJSON *other = theirs->child;

    ck_assert_int_eq(ours->string != NULL, theirs->string != NULL);
    if (ours->string)
        ck_assert_str_eq(ours->string, theirs->string);
    if (json_is_number(ours)) {
        expect_same_number(ours, theirs, numbers);
        return;
    }
    ck_assert_int_eq(ours->type & 0xff, theirs->type & 0xff);
    if (cJSON_IsString(ours))
        ck_assert_str_eq(ours->valuestring, theirs->valuestring);
    json_for_each (item, ours) {
        ck_assert_ptr_nonnull(other);
        expect_same(item, other, numbers);
        other = other->next;
    }
    ck_assert_ptr_null(other);
}

static cJSON *theirs_of(const char *bytes, size_t len)
{
    return arena_own(arena, cJSON_ParseWithLengthOpts(bytes, len + 1, NULL, true), json_free);
}

static const cJSON *ours_of(const char *bytes, size_t len)
{
    const cJSON *tree = NULL;
    struct error err = { 0 };
    /* in memory of its own, so that the sanitizer sees a read behind it */
    char *copy = xmalloc(len ? len : 1);

    memcpy(copy, bytes, len);

    int r = json_parse(arena, copy, len, &tree, &err);

    free(copy);
    ck_assert(r == 0 || r == -ERROR_INVALID);
    ck_assert_int_eq(r == 0, tree != NULL);
    return tree;
}

/* What is written is read by both as the same, and written again as it was. */
static void expect_round_trip(const cJSON *ours, const struct buf *numbers)
{
    const char *next = buf_string(numbers);
    size_t len;
    const char *written = json_text(arena, ours, &len);
    const cJSON *again = ours_of(written, len), *theirs = theirs_of(written, len);

    ck_assert_uint_eq(strlen(written), len);
    ck_assert_msg(again && theirs, "%s", written);
    expect_same(again, theirs, &next);
    ck_assert(json_equal(again, ours));
    ck_assert_str_eq(json_text(arena, again, NULL), written);
}

static void expect_copied(const cJSON *ours)
{
    const cJSON *copy = arena_own(arena, json_copy(ours), json_free);

    ck_assert_str_eq(json_text(arena, copy, NULL), json_text(arena, ours, NULL));
    expect_json_linked(copy);
}

static void compare(const char *bytes, size_t len)
{
    CLEANUP(buf_releasep) struct buf numbers = BUF_INIT(MAX_DOCUMENT);
    bool different[DIFFERENCES] = { false };
    bool any = false;
    const cJSON *ours, *theirs;

    arena_destroy(arena);
    arena = arena_create();
    ours = ours_of(bytes, len);
    theirs = theirs_of(bytes, len);
    if (theirs)
        look_at(bytes, len, theirs, &numbers, different);
    for (size_t i = 0; i < DIFFERENCES; i++) {
        any |= different[i];
        seen[i] += different[i];
    }
    ck_assert_msg((ours != NULL) == (theirs && !any), "ours %d, theirs %d, different %d: %s",
                  ours != NULL, theirs != NULL, any, bytes);
    accepted += ours != NULL;
    refused += !theirs;
    if (!ours)
        return;

    const char *next = buf_string(&numbers);

    expect_same(ours, theirs, &next);
    ck_assert_str_eq(next, ""); /* all of them were met */
    expect_json_linked(ours);
    expect_copied(ours);
    ck_assert_str_eq(json_text(arena, theirs, NULL),
                     arena_own(arena, cJSON_PrintUnformatted(theirs), free));
    expect_round_trip(ours, &numbers);
}

TEST(random_and_damaged_documents_are_what_they_are_to_cjson)
{
    for (unsigned i = 0; i < DOCUMENTS; i++) {
        size_t len;
        const char *document = json_document((i + 1) * UINT64_C(0x9e3779b97f4a7c15), &len);

        compare(document, len);
    }
    /* Otherwise it would say little. */
    ck_assert_uint_gt(accepted, DOCUMENTS / 3);
    ck_assert_uint_gt(refused, DOCUMENTS / 10);
    ck_assert_uint_gt(raws, DOCUMENTS / 10);
    for (size_t i = 0; i < LONG; i++)
        ck_assert_msg(seen[i] >= 2, "difference %zu was seen %zu times", i, seen[i]);
}
