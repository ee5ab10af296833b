#include <assert.h>
#include <stdlib.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/slice.h"
#include "controller/federated/update.h"

/* Of a device's error text in a reason. */
#define SHOWN_ERROR 160

struct parse {
    struct arena *arena;
    const struct fl_expected *expected;
    struct fl_envelope *ret;
    struct error *err;
    int depth;
};

/* What an envelope may have. */
enum member {
    UPDATE_B64,
    UPDATE,
    UPDATE_ENVELOPE,
    FORMAT,
    NUM_SAMPLES,
    METRICS,
    PROPLET_ID,
    ERROR_TEXT,
    MEMBERS
};
static const char *const MEMBER_NAMES[MEMBERS] = {
    "update_b64",  "update",  "update_envelope", "format",
    "num_samples", "metrics", "proplet_id",      "error",
};
/* These alone do not make an envelope, but say that it was meant as one. */
static const char *const OTHER_NAMES[] = { "round_id", "job_id", "task_id", "base_model_uri" };

static int bad(const struct parse *parse, const char *message)
{
    return error_set(parse->err, ERROR_INVALID, "%s", message);
}

static bool is_key(struct json_slice key, const char *name)
{
    return key.len == strlen(name) + 2 && memcmp(key.text + 1, name, key.len - 2) == 0;
}

static bool is_null(struct json_slice value)
{
    return !value.len || json_slice_kind(value) == 'n';
}

/* *ret_meant: something in it is of an envelope. */
static int find_members(const struct parse *parse, struct json_slice object,
                        struct json_slice ret[static MEMBERS], bool *ret_meant)
{
    struct json_slice_iter iter = json_slice_items(object);

    *ret_meant = false;
    for (size_t count = 0; json_slice_next(&iter); count++) {
        if (count == FL_MAX_MEMBERS && *ret_meant)
            return bad(parse, "envelope has too many members");
        for (size_t i = 0; i < ARRAY_LEN(OTHER_NAMES); i++)
            *ret_meant |= is_key(iter.key, OTHER_NAMES[i]);
        for (size_t i = 0; i < MEMBERS; i++) {
            if (!is_key(iter.key, MEMBER_NAMES[i]))
                continue;
            if (ret[i].len)
                return error_set(parse->err, ERROR_INVALID, "%s appears twice", MEMBER_NAMES[i]);
            ret[i] = iter.value;
            *ret_meant = true;
        }
    }
    return 0;
}

/* NULL: absent or null. */
static int read_string(const struct parse *parse, const struct json_slice *members,
                       enum member member, const char **ret)
{
    *ret = NULL;
    if (is_null(members[member]))
        return 0;
    if (json_slice_kind(members[member]) != '"')
        return error_set(parse->err, ERROR_INVALID, "%s must be a string", MEMBER_NAMES[member]);
    *ret = json_slice_string(parse->arena, members[member], NULL);
    return 0;
}

static int read_samples(const struct parse *parse, struct json_slice value)
{
    const cJSON *number = NULL;

    if (is_null(value))
        return 0;
    if (json_slice_kind(value) == '0' &&
        json_parse(parse->arena, value.text, value.len, &number, NULL) == 0)
        parse->ret->num_samples = json_int(number, INT64_MIN);
    if (!number || parse->ret->num_samples == INT64_MIN)
        return bad(parse, "num_samples must be an integer");
    return 0;
}

static int read_metrics(const struct parse *parse, struct json_slice value)
{
    if (is_null(value))
        return 0;
    if (value.len > FL_MAX_METRICS)
        return error_set(parse->err, ERROR_INVALID, "metrics have %zu bytes, at most %zu",
                         value.len, FL_MAX_METRICS);
    if (json_slice_kind(value) != '{')
        return bad(parse, "metrics must be an object");

    int r = json_parse(parse->arena, value.text, value.len, &parse->ret->metrics, parse->err);
    return r < 0 ? error_wrap(parse->err, "metrics") : 0;
}

static int take_format(const struct parse *parse, const char *format)
{
    if (strlen(format) > FL_MAX_FORMAT)
        return bad(parse, "format has too many characters");
    if (str_equal(format, FL_FORMAT_PACKED_F64))
        return error_set(parse->err, ERROR_INVALID, "format '%s' is not one of devices", format);
    parse->ret->format = format;
    return 0;
}

static int read_format(const struct parse *parse, const struct json_slice *members)
{
    const char *format;
    int r = read_string(parse, members, FORMAT, &format);

    return r < 0 || str_is_empty(format) ? r : take_format(parse, format);
}

/* The device's own words, on one line. */
static int refused_by_device(const struct parse *parse, const char *error)
{
    char *text = arena_strdup(parse->arena, error);

    text[str_utf8_cut(text, strlen(text), SHOWN_ERROR)] = '\0';
    for (char *c = text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? ' ' : *c;
    return error_set_quoting(parse->err, ERROR_INVALID, "the device reports: %s", text);
}

static int read_fields(const struct parse *parse, const struct json_slice *members)
{
    const char *proplet_id = NULL, *error = NULL;
    int r = read_string(parse, members, ERROR_TEXT, &error);

    if (r == 0 && !str_is_empty(error))
        return refused_by_device(parse, error);
    if (r == 0)
        r = read_string(parse, members, PROPLET_ID, &proplet_id);
    if (r < 0)
        return r;
    if (!str_is_empty(proplet_id) && parse->expected->proplet_id &&
        !str_equal(proplet_id, parse->expected->proplet_id))
        return bad(parse, "proplet_id is that of another device");

    r = read_format(parse, members);
    if (r == 0)
        r = read_samples(parse, members[NUM_SAMPLES]);
    return r == 0 ? read_metrics(parse, members[METRICS]) : r;
}

static int read_any(struct parse *parse, struct json_slice value);

static void take_text(const struct parse *parse, struct json_slice value)
{
    parse->ret->payload = value.text;
    parse->ret->payload_len = value.len;
}

static bool is_envelope(const struct parse *parse, struct json_slice value)
{
    struct json_slice members[MEMBERS] = { { NULL, 0 } };
    bool meant;

    return json_slice_kind(value) == '{' && find_members(parse, value, members, &meant) == 0 &&
           (members[UPDATE_B64].len || members[UPDATE].len || members[UPDATE_ENVELOPE].len);
}

/* The payload may be a module's own envelope. */
static int read_payload(struct parse *parse)
{
    struct fl_envelope *ret = parse->ret;
    struct json_slice inner;

    if (parse->expected->opaque ||
        json_slice_check(ret->payload, ret->payload_len, &inner, NULL) < 0 ||
        !is_envelope(parse, inner))
        return 0;
    ret->format = NULL; /* that was the label of the text */
    return read_any(parse, inner);
}

static int read_base64(struct parse *parse, struct json_slice value)
{
    struct fl_envelope *ret = parse->ret;
    size_t len;

    if (json_slice_kind(value) != '"')
        return bad(parse, "update_b64 must be a string");

    const char *text = json_slice_string(parse->arena, value, &len);
    ret->payload = base64_decode(parse->arena, text, len, &ret->payload_len);
    if (!ret->payload)
        return bad(parse, "update_b64 is not base64 with padding");
    if (!ret->payload_len)
        return bad(parse, "update_b64 is empty");
    return read_payload(parse);
}

static int read_object(struct parse *parse, struct json_slice object)
{
    struct json_slice members[MEMBERS] = { { NULL, 0 } };
    bool meant;
    int r = find_members(parse, object, members, &meant);

    if (r < 0)
        return r;
    if (!meant) {
        take_text(parse, object);
        return 0;
    }

    r = read_fields(parse, members);
    if (r < 0)
        return r;
    if (!is_null(members[UPDATE_ENVELOPE]))
        return read_any(parse, members[UPDATE_ENVELOPE]);
    if (!is_null(members[UPDATE_B64]))
        return read_base64(parse, members[UPDATE_B64]);
    if (parse->expected->opaque) {
        take_text(parse, object);
        return 0;
    }
    if (is_null(members[UPDATE]))
        return bad(parse, "envelope has no update");
    take_text(parse, members[UPDATE]);
    return 0;
}

static int read_text(struct parse *parse, struct json_slice string)
{
    struct json_slice inner;
    size_t len;
    const char *text = json_slice_string(parse->arena, string, &len);
    int r = json_slice_check(text, len, &inner, parse->err);

    return r < 0 ? error_wrap(parse->err, "envelope in a string") : read_any(parse, inner);
}

static int read_any(struct parse *parse, struct json_slice value)
{
    if (parse->depth == FL_MAX_ENVELOPES)
        return bad(parse, "envelopes are nested too deep");
    parse->depth++;

    switch (json_slice_kind(value)) {
    case '{':
        return read_object(parse, value);
    case '"':
        return read_text(parse, value);
    case '[':
    case '0':
        take_text(parse, value);
        return 0;
    default:
        return bad(parse, "must be an envelope, or numbers");
    }
}

static int finish(const struct parse *parse, struct fl_envelope *ret)
{
    struct fl_envelope *envelope = parse->ret;

    if (envelope->num_samples < 1)
        return bad(parse, "num_samples must be at least 1");
    if (envelope->num_samples > parse->expected->max_samples)
        envelope->num_samples = parse->expected->max_samples;
    if (!envelope->format)
        envelope->format = FL_FORMAT_JSON_F64;
    *ret = *envelope;
    return 0;
}

int fl_envelope_parse(struct arena *arena, const char *text, size_t len,
                      const struct fl_expected *expected, struct fl_envelope *ret,
                      struct error *err)
{
    struct fl_envelope envelope = { .num_samples = expected->default_samples };
    struct parse parse = { .arena = arena, .expected = expected, .ret = &envelope, .err = err };
    struct json_slice value;
    int r = json_slice_check(text, len, &value, err);

    if (r == 0)
        r = read_any(&parse, value);
    return r < 0 ? r : finish(&parse, ret);
}

int fl_envelope_of_body(struct arena *arena, const char *body, size_t len, const char *format,
                        const struct fl_expected *expected, struct fl_envelope *ret,
                        struct error *err)
{
    struct fl_envelope envelope = { .num_samples = expected->default_samples,
                                    .payload = body,
                                    .payload_len = len };
    struct parse parse = {
        .arena = arena, .expected = expected, .ret = &envelope, .err = err, .depth = 1
    };
    int r = len ? take_format(&parse, format) : bad(&parse, "update is empty");

    if (r == 0)
        r = read_payload(&parse);
    return r < 0 ? r : finish(&parse, ret);
}

cJSON *fl_envelope_to_status(struct arena *arena, const struct fl_envelope *envelope,
                             const char *ref)
{
    cJSON *status = json_object(arena);

    assert(ref || envelope->payload);
    json_set_string(status, "format", envelope->format);
    json_set_int(status, "numSamples", envelope->num_samples);
    if (json_len(envelope->metrics))
        json_set_copy(status, "metrics", envelope->metrics);
    if (ref)
        json_set_string(status, "ref", ref);
    else
        json_set_string(status, "update_b64",
                        base64_encode(arena, envelope->payload, envelope->payload_len));
    return status;
}

int fl_envelope_from_status(struct arena *arena, const cJSON *results, struct fl_envelope *ret,
                            struct error *err)
{
    const char *text = json_string(json_get(results, "update_b64"), NULL);
    struct fl_envelope envelope = {
        .format = json_string(json_get(results, "format"), NULL),
        .num_samples = json_int(json_get(results, "numSamples"), 0),
        .metrics = json_get(results, "metrics"),
        .ref = json_string(json_get(results, "ref"), NULL),
    };

    if (text)
        envelope.payload = base64_decode(arena, text, strlen(text), &envelope.payload_len);
    if (!envelope.format || envelope.num_samples < 1 || !envelope.payload == !envelope.ref)
        return error_set(err, ERROR_INVALID, "results hold no accepted update");
    *ret = envelope;
    return 0;
}
