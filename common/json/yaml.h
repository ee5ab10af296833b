/* YAML 1.2 core as JSON, through libyaml: kubeconfigs, and manifests in tests. */
#pragma once

#include <stdio.h>

#include "common/json/json.h"

/*
 * One document. At most 16 MiB, 100 levels; aliases, duplicate keys, keys that are no scalars and
 * unknown tags are refused. Keys are strings, whatever they look like; numbers keep their digits,
 * and one that JSON_MAX_NUMBER does not allow is a string.
 */
int yaml_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err) MUST_CHECK;
/* The same, of at most max_values values; ERROR_TOO_LARGE: it has more. */
int yaml_parse_at_most(struct arena *arena, const char *text, size_t len, size_t max_values,
                       const cJSON **ret, struct error *err) MUST_CHECK;
/* All documents of a stream as one JSON array; empty ones are left out. */
int yaml_parse_all(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err) MUST_CHECK;

/* The place of an object in a stream; all count from 1. */
struct yaml_place {
    size_t document;
    size_t item; /* of the list "items" at the top of the document; 0: the document itself */
    size_t line;
};
/* object lives until it returns; less than 0 ends the reading with that error. */
typedef int yaml_take_fn(void *ctx, const struct yaml_place *place, cJSON *object,
                         struct error *err);
/*
 * Reads a stream of any length: hands each document over when it was read, and each item of the
 * list "items" of a document (kubectl's List). The document itself comes after its items, with an
 * empty list. So one of them is in memory, of at most 16 MiB. Empty documents count, and are not
 * handed over. A text that begins as JSON is read as JSON up to the end, with all that JSON allows
 * and YAML does not; its objects may follow each other, or have --- between them.
 */
int yaml_read(FILE *file, yaml_take_fn *take, void *ctx, struct error *err) MUST_CHECK;
