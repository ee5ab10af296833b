#include "controller/federated/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/str.h"
#include "common/json/numbers.h"
#include "controller/federated/numbers.h"

/* Of a shape in a message. */
#define SHOWN_SHAPE 80

/* What Python, JavaScript and Rust print for what JSON has no word for. */
static bool has_word(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

int fl_numbers_read(struct arena *arena, const char *text, size_t len, struct json_numbers *ret,
                    struct error *err)
{
    struct json_slice value;
    int r = json_slice_check(text, len, &value, err);

    if (r < 0 && (has_word(text, len, "NaN") || has_word(text, len, "Infinity")))
        return error_set(err, ERROR_INVALID, "holds NaN or Infinity, must be finite numbers");
    if (r < 0)
        return r;
    return json_numbers_read(arena, value, FL_MAX_PARAMETERS, ret, err);
}

int fl_model_parse(struct arena *arena, const char *bytes, size_t len, struct fl_model *ret,
                   struct error *err)
{
    struct json_numbers numbers;

    if (len > FL_MAX_MODEL_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "model has %zu bytes, at most %zu", len,
                         FL_MAX_MODEL_TEXT);

    int r = fl_numbers_read(arena, bytes, len, &numbers, err);
    if (r < 0)
        return error_wrap(err, "model");

    struct fl_model model = {
        .shape = numbers.shape,
        .values = numbers.values,
        .len = numbers.len,
    };
    r = fl_model_print(arena, &model, err);
    if (r == 0)
        *ret = model;
    return r;
}

int fl_model_print(struct arena *arena, struct fl_model *model, struct error *err)
{
    const struct json_numbers numbers = { model->shape, model->values, model->len };
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(FL_MAX_MODEL_TEXT);

    assert(model->shape);
    for (size_t i = 0; i < model->len; i++) {
        if (!isfinite(model->values[i]))
            return error_set(err, ERROR_INVALID, "number %zu of the model is not finite", i);
    }
    if (!json_numbers_print(&numbers, &text))
        return error_set(err, ERROR_TOO_LARGE, "model of %zu numbers has more than %zu bytes",
                         model->len, FL_MAX_MODEL_TEXT);
    model->bytes_len = text.len;
    model->bytes = arena_own(arena, text.data, free);
    text = (struct buf){ .max = FL_MAX_MODEL_TEXT };
    return 0;
}

void fl_model_opaque(const char *bytes, size_t len, struct fl_model *ret)
{
    *ret = (struct fl_model){ .bytes = bytes, .bytes_len = len };
}

const char *fl_model_format(const struct fl_model *model)
{
    return model->shape ? "json-f64" : "concat";
}

int fl_shape_check(const char *expected, const char *actual, struct error *err)
{
    if (str_equal(expected, actual))
        return 0;

    size_t expected_len = strlen(expected), actual_len = strlen(actual);
    size_t expected_cut = str_utf8_cut(expected, expected_len, SHOWN_SHAPE);
    size_t actual_cut = str_utf8_cut(actual, actual_len, SHOWN_SHAPE);

    return error_set_quoting(err, ERROR_INVALID, "has the shape %.*s%s, must have %.*s%s",
                             (int)actual_cut, actual, actual_cut < actual_len ? "..." : "",
                             (int)expected_cut, expected, expected_cut < expected_len ? "..." : "");
}

static size_t count_of(const char *const *shapes, size_t count, const char *shape)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += shapes[i] && str_equal(shapes[i], shape);
    return found;
}

const char *fl_shape_choose(const char *const *shapes, size_t count)
{
    const char *best = NULL;
    size_t most = 0;

    for (size_t i = 0; i < count; i++) {
        size_t found = shapes[i] ? count_of(shapes, count, shapes[i]) : 0;
        if (found > most) {
            most = found;
            best = shapes[i];
        }
    }
    return best;
}
