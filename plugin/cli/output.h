/*
 * A command prints a JSON document, or a table that is made of it. So both formats always hold the same.
 *
 * All text may come from a device. Tables and lines show control characters, and those that change the direction of text
 * or have no width, as '?'; a document has them escaped. So no device can move the cursor of a terminal, or forge a line.
 * Main thread only. Nothing fails; output_is_whole says so at the end.
 */
#pragma once

#include <stdio.h>

#include "common/json/json.h"

enum output_format { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_NAME, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_ENV };
/* By enum output_format; NULL-terminated. Only some commands have OUTPUT_ENV, the environment file of a device. */
extern const char *const OUTPUT_FORMATS[], *const ENV_FORMATS[];

#define CLI_API_VERSION "cli.propeller.abstractmachines.fr/v1alpha1"

struct output {
    enum output_format format;
    bool no_headers;
    int64_t now_us; /* the wall clock, for ages */
    FILE *file;
};

/* A column shows the member `key` of a row in one of these ways. */
enum column_type {
    COLUMN_TEXT, /* strings, numbers, true and false as they are; an array with commas; else JSON */
    COLUMN_AGE,  /* of an RFC 3339 time: "5m"; of a time to come: "in 5m" */
};
struct column {
    const char *header;
    const char *key;
    enum column_type type;
    bool wide; /* only with -o wide */
};

/* A document of this kind ("Why"), in the arena. */
cJSON *output_document(struct arena *arena, const char *kind);
/* json and yaml: the document. name: the member "object" of each row, a line each. Else the table of the rows. */
void output_rows(const struct output *output, const cJSON *document, const cJSON *rows,
                 const struct column *columns, size_t len);
/* Whether the document is printed as it is, by output_rows or output_whole. */
bool output_is_structured(const struct output *output);
void output_whole(const struct output *output, const cJSON *document);
/* One line of text for people, cleaned, without a line end in its arguments. */
void output_line(FILE *file, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same with an empty line before it. */
void output_paragraph(FILE *file, const char *format, ...) PRINTF_LIKE(2, 3);
/* A text of several lines, each of them cleaned. */
void output_text(FILE *file, const char *text);
/* Whether all that was printed has arrived. A reader that has closed its pipe wants no more, so that is no loss. */
bool output_is_whole(FILE *file);

/* The text of a cell, in the arena. Pure. */
const char *output_cell(struct arena *arena, const struct column *column, const cJSON *row,
                        int64_t now_us);
