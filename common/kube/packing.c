#include "common/kube/packing.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/compiler.h"

static const struct json_phrase OBJECT_PHRASES[] = { JSON_OBJECT_PHRASES };
static const struct json_phrases PHRASES_OF_ALL = JSON_PHRASES(OBJECT_PHRASES);

/* 1 ... 31, and then those that no UTF-8 has. */
#define CONTROLS 31
#define NO_UTF8 0xf5
static_assert(JSON_MAX_PHRASES == CONTROLS + (0xff - NO_UTF8 + 1), "a byte for each phrase");

static char byte_of(size_t phrase)
{
    return (char)(phrase < CONTROLS ? phrase + 1 : phrase - CONTROLS + NO_UTF8);
}

static bool stands_for_phrase(char byte)
{
    unsigned char value = (unsigned char)byte;

    return (value >= 1 && value <= CONTROLS) || value >= NO_UTF8;
}

/* Begins a string of one of these shapes, and no UTF-8 has it either. */
#define SHAPED 0xc0

/* x is a digit of 0-9 or a-f. Two of them are one byte behind SHAPED and the number of the shape. */
static const char *const SHAPES[] = {
    "xxxx-xx-xxTxx:xx:xxZ",
    "xxxx-xx-xxTxx:xx:xx.xxxxxxZ",
    "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
};
#define MAX_SHAPED (2 + 16)

/* -1: it is none. */
static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns how many bytes it writes to ret; 0: the text does not begin with this shape. */
static size_t pack_shape(size_t shape, const char *text, char ret[static MAX_SHAPED])
{
    size_t used = 0;
    int high = -1;

    ret[used++] = (char)SHAPED;
    ret[used++] = (char)shape;
    for (const char *c = SHAPES[shape]; *c; c++, text++) {
        int digit = *c == 'x' ? digit_of(*text) : 0;
        if (digit < 0 || (*c != 'x' && *text != *c))
            return 0;
        if (*c == 'x' && high >= 0)
            ret[used++] = (char)(high << 4 | digit);
        if (*c == 'x')
            high = high >= 0 ? -1 : digit;
    }
    return used;
}

/* Returns the length of the shape that the text begins with; 0: none. ret has what stands for it. */
static size_t find_shape(const char *text, size_t len, char ret[static MAX_SHAPED],
                         size_t *ret_used)
{
    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        size_t size = strlen(SHAPES[i]);

        *ret_used = size <= len ? pack_shape(i, text, ret) : 0;
        if (*ret_used)
            return size;
    }
    return 0;
}

static bool is_shaped(char byte)
{
    return (unsigned char)byte == SHAPED;
}

/* As unpack_next. */
static size_t unpack_shape(const char **packed, char *ret)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *shape = SHAPES[(unsigned char)(*packed)[1]];
    const char *pair = *packed + 2;
    bool second = false;

    for (const char *c = shape; *c; c++) {
        unsigned digit = second ? (unsigned char)*pair & 0xfU : (unsigned char)*pair >> 4;

        if (ret)
            *ret++ = *c == 'x' ? DIGITS[digit] : *c;
        if (*c == 'x') {
            pair += second;
            second = !second;
        }
    }
    *packed = pair;
    return strlen(shape);
}

/* NULL: the byte stands for itself. */
static const struct json_phrase *phrase_of(const struct json_phrases *phrases, char byte)
{
    unsigned char value = (unsigned char)byte;

    if (!stands_for_phrase(byte))
        return NULL;
    return &phrases->list[value <= CONTROLS ? value - 1 : value - NO_UTF8 + CONTROLS];
}

/* Phrases whose second byte is the same, as a chain: the first of them by that byte, and the next one of
 * each. Numbers begin at 1, 0 is none. */
struct chains {
    uint8_t first[UINT8_MAX + 1];
    uint8_t next[JSON_MAX_PHRASES + 1];
};

static void chain_phrases(const struct json_phrases *phrases, struct chains *ret)
{
    *ret = (struct chains){ 0 };
    for (size_t i = phrases->count; i; i--) {
        unsigned char second = (unsigned char)phrases->list[i - 1].text[1];
        ret->next[i] = ret->first[second];
        ret->first[second] = (uint8_t)i;
    }
}

/* The longest phrase that the text begins with; 0: none. */
static size_t find(const struct json_phrases *phrases, const struct chains *chains,
                   const char *text, size_t len, size_t *ret_phrase)
{
    size_t longest = 0;

    if (len < 2)
        return 0;
    for (uint8_t i = chains->first[(unsigned char)text[1]]; i; i = chains->next[i]) {
        const struct json_phrase *phrase = &phrases->list[i - 1];
        if (phrase->len <= longest || phrase->len > len ||
            memcmp(text, phrase->text, phrase->len) != 0)
            continue;
        longest = phrase->len;
        *ret_phrase = i - 1U;
    }
    return longest;
}

size_t json_pack(const struct json_phrases *phrases, const char *text, size_t len, char *ret)
{
    struct chains chains;
    char shaped[MAX_SHAPED];
    size_t used = 0, shaped_len = 0;
    size_t phrase = 0, size;

    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    chain_phrases(phrases, &chains);
    for (size_t at = 0; at < len;) {
        bool opened = at && text[at - 1] == '"';

        if (text[at] == '"' && (size = find(phrases, &chains, text + at, len - at, &phrase)) > 0) {
            ret[used++] = byte_of(phrase);
            at += size;
        } else if (opened && (size = find_shape(text + at, len - at, shaped, &shaped_len)) > 0) {
            memcpy(ret + used, shaped, shaped_len);
            used += shaped_len;
            at += size;
        } else {
            do { /* up to the next quote, or this one */
                assert(!stands_for_phrase(text[at]) && !is_shaped(text[at])); /* see packing.h */
                ret[used++] = text[at++];
            } while (at < len && text[at] != '"' && text[at - 1] != '"');
        }
    }
    return used;
}

/* Unpacks the phrase, shape or byte that packed begins with. Moves *packed behind it and returns
 * its length; ret NULL: nothing is written. */
static size_t unpack_next(const struct json_phrases *phrases, const char **packed, char *ret)
{
    const struct json_phrase *phrase = phrase_of(phrases, **packed);

    if (is_shaped(**packed))
        return unpack_shape(packed, ret);
    if (ret)
        memcpy(ret, phrase ? phrase->text : *packed, phrase ? phrase->len : 1);
    ++*packed;
    return phrase ? phrase->len : 1;
}

size_t json_unpacked_len(const struct json_phrases *phrases, const char *packed, size_t len)
{
    const char *end = packed + len;
    size_t total = 0;

    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    while (packed < end)
        total += unpack_next(phrases, &packed, NULL);
    return total;
}

void json_unpack(const struct json_phrases *phrases, const char *packed, size_t len, char *ret)
{
    const char *end = packed + len;

    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    while (packed < end)
        ret += unpack_next(phrases, &packed, ret);
}
