#include "standalone/api/protobuf.h"

#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"

#define MAGIC "k8s"
#define MAGIC_LEN 4 /* with the NUL */

enum protobuf_wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum protobuf_type { TEXT, TEXTS, FLAG, TEXT_MAP, BYTES_MAP, MESSAGE, MESSAGES };

/* Numbers are those of the generated.proto files of k8s.io/api and k8s.io/apimachinery. */
static const struct protobuf_field {
    const char *in; /* the message, or the kind */
    unsigned number;
    const char *name;
    enum protobuf_type type;
    const char *message; /* of MESSAGE and MESSAGES */
} FIELDS[] = {
    { "TypeMeta", 1, "apiVersion", TEXT, NULL },
    { "TypeMeta", 2, "kind", TEXT, NULL },
    { "Namespace", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "Namespace", 2, "spec", MESSAGE, "NamespaceSpec" },
    { "ConfigMap", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "ConfigMap", 2, "data", TEXT_MAP, NULL },
    { "ConfigMap", 3, "binaryData", BYTES_MAP, NULL },
    { "ConfigMap", 4, "immutable", FLAG, NULL },
    { "Secret", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "Secret", 2, "data", BYTES_MAP, NULL },
    { "Secret", 3, "type", TEXT, NULL },
    { "Secret", 4, "stringData", TEXT_MAP, NULL },
    { "Secret", 5, "immutable", FLAG, NULL },
    { "ServiceAccount", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "ServiceAccount", 4, "automountServiceAccountToken", FLAG, NULL },
    { "SelfSubjectAccessReview", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "SelfSubjectAccessReview", 2, "spec", MESSAGE, "AccessReviewSpec" },
    { "SelfSubjectRulesReview", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "SelfSubjectRulesReview", 2, "spec", MESSAGE, "RulesReviewSpec" },
    { "SelfSubjectReview", 1, "metadata", MESSAGE, "ObjectMeta" },
    { "DeleteOptions", 2, "preconditions", MESSAGE, "Preconditions" },
    { "DeleteOptions", 3, "orphanDependents", FLAG, NULL },
    { "DeleteOptions", 4, "propagationPolicy", TEXT, NULL },
    { "DeleteOptions", 5, "dryRun", TEXTS, NULL },
    { "ObjectMeta", 1, "name", TEXT, NULL },
    { "ObjectMeta", 2, "generateName", TEXT, NULL },
    { "ObjectMeta", 3, "namespace", TEXT, NULL },
    { "ObjectMeta", 5, "uid", TEXT, NULL },
    { "ObjectMeta", 6, "resourceVersion", TEXT, NULL },
    { "ObjectMeta", 11, "labels", TEXT_MAP, NULL },
    { "ObjectMeta", 12, "annotations", TEXT_MAP, NULL },
    { "ObjectMeta", 13, "ownerReferences", MESSAGES, "OwnerReference" },
    { "ObjectMeta", 14, "finalizers", TEXTS, NULL },
    { "OwnerReference", 1, "kind", TEXT, NULL },
    { "OwnerReference", 3, "name", TEXT, NULL },
    { "OwnerReference", 4, "uid", TEXT, NULL },
    { "OwnerReference", 5, "apiVersion", TEXT, NULL },
    { "OwnerReference", 6, "controller", FLAG, NULL },
    { "OwnerReference", 7, "blockOwnerDeletion", FLAG, NULL },
    { "NamespaceSpec", 1, "finalizers", TEXTS, NULL },
    { "AccessReviewSpec", 1, "resourceAttributes", MESSAGE, "ResourceAttributes" },
    { "AccessReviewSpec", 2, "nonResourceAttributes", MESSAGE, "NonResourceAttributes" },
    { "ResourceAttributes", 1, "namespace", TEXT, NULL },
    { "ResourceAttributes", 2, "verb", TEXT, NULL },
    { "ResourceAttributes", 3, "group", TEXT, NULL },
    { "ResourceAttributes", 4, "version", TEXT, NULL },
    { "ResourceAttributes", 5, "resource", TEXT, NULL },
    { "ResourceAttributes", 6, "subresource", TEXT, NULL },
    { "ResourceAttributes", 7, "name", TEXT, NULL },
    { "NonResourceAttributes", 1, "path", TEXT, NULL },
    { "NonResourceAttributes", 2, "verb", TEXT, NULL },
    { "RulesReviewSpec", 1, "namespace", TEXT, NULL },
    { "Preconditions", 1, "uid", TEXT, NULL },
    { "Preconditions", 2, "resourceVersion", TEXT, NULL },
};

/* What is left of a message. */
struct protobuf_reader {
    struct arena *arena;
    const unsigned char *at, *end;
    size_t *left; /* values that may still come, and one; 0: there were too many */
};

/* One field: its number, and its value, which is a number or bytes. */
struct protobuf_value {
    unsigned number;
    enum protobuf_wire wire;
    uint64_t varint;
    struct protobuf_reader bytes;
};

static bool protobuf_read_varint(struct protobuf_reader *reader, uint64_t *ret)
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

static bool protobuf_read_value(struct protobuf_reader *reader, struct protobuf_value *ret)
{
    uint64_t key, len = 0;

    if (!protobuf_read_varint(reader, &key) || key >> 3 > UINT32_MAX)
        return false;
    *ret = (struct protobuf_value){ .number = (unsigned)(key >> 3),
                                    .wire = (enum protobuf_wire)(key & 7) };
    switch (ret->wire) {
    case WIRE_VARINT:
        return protobuf_read_varint(reader, &ret->varint);
    case WIRE_64:
        len = 8;
        break;
    case WIRE_32:
        len = 4;
        break;
    case WIRE_BYTES:
        if (!protobuf_read_varint(reader, &len))
            return false;
        break;
    default:
        return false;
    }
    if (len > (uint64_t)(reader->end - reader->at))
        return false;
    ret->bytes = *reader;
    ret->bytes.end = reader->at + len;
    reader->at += len;
    return true;
}

static cJSON *protobuf_make_text(const struct protobuf_value *value, bool base64)
{
    const struct protobuf_reader *bytes = &value->bytes;
    size_t len = (size_t)(bytes->end - bytes->at);

    return cJSON_CreateString(base64 ? base64_encode(bytes->arena, bytes->at, len)
                                     : arena_strndup(bytes->arena, (const char *)bytes->at, len));
}

/* map<string, V>: key 1, value 2. */
static bool protobuf_read_entry(struct protobuf_reader *entry, bool base64, cJSON *map)
{
    struct protobuf_value value;
    const char *key = "";
    cJSON *member = NULL;

    while (entry->at < entry->end) {
        if (!protobuf_read_value(entry, &value) || value.wire != WIRE_BYTES) {
            json_free(member);
            return false;
        }
        if (value.number == 1)
            key = arena_strndup(entry->arena, (const char *)value.bytes.at,
                                (size_t)(value.bytes.end - value.bytes.at));
        else if (!member)
            member = protobuf_make_text(&value, base64);
    }
    /* not json_set, which would look for the key: it is looked at with all the rest at the end */
    cJSON_AddItemToObject(map, key, member ? member : cJSON_CreateString(""));
    return true;
}

/* The array or object that a field belongs to: it is made with the first of them. */
static cJSON *protobuf_member(cJSON *object, const struct protobuf_field *field)
{
    const cJSON *member = json_get(object, field->name);

    if (member)
        return (cJSON *)(uintptr_t)member;
    return field->type == TEXTS || field->type == MESSAGES ? json_set_array(object, field->name)
                                                           : json_set_object(object, field->name);
}

static bool protobuf_read_message(struct protobuf_reader *reader, const char *message,
                                  cJSON *object);

static bool protobuf_read_field(struct protobuf_value *value, const struct protobuf_field *field,
                                cJSON *object)
{
    if (value->wire != (field->type == FLAG ? WIRE_VARINT : WIRE_BYTES))
        return false;
    switch (field->type) {
    case TEXT:
        if (value->bytes.at < value->bytes.end)
            json_set(object, field->name, protobuf_make_text(value, false));
        return true;
    case TEXTS:
        json_add(protobuf_member(object, field), protobuf_make_text(value, false));
        return true;
    case FLAG:
        json_set_bool(object, field->name, value->varint);
        return true;
    case TEXT_MAP:
    case BYTES_MAP:
        return protobuf_read_entry(&value->bytes, field->type == BYTES_MAP,
                                   protobuf_member(object, field));
    case MESSAGE:
        return protobuf_read_message(&value->bytes, field->message, protobuf_member(object, field));
    case MESSAGES:
        break;
    }
    return protobuf_read_message(&value->bytes, field->message,
                                 json_add_object(protobuf_member(object, field)));
}

/* No message holds one of its own type, so it nests as deep as the table. */
static bool protobuf_read_message(struct protobuf_reader *reader, const char *message,
                                  cJSON *object)
{
    struct protobuf_value value;

    while (reader->at < reader->end) {
        if (!protobuf_read_value(reader, &value))
            return false;
        for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
            if (FIELDS[i].number != value.number || !str_equal(FIELDS[i].in, message))
                continue;
            if (!*reader->left || !--*reader->left ||
                !protobuf_read_field(&value, &FIELDS[i], object))
                return false;
        }
    }
    return true;
}

/* Of runtime.Unknown: the type, and the bytes of the object. */
static bool protobuf_read_envelope(struct protobuf_reader *reader, cJSON *type,
                                   struct protobuf_reader *ret_raw)
{
    struct protobuf_value value;

    while (reader->at < reader->end) {
        if (!protobuf_read_value(reader, &value))
            return false;
        if (value.number == 1 && value.wire == WIRE_BYTES &&
            !protobuf_read_message(&value.bytes, "TypeMeta", type))
            return false;
        if (value.number == 2 && value.wire == WIRE_BYTES)
            *ret_raw = value.bytes;
    }
    return true;
}

/* What could not be read from the store again is refused: texts that are no UTF-8, a key twice. */
static int protobuf_parse_again(struct arena *arena, const cJSON *object, size_t max_values,
                                cJSON **ret, struct error *err)
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

int protobuf_read(struct arena *arena, const char *bytes, size_t len, size_t max_values,
                  cJSON **ret, struct error *err)
{
    cJSON *object = json_object(arena);
    size_t left = max_values + 1;
    struct protobuf_reader raw = { .left = &left };
    const char *kind;
    bool known = false;

    if (len < MAGIC_LEN || memcmp(bytes, MAGIC, MAGIC_LEN) != 0)
        return error_set(err, ERROR_INVALID, "the body is no protobuf message of Kubernetes");

    struct protobuf_reader whole = { arena, (const unsigned char *)bytes + MAGIC_LEN,
                                     (const unsigned char *)bytes + len, &left };
    bool good = protobuf_read_envelope(&whole, object, &raw);

    kind =
        arena_strdup(arena, json_string(json_get(object, "kind"), "")); /* a field may replace it */
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++)
        known = known || str_equal(FIELDS[i].in, kind);
    if (good && !known)
        return error_set(err, ERROR_INVALID, "objects of this kind must be JSON, not protobuf");
    if (good && protobuf_read_message(&raw, kind, object))
        return protobuf_parse_again(arena, object, max_values, ret, err);
    if (!left)
        return error_set(err, ERROR_TOO_LARGE,
                         "a protobuf message of more than %zu values is not read", max_values);
    return error_set(err, ERROR_INVALID, "the protobuf message is damaged");
}
