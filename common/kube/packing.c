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
    size_t used = 0;
    size_t phrase = 0, size;

    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    chain_phrases(phrases, &chains);
    for (size_t at = 0; at < len;) {
        if (text[at] == '"' && (size = find(phrases, &chains, text + at, len - at, &phrase)) > 0) {
            ret[used++] = byte_of(phrase);
            at += size;
            continue;
        }
        do {                                      /* up to the next quote */
            assert(!stands_for_phrase(text[at])); /* no JSON that json_text printed */
            ret[used++] = text[at++];
        } while (at < len && text[at] != '"');
    }
    return used;
}

size_t json_unpacked_len(const struct json_phrases *phrases, const char *packed, size_t len)
{
    size_t total = 0;

    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    for (size_t i = 0; i < len; i++) {
        const struct json_phrase *phrase = phrase_of(phrases, packed[i]);
        total += phrase ? phrase->len : 1;
    }
    return total;
}

void json_unpack(const struct json_phrases *phrases, const char *packed, size_t len, char *ret)
{
    phrases = phrases ? phrases : &PHRASES_OF_ALL;
    for (size_t i = 0; i < len; i++) {
        const struct json_phrase *phrase = phrase_of(phrases, packed[i]);
        if (!phrase) {
            *ret++ = packed[i];
            continue;
        }
        memcpy(ret, phrase->text, phrase->len);
        ret += phrase->len;
    }
}
