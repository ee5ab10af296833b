/* The first half of a write: what the client sent, read as the kind that it must be. */
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/schema.h"
#include "standalone/api/write.h"
#include "standalone/schema/decode.h"
#include "standalone/schema/object_meta.h"

#define MAX_SHOWN_OBJECT 200
/* Names of unknown fields in one message; there are at most SCHEMA_MAX_UNKNOWN of them, of any length. */
#define MAX_UNKNOWN_TEXT 8192

/* Nothing is shown of a Secret. */
static int refuse_showing(struct write *write, const char *shown, size_t shown_len, const char *why)
{
    struct api_call *call = write->call;
    struct field_errors *errors = field_errors_create(call->arena);
    size_t len = str_utf8_cut(shown, shown_len, MAX_SHOWN_OBJECT);
    const char *text = arena_strndup(call->arena, shown, len);
    bool secret = !call->resource->custom && str_equal(call->resource->kind.plural, "secrets");

    field_error(errors, FIELD_ERROR_INVALID, "patch",
                secret ? NULL : arena_own(call->arena, cJSON_CreateString(text), json_free),
                "%.300s", why);

    cJSON *status = field_errors_status(errors, "", "", "");

    json_remove((cJSON *)(uintptr_t)json_get(status, "details"), "kind");
    return call_fail_status(call, status);
}

/* A patch that makes what is no object of the kind: its text, and why. */
static int refuse_patched(struct write *write, const char *why)
{
    const struct api_request *request = write->call->request;

    return refuse_showing(write, request->body, request->body_len, why);
}

static int refuse(struct write *write, const char *why, bool patched)
{
    if (patched)
        return refuse_patched(write, why);
    return call_fail(write->call, 400, "BadRequest",
                     "%s in version \"%s\" cannot be handled as a %s: %s", write->said_kind,
                     write->said_version, write->call->resource->kind.kind, why);
}

/* NULL: nothing built in is known by this name. */
static const struct resource *registered(struct api_call *call, const char *version,
                                         const char *said)
{
    const struct resource *resource = resources_find_kind(call->api->resources, version, said);

    return resource && !resource->custom ? resource : NULL;
}

static int refuse_kind(struct write *write, const char *version, bool patched)
{
    const char *why = arena_printf(write->call->arena,
                                   "no kind \"%s\" is registered for version \"%s\" in scheme "
                                   "\"pkg/runtime/scheme.go:110\"",
                                   write->said_kind, version);

    return refuse(write, why, patched);
}

/* What does not say which kind it is. */
static int refuse_unrecognized(struct write *write, const char *why, bool patched)
{
    if (patched)
        return refuse_patched(write, why);
    return call_fail(write->call, 400, "BadRequest",
                     "the object provided is unrecognized (must be of type %s): %s",
                     write->call->resource->kind.kind, why);
}

/* A list took the place of an object that was patched: it is shown as Go writes it. */
static int refuse_no_object(struct write *write, const cJSON *json, bool patched)
{
    const char *why = call_no_object(write->call, json);

    if (!patched || !cJSON_IsArray(json))
        return refuse_unrecognized(write, why, patched);

    const char *text = json_text(write->call->arena, json, NULL);

    return refuse_showing(write, text, strlen(text), why);
}

static int check_text(struct write *write, const cJSON *object, const char *name, bool patched)
{
    const cJSON *value = json_get(object, name);

    if (!value || cJSON_IsNull(value) || cJSON_IsString(value))
        return 0;
    if (write->from_tree)
        return refuse_patched(write, json_is_number(value) && value_is_int64(value)
                                         ? "cannot convert int64 to string"
                                         : "unrecognized type: string");
    return refuse_unrecognized(write,
                               arena_printf(write->call->arena,
                                            "couldn't get version/kind; json parse error: json: "
                                            "cannot unmarshal %s into Go struct field .%s of type "
                                            "string",
                                            value_word(value), name),
                               patched);
}

static int check_texts(struct write *write, const cJSON *object, bool patched)
{
    return check_text(write, object, "kind", patched) < 0
               ? -1
               : check_text(write, object, "apiVersion", patched);
}

static int check_version(struct write *write, const char *version)
{
    struct api_call *call = write->call;
    const char *expected = resource_api_version(call->arena, call->resource);

    if (str_equal(version, expected))
        return 0;
    return call_fail(call, 400, "BadRequest",
                     "the API version in the data (%s) does not match the expected API version "
                     "(%s)",
                     version, expected);
}

/* Go's package of what is kept of a kind, whatever its versions. */
static const char *package(const struct write *write)
{
    const char *storage = write->call->resource->storage;

    return write->call->resource->custom
               ? "v1"
               : arena_strndup(write->call->arena, storage, strcspn(storage, "./"));
}

static int check_name(struct write *write, const char *said)
{
    const struct kube_kind *kind = &write->call->resource->kind;

    if (str_equal(said, kind->kind))
        return 0;
    return call_fail(write->call, 400, "BadRequest",
                     "%s in version \"%s\" cannot be handled as a %s: converting (v1.%s) to "
                     "(%s.%s): unknown conversion",
                     said, kind->version, kind->kind, said, package(write), kind->kind);
}

static int check_said(struct write *write, const char *version, const char *kind)
{
    return check_version(write, version) < 0 ? -1 : check_name(write, kind);
}

/* Keeps what the body says that it is; a built-in kind is looked for by it. */
static void keep_said(struct write *write, const char *version, const char *kind)
{
    struct api_call *call = write->call;
    const struct resource *resource = call->resource;
    const char *slash = strchr(version, '/');

    write->said_kind = arena_strdup(call->arena, kind); /* the object's own go with what is set */
    write->said_version = arena_strdup(call->arena, slash ? slash + 1 : version);
    if (!resource->custom && (!str_equal(version, resource_api_version(call->arena, resource)) ||
                              !str_equal(kind, resource->kind.kind)))
        write->said = registered(call, version, kind);
}

/* What a client sends becomes a struct of the kind that it says, and is told what does not fit that one, before it
 * must be of this kind; a custom one keeps what it says until then. A tree becomes one of this kind, whatever it
 * says. */
static int check_kind(struct write *write, cJSON *object, bool patched)
{
    struct api_call *call = write->call;
    const struct resource *resource = call->resource;
    const char *said = json_string(json_get(object, "kind"), "");
    const char *version = json_string(json_get(object, "apiVersion"), "");

    if (check_texts(write, object, patched) < 0)
        return -1;
    if (write->from_tree)
        said = version = "";
    if (!resource->custom) { /* the decoder has these from the path */
        said = *said ? said : resource->kind.kind;
        version = *version ? version : resource_api_version(call->arena, resource);
    }
    if (!*said)
        return refuse_unrecognized(write, "Object 'Kind' is missing", patched);
    keep_said(write, version, said);
    if (!write->said)
        return refuse_kind(write, version, patched);
    if (patched && check_said(write, version, said) < 0)
        return -1;
    if (resource->custom)
        return 0;
    json_set_string(object, "kind", write->said->kind.kind);
    json_set_string(object, "apiVersion", resource_api_version(call->arena, write->said));
    return 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "unknown field" of each. Those of a tree have no order in Go, and are told in that of their texts. */
static const char **unknown_texts(const struct write *write, const cJSON *unknown)
{
    struct arena *arena = write->call->arena;
    const char **texts = arena_array(arena, const char *, json_len(unknown));
    size_t len = 0;

    json_for_each (path, unknown)
        texts[len++] = arena_printf(arena, "unknown field \"%s\"", json_string(path, ""));
    if (write->from_tree)
        qsort(texts, len, sizeof(*texts), compare_texts);
    return texts;
}

/* As long as it may be. */
static const char *joined(struct arena *arena, const char *const *texts, size_t len)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(MAX_UNKNOWN_TEXT);

    for (size_t i = 0; i < len; i++) {
        if (!buf_printf(&text, "%s%s", i ? ", " : "", texts[i]))
            return arena_printf(arena, "%s%s...", buf_string(&text), text.len ? ", " : "");
    }
    return arena_strdup(arena, buf_string(&text));
}

static int check_unknown(struct write *write, const cJSON *unknown, bool patched)
{
    struct api_call *call = write->call;
    const char *validation = call->query.field_validation;
    size_t len = json_len(unknown);

    if (!len || str_equal(validation, "Ignore"))
        return 0;

    const char **texts = unknown_texts(write, unknown);

    if (str_equal(validation, "Strict"))
        return refuse(
            write,
            arena_printf(call->arena, "strict decoding error: %s", joined(call->arena, texts, len)),
            patched);
    for (size_t i = 0; i < len; i++)
        call_warn(call, texts[i]);
    return 0;
}

/* What the decoder of a built-in kind calls it. */
static const char *decoder_kind(const struct resource *resource)
{
    return resource->custom ? NULL : resource->kind.kind;
}

/* By the types of its members. */
static int check_types(struct write *write, cJSON *object, cJSON *unknown, bool patched)
{
    const struct resource *resource = write->said;
    struct error err;
    int r = object_meta_decode(resource->schema, decoder_kind(resource), object, unknown, &err);

    if (r == 0 && schema_check_numbers(object, &err) < 0)
        return refuse(write, err.message, false);
    if (r == 0 && !resource->custom)
        r = (write->from_tree ? schema_convert : schema_decode)(resource->schema,
                                                                resource->kind.kind, object, &err);
    return r < 0 ? refuse(write, err.message, patched) : 0;
}

/* What the schema does not know goes, and is told. */
static void prune(const struct write *write, cJSON *object, cJSON *unknown)
{
    const struct resource *resource = write->said;
    cJSON *pruned = json_array(write->call->arena);

    if (resource->custom)
        schema_prune(resource->schema, object, pruned);
    else
        schema_prune_in_order(resource->schema, object, pruned);
    json_for_each (path, pruned) {
        if (json_len(unknown) < SCHEMA_MAX_UNKNOWN)
            json_add_string(unknown, json_string(path, ""));
    }
}

int write_decode(struct write *write, cJSON *object, bool patched)
{
    struct api_call *call = write->call;
    const struct resource *resource = call->resource;
    cJSON *unknown = json_array(call->arena);

    if (cJSON_IsNull(object))
        object = json_object(call->arena); /* of a struct or a map of Go it changes nothing */
    if (!cJSON_IsObject(object))
        return refuse_no_object(write, object, patched);
    write->said = resource;
    if (check_kind(write, object, patched) < 0)
        return -1;
    if (!cJSON_IsObject(json_get(object, "metadata")) && !json_get(object, "metadata"))
        (void)json_set_object(object, "metadata");
    if (check_types(write, object, unknown, patched) < 0 ||
        check_name(write, write->said->kind.kind) < 0)
        return -1;
    prune(write, object, unknown);
    /* What is applied was compared with the schema; what may be anything there is not looked into. */
    if (!write->managed && check_unknown(write, unknown, patched) < 0)
        return -1;
    if (check_said(write, json_string(json_get(object, "apiVersion"), ""),
                   json_string(json_get(object, "kind"), "")) < 0)
        return -1;
    if (resource->custom)
        schema_default(resource->schema, object);
    if (resource->fill)
        resource->fill(call->arena, object, write->live);
    write->object = object;
    return 0;
}
