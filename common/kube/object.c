#include "common/kube/object.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/str.h"
#include "common/kube/packing.h"

/* What kube_object points into: the counter, then the header, then the texts. */
struct object_block {
    atomic_uint references;
    struct kube_object object;
    char bytes[];
};

static struct object_block *block_of(struct kube_object *object)
{
    return (struct object_block *)((char *)object - offsetof(struct object_block, object));
}

bool kube_name_set(struct kube_name *ret, const char *ns, const char *name)
{
    bool ns_fits = str_copy(ret->ns, sizeof(ret->ns), ns ? ns : "");
    bool name_fits = str_copy(ret->name, sizeof(ret->name), name ? name : "");
    return ns_fits && name_fits;
}

bool kube_name_equal(const struct kube_name *a, const struct kube_name *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->ns, b->ns) == 0;
}

static const char *make_key(const char *ns, const char *name, char ret[static KUBE_KEY_LEN])
{
    (void)snprintf(ret, KUBE_KEY_LEN, "%s%s%s", ns, ns[0] ? "/" : "", name);
    return ret;
}

const char *kube_name_key(const struct kube_name *name, char ret[static KUBE_KEY_LEN])
{
    return make_key(name->ns, name->name, ret);
}

const char *kube_object_key(const struct kube_object *object, char ret[static KUBE_KEY_LEN])
{
    return make_key(object->ns, object->name, ret);
}

struct kube_name kube_object_name(const struct kube_object *object)
{
    struct kube_name name;

    (void)kube_name_set(&name, object->ns, object->name); /* it fits */
    return name;
}

/* Copies s with its NUL to *position and moves it on. */
static const char *put_string(char **position, const char *s, size_t len)
{
    char *start = *position;
    memcpy(start, s, len);
    start[len] = '\0';
    *position += len + 1;
    return start;
}

int kube_object_create(const cJSON *json, struct kube_object **ret, struct error *err)
{
    return kube_object_create_with(json, NULL, ret, err);
}

int kube_object_create_with(const cJSON *json, const struct kube_kind *kind,
                            struct kube_object **ret, struct error *err)
{
    const cJSON *metadata = json_get(json, "metadata");
    const char *name = json_string(json_get(metadata, "name"), "");
    const char *uid = json_string(json_get(metadata, "uid"), "");
    const char *version = json_string(json_get(metadata, "resourceVersion"), "");

    struct kube_name key;
    if (!name[0])
        return error_set(err, ERROR_INVALID, "object without 'metadata.name'");
    if (!kube_name_of(json, &key))
        return error_set(err, ERROR_INVALID, "name or namespace of object '%.64s' is too long",
                         name);

    size_t text_len;
    char *text = json_print(json, &text_len);
    if (text_len > UINT32_MAX) {
        free(text);
        return error_set(err, ERROR_TOO_LARGE, "object '%s' has %zu bytes", name, text_len);
    }

    size_t packed_len = json_pack(kind ? kind->phrases : NULL, text, text_len, text);
    size_t uid_len = strlen(uid), version_len = strlen(version);
    size_t ns_len = strlen(key.ns), name_len = strlen(key.name);
    struct object_block *block = xmalloc(sizeof(*block) + ns_len + name_len + uid_len +
                                         version_len + packed_len + 5 /* their NULs */);
    atomic_init(&block->references, 1);

    char *position = block->bytes;
    int64_t created_us = 0;
    (void)rfc3339_parse(json_string(json_get(metadata, "creationTimestamp"), ""), &created_us);
    block->object = (struct kube_object){
        .ns = put_string(&position, key.ns, ns_len),
        .name = put_string(&position, key.name, name_len),
        .uid = put_string(&position, uid, uid_len),
        .resource_version = put_string(&position, version, version_len),
        .packed = put_string(&position, text, packed_len),
        .packed_len = (uint32_t)packed_len,
        .generation = json_int(json_get(metadata, "generation"), 0),
        .created_us = created_us,
        .kind = kind,
        .deleting = json_string(json_get(metadata, "deletionTimestamp"), NULL) != NULL,
    };
    free(text);
    *ret = &block->object;
    return 0;
}

bool kube_object_is_older(const struct kube_object *object, const struct kube_object *than)
{
    if (object->created_us != than->created_us)
        return object->created_us < than->created_us;
    return strcmp(object->uid, than->uid) < 0;
}

struct kube_object *kube_object_ref(struct kube_object *object)
{
    if (object)
        atomic_fetch_add_explicit(&block_of(object)->references, 1, memory_order_relaxed);
    return object;
}

void kube_object_unref(struct kube_object *object)
{
    if (!object)
        return;

    struct object_block *block = block_of(object);
    unsigned before = atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        free(block);
}

const char *kube_object_text(struct arena *arena, const struct kube_object *object, size_t *ret_len)
{
    const struct json_phrases *phrases = object->kind ? object->kind->phrases : NULL;
    size_t len = json_unpacked_len(phrases, object->packed, object->packed_len);
    char *text = arena_alloc(arena, len + 1, 1);

    json_unpack(phrases, object->packed, object->packed_len, text);
    text[len] = '\0';
    if (ret_len)
        *ret_len = len;
    return text;
}

const cJSON *kube_object_json(struct arena *arena, const struct kube_object *object)
{
    const cJSON *json = NULL;
    size_t len;
    const char *text = kube_object_text(arena, object, &len);
    const struct json_reading reading = { .texts = object->kind ? object->kind->texts : NULL,
                                          .own = true };
    int r = json_parse_with(arena, text, len, &reading, &json, NULL);
    assert(r == 0); /* the text was printed from a tree */
    (void)r;
    return json;
}

/* The significant digits of a version; false: not a number. */
static bool version_digits(const char *version, const char **ret, size_t *ret_len)
{
    if (str_is_empty(version) || version[strspn(version, "0123456789")])
        return false;
    *ret = version + strspn(version, "0");
    *ret_len = strlen(*ret);
    return true;
}

int kube_version_compare(const char *a, const char *b)
{
    const char *a_digits = "", *b_digits = "";
    size_t a_len = 0, b_len = 0;
    bool a_valid = version_digits(a, &a_digits, &a_len);
    bool b_valid = version_digits(b, &b_digits, &b_len);

    if (a_valid != b_valid)
        return a_valid ? 1 : -1;
    if (a_len != b_len)
        return a_len > b_len ? 1 : -1;
    return strcmp(a_digits, b_digits);
}

bool kube_name_of(const cJSON *object, struct kube_name *ret)
{
    const cJSON *metadata = json_get(object, "metadata");

    return kube_name_set(ret, json_string(json_get(metadata, "namespace"), ""),
                         json_string(json_get(metadata, "name"), ""));
}

const char *kube_uid(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "uid", NULL), "");
}

bool kube_is_deleting(const cJSON *object)
{
    return json_string(json_path(object, "metadata", "deletionTimestamp", NULL), NULL) != NULL;
}

const cJSON *kube_controller_reference(const cJSON *object)
{
    json_for_each (owner, json_path(object, "metadata", "ownerReferences", NULL)) {
        if (json_bool(json_get(owner, "controller"), false))
            return owner;
    }
    return NULL;
}

const char *kube_controller_uid(const cJSON *object)
{
    return json_string(json_get(kube_controller_reference(object), "uid"), NULL);
}
