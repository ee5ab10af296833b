/* This module stores JSON text in less space: a piece that objects of a kind have in common
 * becomes one byte, and times and uids have half a byte for each digit. */
#pragma once

#include <stddef.h>

/*
 * Bytes that no JSON text has (control characters, which are escaped in it, and those that no UTF-8
 * has) stand for phrases: keys with their quotes, in the order in which the API server sorts them,
 * and values that most objects share. A phrase begins with a quote, so only there it is looked for.
 * One more such byte begins a string that starts with a time (RFC 3339, UTC, seconds or
 * microseconds) or a uid (RFC 9562). A text that has none of them is stored as it is.
 *
 * Only the reader of JSON keeps other texts away from here, since it refuses bytes that are no
 * UTF-8. The phrases may change at any time: nothing that is packed leaves the process.
 */
struct json_phrase {
    const char *text;
    size_t len;
};
#define JSON_PHRASE(text)                                                                          \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

/* A constant of the program; a kind has its own (kube_kind.phrases). */
struct json_phrases {
    const struct json_phrase *list;
    size_t count; /* at most JSON_MAX_PHRASES */
};
#define JSON_MAX_PHRASES 42
#define JSON_PHRASES(array)                                                                        \
    {                                                                                              \
        (array), sizeof(array) / sizeof((array)[0])                                                \
    }

/* Metadata and conditions, which objects of all kinds have: the head of every list. */
#define JSON_OBJECT_PHRASES                                                                        \
    JSON_PHRASE("\"metadata\":{\"creationTimestamp\":\""), JSON_PHRASE("\"name\":\""),             \
        JSON_PHRASE("\",\"namespace\":\""), JSON_PHRASE("\",\"resourceVersion\":\""),              \
        JSON_PHRASE("\",\"uid\":\""), JSON_PHRASE("\"conditions\":[{\"lastTransitionTime\":\""),   \
        JSON_PHRASE("\"},{\"lastTransitionTime\":\""), JSON_PHRASE("\",\"message\":\""),           \
        JSON_PHRASE("\",\"observedGeneration\":"), JSON_PHRASE("\"reason\":\""),                   \
        JSON_PHRASE("\",\"status\":\"True\",\"type\":\""),                                         \
        JSON_PHRASE("\",\"status\":\"False\",\"type\":\""),                                        \
        JSON_PHRASE("\"observedGeneration\":"), JSON_PHRASE("\"phase\":\"")

/*
 * phrases: NULL is JSON_OBJECT_PHRASES; the same for a text and what is packed of it.
 * text: as json_text prints it. ret has room for len bytes, of which so many are used; it may be text.
 */
size_t json_pack(const struct json_phrases *phrases, const char *text, size_t len, char *ret);
size_t json_unpacked_len(const struct json_phrases *phrases, const char *packed, size_t len);
/* ret: room for json_unpacked_len bytes. */
void json_unpack(const struct json_phrases *phrases, const char *packed, size_t len, char *ret);
