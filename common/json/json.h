/* Reading and writing cJSON trees without its traps: case, duplicates, big numbers, trailing bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"
#include "common/base/error.h"

/* First call in main: cJSON allocates through xmalloc, so that building a tree cannot fail. */
void json_init(void);

/*
 * One JSON document and nothing after it but white space; valid UTF-8, no NUL, at most 100 levels
 * deep, no key twice in one object. The tree is owned by the arena. Numbers keep their digits: one
 * that cJSON would print differently (9007199254740993, 1e15, 1.50) becomes a cJSON_Raw node;
 * json_is_number knows both. ERROR_INVALID names the byte, and no byte of the text but keys.
 */
#define JSON_MAX_DEPTH 100
#define JSON_MAX_NUMBER 63 /* characters of one number; cJSON reads no further */
int json_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;

/*
 * The same without members that nobody reads: unread has paths of object members ("spec.file"), at most
 * JSON_MAX_UNREAD and NULL behind them. They must be JSON as everything, but are not built, so nothing
 * says whether they have a key twice. A member whose key is written with escape sequences is built.
 */
#define JSON_MAX_UNREAD 16
int json_parse_without(struct arena *arena, const char *text, size_t len, const char *const *unread,
                       const cJSON **ret, struct error *err) MUST_CHECK;

/* All reading functions take NULL for "absent". Keys are compared exactly. */
const cJSON *json_get(const cJSON *object, const char *key);
const cJSON *json_path(const cJSON *object, const char *key, ...) NULL_TERMINATED;
const char *json_string(const cJSON *item, const char *fallback);
/* fallback unless an integer that fits; 1.0 and 1e3 are integers too */
int64_t json_int(const cJSON *item, int64_t fallback);
bool json_bool(const cJSON *item, bool fallback);
double json_double(const cJSON *item, double fallback);
bool json_is_number(const cJSON *item);
size_t json_len(const cJSON *array_or_object);         /* 0 for anything else */
const cJSON *json_first(const cJSON *array_or_object); /* NULL: there is none */
#define json_for_each(item, container)                                                             \
    for (const cJSON *item = json_first(container); item; item = item->next)

/* Same value: objects without regard to order, numbers by value. */
bool json_equal(const cJSON *a, const cJSON *b);

/* Building. A NULL value removes the key; setting a key again replaces it. *_int prints digits,
 * never 1e+15. Bytes of a string that are not UTF-8 become U+FFFD. */
cJSON *json_object(struct arena *arena); /* owned by the arena */
cJSON *json_array(struct arena *arena);  /* owned by the arena */
void json_set(cJSON *object, const char *key,
              cJSON *value); /* takes value, which no arena may own */
void json_set_copy(cJSON *object, const char *key, const cJSON *value);
void json_set_string(cJSON *object, const char *key, const char *value);
void json_set_int(cJSON *object, const char *key, int64_t value);
void json_set_bool(cJSON *object, const char *key, bool value);
cJSON *json_set_object(cJSON *object, const char *key); /* the new, empty member */
cJSON *json_set_array(cJSON *object, const char *key);
void json_add(cJSON *array, cJSON *value); /* takes value, which no arena may own */
void json_add_string(cJSON *array, const char *value);
cJSON *json_add_object(cJSON *array);
void json_remove(cJSON *object, const char *key);       /* not there is fine */
void json_remove_path(cJSON *object, const char *path); /* "spec.file"; not there is fine */
void json_rename(cJSON *item, const char *key);         /* a key for an item, or another one */

/* Compact text, "null" for NULL. json_text is owned by the arena; *ret_len may be NULL. */
char *json_text(struct arena *arena, const cJSON *item, size_t *ret_len);
char *json_print(const cJSON *item, size_t *ret_len); /* the same, the caller frees it */
cJSON *
json_copy(const cJSON *item); /* owned by the caller; NULL gives NULL; Raw numbers stay Raw */
void json_free(void *item);   /* for arena_own and for json_copy */
