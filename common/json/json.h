/* This module reads and writes cJSON trees without its traps: case, duplicates, big numbers,
 * trailing bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"
#include "common/base/error.h"

/*
 * Ownership. A tree that is read belongs to the arena and is const; strings borrow from it. A tree
 * that is built belongs to the arena (json_object, json_array) or to the caller (json_copy).
 * Errors. Only the parsing functions fail.
 * Threads. A tree has no lock. Any number of threads may read it; while one changes it no other may
 * use it. Lengths are in bytes.
 */

/* The first call in main: cJSON allocates through xmalloc from now on, so building a tree cannot
 * fail. */
void json_init(void);

/*
 * Parses one JSON document, which white space may follow, into a tree that the arena owns. It must
 * be valid UTF-8 without NUL, at most JSON_MAX_DEPTH levels deep, and no object may have a key
 * twice. Numbers keep their digits: a number that cJSON would print differently (9007199254740993,
 * 1e15, 1.50) becomes a cJSON_Raw node, and json_is_number accepts both.
 *
 * ERROR_INVALID names the position; its message quotes nothing of the text but keys.
 * ERROR_TOO_LARGE: the text has more than json_max_values(len) values. A node needs 80 bytes and
 * two bytes of text can make one ("0,"), so this limit bounds a tree to 800 KB and ten times its
 * text.
 */
#define JSON_MAX_DEPTH 100
#define JSON_MAX_NUMBER 63 /* characters of one number; cJSON reads no further */
#define JSON_FREE_VALUES 10000u
#define JSON_BYTES_PER_VALUE 8
size_t json_max_values(size_t len);
int json_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;

/*
 * As json_parse, but builds no tree for the members at some paths. A path names object members
 * ("spec.file") and goes through arrays ("spec.tasks.metadata"); a NULL ends the list. These
 * members must be valid JSON, but keys inside them may repeat, and each counts as one value at
 * most. A member whose key is written with escape sequences is built.
 */
#define JSON_MAX_UNREAD 16
#define JSON_MAX_TEXTS 12
struct json_reading {
    const char *const *unread; /* omitted; at most JSON_MAX_UNREAD */
    const char *const *texts; /* an array or object is one cJSON_Raw node, with its compact text; at
                                  most JSON_MAX_TEXTS; json_opened builds its tree */
    size_t max_values;        /* a lower limit than json_max_values; 0: none */
    bool own; /* no limit of values: the text was printed from a tree that had one */
};
int json_parse_with(struct arena *arena, const char *text, size_t len,
                    const struct json_reading *reading, const cJSON **ret,
                    struct error *err) MUST_CHECK;
/* json_parse_with, with own set. */
int json_parse_own(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err) MUST_CHECK;
/* Returns the tree of an item that was kept as text, parsed by json_parse; NULL if json_parse
 * refuses the text. Any other item is returned as it is. */
const cJSON *json_opened(struct arena *arena, const cJSON *item);

/* Reading. NULL stands for an absent item and is accepted everywhere. Keys are compared exactly. A
 * fallback is returned for an absent item and for one of another type. */
const cJSON *json_get(const cJSON *object, const char *key);
const cJSON *json_path(const cJSON *object, const char *key, ...) NULL_TERMINATED;
const char *json_string(const cJSON *item, const char *fallback);
const char *json_get_string(const cJSON *object,
                            const char *key); /* of a member; "" is the fallback */
/* 1.0 and 1e3 are integers; an integer beyond int64_t gives the fallback. */
int64_t json_int(const cJSON *item, int64_t fallback);
bool json_bool(const cJSON *item, bool fallback);
double json_double(const cJSON *item, double fallback);
bool json_is_number(const cJSON *item);
size_t json_len(const cJSON *array_or_object);    /* 0 for anything else */
size_t json_count(const cJSON *item, size_t max); /* values inside it, at any depth; stops at max */
/* Levels of arrays and objects, looked at down to max + 1. */
size_t json_depth(const cJSON *item, size_t max);
const cJSON *json_first(const cJSON *array_or_object); /* NULL: there is none */
#define json_for_each(item, container)                                                             \
    for (const cJSON *item = json_first(container); item; item = item->next)

/* Whether both are the same value. The order of object members does not matter; numbers are
 * compared by value; texts that differ are opened (json_opened) and compared. */
bool json_equal(const cJSON *a, const cJSON *b);

/* Building. Setting a key again replaces its value; a NULL value removes the key. json_set_int
 * prints digits, never 1e+15. Bytes of a string that are not UTF-8 become U+FFFD. Strings are
 * copied. */
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

/* Returns the compact text, "null" for NULL. The arena owns that of json_text; ret_len may be
 * NULL. */
char *json_text(struct arena *arena, const cJSON *item, size_t *ret_len);
char *json_print(const cJSON *item, size_t *ret_len); /* the caller frees it */
cJSON *
json_copy(const cJSON *item); /* owned by the caller; NULL gives NULL; Raw numbers stay Raw */
void json_free(void *item);   /* for arena_own and for json_copy */
