#include "controller/federated/update.h"

#include <assert.h>
#include <endian.h>
#include <math.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "controller/federated/numbers.h"

#define PACKED_MAGIC "packed-f64 "

static int check_finite(const double *values, size_t len, struct error *err)
{
    for (size_t i = 0; i < len; i++) {
        if (!isfinite(values[i]))
            return error_set(err, ERROR_INVALID, "number %zu is not finite", i);
    }
    return 0;
}

/* Little-endian binary32, in the shape of the base. */
static int read_floats(struct arena *arena, const char *bytes, size_t len,
                       const struct fl_model *base, struct json_numbers *ret, struct error *err)
{
    size_t count = len / sizeof(uint32_t);

    if (!count || len % sizeof(uint32_t) || count > FL_MAX_PARAMETERS)
        return error_set(err, ERROR_INVALID,
                         "must be JSON of numbers, or 1 to %zu numbers of 4 bytes",
                         FL_MAX_PARAMETERS);
    if (base && count != base->len)
        return error_set(err, ERROR_INVALID, "holds %zu numbers, the model has %zu", count,
                         base->len);

    double *values = arena_array(arena, double, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        float value;

        memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
        bits = le32toh(bits);
        memcpy(&value, &bits, sizeof(value));
        values[i] = (double)value;
    }
    *ret = (struct json_numbers){
        .shape = base ? base->shape : arena_printf(arena, "[#%zu]", count),
        .values = values,
        .len = count,
    };
    return check_finite(values, count, err);
}

/* Not text of its own, because a module's result is text: often base64 once more. */
static int read_binary(struct arena *arena, const struct fl_envelope *envelope,
                       const struct fl_model *base, struct json_numbers *ret, struct error *err)
{
    const char *bytes = envelope->payload;
    size_t len = envelope->payload_len, decoded_len = 0;
    bool fits = base && len == base->len * sizeof(uint32_t);
    const char *decoded = fits ? NULL : base64_decode(arena, bytes, len, &decoded_len);

    if (decoded && decoded_len && decoded_len % sizeof(uint32_t) == 0) {
        bytes = decoded;
        len = decoded_len;
    }
    return read_floats(arena, bytes, len, base, ret, err);
}

static int read_delta(struct arena *arena, const struct fl_envelope *envelope,
                      const struct fl_model *base, struct json_numbers *ret, struct error *err)
{
    struct json_slice text;
    int r;

    if (json_slice_check(envelope->payload, envelope->payload_len, &text, NULL) == 0)
        r = fl_numbers_read(arena, envelope->payload, envelope->payload_len, ret, err);
    else
        r = read_binary(arena, envelope, base, ret, err);
    if (r < 0 || !base)
        return r;

    r = fl_shape_check(base->shape, ret->shape, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ret->len; i++)
        ret->values[i] += base->values[i];
    return check_finite(ret->values, ret->len, err);
}

/* "packed-f64 " shape "\n" doubles: no shape has a line feed in it. */
static int read_packed(struct arena *arena, const struct fl_envelope *envelope,
                       struct json_numbers *ret, struct error *err)
{
    const char *bytes = envelope->payload, *end = bytes + envelope->payload_len;
    size_t magic = strlen(PACKED_MAGIC), count;
    const char *line = memchr(bytes, '\n', envelope->payload_len);

    if (!line || (size_t)(line - bytes) < magic || memcmp(bytes, PACKED_MAGIC, magic) != 0)
        return error_set(err, ERROR_INVALID, "is not packed");

    const char *shape = arena_strndup(arena, bytes + magic, (size_t)(line - bytes) - magic);
    const char *from = line + 1;

    if (!json_numbers_count(shape, &count) || !count || count > FL_MAX_PARAMETERS ||
        (size_t)(end - from) != count * sizeof(uint64_t))
        return error_set(err, ERROR_INVALID, "is packed, and not of its shape");

    *ret = (struct json_numbers){ shape, arena_array(arena, double, count), count };
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;

        memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
        bits = le64toh(bits);
        memcpy(&ret->values[i], &bits, sizeof(bits));
    }
    return check_finite(ret->values, count, err);
}

const char *fl_update_pack(struct arena *arena, const struct fl_update *update, size_t *ret_len)
{
    size_t head = strlen(PACKED_MAGIC) + strlen(update->shape) + 1;
    size_t len = head + update->len * sizeof(uint64_t);
    char *bytes = arena_alloc(arena, len + 1, 1);

    (void)snprintf(bytes, len + 1, PACKED_MAGIC "%s\n", update->shape);
    for (size_t i = 0; i < update->len; i++) {
        uint64_t bits;

        memcpy(&bits, &update->values[i], sizeof(bits));
        bits = htole64(bits);
        memcpy(bytes + head + i * sizeof(bits), &bits, sizeof(bits));
    }
    *ret_len = len;
    return bytes;
}

int fl_update_decode(struct arena *arena, const struct fl_envelope *envelope,
                     const struct fl_model *base, struct fl_update *ret, struct error *err)
{
    struct json_numbers numbers;
    const char *format = envelope->format;
    int r;

    assert(envelope->payload);
    if (str_equal(format, FL_FORMAT_JSON_F64))
        r = fl_numbers_read(arena, envelope->payload, envelope->payload_len, &numbers, err);
    else if (str_equal(format, FL_FORMAT_F32_DELTA))
        r = read_delta(arena, envelope, base, &numbers, err);
    else if (str_equal(format, FL_FORMAT_PACKED_F64))
        r = read_packed(arena, envelope, &numbers, err);
    else
        return error_set(err, ERROR_INVALID,
                         "format is not known, must be " FL_FORMAT_JSON_F64
                         " or " FL_FORMAT_F32_DELTA);
    if (r == 0 && base)
        r = fl_shape_check(base->shape, numbers.shape, err);
    if (r < 0)
        return error_wrap(err, "update");

    *ret = (struct fl_update){
        .shape = numbers.shape,
        .values = numbers.values,
        .len = numbers.len,
        .num_samples = envelope->num_samples,
    };
    return 0;
}

void fl_update_opaque(const struct fl_envelope *envelope, struct fl_update *ret)
{
    *ret = (struct fl_update){
        .payload = envelope->payload,
        .payload_len = envelope->payload_len,
        .num_samples = envelope->num_samples,
    };
}

double fl_update_weight(const struct fl_update *update)
{
    double samples = (double)update->num_samples;

    return update->staleness ? samples / sqrt(1.0 + (double)update->staleness) : samples;
}
