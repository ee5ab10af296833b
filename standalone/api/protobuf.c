#include "standalone/api/protobuf.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/str.h"

#define MAGIC "k8s"
#define MAGIC_LEN 4 /* with the NUL */
/* Messages in messages. */
#define MAX_DEPTH 8

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

enum field_type { TEXT, BYTES, NUMBER, FLAG, TIME, MESSAGE, TEXT_MAP, BYTES_MAP };

struct message;
struct field {
    unsigned number;
    const char *name;
    enum field_type type;
    bool repeated;
    const struct message *message;
};
struct message {
    const struct field *fields;
    size_t len;
};
#define FIELDS(table)                                                                              \
    {                                                                                              \
        (table), ARRAY_LEN(table)                                                                  \
    }

/* Numbers are those of the generated.proto files of k8s.io/api and k8s.io/apimachinery. */
static const struct field OWNER_FIELDS[] = {
    { 1, "kind", TEXT, false, NULL },       { 3, "name", TEXT, false, NULL },
    { 4, "uid", TEXT, false, NULL },        { 5, "apiVersion", TEXT, false, NULL },
    { 6, "controller", FLAG, false, NULL }, { 7, "blockOwnerDeletion", FLAG, false, NULL },
};
static const struct message OWNER = FIELDS(OWNER_FIELDS);
static const struct field META_FIELDS[] = {
    { 1, "name", TEXT, false, NULL },
    { 2, "generateName", TEXT, false, NULL },
    { 3, "namespace", TEXT, false, NULL },
    { 5, "uid", TEXT, false, NULL },
    { 6, "resourceVersion", TEXT, false, NULL },
    { 7, "generation", NUMBER, false, NULL },
    { 8, "creationTimestamp", TIME, false, NULL },
    { 9, "deletionTimestamp", TIME, false, NULL },
    { 10, "deletionGracePeriodSeconds", NUMBER, false, NULL },
    { 11, "labels", TEXT_MAP, false, NULL },
    { 12, "annotations", TEXT_MAP, false, NULL },
    { 13, "ownerReferences", MESSAGE, true, &OWNER },
    { 14, "finalizers", TEXT, true, NULL },
};
static const struct message META = FIELDS(META_FIELDS);
static const struct field FINALIZERS_FIELDS[] = { { 1, "finalizers", TEXT, true, NULL } };
static const struct message FINALIZERS = FIELDS(FINALIZERS_FIELDS);
static const struct field PHASE_FIELDS[] = { { 1, "phase", TEXT, false, NULL } };
static const struct message PHASE = FIELDS(PHASE_FIELDS);
static const struct field NAMESPACE_FIELDS[] = {
    { 1, "metadata", MESSAGE, false, &META },
    { 2, "spec", MESSAGE, false, &FINALIZERS },
    { 3, "status", MESSAGE, false, &PHASE },
};
static const struct message NAMESPACE = FIELDS(NAMESPACE_FIELDS);
static const struct field CONFIGMAP_FIELDS[] = {
    { 1, "metadata", MESSAGE, false, &META },
    { 2, "data", TEXT_MAP, false, NULL },
    { 3, "binaryData", BYTES_MAP, false, NULL },
    { 4, "immutable", FLAG, false, NULL },
};
static const struct message CONFIGMAP = FIELDS(CONFIGMAP_FIELDS);
static const struct field SECRET_FIELDS[] = {
    { 1, "metadata", MESSAGE, false, &META }, { 2, "data", BYTES_MAP, false, NULL },
    { 3, "type", TEXT, false, NULL },         { 4, "stringData", TEXT_MAP, false, NULL },
    { 5, "immutable", FLAG, false, NULL },
};
static const struct message SECRET = FIELDS(SECRET_FIELDS);
static const struct field ACCOUNT_FIELDS[] = {
    { 1, "metadata", MESSAGE, false, &META },
    { 4, "automountServiceAccountToken", FLAG, false, NULL },
};
static const struct message ACCOUNT = FIELDS(ACCOUNT_FIELDS);
static const struct field ATTRIBUTES_FIELDS[] = {
    { 1, "namespace", TEXT, false, NULL }, { 2, "verb", TEXT, false, NULL },
    { 3, "group", TEXT, false, NULL },     { 4, "version", TEXT, false, NULL },
    { 5, "resource", TEXT, false, NULL },  { 6, "subresource", TEXT, false, NULL },
    { 7, "name", TEXT, false, NULL },
};
static const struct message ATTRIBUTES = FIELDS(ATTRIBUTES_FIELDS);
static const struct field PATH_FIELDS[] = { { 1, "path", TEXT, false, NULL },
                                            { 2, "verb", TEXT, false, NULL } };
static const struct message PATH = FIELDS(PATH_FIELDS);
static const struct field ACCESS_SPEC_FIELDS[] = {
    { 1, "resourceAttributes", MESSAGE, false, &ATTRIBUTES },
    { 2, "nonResourceAttributes", MESSAGE, false, &PATH },
};
static const struct message ACCESS_SPEC = FIELDS(ACCESS_SPEC_FIELDS);
static const struct field ACCESS_FIELDS[] = { { 1, "metadata", MESSAGE, false, &META },
                                              { 2, "spec", MESSAGE, false, &ACCESS_SPEC } };
static const struct message ACCESS = FIELDS(ACCESS_FIELDS);
static const struct field RULES_SPEC_FIELDS[] = { { 1, "namespace", TEXT, false, NULL } };
static const struct message RULES_SPEC = FIELDS(RULES_SPEC_FIELDS);
static const struct field RULES_FIELDS[] = { { 1, "metadata", MESSAGE, false, &META },
                                             { 2, "spec", MESSAGE, false, &RULES_SPEC } };
static const struct message RULES = FIELDS(RULES_FIELDS);
static const struct field WHO_FIELDS[] = { { 1, "metadata", MESSAGE, false, &META } };
static const struct message WHO = FIELDS(WHO_FIELDS);
static const struct field PRECONDITIONS_FIELDS[] = { { 1, "uid", TEXT, false, NULL },
                                                     { 2, "resourceVersion", TEXT, false, NULL } };
static const struct message PRECONDITIONS = FIELDS(PRECONDITIONS_FIELDS);
static const struct field DELETE_FIELDS[] = {
    { 1, "gracePeriodSeconds", NUMBER, false, NULL },
    { 2, "preconditions", MESSAGE, false, &PRECONDITIONS },
    { 3, "orphanDependents", FLAG, false, NULL },
    { 4, "propagationPolicy", TEXT, false, NULL },
    { 5, "dryRun", TEXT, true, NULL },
};
static const struct message DELETE = FIELDS(DELETE_FIELDS);

static const struct {
    const char *kind;
    const struct message *message;
} KINDS[] = {
    { "Namespace", &NAMESPACE },
    { "ConfigMap", &CONFIGMAP },
    { "Secret", &SECRET },
    { "ServiceAccount", &ACCOUNT },
    { "SelfSubjectAccessReview", &ACCESS },
    { "SelfSubjectRulesReview", &RULES },
    { "SelfSubjectReview", &WHO },
    { "DeleteOptions", &DELETE },
};

static const struct field TYPE_FIELDS[] = { { 1, "apiVersion", TEXT, false, NULL },
                                            { 2, "kind", TEXT, false, NULL } };
static const struct message TYPE = FIELDS(TYPE_FIELDS);

/* What is left of a message. */
struct reader {
    struct arena *arena;
    const unsigned char *at, *end;
    unsigned depth;
    size_t *left; /* values that may still come, and one; 0: there were too many */
};

/* One field: its number, and its value, which is a number or bytes. */
struct value {
    unsigned number;
    enum wire wire;
    uint64_t varint;
    struct reader bytes;
};

static bool read_varint(struct reader *reader, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        unsigned char byte = *reader->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool read_value(struct reader *reader, struct value *ret)
{
    uint64_t key, len;

    if (!read_varint(reader, &key) || key >> 3 > UINT32_MAX)
        return false;
    *ret = (struct value){ .number = (unsigned)(key >> 3), .wire = (enum wire)(key & 7) };
    switch (ret->wire) {
    case WIRE_VARINT:
        return read_varint(reader, &ret->varint);
    case WIRE_64:
        len = 8;
        break;
    case WIRE_32:
        len = 4;
        break;
    case WIRE_BYTES:
        if (!read_varint(reader, &len))
            return false;
        break;
    default:
        return false;
    }
    if (len > (uint64_t)(reader->end - reader->at))
        return false;
    ret->bytes = (struct reader){ reader->arena, reader->at, reader->at + len, reader->depth + 1,
                                  reader->left };
    reader->at += len;
    return true;
}

static const char *text_of(const struct value *value)
{
    return arena_strndup(value->bytes.arena, (const char *)value->bytes.at,
                         (size_t)(value->bytes.end - value->bytes.at));
}

static cJSON *make_text(const struct value *value, bool base64)
{
    size_t len = (size_t)(value->bytes.end - value->bytes.at);
    const char *text =
        base64 ? base64_encode(value->bytes.arena, value->bytes.at, len) : text_of(value);

    return cJSON_CreateString(text);
}

/* map<string, V>: key 1, value 2. */
static bool read_entry(struct value *entry, bool base64, cJSON *map)
{
    const char *key = "";
    cJSON *member = NULL;
    struct value value;

    while (entry->bytes.at < entry->bytes.end) {
        if (!read_value(&entry->bytes, &value) || value.wire != WIRE_BYTES) {
            json_free(member);
            return false;
        }
        if (value.number == 1)
            key = text_of(&value);
        else if (!member)
            member = make_text(&value, base64);
    }
    /* not json_set, which would look for the key: it is looked at with all the rest at the end */
    cJSON_AddItemToObject(map, key, member ? member : cJSON_CreateString(""));
    return true;
}

static bool read_time(struct value *value, cJSON *object, const char *name)
{
    char text[RFC3339_LEN];
    struct value part;
    int64_t seconds = 0;

    while (value->bytes.at < value->bytes.end) {
        if (!read_value(&value->bytes, &part))
            return false;
        if (part.number == 1 && part.wire == WIRE_VARINT)
            seconds = (int64_t)part.varint;
    }
    if (seconds > 0 && seconds < INT64_MAX / 1000000)
        json_set_string(object, name, rfc3339_format(seconds * 1000000, text));
    return true;
}

/* The member that a field belongs to: an array or an object that is made with the first of them. */
static cJSON *member_of(cJSON *object, const struct field *field, bool array)
{
    const cJSON *member = json_get(object, field->name);

    if (member)
        return (cJSON *)(uintptr_t)member;
    return array ? json_set_array(object, field->name) : json_set_object(object, field->name);
}

static bool read_message(struct reader *reader, const struct message *message, cJSON *object);

static bool read_field(struct value *value, const struct field *field, cJSON *object)
{
    bool is_number = field->type == NUMBER || field->type == FLAG;

    if (value->wire != (is_number ? WIRE_VARINT : WIRE_BYTES))
        return false;
    switch (field->type) {
    case TEXT:
    case BYTES:
        if (field->repeated)
            json_add(member_of(object, field, true), make_text(value, field->type == BYTES));
        else if (value->bytes.at < value->bytes.end)
            json_set(object, field->name, make_text(value, field->type == BYTES));
        return true;
    case NUMBER:
        json_set_int(object, field->name, (int64_t)value->varint);
        return true;
    case FLAG:
        json_set_bool(object, field->name, value->varint);
        return true;
    case TIME:
        return read_time(value, object, field->name);
    case TEXT_MAP:
    case BYTES_MAP:
        return read_entry(value, field->type == BYTES_MAP, member_of(object, field, false));
    case MESSAGE:
        break;
    }
    return read_message(&value->bytes, field->message,
                        field->repeated ? json_add_object(member_of(object, field, true))
                                        : member_of(object, field, false));
}

/* false: there are too many. */
static bool count_value(const struct reader *reader)
{
    return *reader->left && --*reader->left;
}

static bool read_message(struct reader *reader, const struct message *message, cJSON *object)
{
    struct value value;

    if (reader->depth > MAX_DEPTH)
        return false;
    while (reader->at < reader->end) {
        if (!read_value(reader, &value))
            return false;
        for (size_t i = 0; i < message->len; i++) {
            if (message->fields[i].number == value.number &&
                (!count_value(reader) || !read_field(&value, &message->fields[i], object)))
                return false;
        }
    }
    return true;
}

/* Of runtime.Unknown: what it is, and its bytes. */
static bool read_envelope(struct reader *reader, cJSON *type, struct reader *ret_raw)
{
    struct value value;

    while (reader->at < reader->end) {
        if (!read_value(reader, &value))
            return false;
        if (value.number == 1 && value.wire == WIRE_BYTES &&
            !read_message(&value.bytes, &TYPE, type))
            return false;
        if (value.number == 2 && value.wire == WIRE_BYTES)
            *ret_raw = value.bytes;
    }
    return true;
}

/* What could not be read from the store again is refused: texts that are no UTF-8, a key twice. */
static int as_parsed(struct arena *arena, const cJSON *object, size_t max_values, cJSON **ret,
                     struct error *err)
{
    const struct json_reading reading = { .max_values = max_values };
    const cJSON *tree;
    size_t len;
    const char *text = json_text(arena, object, &len);

    int r = json_parse_with(arena, text, len, &reading, &tree, err);
    if (r == -ERROR_TOO_LARGE)
        return r;
    if (r < 0)
        return error_wrap(err, "the protobuf message is damaged");
    *ret = (cJSON *)(uintptr_t)tree; /* nobody else has it */
    return 0;
}

static int fail(size_t left, size_t max_values, struct error *err)
{
    if (!left)
        return error_set(err, ERROR_TOO_LARGE,
                         "a protobuf message of more than %zu values is not read", max_values);
    return error_set(err, ERROR_INVALID, "the protobuf message is damaged");
}

int protobuf_read(struct arena *arena, const char *bytes, size_t len, size_t max_values,
                  cJSON **ret, struct error *err)
{
    cJSON *object = json_object(arena);
    size_t left = max_values + 1;
    struct reader raw = { .arena = arena, .left = &left };

    if (len < MAGIC_LEN || memcmp(bytes, MAGIC, MAGIC_LEN) != 0)
        return error_set(err, ERROR_INVALID,
                         "provided data does not appear to be a protobuf message, expected prefix");

    struct reader whole = { arena, (const unsigned char *)bytes + MAGIC_LEN,
                            (const unsigned char *)bytes + len, 0, &left };

    if (!read_envelope(&whole, object, &raw))
        return fail(left, max_values, err);

    const char *kind = json_string(json_get(object, "kind"), "");

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (!str_equal(KINDS[i].kind, kind))
            continue;
        if (!read_message(&raw, KINDS[i].message, object))
            return fail(left, max_values, err);
        return as_parsed(arena, object, max_values, ret, err);
    }
    return error_set(err, ERROR_INVALID,
                     "objects of kind '%.60s' are taken as JSON only, not as protobuf", kind);
}
