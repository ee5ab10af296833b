#include "common/json/yaml.h"

#include <assert.h>
#include <errno.h>

#include <yaml.h>

#include "common/base/str.h"
#include "common/json/json_stream.h"
#include "common/json/node.h"
#include "common/json/scan.h"

#define MAX_TEXT ((size_t)16 << 20)

#define TAG_PREFIX "tag:yaml.org,2002:"

struct level {
    cJSON *container;
    const char *key; /* of the value that comes next in an object; NULL: its key comes next */
    bool is_list;    /* "items" of a document that is handed over in parts */
};

/* What a stream hands over as it goes. */
struct hand_over {
    yaml_take_fn *take;
    void *ctx;
    struct input *input;
    struct yaml_place place;
    size_t bytes; /* read since the last one */
};

struct reader {
    struct arena *arena;
    cJSON *documents; /* array */
    struct error *err;
    struct hand_over *out;     /* NULL: all stays in documents */
    const yaml_event_t *event; /* being looked at */
    size_t values;             /* of the object that is being read */
    size_t max_values;         /* of it, however long it is */
    size_t begin;              /* where it begins in the text */
    size_t depth;
    struct level levels[JSON_MAX_DEPTH];
};

static int refuse(struct reader *reader, const char *why)
{
    return error_set(reader->err, ERROR_INVALID, "invalid YAML at line %zu: %s",
                     reader->event->start_mark.line + 1, why);
}

static cJSON *create_number(const char *digits)
{
    return json_node_of_number(digits, strlen(digits), false, 0);
}

/* 0x1f and 0o17 of at most 64 bits. */
static cJSON *create_based(const char *text)
{
    int base = str_has_prefix(text, "0x") ? 16 : str_has_prefix(text, "0o") ? 8 : 0;
    const char *allowed = base == 16 ? "0123456789abcdefABCDEF" : "01234567";

    if (!base || !text[2] || text[2 + strspn(text + 2, allowed)])
        return NULL;

    char digits[24];

    errno = 0;
    unsigned long long value = strtoull(text + 2, NULL, base);

    (void)snprintf(digits, sizeof(digits), "%llu", value);
    return errno ? NULL : create_number(digits);
}

/*
 * The JSON spelling of a decimal number, which YAML allows to be written +1, 007, .5 or 1. as well.
 * False: it is none, or is longer than JSON_MAX_NUMBER.
 */
static bool spell_decimal(const char *text, char ret[static JSON_MAX_NUMBER + 1])
{
    static const char DIGITS[] = "0123456789";
    const char *whole = text + (*text == '-' || *text == '+');
    size_t whole_len = strspn(whole, DIGITS);
    bool point = whole[whole_len] == '.';
    const char *fraction = whole + whole_len + point;
    size_t fraction_len = point ? strspn(fraction, DIGITS) : 0;
    const char *exponent = fraction + fraction_len;

    if (!whole_len && !fraction_len)
        return false;
    for (; whole_len > 1 && *whole == '0'; whole_len--)
        whole++;

    int len = snprintf(ret, JSON_MAX_NUMBER + 1, "%s%.*s%s%.*s%s", *text == '-' ? "-" : "",
                       whole_len ? (int)whole_len : 1, whole_len ? whole : "0",
                       fraction_len ? "." : "", (int)fraction_len, fraction, exponent);

    return len <= JSON_MAX_NUMBER && json_number_len(ret, (size_t)len) == (size_t)len;
}

/* A plain scalar by the core schema; NULL: a string. */
static cJSON *create_plain(const char *text)
{
    static const struct {
        const char *words[5];
        int type;
    } WORDS[] = {
        { { "", "~", "null", "Null", "NULL" }, cJSON_NULL },
        { { "true", "True", "TRUE" }, cJSON_True },
        { { "false", "False", "FALSE" }, cJSON_False },
    };
    char number[JSON_MAX_NUMBER + 1];

    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        for (size_t k = 0; k < ARRAY_LEN(WORDS[i].words); k++) {
            if (!str_equal(text, WORDS[i].words[k]))
                continue;
            return WORDS[i].type == cJSON_NULL ? cJSON_CreateNull()
                                               : cJSON_CreateBool(WORDS[i].type == cJSON_True);
        }
    }
    return spell_decimal(text, number) ? create_number(number) : create_based(text);
}

/* Numbers of YAML that JSON lacks. */
static bool is_beyond_json(const char *text)
{
    static const char *const WORDS[] = { ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN" };

    text += *text == '-' || *text == '+';
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (str_equal(text, WORDS[i]))
            return true;
    }
    return false;
}

static bool fits_tag(const cJSON *item, const char *type)
{
    if (str_equal(type, "int") || str_equal(type, "float"))
        return json_is_number(item);
    if (str_equal(type, "bool"))
        return cJSON_IsBool(item);
    return str_equal(type, "null") && cJSON_IsNull(item);
}

static int create_scalar(struct reader *reader, const char *text, cJSON **ret)
{
    const char *tag = (const char *)reader->event->data.scalar.tag;
    bool plain = reader->event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (tag && !str_equal(tag, "!") && !str_has_prefix(tag, TAG_PREFIX))
        return refuse(reader, "unknown tag");

    const char *type = tag && tag[1] ? tag + strlen(TAG_PREFIX) : NULL;

    if (str_equal(type, "str") || (!type && (tag || !plain))) {
        *ret = cJSON_CreateString(text);
        return 0;
    }
    if (is_beyond_json(text))
        return refuse(reader, "JSON has no such number");

    cJSON *item = create_plain(text);

    if (type && !fits_tag(item, type)) {
        json_free(item);
        return refuse(reader, "the value is not what its tag says");
    }
    *ret = item ? item : cJSON_CreateString(text);
    return 0;
}

/* Hands item, which it takes, to the container being read, or to the documents. */
static void attach(struct reader *reader, cJSON *item)
{
    struct level *level = reader->depth ? &reader->levels[reader->depth - 1] : NULL;

    if (!level && cJSON_IsNull(item)) {
        json_free(item); /* an empty document */
    } else if (!level || cJSON_IsArray(level->container)) {
        json_add(level ? level->container : reader->documents, item);
    } else {
        /* not json_set, which would look for the key: duplicates are found at the end, at once */
        cJSON_AddItemToObject(level->container, level->key, item);
        level->key = NULL;
    }
}

/* As json_parse bounds them. */
static int count_value(struct reader *reader)
{
    size_t max = json_max_values(reader->event->end_mark.index - reader->begin);

    if (max > reader->max_values)
        max = reader->max_values;
    if (++reader->values <= max)
        return 0;
    return error_set(reader->err, ERROR_TOO_LARGE,
                     "YAML of more than %zu values before line %zu is not read", max,
                     reader->event->end_mark.line + 1);
}

static bool wants_key(const struct reader *reader)
{
    const struct level *level = reader->depth ? &reader->levels[reader->depth - 1] : NULL;

    return level && cJSON_IsObject(level->container) && !level->key;
}

static int read_scalar(struct reader *reader)
{
    const char *text = (const char *)reader->event->data.scalar.value;
    size_t len = reader->event->data.scalar.length;
    cJSON *item = NULL;

    if (strlen(text) != len || !str_is_utf8(text, len))
        return refuse(reader, "NUL or invalid UTF-8 in a scalar");
    if (wants_key(reader)) {
        reader->levels[reader->depth - 1].key = arena_strdup(reader->arena, text);
        return 0;
    }

    int r = count_value(reader);
    if (r == 0)
        r = create_scalar(reader, text, &item);
    if (r < 0)
        return r;
    attach(reader, item);
    return 0;
}

static int open_level(struct reader *reader, bool object, const yaml_char_t *tag)
{
    const char *expected = object ? TAG_PREFIX "map" : TAG_PREFIX "seq";

    if (wants_key(reader))
        return refuse(reader, "a key must be a scalar");
    if (reader->depth == JSON_MAX_DEPTH)
        return refuse(reader, "more than 100 levels");
    if (tag && !str_equal((const char *)tag, expected))
        return refuse(reader, "unknown tag");

    int r = count_value(reader);
    if (r < 0)
        return r;

    cJSON *container = object ? cJSON_CreateObject() : cJSON_CreateArray();
    bool is_list =
        reader->out && !object && reader->depth == 1 && str_equal(reader->levels[0].key, "items");

    attach(reader, container);
    reader->levels[reader->depth++] = (struct level){ .container = container, .is_list = is_list };
    return 0;
}

static int close_object(struct reader *reader)
{
    const char *twice = json_duplicate_key(reader->levels[--reader->depth].container);

    if (!twice)
        return 0;
    return error_set(
        reader->err, ERROR_INVALID, "key '%.*s' appears twice in the YAML mapping before line %zu",
        (int)str_utf8_cut(twice, strlen(twice), 100), twice, reader->event->end_mark.line + 1);
}

static int read_event(struct reader *reader)
{
    const yaml_event_t *event = reader->event;

    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse(reader, "aliases are not supported");
    case YAML_SCALAR_EVENT:
        return read_scalar(reader);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(reader, false, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return open_level(reader, true, event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
        reader->depth--;
        return 0;
    case YAML_MAPPING_END_EVENT:
        return close_object(reader);
    default:
        return 0; /* stream and document boundaries */
    }
}

/* --- parts of a stream --- */

/* What has just come to its end and is handed over in this depth, taken out; NULL: nothing. */
static cJSON *take_out(const struct reader *reader)
{
    cJSON *from = NULL;

    if (reader->depth == 0)
        from = reader->documents;
    else if (reader->depth == 2 && reader->levels[1].is_list)
        from = reader->levels[1].container;
    return from && from->child ? cJSON_DetachItemViaPointer(from, from->child) : NULL;
}

static void note_place(struct reader *reader)
{
    struct yaml_place *place = &reader->out->place;

    if (reader->event->type == YAML_DOCUMENT_START_EVENT) {
        place->document++;
        place->item = 0;
    }
    if (reader->depth == 0 || (reader->depth == 2 && reader->levels[1].is_list))
        place->line = reader->event->start_mark.line + 1; /* until something is opened here */
}

static int hand_over(struct reader *reader)
{
    struct hand_over *out = reader->out;
    cJSON *object = take_out(reader);

    if (!object)
        return 0;

    struct yaml_place place = out->place;

    place.item = reader->depth ? ++out->place.item : 0;
    out->bytes = 0;
    reader->values = 0;
    reader->begin = reader->event->end_mark.index;
    int r = out->take(out->ctx, &place, object, reader->err);
    json_free(object);
    /* Nothing in it is needed any more: keys wait in there for their values. */
    arena_destroy(reader->arena);
    reader->arena = arena_create();
    return r;
}

static int read_part(struct reader *reader)
{
    if (!reader->out)
        return read_event(reader);

    note_place(reader);
    int r = read_event(reader);
    return r < 0 ? r : hand_over(reader);
}

/* Of yaml_parser_set_input. */
static int read_file(void *ctx, unsigned char *buffer, size_t size, size_t *ret_len)
{
    struct hand_over *out = ctx;

    if (out->bytes > MAX_TEXT)
        return 0;
    *ret_len = input_read(out->input, buffer, size);
    out->bytes += *ret_len;
    return *ret_len || !ferror(out->input->file);
}

/* --- all of it --- */

static int refuse_text(const struct reader *reader, const yaml_parser_t *parser)
{
    if (reader->out && reader->out->bytes > MAX_TEXT)
        return error_set(reader->err, ERROR_TOO_LARGE,
                         "document %zu has more than 16 MiB in one object",
                         reader->out->place.document);
    return error_set(reader->err, ERROR_INVALID, "invalid YAML at line %zu: %s",
                     parser->problem_mark.line + 1,
                     parser->problem ? parser->problem : "not readable");
}

static int read_stream(struct reader *reader, yaml_parser_t *parser)
{
    for (;;) {
        yaml_event_t event;

        if (!yaml_parser_parse(parser, &event))
            return refuse_text(reader, parser);

        yaml_event_type_t type = event.type;

        reader->event = &event;
        int r = read_part(reader);
        reader->event = NULL;
        yaml_event_delete(&event);
        if (r < 0 || type == YAML_STREAM_END_EVENT)
            return r;
    }
}

static int parse_all(struct arena *arena, const char *text, size_t len, size_t max_values,
                     const cJSON **ret, struct error *err)
{
    struct reader reader = {
        .arena = arena, .documents = json_array(arena), .err = err, .max_values = max_values
    };
    yaml_parser_t parser;

    if (len > MAX_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "YAML text of more than 16 MiB");
    if (!yaml_parser_initialize(&parser))
        return error_set(err, ERROR_INTERNAL, "YAML parser not initialized");

    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int r = read_stream(&reader, &parser);
    yaml_parser_delete(&parser);
    if (r < 0)
        return r;

    *ret = reader.documents;
    return 0;
}

int yaml_parse_all(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                   struct error *err)
{
    return parse_all(arena, text, len, SIZE_MAX, ret, err);
}

int yaml_parse_at_most(struct arena *arena, const char *text, size_t len, size_t max_values,
                       const cJSON **ret, struct error *err)
{
    const cJSON *documents;
    int r = parse_all(arena, text, len, max_values, &documents, err);

    if (r < 0)
        return r;
    if (json_len(documents) != 1)
        return error_set(err, ERROR_INVALID, "expected one YAML document, found %zu",
                         json_len(documents));
    *ret = documents->child;
    return 0;
}

int yaml_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
               struct error *err)
{
    return yaml_parse_at_most(arena, text, len, SIZE_MAX, ret, err);
}

int yaml_read(FILE *file, yaml_take_fn *take, void *ctx, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct input input;

    /* libyaml refuses characters and pairs of escape sequences that JSON allows. */
    input_open(&input, file);
    if (input_is_json(&input))
        return json_stream_read(&input, take, ctx, err);

    struct hand_over out = { .take = take, .ctx = ctx, .input = &input };
    struct reader reader = { .arena = arena_create(),
                             .documents = json_array(arena),
                             .err = err,
                             .out = &out,
                             .max_values = SIZE_MAX };
    yaml_parser_t parser;

    if (!yaml_parser_initialize(&parser)) {
        arena_destroy(reader.arena);
        return error_set(err, ERROR_INTERNAL, "YAML parser not initialized");
    }
    yaml_parser_set_input(&parser, read_file, &out);
    int r = read_stream(&reader, &parser);
    yaml_parser_delete(&parser);
    arena_destroy(reader.arena);
    return r;
}
