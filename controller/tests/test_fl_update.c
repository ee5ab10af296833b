#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "controller/federated/update.h"

static struct error err;
static const struct fl_expected EXPECTED = {
    .proplet_id = "proplet-1",
    .max_samples = 1000,
    .default_samples = 5,
};

TEST_GROUP("all", arena_set_up, arena_tear_down);

static struct fl_envelope parsed(const char *text)
{
    struct fl_envelope envelope = { 0 };
    int r = fl_envelope_parse(arena, text, strlen(text), &EXPECTED, &envelope, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return envelope;
}

static const char *base64(const char *text)
{
    return base64_encode(arena, text, strlen(text));
}

/* "format samples bytes-of-the-model", or "refused: why". */
static const char *outcome(const char *text)
{
    struct fl_envelope envelope;
    struct fl_update update = { 0 };

    int r = fl_envelope_parse(arena, text, strlen(text), &EXPECTED, &envelope, &err);
    if (r == 0)
        r = fl_update_decode(arena, &envelope, NULL, &update, &err);
    if (r < 0) {
        ck_assert_int_eq(r, -ERROR_INVALID);
        return arena_printf(arena, "refused: %s", err.message);
    }

    ck_assert_ptr_nonnull(update.values);
    double *values = arena_array(arena, double, update.len);
    memcpy(values, update.values, update.len * sizeof(*values));
    struct fl_model model = { .shape = update.shape, .values = values, .len = update.len };
    ck_assert_int_eq(fl_model_print(arena, &model, &err), 0);
    return arena_printf(arena, "%s %d %.*s", envelope.format, (int)envelope.num_samples,
                        (int)model.bytes_len, model.bytes);
}

/* NDI= is 42, WzEsMl0= is [1,2], eyJ3IjpbM10sImIiOjF9 is {"w":[3],"b":1}. */
static const struct {
    const char *text;
    const char *outcome;
} ENVELOPES[] = {
    /* of real devices: fl-results, fl-results-default-format, fl-update-number, fl-results-error */
    { "{\"format\":\"json-f64\",\"metrics\":{},\"num_samples\":64,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"round-1\",\"task_id\":\"t-fl1\",\"update_b64\":\"NDI=\"}",
      "json-f64 64 42" },
    { "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"2\",\"task_id\":\"t-fl2\",\"update_b64\":\"NDI=\"}",
      "f32-delta 1 42" },
    { "42", "json-f64 5 42" },
    { "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":\"proplet-1\","
      "\"round_id\":\"4\",\"task_id\":\"t-fl4\",\"update_b64\":\"\"}",
      "refused: update_b64 is empty" },
    /* of a microcontroller: fl-update, fl-update-error */
    { "{\"round_id\":\"round-1\",\"proplet_id\":\"proplet-1\",\"base_model_uri\":\"fl/models/"
      "global_model_v0\",\"num_samples\":0,\"metrics\":{},\"update\":{}}",
      "refused: num_samples must be at least 1" },
    { "{\"round_id\":\"round-1\",\"proplet_id\":\"proplet-1\",\"num_samples\":0,\"update\":{},"
      "\"error\":\"WASM execution failed: Exception: unreachable\"}",
      "refused: the device reports: WASM execution failed: Exception: unreachable" },
    /* as a module prints it, and the ways around it */
    { "{\"round_id\":\"r\",\"num_samples\":7,\"metrics\":{\"loss\":0.5},\"update\":{\"w\":[1,2],"
      "\"b\":3}}",
      "json-f64 7 {\"b\":3,\"w\":[1,2]}" },
    { "\"{\\\"num_samples\\\":7,\\\"update\\\":[1.5]}\"", "json-f64 7 [1.5]" },
    { "{\"update_envelope\":{\"num_samples\":7,\"update_b64\":\"WzEsMl0=\"}}", "json-f64 7 [1,2]" },
    { "{\"update_envelope\":\"{\\\"update_b64\\\":\\\"WzEsMl0=\\\"}\",\"num_samples\":9}",
      "json-f64 9 [1,2]" },
    { "{\"update_b64\":\"eyJ3IjpbM10sImIiOjF9\"}", "json-f64 5 {\"b\":1,\"w\":[3]}" },
    { "[1,[2,3]]", "json-f64 5 [1,[2,3]]" },
    { " {\"w\":[1],\"b\":2} ", "json-f64 5 {\"b\":2,\"w\":[1]}" },
    { "{\"job_id\":9,\"round_id\":[1],\"update\":1,\"num_samples\":3.0}", "json-f64 3 1" },
    { "{\"update\":1,\"num_samples\":1000}", "json-f64 1000 1" },
    { "{\"update\":1,\"num_samples\":1e12}", "json-f64 1000 1" },
    { "{\"update\":1,\"num_samples\":null,\"proplet_id\":null,\"metrics\":null,\"error\":\"\"}",
      "json-f64 5 1" },

    { "", "refused: invalid JSON at byte 0: expected a value" },
    { "{\"update\":1", "refused: invalid JSON at byte 11: expected ',' or '}'" },
    { "null", "refused: must be an envelope, or numbers" },
    { "\"plain text\"", "refused: envelope in a string: invalid JSON at byte 0: expected a value" },
    { "\"\\\"\\\\\\\"\\\\\\\\\\\\\\\"1\\\\\\\\\\\\\\\"\\\\\\\"\\\"\"",
      "refused: must hold nothing" },
    { "{\"update\":1,\"num_samples\":-3}", "refused: num_samples must be at least 1" },
    { "{\"update\":1,\"num_samples\":1.5}", "refused: num_samples must be an integer" },
    { "{\"update\":1,\"num_samples\":\"3\"}", "refused: num_samples must be an integer" },
    { "{\"update\":1,\"num_samples\":1e400}", "refused: num_samples must be an integer" },
    { "{\"update\":1,\"proplet_id\":\"proplet-2\"}",
      "refused: proplet_id is that of another device" },
    { "{\"update\":1,\"proplet_id\":7}", "refused: proplet_id must be a string" },
    { "{\"update_envelope\":{\"update\":1,\"proplet_id\":\"proplet-2\"}}",
      "refused: proplet_id is that of another device" },
    { "{\"update\":1,\"update\":2}", "refused: update appears twice" },
    { "{\"update\":1,\"metrics\":[]}", "refused: metrics must be an object" },
    { "{\"num_samples\":3}", "refused: envelope has no update" },
    { "{\"round_id\":\"x\"}", "refused: envelope has no update" },
    { "{\"ref\":\"model://sha256:00\",\"num_samples\":3}", "refused: envelope has no update" },
    { "{\"update_b64\":\"NDI\"}", "refused: update_b64 is not base64 with padding" },
    { "{\"update_b64\":\"N DI=\"}", "refused: update_b64 is not base64 with padding" },
    { "{\"update_b64\":42}", "refused: update_b64 must be a string" },
    { "{\"update_b64\":\"NDI=\",\"format\":\"packed-f64\"}",
      "refused: format 'packed-f64' is not one of devices" },
    { "{\"update_b64\":\"NDI=\",\"format\":\"onnx\"}",
      "refused: format is not known, must be json-f64 or f32-delta" },
    { "{\"update\":[1,NaN]}", "refused: invalid JSON at byte 13: expected a value" },
    { "{\"update_b64\":\"WzEsTmFOXQ==\"}",
      "refused: update: holds NaN or Infinity, must be finite numbers" },
    { "{\"update\":[1,null]}",
      "refused: update: must hold nothing but numbers, in arrays and objects" },
    { "{\"update\":[1e999]}",
      "refused: update: holds a number that is not finite in double precision" },
    { "{\"update\":{}}", "refused: update: holds no number" },
};

TEST_EACH(an_envelope_is_taken_in_every_form_and_refused_with_a_reason, ENVELOPES)
{
    const char *seen = outcome(ENVELOPES[_i].text);

    if (str_equal(ENVELOPES[_i].outcome, "refused: must hold nothing"))
        ck_assert(str_has_prefix(seen, "refused: "));
    else
        ck_assert_str_eq(seen, ENVELOPES[_i].outcome);
}

TEST(a_module_s_own_envelope_in_base64_counts_as_if_it_had_come_by_http)
{
    const char *own = "{\"round_id\":\"r\",\"num_samples\":31,\"metrics\":{\"loss\":0.25},"
                      "\"update\":{\"w\":[1,2]}}";
    const char *results =
        arena_printf(arena,
                     "{\"format\":\"f32-delta\",\"metrics\":{},\"num_samples\":1,\"proplet_id\":"
                     "\"proplet-1\",\"update_b64\":\"%s\"}",
                     base64(own));
    struct fl_envelope by_mqtt = parsed(results);
    struct fl_envelope by_http = parsed(own);

    ck_assert_str_eq(outcome(results), outcome(own));
    ck_assert_str_eq(outcome(own), "json-f64 31 {\"w\":[1,2]}");
    ck_assert(json_equal(by_mqtt.metrics, by_http.metrics));
}

TEST(envelopes_in_envelopes_end_somewhere)
{
    const char *text = "[1]";

    for (int i = 0; i < FL_MAX_ENVELOPES; i++) {
        ck_assert_str_eq(outcome(text), "json-f64 5 [1]");
        text = arena_printf(arena, "{\"update_envelope\":%s}", text);
    }
    ck_assert_str_eq(outcome(text), "refused: envelopes are nested too deep");
}

TEST(for_concat_the_payload_is_the_same_bytes_whichever_way_it_came)
{
    const char *own = "{\"num_samples\":31,\"update\":{\"w\":[1,2]}}";
    const char *results = arena_printf(arena, "{\"update_b64\":\"%s\"}", base64(own));
    struct fl_expected expected = EXPECTED;
    struct fl_envelope envelope;
    struct fl_update update;

    expected.opaque = true;
    ck_assert_int_eq(fl_envelope_parse(arena, results, strlen(results), &expected, &envelope, &err),
                     0);
    fl_update_opaque(&envelope, &update);
    ck_assert_uint_eq(update.payload_len, strlen(own));
    ck_assert_mem_eq(update.payload, own, strlen(own));

    ck_assert_int_eq(fl_envelope_parse(arena, own, strlen(own), &expected, &envelope, &err), 0);
    fl_update_opaque(&envelope, &update);
    ck_assert_uint_eq(update.payload_len, strlen(own));
    ck_assert_mem_eq(update.payload, own, strlen(own));
    ck_assert_int_eq(update.num_samples, 31);
}

TEST(limits_of_members_metrics_and_format_are_kept)
{
    char *many = arena_strdup(arena, "{\"update\":1");
    char *long_text = arena_alloc(arena, FL_MAX_METRICS + 1, 1);

    for (int i = 1; i < FL_MAX_MEMBERS; i++)
        many = arena_printf(arena, "%s,\"m%d\":0", many, i);
    ck_assert_str_eq(outcome(arena_printf(arena, "%s}", many)), "json-f64 5 1");
    ck_assert_str_eq(outcome(arena_printf(arena, "%s,\"last\":0}", many)),
                     "refused: envelope has too many members");

    memset(long_text, 'x', FL_MAX_METRICS);
    ck_assert_str_eq(
        outcome(arena_printf(arena, "{\"update\":1,\"metrics\":{\"a\":\"%s\"}}", long_text)),
        "refused: metrics have 4104 bytes, at most 4096");
    long_text[FL_MAX_FORMAT + 1] = '\0';
    ck_assert_str_eq(outcome(arena_printf(arena, "{\"update\":1,\"format\":\"%s\"}", long_text)),
                     "refused: format has too many characters");
}

TEST(what_was_accepted_is_kept_in_the_status_and_comes_back)
{
    struct fl_envelope envelope =
        parsed("{\"update\":[1,2],\"num_samples\":3,\"metrics\":{\"loss\":0.5}}");
    struct fl_envelope back = { 0 };

    ck_assert_str_eq(json_text(arena, fl_envelope_to_status(arena, &envelope, NULL), NULL),
                     "{\"format\":\"json-f64\",\"numSamples\":3,\"metrics\":{\"loss\":0.5},"
                     "\"update_b64\":\"WzEsMl0=\"}");
    ck_assert_int_eq(
        fl_envelope_from_status(arena, fl_envelope_to_status(arena, &envelope, NULL), &back, &err),
        0);
    ck_assert_uint_eq(back.payload_len, 5);
    ck_assert_mem_eq(back.payload, "[1,2]", 5);
    ck_assert_int_eq(back.num_samples, 3);
    ck_assert_ptr_null(back.ref);

    envelope.format = FL_FORMAT_PACKED_F64;
    ck_assert_int_eq(fl_envelope_from_status(
                         arena, fl_envelope_to_status(arena, &envelope, "model://x"), &back, &err),
                     0);
    ck_assert_str_eq(back.ref, "model://x");
    ck_assert_ptr_null(back.payload);
    ck_assert_str_eq(back.format, "packed-f64");
}

static const char *const STATUSES[] = {
    "{}",
    "{\"format\":\"json-f64\",\"numSamples\":3}",
    "{\"format\":\"json-f64\",\"numSamples\":0,\"update_b64\":\"NDI=\"}",
    "{\"numSamples\":3,\"update_b64\":\"NDI=\"}",
    "{\"format\":\"json-f64\",\"numSamples\":3,\"update_b64\":\"NDI\"}",
    "{\"format\":\"json-f64\",\"numSamples\":3,\"update_b64\":\"NDI=\",\"ref\":\"model://x\"}",
};

TEST_EACH(a_status_that_holds_no_accepted_update_is_an_error, STATUSES)
{
    struct fl_envelope back;
    const cJSON *status;

    ck_assert_int_eq(json_parse(arena, STATUSES[_i], strlen(STATUSES[_i]), &status, &err), 0);
    ck_assert_int_eq(fl_envelope_from_status(arena, status, &back, &err), -ERROR_INVALID);
}

static struct fl_model model_of(const char *text)
{
    struct fl_model model;

    ck_assert_int_eq(fl_model_parse(arena, text, strlen(text), &model, &err), 0);
    return model;
}

/* What an f32-delta is, after it was added to the base. */
static const char *delta(const char *payload, size_t len, const struct fl_model *base)
{
    struct fl_envelope envelope = {
        .format = FL_FORMAT_F32_DELTA, .payload = payload, .payload_len = len, .num_samples = 1
    };
    struct fl_update update;

    if (fl_update_decode(arena, &envelope, base, &update, &err) < 0)
        return arena_strdup(arena, err.message);

    const char *text = update.shape;
    for (size_t i = 0; i < update.len; i++)
        text = arena_printf(arena, "%s %g", text, update.values[i]);
    return text;
}

TEST(a_delta_is_added_to_the_model_of_the_round)
{
    static const char FLOATS[] = "\x00\x00\x80\x3f\x00\x00\x00\xc0"; /* 1, -2 */
    static const char INFINITE[] = "\x00\x00\x80\x7f\x00\x00\x00\x00";
    const struct fl_model base = model_of("{\"w\":[10],\"b\":20}");

    ck_assert_str_eq(delta("{\"b\":1,\"w\":[-2]}", 16, &base), "{\"b\":#1,\"w\":[#1]} 21 8");
    ck_assert_str_eq(delta(FLOATS, 8, &base), "{\"b\":#1,\"w\":[#1]} 21 8");
    ck_assert_str_eq(delta("AACAPwAAAMA=", 12, &base), "{\"b\":#1,\"w\":[#1]} 21 8");
    ck_assert_str_eq(delta(FLOATS, 8, NULL), "[#2] 1 -2");
    ck_assert_str_eq(delta("AACAPwAAAMA=", 12, NULL), "[#2] 1 -2");

    ck_assert_str_eq(delta("[1,2]", 5, &base),
                     "update: has the shape [#2], must have {\"b\":#1,\"w\":[#1]}");
    ck_assert_str_eq(delta(FLOATS, 4, &base), "update: holds 1 numbers, the model has 2");
    ck_assert_str_eq(delta(FLOATS, 7, &base),
                     "update: must be JSON of numbers, or 1 to 4194304 numbers of 4 bytes");
    ck_assert_str_eq(delta(INFINITE, 8, &base), "update: number 0 is not finite");

    const struct fl_model huge = model_of("[1.7e308]");
    ck_assert_str_eq(delta("[1.7e308]", 9, &huge), "update: number 0 is not finite");
}

TEST(an_update_of_another_shape_than_the_model_is_refused)
{
    const struct fl_model base = model_of("{\"w\":[1,2]}");
    const struct fl_envelope envelope = parsed("{\"w\":[1,2,3]}");
    struct fl_update update;

    ck_assert_int_eq(fl_update_decode(arena, &envelope, &base, &update, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, "update: has the shape {\"w\":[#3]}, must have {\"w\":[#2]}");
}

TEST(a_packed_update_is_the_update_and_what_is_cut_is_refused)
{
    const struct fl_envelope envelope =
        parsed("{\"w\":[1e-300,-0.0,3],\"b\":1.7976931348623157e308}");
    struct fl_update update, back;
    struct fl_envelope packed = { .format = FL_FORMAT_PACKED_F64, .num_samples = 1 };

    ck_assert_int_eq(fl_update_decode(arena, &envelope, NULL, &update, &err), 0);
    packed.payload = fl_update_pack(arena, &update, &packed.payload_len);
    ck_assert_int_eq(fl_update_decode(arena, &packed, NULL, &back, &err), 0);
    ck_assert_str_eq(back.shape, update.shape);
    ck_assert_uint_eq(back.len, 4);
    ck_assert_mem_eq(back.values, update.values, 4 * sizeof(double));

    for (size_t whole = packed.payload_len; packed.payload_len-- > 0;) {
        ck_assert_uint_lt(packed.payload_len, whole);
        ck_assert_int_eq(fl_update_decode(arena, &packed, NULL, &back, &err), -ERROR_INVALID);
    }
}

TEST(a_late_update_weighs_less)
{
    struct fl_update update = { .num_samples = 90 };

    ck_assert_double_eq(fl_update_weight(&update), 90);
    update.staleness = 8;
    ck_assert_double_eq(fl_update_weight(&update), 30);
}

TEST(the_same_model_has_the_same_bytes_however_it_was_written)
{
    const struct fl_model one = model_of(" { \"w\" : [ 1.50 , 2e0 ], \"b\":0.1} ");
    const struct fl_model other = model_of("{\"b\":1e-1,\"w\":[15e-1,2]}");

    ck_assert_uint_eq(one.bytes_len, other.bytes_len);
    ck_assert_mem_eq(one.bytes, "{\"b\":0.1,\"w\":[1.5,2]}", one.bytes_len);
    ck_assert_mem_eq(one.bytes, other.bytes, one.bytes_len);
    ck_assert_str_eq(fl_model_format(&one), "json-f64");
}

TEST(without_a_model_the_shape_of_most_is_chosen_and_of_a_tie_the_first)
{
    const char *const shapes[] = { NULL, "[#9]", "[#2]", "[#1]", "[#2]", "[#1]" };

    ck_assert_str_eq(fl_shape_choose(shapes, 6), "[#2]");
    ck_assert_str_eq(fl_shape_choose(shapes, 2), "[#9]");
    ck_assert_ptr_null(fl_shape_choose(shapes, 1));
}
