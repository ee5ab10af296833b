/* A file whose beginning can be looked at before it is read. For this folder only. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* An input with more blanks than this before its JSON is read as YAML. */
#define INPUT_HEAD 4096

struct input {
    FILE *file;
    char head[INPUT_HEAD]; /* bytes that were looked at and are not read yet */
    size_t head_len, head_at;
};

/* Waits for INPUT_HEAD bytes or the end. The file stays the caller's, who reads no more from it. */
void input_open(struct input *input, FILE *file);
/* Of JSON as programs write it: blanks, {, blanks and a quotation mark. A mapping of YAML has none
 * there, unless it is JSON up to there. */
bool input_is_json(const struct input *input);
/* As fread: 0 at the end and after an error; ferror of the file says which. */
size_t input_read(struct input *input, void *bytes, size_t len);
