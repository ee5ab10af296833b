#include "common/json/input.h"

#include <string.h>

#define BLANKS " \t\r\n"

void input_open(struct input *input, FILE *file)
{
    input->file = file;
    input->head_at = 0;
    input->head_len = fread(input->head, 1, sizeof(input->head), file);
}

static size_t skip_blanks(const struct input *input, size_t at)
{
    while (at < input->head_len && input->head[at] && strchr(BLANKS, input->head[at]))
        at++;
    return at;
}

bool input_is_json(const struct input *input)
{
    size_t at = skip_blanks(input, 0);

    if (at == input->head_len || input->head[at] != '{')
        return false;
    at = skip_blanks(input, at + 1);
    return at < input->head_len && input->head[at] == '"';
}

size_t input_read(struct input *input, void *bytes, size_t len)
{
    size_t left = input->head_len - input->head_at;

    if (!left)
        return fread(bytes, 1, len, input->file);
    len = len < left ? len : left;
    memcpy(bytes, input->head + input->head_at, len);
    input->head_at += len;
    return len;
}
