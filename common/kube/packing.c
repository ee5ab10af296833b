#include "common/kube/packing.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/compiler.h"

#define FINALIZER "\"finalizers\":[\"propeller.propeller.abstractmachines.fr/"

#define PHRASE(text)                                                                               \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }
static const struct phrase {
    const char *text;
    size_t len;
} PHRASES[] = {
    /* metadata */
    PHRASE("\"metadata\":{\"creationTimestamp\":\""),
    PHRASE("\"," FINALIZER "task-finalizer\"],\"generation\":"),
    PHRASE("\"," FINALIZER "finalizer\"],\"generation\":"),
    PHRASE("\"name\":\""),
    PHRASE("\",\"namespace\":\""),
    PHRASE("\",\"resourceVersion\":\""),
    PHRASE("\",\"uid\":\""),
    /* conditions */
    PHRASE("\"conditions\":[{\"lastTransitionTime\":\""),
    PHRASE("\"},{\"lastTransitionTime\":\""),
    PHRASE("\",\"message\":\""),
    PHRASE("\",\"observedGeneration\":"),
    PHRASE("\"reason\":\""),
    PHRASE("\",\"status\":\"True\",\"type\":\""),
    PHRASE("\",\"status\":\"False\",\"type\":\""),
    PHRASE("\"observedGeneration\":"),
    PHRASE("\"phase\":\""),
    /* Proplet */
    PHRASE("\"spec\":{\"connectionConfig\":{\"channelId\":\""),
    PHRASE("\",\"clientId\":\""),
    PHRASE("\",\"clientKeySecretRef\":{\"key\":\""),
    PHRASE("\",\"name\":\""),
    PHRASE("\"domainId\":\""),
    PHRASE("\",\"mqttAddress\":\""),
    PHRASE("\",\"mqttTimeout\":\"30s\"},\"external\":{"),
    PHRASE("\"dialect\":\"standard\""),
    PHRASE("\"maxTasks\":"),
    PHRASE("\"type\":\"external\"}"),
    PHRASE("\"status\":{\"activeTaskCount\":"),
    PHRASE("\"alive\":true"),
    PHRASE("\"aliveHistory\":[\""),
    /* Task */
    PHRASE("\"functionName\":\""),
    PHRASE("\",\"inputs\":["),
    PHRASE("\"kind\":\"standard\",\"name\":\""),
    PHRASE("\",\"preferredPropletType\":\"any\",\"priority\":50"),
    PHRASE("\"propletSelector\":{\""),
    PHRASE("\"status\":{\"assignedProplet\":\""),
    PHRASE("\"attempt\":"),
    PHRASE("\"createdAt\":\""),
    PHRASE("\",\"failures\":0"),
    PHRASE("\"run\":0"),
    PHRASE("\"scheduledAt\":\""),
    PHRASE("\"startedAt\":\""),
    PHRASE("\"updatedAt\":\""),
};

/* 1 ... 31, and then those that no UTF-8 has. */
#define CONTROLS 31
#define NO_UTF8 0xf5
static_assert(ARRAY_LEN(PHRASES) <= CONTROLS + (0xff - NO_UTF8 + 1), "more phrases than bytes");

static char byte_of(size_t phrase)
{
    return (char)(phrase < CONTROLS ? phrase + 1 : phrase - CONTROLS + NO_UTF8);
}

/* NULL: the byte stands for itself. */
static const struct phrase *phrase_of(char byte)
{
    unsigned char value = (unsigned char)byte;

    if (value >= 1 && value <= CONTROLS)
        return &PHRASES[value - 1];
    return value >= NO_UTF8 ? &PHRASES[value - NO_UTF8 + CONTROLS] : NULL;
}

/* Phrases whose second byte is the same, as a chain: the first of them by that byte, and the next one of
 * each. Numbers begin at 1, 0 is none. */
static struct {
    uint8_t first[UINT8_MAX + 1];
    uint8_t next[ARRAY_LEN(PHRASES) + 1];
} chains;
static pthread_once_t chained = PTHREAD_ONCE_INIT;

static void chain_phrases(void)
{
    for (size_t i = ARRAY_LEN(PHRASES); i; i--) {
        unsigned char second = (unsigned char)PHRASES[i - 1].text[1];
        chains.next[i] = chains.first[second];
        chains.first[second] = (uint8_t)i;
    }
}

/* The longest phrase that the text begins with; 0: none. */
static size_t find(const char *text, size_t len, size_t *ret_phrase)
{
    size_t longest = 0;

    if (len < 2)
        return 0;
    for (uint8_t i = chains.first[(unsigned char)text[1]]; i; i = chains.next[i]) {
        const struct phrase *phrase = &PHRASES[i - 1];
        if (phrase->len <= longest || phrase->len > len ||
            memcmp(text, phrase->text, phrase->len) != 0)
            continue;
        longest = phrase->len;
        *ret_phrase = i - 1U;
    }
    return longest;
}

size_t json_pack(const char *text, size_t len, char *ret)
{
    size_t used = 0;
    size_t phrase = 0, size;

    (void)pthread_once(&chained, chain_phrases);
    for (size_t at = 0; at < len;) {
        if (text[at] == '"' && (size = find(text + at, len - at, &phrase)) > 0) {
            ret[used++] = byte_of(phrase);
            at += size;
            continue;
        }
        do {                              /* up to the next quote */
            assert(!phrase_of(text[at])); /* no JSON that json_text printed */
            ret[used++] = text[at++];
        } while (at < len && text[at] != '"');
    }
    return used;
}

size_t json_unpacked_len(const char *packed, size_t len)
{
    size_t total = 0;

    for (size_t i = 0; i < len; i++) {
        const struct phrase *phrase = phrase_of(packed[i]);
        total += phrase ? phrase->len : 1;
    }
    return total;
}

void json_unpack(const char *packed, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++) {
        const struct phrase *phrase = phrase_of(packed[i]);
        if (!phrase) {
            *ret++ = packed[i];
            continue;
        }
        memcpy(ret, phrase->text, phrase->len);
        ret += phrase->len;
    }
}
