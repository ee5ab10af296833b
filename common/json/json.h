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
 *
 * A node needs 80 bytes, and two bytes of text can stand for one ("0,"). So a tree has at most
 * json_max_values(len) nodes, which cost 800 KB and ten times the text; ERROR_TOO_LARGE: the text has
 * more values, and nothing is kept of them.
 */
#define JSON_MAX_DEPTH 100
#define JSON_MAX_NUMBER 63 /* characters of one number; cJSON reads no further */
#define JSON_FREE_VALUES 10000u
#define JSON_BYTES_PER_VALUE 8
size_t json_max_values(size_t len);
int json_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;

/*
 * The same without a tree for members that are not looked into. Paths of object members ("spec.file"),
 * which go through arrays ("spec.tasks.metadata"), with NULL behind them. The members there must be
 * valid JSON, but keys inside them may repeat, and each member counts as one value at most.
 * A member whose key is written with escape sequences is built.
 */
#define JSON_MAX_UNREAD 16
#define JSON_MAX_TEXTS 12
struct json_reading {
    const char *const *unread; /* left out; at most JSON_MAX_UNREAD */
    const char *const *texts; /* an array or object is one cJSON_Raw node, with its compact text; at
                                  most JSON_MAX_TEXTS; json_opened builds its tree */
    size_t max_values;        /* fewer than json_max_values; 0: as many */
    bool own; /* printed from a tree that was bounded when it was read: not bounded again */
};
int json_parse_with(struct arena *arena, const char *text, size_t len,
                    const struct json_reading *reading, const cJSON **ret,
                    struct error *err) MUST_CHECK;
/* With .own. */
int json_parse_own(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err) MUST_CHECK;
/* The tree of an item that was kept as text, as json_parse bounds it; any other item is returned as it
 * is, and NULL for a text that is not read. */
const cJSON *json_opened(struct arena *arena, const cJSON *item);

/* All reading functions take NULL for "absent". Keys are compared exactly. */
const cJSON *json_get(const cJSON *object, const char *key);
const cJSON *json_path(const cJSON *object, const char *key, ...) NULL_TERMINATED;
const char *json_string(const cJSON *item, const char *fallback);
/* fallback unless an integer that fits; 1.0 and 1e3 are integers too */
int64_t json_int(const cJSON *item, int64_t fallback);
bool json_bool(const cJSON *item, bool fallback);
double json_double(const cJSON *item, double fallback);
bool json_is_number(const cJSON *item);
size_t json_len(const cJSON *array_or_object);    /* 0 for anything else */
size_t json_count(const cJSON *item, size_t max); /* values inside it, at any depth; stops at max */
const cJSON *json_first(const cJSON *array_or_object); /* NULL: there is none */
#define json_for_each(item, container)                                                             \
    for (const cJSON *item = json_first(container); item; item = item->next)

/* Same value: objects without regard to order, numbers by value, kept texts opened where they differ. */
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
void json_remove(cJSON *object, const char *key); /* not there is fine */
void json_remove_path(cJSON *object,
                      const char *path);        /* "spec.file", through arrays; not there is fine */
void json_rename(cJSON *item, const char *key); /* a key for an item, or another one */

/* Compact text, "null" for NULL. json_text is owned by the arena; *ret_len may be NULL. */
char *json_text(struct arena *arena, const cJSON *item, size_t *ret_len);
char *json_print(const cJSON *item, size_t *ret_len); /* the same, the caller frees it */
cJSON *
json_copy(const cJSON *item); /* owned by the caller; NULL gives NULL; Raw numbers stay Raw */
void json_free(void *item);   /* for arena_own and for json_copy */
