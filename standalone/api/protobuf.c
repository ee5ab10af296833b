#include "standalone/api/protobuf.h"

#include <string.h>

#include <kube.pb-c.h>

#include "common/base/digest.h"
#include "common/base/str.h"

#define MAGIC "k8s"
#define MAGIC_LEN 4 /* with the NUL */
/* For each value: the message of an entry, its key and its value; and what the library takes besides. */
#define ALLOCATIONS_EACH 3
#define MORE_ALLOCATIONS 1000
/* For each byte of a message: its strings are copied, with the envelope once more. */
#define BYTES_EACH 2
#define MORE_BYTES ((size_t)2 << 20)

static const ProtobufCMessageDescriptor *const KINDS[] = {
    &kube__namespace__descriptor,
    &kube__config_map__descriptor,
    &kube__secret__descriptor,
    &kube__service_account__descriptor,
    &kube__self_subject_access_review__descriptor,
    &kube__self_subject_review__descriptor,
    &kube__delete_options__descriptor,
};

/* A message that takes more is refused: a value may be two bytes in it, and 200 in memory. */
struct protobuf_budget {
    struct arena *arena;
    size_t allocations, bytes; /* that are left */
    bool is_spent;
};

static void *protobuf_alloc(void *data, size_t size)
{
    struct protobuf_budget *budget = data;

    budget->is_spent = budget->is_spent || !budget->allocations || size > budget->bytes;
    if (budget->is_spent)
        return NULL;
    budget->allocations--;
    budget->bytes -= size;
    return arena_alloc(budget->arena, size, 1);
}

static void protobuf_free(void *data UNUSED, void *pointer UNUSED)
{
    /* with the arena */
}

/* --- trees ------------------------------------------------------------------------------------ */

static cJSON *protobuf_tree(struct arena *arena, const ProtobufCMessage *message, cJSON *object);

/* The caller's; at: the element. */
static cJSON *protobuf_value(struct arena *arena, const ProtobufCFieldDescriptor *field,
                             const void *at)
{
    const ProtobufCBinaryData *data = at;

    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return cJSON_CreateBool(*(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_STRING:
        return cJSON_CreateString(*(const char *const *)at);
    case PROTOBUF_C_TYPE_BYTES:
        return cJSON_CreateString(data->len ? base64_encode(arena, data->data, data->len) : "");
    default:
        return protobuf_tree(arena, *(const ProtobufCMessage *const *)at, cJSON_CreateObject());
    }
}

static bool protobuf_has(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
    const char *base = (const char *)message;

    if (field->type == PROTOBUF_C_TYPE_BOOL || field->type == PROTOBUF_C_TYPE_BYTES)
        return *(const protobuf_c_boolean *)(base + field->quantifier_offset);
    /* an empty string is as none */
    const char *pointer = *(const char *const *)(base + field->offset);
    return pointer && (field->type != PROTOBUF_C_TYPE_STRING || *pointer);
}

/* An entry of a map: key 1, value 2. */
static void protobuf_add_entry(struct arena *arena, const ProtobufCMessage *entry, cJSON *map)
{
    const ProtobufCFieldDescriptor *fields = entry->descriptor->fields;
    const char *key = *(const char *const *)((const char *)entry + fields[0].offset);
    const void *value = (const char *)entry + fields[1].offset;
    bool is_text = fields[1].type == PROTOBUF_C_TYPE_STRING;

    /* not json_set, which would look for the key: it is looked at with all the rest at the end */
    cJSON_AddItemToObject(map, key ? key : "",
                          is_text && !*(const char *const *)value
                              ? cJSON_CreateString("")
                              : protobuf_value(arena, &fields[1], value));
}

static void protobuf_add_repeated(struct arena *arena, const ProtobufCFieldDescriptor *field,
                                  const ProtobufCMessage *message, cJSON *object)
{
    size_t len = *(const size_t *)((const char *)message + field->quantifier_offset);
    void *const *items = *(void *const *const *)((const char *)message + field->offset);
    const ProtobufCMessageDescriptor *of = field->descriptor;
    bool is_map = field->type == PROTOBUF_C_TYPE_MESSAGE && str_has_suffix(of->short_name, "Entry");

    if (!len)
        return;

    cJSON *container =
        is_map ? json_set_object(object, field->name) : json_set_array(object, field->name);

    for (size_t i = 0; i < len; i++) {
        if (is_map)
            protobuf_add_entry(arena, items[i], container);
        else
            json_add(container, protobuf_value(arena, field, &items[i]));
    }
}

/* Adds the fields of a message, and returns object. No message holds one of its own type, so it nests as deep as
 * kube.proto does. */
static cJSON *protobuf_tree(struct arena *arena, const ProtobufCMessage *message, cJSON *object)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
            protobuf_add_repeated(arena, field, message, object);
        else if (protobuf_has(field, message))
            json_set(object, field->name,
                     protobuf_value(arena, field, (const char *)message + field->offset));
    }
    return object;
}

/* --- objects ---------------------------------------------------------------------------------- */

int protobuf_read(struct arena *arena, const char *bytes, size_t len, size_t max_values,
                  cJSON **ret, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    struct protobuf_budget budget = { .arena = scratch,
                                      .allocations =
                                          ALLOCATIONS_EACH * max_values + MORE_ALLOCATIONS,
                                      .bytes = BYTES_EACH * len + MORE_BYTES };
    ProtobufCAllocator allocator = { protobuf_alloc, protobuf_free, &budget };
    const struct json_reading reading = { .max_values = max_values };
    const ProtobufCMessageDescriptor *kind = NULL;
    const ProtobufCMessage *message = NULL;
    const Kube__Unknown *envelope;
    const cJSON *tree;

    if (len < MAGIC_LEN || memcmp(bytes, MAGIC, MAGIC_LEN) != 0)
        return error_set(err, ERROR_INVALID, "the body is no protobuf message of Kubernetes");
    envelope = (const Kube__Unknown *)(const void *)protobuf_c_message_unpack(
        &kube__unknown__descriptor, &allocator, len - MAGIC_LEN,
        (const uint8_t *)bytes + MAGIC_LEN);
    for (size_t i = 0; envelope && envelope->typemeta && i < ARRAY_LEN(KINDS); i++) {
        if (str_equal(envelope->typemeta->kind, KINDS[i]->short_name))
            kind = KINDS[i];
    }
    if (envelope && !kind)
        return error_set(err, ERROR_INVALID, "objects of this kind must be JSON, not protobuf");
    if (envelope)
        message =
            protobuf_c_message_unpack(kind, &allocator, envelope->raw.len, envelope->raw.data);
    if (budget.is_spent)
        return error_set(err, ERROR_TOO_LARGE,
                         "a protobuf message of more than %zu values is not read", max_values);
    if (!message)
        return error_set(err, ERROR_INVALID, "the protobuf message is damaged");

    /* The store could not read back a text that is no UTF-8, or a key twice: both are refused. */
    cJSON *object = protobuf_tree(scratch, &envelope->typemeta->base, json_object(scratch));
    const char *text = json_text(arena, protobuf_tree(scratch, message, object), &len);
    int r = json_parse_with(arena, text, len, &reading, &tree, err);
    if (r < 0)
        return r == -ERROR_TOO_LARGE ? r : error_wrap(err, "the protobuf message is damaged");
    *ret = (cJSON *)(uintptr_t)tree; /* no other code has it */
    return 0;
}
