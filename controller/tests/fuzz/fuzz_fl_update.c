/* What a participant sends: whatever is accepted is finite, has a canonical form, and comes back from the
 * store as it was. The input is an envelope, a payload of each format, and a model. */
#include <math.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"
#include "controller/federated/update.h"

#define MAX_SAMPLES 1000

static void check_error(int r, const struct error *err)
{
    REQUIRE(r == -ERROR_INVALID && err->code == ERROR_INVALID && err->message[0]);
}

/* Bytes, and the same from the bytes. */
static void check_model(struct arena *arena, struct fl_model *model)
{
    struct fl_model again;

    REQUIRE(fl_model_print(arena, model, NULL) == 0);
    REQUIRE(fl_model_parse(arena, model->bytes, model->bytes_len, &again, NULL) == 0);
    REQUIRE(again.bytes_len == model->bytes_len);
    REQUIRE(memcmp(again.bytes, model->bytes, model->bytes_len) == 0);
    REQUIRE(str_equal(again.shape, model->shape) && again.len == model->len);
}

static void check_update(struct arena *arena, const struct fl_update *update)
{
    struct fl_envelope packed = { .format = FL_FORMAT_PACKED_F64, .num_samples = 1 };
    double *values = arena_array(arena, double, update->len);
    struct fl_model model = { .shape = update->shape, .values = values, .len = update->len };
    struct fl_update again;

    REQUIRE(update->len && update->shape);
    for (size_t i = 0; i < update->len; i++)
        REQUIRE(isfinite(update->values[i]));
    memcpy(values, update->values, update->len * sizeof(*values));
    check_model(arena, &model);

    packed.payload = fl_update_pack(arena, update, &packed.payload_len);
    REQUIRE(fl_update_decode(arena, &packed, NULL, &again, NULL) == 0);
    REQUIRE(again.len == update->len && str_equal(again.shape, update->shape));
    REQUIRE(memcmp(again.values, update->values, update->len * sizeof(double)) == 0);
}

static void fuzz_envelope(const char *text, size_t len, bool opaque)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct fl_expected expected = {
        .proplet_id = "proplet-1",
        .max_samples = MAX_SAMPLES,
        .default_samples = 1,
        .opaque = opaque,
    };
    struct fl_envelope envelope, again;
    struct fl_update update;
    struct error err = { 0 };
    int r = fl_envelope_parse(arena, text, len, &expected, &envelope, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(envelope.num_samples >= 1 && envelope.num_samples <= MAX_SAMPLES);
    REQUIRE(envelope.payload && !envelope.ref && !str_is_empty(envelope.format));
    REQUIRE(!str_equal(envelope.format, FL_FORMAT_PACKED_F64));

    const cJSON *status = fl_envelope_to_status(arena, &envelope, NULL);
    REQUIRE(fl_envelope_from_status(arena, status, &again, NULL) == 0);
    REQUIRE(again.payload_len == envelope.payload_len);
    REQUIRE(memcmp(again.payload, envelope.payload, again.payload_len) == 0);
    if (opaque)
        return;

    r = fl_update_decode(arena, &envelope, NULL, &update, &err);
    if (r < 0)
        check_error(r, &err);
    else
        check_update(arena, &update);
}

static void fuzz_payload(const char *format, const char *bytes, size_t len,
                         const struct fl_model *base)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct fl_envelope envelope = {
        .format = format, .payload = bytes, .payload_len = len, .num_samples = 1
    };
    struct fl_update update;
    struct error err = { 0 };
    int r = fl_update_decode(arena, &envelope, base, &update, &err);

    if (r < 0) {
        check_error(r, &err);
        return;
    }
    REQUIRE(!base || str_equal(base->shape, update.shape));
    /* the shape of what was packed is the store's word, kept by its digest */
    if (!str_equal(format, FL_FORMAT_PACKED_F64))
        check_update(arena, &update);
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    static const char BASE[] = "{\"b\":1,\"w\":[2,3]}";
    static const char *const FORMATS[] = { FL_FORMAT_JSON_F64, FL_FORMAT_F32_DELTA,
                                           FL_FORMAT_PACKED_F64 };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = (const char *)bytes;
    struct fl_model base, model;
    struct error err = { 0 };

    json_init();
    REQUIRE(fl_model_parse(arena, BASE, strlen(BASE), &base, NULL) == 0);
    fuzz_envelope(text, len, false);
    fuzz_envelope(text, len, true);
    for (size_t i = 0; i < ARRAY_LEN(FORMATS); i++) {
        fuzz_payload(FORMATS[i], text, len, NULL);
        fuzz_payload(FORMATS[i], text, len, &base);
    }

    int r = fl_model_parse(arena, text, len, &model, &err);
    if (r < 0)
        check_error(r, &err);
    else
        check_model(arena, &model);
}
