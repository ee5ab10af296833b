#include "common/json/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/alloc.h"
#include "common/base/str.h"

struct reader {
    struct arena *arena;
    struct buf shape;
    double *values;
    size_t len;
    size_t max;
    size_t run; /* numbers at the end of values that the shape does not say yet */
    int depth;
    struct error *err;
};

/* A member on its way to its place among the others. */
struct member {
    const char *key; /* with its quotes, escaped in one way only */
    size_t key_len;
    struct json_slice value;
};

static int bad(const struct reader *reader, const char *message)
{
    return error_set(reader->err, ERROR_INVALID, "%s", message);
}

static int add_shape(struct reader *reader, const char *text, size_t len)
{
    if (!buf_append(&reader->shape, text, len))
        return bad(reader, "holds too many arrays and objects");
    return 0;
}

static int end_run(struct reader *reader)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "#%zu", reader->run);

    if (!reader->run)
        return 0;
    reader->run = 0;
    return add_shape(reader, text, (size_t)len);
}

static int read_number(struct reader *reader, struct json_slice number)
{
    char token[JSON_MAX_NUMBER + 1]; /* what strtod is to read must have an end */

    assert(number.len < sizeof(token));
    memcpy(token, number.text, number.len);
    token[number.len] = '\0';

    double value = strtod(token, NULL);

    if (!isfinite(value))
        return bad(reader, "holds a number that is not finite in double precision");
    if (reader->len == reader->max)
        return error_set(reader->err, ERROR_INVALID, "holds more than %zu numbers", reader->max);
    reader->values[reader->len++] = value;
    reader->run++;
    return 0;
}

static int read_value(struct reader *reader, struct json_slice value);

static int read_array(struct reader *reader, struct json_slice array)
{
    struct json_slice_iter iter = json_slice_items(array);
    bool first = true;
    int r = add_shape(reader, "[", 1);

    while (r == 0 && json_slice_next(&iter)) {
        bool number = json_slice_kind(iter.value) == '0';
        bool joins = number && reader->run;

        if (!joins && !first) {
            r = end_run(reader);
            if (r == 0)
                r = add_shape(reader, ",", 1);
        }
        first = false;
        if (r == 0)
            r = number ? read_number(reader, iter.value) : read_value(reader, iter.value);
    }
    if (r == 0)
        r = end_run(reader);
    return r == 0 ? add_shape(reader, "]", 1) : r;
}

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    size_t len = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->key, y->key, len);

    return order ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* One way to write each key, whatever escapes the sender chose. */
static void take_key(struct reader *reader, struct json_slice key, struct member *ret)
{
    ret->key = key.text;
    ret->key_len = key.len;
    if (!memchr(key.text, '\\', key.len))
        return;

    const cJSON *json = NULL;
    int r = json_parse(reader->arena, key.text, key.len, &json, NULL);

    assert(r == 0); /* a part of what was checked */
    (void)r;
    ret->key = json_text(reader->arena, json, &ret->key_len);
}

static int read_members(struct reader *reader, struct member *members, size_t count)
{
    int r = 0;

    qsort(members, count, sizeof(*members), by_key);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (i && by_key(&members[i - 1], &members[i]) == 0)
            return bad(reader, "holds a key twice in one object");
        if (i)
            r = add_shape(reader, ",", 1);
        if (r == 0)
            r = add_shape(reader, members[i].key, members[i].key_len);
        if (r == 0)
            r = add_shape(reader, ":", 1);
        if (r == 0)
            r = read_value(reader, members[i].value);
    }
    return r;
}

static int read_object(struct reader *reader, struct json_slice object)
{
    struct json_slice_iter iter = json_slice_items(object);
    size_t count = 0;

    while (json_slice_next(&iter))
        count++;
    if (count > JSON_NUMBERS_SHAPE)
        return bad(reader, "holds too many arrays and objects");

    struct member *members = xcalloc(count + 1, sizeof(*members));
    int r = add_shape(reader, "{", 1);

    iter = json_slice_items(object);
    for (size_t i = 0; r == 0 && json_slice_next(&iter); i++) {
        take_key(reader, iter.key, &members[i]);
        members[i].value = iter.value;
        if (iter.key.len > JSON_NUMBERS_KEY)
            r = bad(reader, "holds a key that is too long");
    }
    if (r == 0)
        r = read_members(reader, members, count);
    free(members);
    return r == 0 ? add_shape(reader, "}", 1) : r;
}

static int read_value(struct reader *reader, struct json_slice value)
{
    int r;

    if (reader->depth == JSON_NUMBERS_DEPTH)
        return bad(reader, "holds arrays or objects that are nested too deep");

    reader->depth++;
    switch (json_slice_kind(value)) {
    case '[':
        r = read_array(reader, value);
        break;
    case '{':
        r = read_object(reader, value);
        break;
    case '0':
        r = read_number(reader, value);
        if (r == 0)
            r = end_run(reader);
        break;
    default:
        r = bad(reader, "must hold nothing but numbers, in arrays and objects");
        break;
    }
    reader->depth--;
    return r;
}

/* There is a comma between any two. */
static size_t at_most(struct json_slice value)
{
    size_t count = 1;

    for (size_t i = 0; i < value.len; i++)
        count += value.text[i] == ',';
    return count;
}

int json_numbers_read(struct arena *arena, struct json_slice value, size_t max,
                      struct json_numbers *ret, struct error *err)
{
    size_t count = at_most(value);
    struct reader reader = {
        .arena = arena,
        .shape = BUF_INIT(JSON_NUMBERS_SHAPE),
        .max = max,
        .err = err,
    };

    reader.values = arena_array(arena, double, count < max ? count : max);
    int r = read_value(&reader, value);
    if (r == 0 && !reader.len)
        r = bad(&reader, "holds no number");
    if (r == 0)
        *ret = (struct json_numbers){
            .shape = arena_strndup(arena, reader.shape.data, reader.shape.len),
            .values = reader.values,
            .len = reader.len,
        };
    buf_release(&reader.shape);
    return r;
}

size_t json_number_print(double value, char ret[static JSON_NUMBER_LEN])
{
    int len = 0;

    assert(isfinite(value));
    for (int digits = 15; digits <= 17; digits++) {
        len = snprintf(ret, JSON_NUMBER_LEN, "%.*g", digits, value);
        if (digits == 17 || strtod(ret, NULL) == value)
            break;
    }
    return (size_t)len;
}

/* The run of numbers of which text begins with '#'; moves on. */
static bool take_run(const char **text, size_t *ret)
{
    char *end;

    if ((*text)[1] < '1' || (*text)[1] > '9')
        return false;
    *ret = strtoull(*text + 1, &end, 10);
    *text = end;
    return true;
}

static const char *skip_key(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        text += *text == '\\' && text[1];
    return *text ? text + 1 : text;
}

/* Behind what stands before the next run, or before the end. */
static const char *before_run(const char *text)
{
    while (*text && *text != '#')
        text = *text == '"' ? skip_key(text) : text + 1;
    return text;
}

bool json_numbers_count(const char *shape, size_t *ret)
{
    size_t sum = 0;

    for (const char *at = before_run(shape); *at; at = before_run(at)) {
        size_t run;

        if (!take_run(&at, &run) || run > SIZE_MAX - sum)
            return false;
        sum += run;
    }
    *ret = sum;
    return true;
}

static bool print_run(const double *values, size_t len, struct buf *out)
{
    for (size_t i = 0; i < len; i++) {
        char text[JSON_NUMBER_LEN + 1];
        size_t text_len = json_number_print(values[i], text);

        if (i + 1 < len)
            text[text_len++] = ',';
        if (!buf_append(out, text, text_len))
            return false;
    }
    return true;
}

bool json_numbers_print(const struct json_numbers *numbers, struct buf *out)
{
    const char *at = numbers->shape;
    size_t done = 0;

    while (*at) {
        const char *run_at = before_run(at);
        size_t run = 0;

        if (!buf_append(out, at, (size_t)(run_at - at)))
            return false;
        at = run_at;
        if (!*at)
            break;
        if (!take_run(&at, &run) || run > numbers->len - done ||
            !print_run(numbers->values + done, run, out))
            return false;
        done += run;
    }
    return done == numbers->len;
}
