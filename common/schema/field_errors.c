#include "common/schema/field_errors.h"

#include "common/base/buf.h"
#include "common/base/str.h"

/* All errors of one object in one message: paths are short, values are cut. */
#define MAX_MESSAGE (256u << 10)
#define MAX_VALUE (4u << 10)

struct field_errors {
    struct arena *arena;
    cJSON *causes;   /* of the Status */
    cJSON *messages; /* "path: body", each once, as Go's aggregate has them */
    cJSON *warnings;
    size_t count;
    size_t more_warnings;
};

static const struct {
    const char *text;
    const char *cause;
    bool shows_value;
} TYPES[] = {
    [FIELD_ERROR_REQUIRED] = { "Required value", "FieldValueRequired", false },
    [FIELD_ERROR_INVALID] = { "Invalid value", "FieldValueInvalid", true },
    [FIELD_ERROR_TYPE] = { "Invalid value", "FieldValueTypeInvalid", false },
    [FIELD_ERROR_NOT_SUPPORTED] = { "Unsupported value", "FieldValueNotSupported", true },
    [FIELD_ERROR_DUPLICATE] = { "Duplicate value", "FieldValueDuplicate", true },
    [FIELD_ERROR_FORBIDDEN] = { "Forbidden", "FieldValueForbidden", false },
    [FIELD_ERROR_TOO_LONG] = { "Too long", "FieldValueTooLong", false },
    [FIELD_ERROR_TOO_MANY] = { "Too many", "FieldValueTooMany", true },
};

struct field_errors *field_errors_create(struct arena *arena)
{
    struct field_errors *errors = arena_new(arena, struct field_errors);

    errors->arena = arena;
    errors->causes = json_array(arena);
    errors->messages = json_array(arena);
    errors->warnings = json_array(arena);
    return errors;
}

static bool has_string(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (str_equal(json_string(item, NULL), text))
            return true;
    }
    return false;
}

/* --- Go's %q ---------------------------------------------------------------------------------- */

struct range {
    uint32_t first, last;
};

/* What strconv.IsPrint refuses and matters: controls, blanks other than ' ', what has no width,
 * what turns the direction of writing, private use. */
static const struct range UNPRINTABLE[] = {
    { 0x00, 0x1f },     { 0x7f, 0xa0 },     { 0xad, 0xad },       { 0x61c, 0x61c },
    { 0x1680, 0x1680 }, { 0x180e, 0x180e }, { 0x2000, 0x200f },   { 0x2028, 0x202f },
    { 0x205f, 0x206f }, { 0x3000, 0x3000 }, { 0xe000, 0xf8ff },   { 0xfeff, 0xfeff },
    { 0xfff0, 0xfffb }, { 0xfffe, 0xffff }, { 0xe0000, 0xe00ff }, { 0xe01f0, 0x10ffff },
};

static bool is_printable(uint32_t rune)
{
    for (size_t i = 0; i < ARRAY_LEN(UNPRINTABLE); i++) {
        if (rune >= UNPRINTABLE[i].first && rune <= UNPRINTABLE[i].last)
            return false;
    }
    return true;
}

/* The character of len bytes, which are valid UTF-8. */
static uint32_t decode_rune(const char *bytes, size_t len)
{
    static const uint8_t FIRST_BITS[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t rune = (uint8_t)bytes[0] & FIRST_BITS[len];

    for (size_t i = 1; i < len; i++)
        rune = rune << 6 | ((uint8_t)bytes[i] & 0x3f);
    return rune;
}

static const char *short_escape(uint32_t rune)
{
    static const char *const SHORT[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\a'] = "\\a", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t", ['\v'] = "\\v",
    };

    return rune < ARRAY_LEN(SHORT) ? SHORT[rune] : NULL;
}

static bool append_rune(struct buf *buf, const char *bytes, size_t len)
{
    uint32_t rune = decode_rune(bytes, len);
    const char *escape = short_escape(rune);

    if (escape)
        return buf_append_string(buf, escape);
    if (is_printable(rune))
        return buf_append(buf, bytes, len);
    if (rune < 0x80)
        return buf_printf(buf, "\\x%02x", (unsigned)rune);
    return buf_printf(buf, rune < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)rune);
}

bool buf_append_quoted(struct buf *buf, const char *text, size_t len)
{
    bool fits = buf_append_string(buf, "\"");

    for (size_t at = 0; fits && at < len;) {
        size_t character = str_utf8_char(text + at, len - at);

        if (character)
            fits = append_rune(buf, text + at, character);
        else
            fits = buf_printf(buf, "\\x%02x", (unsigned)(uint8_t)text[at]);
        at += character ? character : 1;
    }
    return fits && buf_append_string(buf, "\"");
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool append_value(struct buf *body, struct arena *arena, const cJSON *value)
{
    const char *text = json_string(value, NULL);

    if (!text)
        return buf_printf(body, ": %s", json_text(arena, value, NULL));

    size_t len = strlen(text);
    size_t cut = str_utf8_cut(text, len, FIELD_VALUE_MAX);

    return buf_append_string(body, ": ") && buf_append_quoted(body, text, cut) &&
           buf_append_string(body, cut < len ? "..." : "");
}

/* What field.Error.ErrorBody() prints. */
static const char *format_body(struct field_errors *errors, enum field_error_type type,
                               const cJSON *value, const char *detail)
{
    CLEANUP(buf_releasep) struct buf body = BUF_INIT(MAX_VALUE);
    bool fits = buf_append_string(&body, TYPES[type].text);

    if (value && TYPES[type].shows_value)
        fits = fits && append_value(&body, errors->arena, value);
    if (*detail)
        fits = fits && buf_printf(&body, ": %s", detail);
    return arena_strdup(errors->arena, fits ? buf_string(&body) : TYPES[type].text);
}

static void add_error(struct field_errors *errors, enum field_error_type type, const char *path,
                      const cJSON *value, const char *detail)
{
    const char *body = format_body(errors, type, value, detail);
    const char *message = arena_printf(errors->arena, "%s: %s", path, body);
    cJSON *cause = json_add_object(errors->causes);

    json_set_string(cause, "reason", TYPES[type].cause);
    json_set_string(cause, "message", body);
    json_set_string(cause, "field", path);
    if (!has_string(errors->messages, message))
        json_add_string(errors->messages, message);
}

void field_error(struct field_errors *errors, enum field_error_type type, const char *path,
                 const cJSON *value, const char *format, ...)
{
    va_list args;

    if (errors->count++ >= FIELD_ERRORS_MAX)
        return;
    va_start(args, format);
    add_error(errors, type, path, value, arena_vprintf(errors->arena, format, args));
    va_end(args);
}

void field_error_plain(struct field_errors *errors, enum field_error_type type, const char *path,
                       const cJSON *value)
{
    if (errors->count++ < FIELD_ERRORS_MAX)
        add_error(errors, type, path, value, "");
}

size_t field_errors_count(const struct field_errors *errors)
{
    return errors->count;
}

/* Go: one message as it is, several in brackets. */
static const char *format_message(const struct field_errors *errors, const char *group,
                                  const char *kind, const char *name)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_MESSAGE);
    size_t kept = json_len(errors->messages);
    size_t dropped = errors->count - json_len(errors->causes);
    bool many = kept > 1 || dropped;
    bool fits = buf_printf(&text, "%s%s%s ", kind, *group ? "." : "", group) &&
                buf_append_quoted(&text, name, strlen(name)) &&
                buf_printf(&text, " is invalid: %s", many ? "[" : "");

    json_for_each (message, errors->messages)
        fits =
            fits && buf_printf(&text, "%s%s", json_string(message, ""), message->next ? ", " : "");
    if (dropped)
        fits = fits && buf_printf(&text, ", and %zu more", dropped);
    fits = fits && buf_append_string(&text, many ? "]" : "");
    return fits ? arena_strdup(errors->arena, buf_string(&text)) : "the object is invalid";
}

const cJSON *field_errors_causes(const struct field_errors *errors)
{
    return errors->causes;
}

cJSON *field_errors_status(const struct field_errors *errors, const char *group, const char *kind,
                           const char *name)
{
    cJSON *status = json_object(errors->arena);

    json_set_object(status, "metadata");
    json_set_string(status, "status", "Failure");
    json_set_string(status, "message", format_message(errors, group, kind, name));
    json_set_string(status, "reason", "Invalid");
    cJSON *details = json_set_object(status, "details");
    if (*name)
        json_set_string(details, "name", name);
    if (*group)
        json_set_string(details, "group", group);
    json_set_string(details, "kind", kind);
    json_set_copy(details, "causes", errors->causes);
    json_set_int(status, "code", 422);
    return status;
}

/* --- warnings --------------------------------------------------------------------------------- */

void field_warning(struct field_errors *errors, const char *path, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *detail = arena_vprintf(errors->arena, format, args);
    va_end(args);

    char *text = arena_printf(errors->arena, "%s: %s", path, detail);
    text[str_utf8_cut(text, strlen(text), FIELD_WARNING_MAX)] = '\0';
    if (has_string(errors->warnings, text))
        return;
    if (json_len(errors->warnings) < FIELD_WARNINGS_MAX)
        json_add_string(errors->warnings, text);
    else
        errors->more_warnings++;
}

const cJSON *field_errors_warnings(const struct field_errors *errors)
{
    if (!json_first(errors->warnings))
        return NULL;
    if (!errors->more_warnings)
        return errors->warnings;

    cJSON *all = arena_own(errors->arena, json_copy(errors->warnings), json_free);
    json_add_string(all,
                    arena_printf(errors->arena, "and %zu more warnings", errors->more_warnings));
    return all;
}
