#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "standalone/schema/openapi.h"

/*
 * google/gnostic-models openapiv2/OpenAPIv2.proto, as far as openapi_v2 has it. Each message is encoded into a
 * buffer of its own, so that its length is known before it.
 */
#define MAX_DOCUMENT ((size_t)16 << 20)

/* Field numbers; of the messages that hold one list of names and values it is 1, name 1, value 2. */
enum {
    DOCUMENT_SWAGGER = 1,
    DOCUMENT_INFO = 2,
    DOCUMENT_PATHS = 8,
    DOCUMENT_DEFINITIONS = 9,
    INFO_TITLE = 1,
    INFO_VERSION = 2,
    PATHS_PATH = 2,
    PATH_PARAMETERS = 9,
    OPERATION_DESCRIPTION = 3,
    OPERATION_ID = 5,
    OPERATION_CONSUMES = 7,
    OPERATION_PARAMETERS = 8,
    OPERATION_RESPONSES = 9,
    OPERATION_EXTENSION = 13,
    FIELD_SCHEMA_REF = 1,
    FIELD_SCHEMA_FORMAT = 2,
    FIELD_SCHEMA_DESCRIPTION = 4,
    FIELD_SCHEMA_REQUIRED = 19,
    FIELD_SCHEMA_ENUM = 20,
    FIELD_SCHEMA_ADDITIONAL = 21,
    FIELD_SCHEMA_TYPE = 22,
    FIELD_SCHEMA_ITEMS = 23,
    FIELD_SCHEMA_PROPERTIES = 25,
    FIELD_SCHEMA_EXTENSION = 31,
    NAMED_NAME = 1,
    NAMED_VALUE = 2,
    ANY_YAML = 2,
    ONLY = 1, /* the one field of a message that only holds something */
};

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

struct writer {
    struct arena *arena;
    struct buf buf;
    bool full;
};

#define WRITER(owner)                                                                              \
    {                                                                                              \
        .arena = (owner), .buf = BUF_INIT(MAX_DOCUMENT)                                            \
    }

/* --- the wire --------------------------------------------------------------------------------- */

static void put_bytes(struct writer *writer, const void *bytes, size_t len)
{
    writer->full = writer->full || !buf_append(&writer->buf, bytes, len);
}

static void put_varint(struct writer *writer, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;

    do {
        bytes[len++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    put_bytes(writer, bytes, len);
}

static void put_tag(struct writer *writer, int field, enum wire wire)
{
    put_varint(writer, (uint64_t)field << 3 | wire);
}

static void put_text(struct writer *writer, int field, const char *text)
{
    put_tag(writer, field, WIRE_BYTES);
    put_varint(writer, strlen(text));
    put_bytes(writer, text, strlen(text));
}

static void put_bool(struct writer *writer, int field, bool value)
{
    put_tag(writer, field, WIRE_VARINT);
    put_varint(writer, value);
}

/* Takes inner. */
static void put_message(struct writer *writer, int field, struct writer *inner)
{
    put_tag(writer, field, WIRE_BYTES);
    put_varint(writer, inner->buf.len);
    put_bytes(writer, buf_string(&inner->buf), inner->buf.len);
    writer->full = writer->full || inner->full;
    buf_release(&inner->buf);
}

static void put_member(struct writer *writer, int field, const cJSON *object, const char *name)
{
    const char *text = json_string(json_get(object, name), NULL);

    if (text)
        put_text(writer, field, text);
}

/* Any: YAML, which JSON is. */
static void put_any(struct writer *writer, int field, const cJSON *value)
{
    struct writer any = WRITER(writer->arena);

    put_text(&any, ANY_YAML, json_text(writer->arena, value, NULL));
    put_message(writer, field, &any);
}

static void put_extensions(struct writer *writer, int field, const cJSON *object)
{
    json_for_each (member, object) {
        struct writer named = WRITER(writer->arena);

        if (!str_has_prefix(member->string, "x-"))
            continue;
        put_text(&named, NAMED_NAME, member->string);
        put_any(&named, NAMED_VALUE, member);
        put_message(writer, field, &named);
    }
}

/* --- schemas ---------------------------------------------------------------------------------- */

static void put_schema(struct writer *writer, int field, const cJSON *schema);

static void put_named_schemas(struct writer *writer, int field, const cJSON *schemas)
{
    struct writer list = WRITER(writer->arena);

    json_for_each (member, schemas) {
        struct writer named = WRITER(writer->arena);

        put_text(&named, NAMED_NAME, member->string);
        put_schema(&named, NAMED_VALUE, member);
        put_message(&list, ONLY, &named);
    }
    put_message(writer, field, &list);
}

static void put_number(struct writer *writer, int field, double number)
{
    uint64_t bits;
    uint8_t bytes[8];

    memcpy(&bits, &number, sizeof(bits));
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    put_tag(writer, field, WIRE_FIXED64);
    put_bytes(writer, bytes, sizeof(bytes));
}

static void put_limits(struct writer *writer, const cJSON *schema)
{
    static const struct {
        const char *name;
        int field;
        bool is_double;
    } LIMITS[] = {
        { "maximum", 7, true },         { "minimum", 9, true },         { "maxLength", 11, false },
        { "minLength", 12, false },     { "maxItems", 14, false },      { "minItems", 15, false },
        { "maxProperties", 17, false }, { "minProperties", 18, false },
    };

    for (size_t i = 0; i < ARRAY_LEN(LIMITS); i++) {
        const cJSON *value = json_get(schema, LIMITS[i].name);

        if (value && LIMITS[i].is_double) {
            put_number(writer, LIMITS[i].field, json_double(value, 0));
        } else if (value) {
            put_tag(writer, LIMITS[i].field, WIRE_VARINT);
            put_varint(writer, (uint64_t)json_int(value, 0));
        }
    }
    put_member(writer, 13, schema, "pattern");
}

static void put_type(struct writer *writer, const cJSON *schema)
{
    struct writer type = WRITER(writer->arena);

    if (!json_get(schema, "type"))
        return;
    put_member(&type, ONLY, schema, "type");
    put_message(writer, FIELD_SCHEMA_TYPE, &type);
}

static void put_contents(struct writer *writer, const cJSON *schema)
{
    const cJSON *additional = json_get(schema, "additionalProperties");
    struct writer inner = WRITER(writer->arena);

    if (cJSON_IsObject(additional)) {
        put_schema(&inner, ONLY, additional);
        put_message(writer, FIELD_SCHEMA_ADDITIONAL, &inner);
    }
    if (json_get(schema, "items")) {
        inner = (struct writer)WRITER(writer->arena);
        put_schema(&inner, ONLY, json_get(schema, "items"));
        put_message(writer, FIELD_SCHEMA_ITEMS, &inner);
    }
    if (json_get(schema, "properties"))
        put_named_schemas(writer, FIELD_SCHEMA_PROPERTIES, json_get(schema, "properties"));
}

static void put_schema(struct writer *writer, int field, const cJSON *schema)
{
    struct writer inner = WRITER(writer->arena);

    put_member(&inner, FIELD_SCHEMA_REF, schema, "$ref");
    put_member(&inner, FIELD_SCHEMA_FORMAT, schema, "format");
    put_member(&inner, FIELD_SCHEMA_DESCRIPTION, schema, "description");
    put_limits(&inner, schema);
    json_for_each (name, json_get(schema, "required"))
        put_text(&inner, FIELD_SCHEMA_REQUIRED, json_string(name, ""));
    json_for_each (value, json_get(schema, "enum"))
        put_any(&inner, FIELD_SCHEMA_ENUM, value);
    put_type(&inner, schema);
    put_contents(&inner, schema);
    put_extensions(&inner, FIELD_SCHEMA_EXTENSION, schema);
    put_message(writer, field, &inner);
}

/* --- paths ------------------------------------------------------------------------------------ */

/* BodyParameter: name 2, in 3, required 4, schema 5. Of the query: required 1, in 2, name 4, type 6; of the
 * path: required 1, in 2, name 4, type 5. */
static void put_parameter(struct writer *writer, int field, const cJSON *parameter)
{
    const char *in = json_string(json_get(parameter, "in"), "");
    bool body = str_equal(in, "body"), path = str_equal(in, "path");
    struct writer value = WRITER(writer->arena), choice = WRITER(writer->arena);
    struct writer item = WRITER(writer->arena), outer = WRITER(writer->arena);

    put_text(&value, body ? 3 : 2, in);
    put_member(&value, body ? 2 : 4, parameter, "name");
    if (body || path)
        put_bool(&value, body ? 4 : 1, true);
    if (body)
        put_schema(&value, 5, json_get(parameter, "schema"));
    else
        put_member(&value, path ? 5 : 6, parameter, "type");
    put_message(&choice, body ? 1 : path ? 4 : 3, &value);
    if (body) {
        put_message(&outer, ONLY, &choice);
        buf_release(&item.buf);
    } else {
        put_message(&item, 2, &choice);
        put_message(&outer, ONLY, &item);
    }
    put_message(writer, field, &outer);
}

/* The one answer that openapi_v2 knows: ResponseValue of a Response with a schema (SchemaItem). */
static void put_responses(struct writer *writer, const cJSON *responses)
{
    struct writer list = WRITER(writer->arena);

    json_for_each (response, responses) {
        struct writer named = WRITER(writer->arena), value = WRITER(writer->arena);
        struct writer inner = WRITER(writer->arena), item = WRITER(writer->arena);

        put_member(&inner, 1, response, "description");
        put_schema(&item, ONLY, json_get(response, "schema"));
        put_message(&inner, 2, &item);
        put_message(&value, ONLY, &inner);
        put_text(&named, NAMED_NAME, response->string);
        put_message(&named, NAMED_VALUE, &value);
        put_message(&list, ONLY, &named);
    }
    put_message(writer, OPERATION_RESPONSES, &list);
}

static void put_operation(struct writer *writer, int field, const cJSON *operation)
{
    struct writer inner = WRITER(writer->arena);

    put_member(&inner, OPERATION_DESCRIPTION, operation, "description");
    put_member(&inner, OPERATION_ID, operation, "operationId");
    json_for_each (type, json_get(operation, "consumes"))
        put_text(&inner, OPERATION_CONSUMES, json_string(type, ""));
    json_for_each (parameter, json_get(operation, "parameters"))
        put_parameter(&inner, OPERATION_PARAMETERS, parameter);
    put_responses(&inner, json_get(operation, "responses"));
    put_extensions(&inner, OPERATION_EXTENSION, operation);
    put_message(writer, field, &inner);
}

static void put_path(struct writer *writer, const cJSON *path)
{
    static const struct {
        const char *method;
        int field;
    } METHODS[] = { { "get", 2 }, { "put", 3 }, { "post", 4 }, { "delete", 5 }, { "patch", 8 } };
    struct writer named = WRITER(writer->arena), item = WRITER(writer->arena);

    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++) {
        const cJSON *operation = json_get(path, METHODS[i].method);

        if (operation)
            put_operation(&item, METHODS[i].field, operation);
    }
    json_for_each (parameter, json_get(path, "parameters"))
        put_parameter(&item, PATH_PARAMETERS, parameter);
    put_text(&named, NAMED_NAME, path->string);
    put_message(&named, NAMED_VALUE, &item);
    put_message(writer, PATHS_PATH, &named);
}

static void release(void *bytes)
{
    free(bytes);
}

const char *openapi_v2_protobuf(struct arena *arena, const cJSON *document, size_t *ret_len)
{
    struct writer writer = WRITER(arena), info = WRITER(arena), paths = WRITER(arena);

    put_member(&writer, DOCUMENT_SWAGGER, document, "swagger");
    put_member(&info, INFO_TITLE, json_get(document, "info"), "title");
    put_member(&info, INFO_VERSION, json_get(document, "info"), "version");
    put_message(&writer, DOCUMENT_INFO, &info);
    json_for_each (path, json_get(document, "paths"))
        put_path(&paths, path);
    put_message(&writer, DOCUMENT_PATHS, &paths);
    put_named_schemas(&writer, DOCUMENT_DEFINITIONS, json_get(document, "definitions"));
    if (writer.full) {
        buf_release(&writer.buf);
        return NULL;
    }
    *ret_len = writer.buf.len;
    return arena_own(arena, writer.buf.data, release);
}
