#include "standalone/api/write.h"

#include <string.h>

#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/api/options.h"
#include "standalone/api/present.h"
#include "standalone/api/stored.h"
#include "standalone/schema/object_meta.h"

/* Of a generated name: as in apiserver's names.SimpleNameGenerator. */
#define SUFFIX_LEN 5
/* Names that are tried, as there: with a million of a prefix one in a thousand creations fails. */
#define MAX_NAMES 8
/* Writes of a namespace that may come in between while an object is made in it. */
#define MAX_TRIES 100
/* Levels of an object with its managed fields. A list has two above it, a Table in a watch event four, and
 * whoever reads them may have the same limit. */
#define MAX_DEPTH (JSON_MAX_DEPTH - 4)

int write_check_names(struct write *write)
{
    struct api_call *call = write->call;
    cJSON *metadata = object_meta_of(write->object);
    const char *name = object_meta_text(write->object, "name");
    const char *ns = object_meta_text(write->object, "namespace");

    if (call->resource->kind.namespaced && *ns && !str_equal(ns, call->route.ns))
        return call_fail(
            call, 400, "BadRequest",
            "the namespace of the provided object does not match the namespace sent on "
            "the request");
    if (!*name && *call->route.name)
        return call_fail(
            call, 400, "BadRequest",
            "the name of the object (%s based on URL) was undeterminable: name must be "
            "provided",
            call->route.name);
    if (*call->route.name && *name && !str_equal(name, call->route.name))
        return call_fail(call, 400, "BadRequest",
                         "the name of the object (%s) does not match the name on the URL (%s)",
                         name, call->route.name);
    if (*call->route.name)
        json_set_string(metadata, "name", call->route.name);
    if (call->resource->kind.namespaced)
        json_set_string(metadata, "namespace", call->route.ns);
    else
        json_remove(metadata, "namespace");
    return 0;
}

int write_check_namespace(struct api_call *call, const char *name)
{
    const char *ns = call->route.ns;
    const cJSON *tree = NULL;
    struct kv_value value;
    struct error err;

    if (!call->resource->kind.namespaced)
        return 0;

    const char *key = arena_printf(call->arena, "/registry/core/namespaces/%s", ns);
    int r = kv_get(call->api->kv, call->arena, key, 0, &value, &err);
    if (r == -ERROR_NOT_FOUND) {
        call->resource = resources_find(call->api->resources, "", "v1", "namespaces");
        return call_fail_not_found(call, ns);
    }
    if (r == 0)
        r = json_parse_own(call->arena, value.text, value.len, &tree, &err);
    if (r < 0)
        return call_fail_store(call, &err);
    if (json_path(tree, "metadata", "deletionTimestamp", NULL))
        return call_fail_terminating(call, name);
    call->place = (struct kv_guard){ key, value.revision };
    return 0;
}

static const char *name_or_prefix(const cJSON *object)
{
    const char *name = object_meta_text(object, "name");

    return *name ? name : object_meta_text(object, "generateName");
}

/* The reply: the object as it is now. */
static int reply_with(struct write *write, uint64_t revision, int code)
{
    if (revision)
        stored_set_version(write->object, revision);
    return present_object(write->call, code, write->object);
}

static bool is_finished(const cJSON *object)
{
    return json_path(object, "metadata", "deletionTimestamp", NULL) &&
           !json_len(json_path(object, "metadata", "finalizers", NULL)) &&
           !json_len(json_path(object, "spec", "finalizers", NULL));
}

static const char *key_of(const struct write *write)
{
    return stored_key(write->call->arena, write->call->resource,
                      object_meta_text(write->object, "namespace"),
                      object_meta_text(write->object, "name"));
}

/* stored_text changes what it is given. */
static int put(struct write *write, uint64_t *ret, struct error *err)
{
    struct api_call *call = write->call;
    cJSON *copy = arena_own(call->arena, json_copy(write->object), json_free);
    size_t len;
    const char *text = stored_text(call->arena, call->resource, copy, &len);

    if (write->live || !call->place.key)
        return kv_put(call->api->kv, key_of(write), text, len, write->revision, ret, err);
    return kv_put_guarded(call->api->kv, key_of(write), text, len, 0, &call->place, ret, err);
}

/* The namespace has changed while the object was made: it may be labelled, or on its way out. What is
 * written when it is being deleted would not be seen by who empties it. */
static int put_in_namespace(struct write *write, uint64_t *ret, struct error *err,
                            bool *ret_refused)
{
    int r = put(write, ret, err);

    for (int i = 1; r == -ERROR_GONE && i < MAX_TRIES; i++) {
        if (write_check_namespace(write->call, object_meta_text(write->object, "name")) < 0) {
            *ret_refused = true;
            return r;
        }
        r = put(write, ret, err);
    }
    if (r == -ERROR_GONE)
        return error_set(err, ERROR_UNAVAILABLE, "namespace '%s' changes too often",
                         write->call->route.ns);
    return r;
}

static int fail_exists(struct write *write)
{
    struct api_call *call = write->call;
    const char *name = object_meta_text(write->object, "name");
    const char *state = "";
    const cJSON *tree = NULL;
    struct kv_value value;
    struct error err;

    if (kv_get(call->api->kv, call->arena, key_of(write), 0, &value, &err) == 0 &&
        json_parse_own(call->arena, value.text, value.len, &tree, &err) == 0 &&
        json_path(tree, "metadata", "deletionTimestamp", NULL))
        state = "object is being deleted: ";
    if (!*object_meta_text(write->object, "generateName"))
        return call_fail_named(call, 409, "AlreadyExists", name, "%s%s \"%s\" already exists",
                               state, call_resource_name(call), name);
    return call_fail_generated(call, name, state);
}

/* 1: another name is generated, and tried. */
static int meet_taken(struct write *write)
{
    return write->more_names ? 1 : fail_exists(write);
}

/* A creation that is tried only: whether the name is free. */
static int try_only(struct write *write, int code)
{
    struct api_call *call = write->call;
    struct kv_value value;
    struct error err;

    if (!write->live) {
        int r = kv_get(call->api->kv, call->arena, key_of(write), 0, &value, &err);

        if (r == 0)
            return write->or_changed ? 1 : meet_taken(write);
        if (r != -ERROR_NOT_FOUND)
            return call_fail_store(call, &err);
    }
    if (!write->live && *write->tried_version)
        json_set_string(object_meta_of(write->object), "resourceVersion", write->tried_version);
    return reply_with(write, 0, code);
}

/* Somebody else was faster. */
static bool is_overtaken(int r)
{
    return r == -ERROR_EXISTS || r == -ERROR_CONFLICT || r == -ERROR_NOT_FOUND;
}

int write_store(struct write *write, int code)
{
    struct api_call *call = write->call;
    uint64_t revision = 0;
    bool is_refused = false;
    struct error err;
    int r;

    if (value_depth(write->object, MAX_DEPTH) > MAX_DEPTH)
        return call_fail(call, 400, "BadRequest", "exceeded max depth");
    if (json_count(write->object, API_MAX_OBJECT_VALUES) == API_MAX_OBJECT_VALUES)
        return call_fail(call, 413, "RequestEntityTooLarge",
                         "Request entity too large: an object has at most %d values",
                         API_MAX_OBJECT_VALUES);
    json_remove(object_meta_of(write->object), "resourceVersion");
    if (write->live)
        stored_set_version(write->object, write->revision);
    if (call->query.dry_run)
        return try_only(write, code);

    bool ends = write->live && is_finished(write->object);

    if (ends)
        r = kv_delete(call->api->kv, key_of(write), write->revision, &revision, &err);
    else if (write->live && json_equal(write->live, write->object))
        return reply_with(write, 0, code); /* nothing changed: the version stays */
    else
        r = put_in_namespace(write, &revision, &err, &is_refused);
    if (is_refused)
        return -1;
    if (r == -ERROR_EXISTS && !write->or_changed)
        return meet_taken(write);
    if (is_overtaken(r))
        return 1;
    if (ends) /* what is gone has the version that it had */
        revision = 0;
    return r < 0 ? call_fail_store(call, &err) : reply_with(write, revision, code);
}

static void generate_name(struct write *write)
{
    static const char LETTERS[] = "bcdfghjklmnpqrstvwxz2456789";
    static const char DIGITS[] = "0123456789abcdef";
    cJSON *metadata = object_meta_of(write->object);
    const char *prefix = object_meta_text(write->object, "generateName");
    char random[UUID_LEN], suffix[SUFFIX_LEN + 1] = "";

    (void)write->call->api->make_uuid(random);
    for (size_t i = 0; i < SUFFIX_LEN; i++) {
        size_t high = (size_t)(strchr(DIGITS, random[24 + 2 * i]) - DIGITS);
        size_t low = (size_t)(strchr(DIGITS, random[25 + 2 * i]) - DIGITS);

        suffix[i] = LETTERS[(high * 16 + low) % (sizeof(LETTERS) - 1)];
    }
    json_set_string(metadata, "name",
                    arena_printf(write->call->arena, "%.*s%s",
                                 (int)str_utf8_cut(prefix, strlen(prefix), 63 - SUFFIX_LEN), prefix,
                                 suffix));
}

static int create_named(struct write *write)
{
    struct api_call *call = write->call;
    const char *version =
        arena_strdup(call->arena, object_meta_text(write->object, "resourceVersion"));
    int64_t number = 0;
    bool versioned = str_to_int64(version, &number) && number != 0;
    bool is_post = str_equal(call->request->method, "POST");

    if (write_admit(write) < 0)
        return -1;
    if (versioned && !call->query.dry_run && is_post)
        return call_fail(call, 500, NULL,
                         "resourceVersion should not be set on objects to be created");
    write->tried_version = is_post ? version : "";
    return write_store(write, 201);
}

int write_create(struct write *write)
{
    cJSON *nameless = write->object;
    int r = 1;

    if (*object_meta_text(nameless, "name") || !*object_meta_text(nameless, "generateName"))
        return create_named(write);
    write->more_names = MAX_NAMES;
    while (r > 0 && write->more_names) {
        write->more_names--;
        write->object = arena_own(write->call->arena, json_copy(nameless), json_free);
        generate_name(write);
        r = create_named(write);
    }
    return r;
}

/* What is the server's nobody sets, nor holds. An apply that creates does not forget it, as in the API server. */
static void wipe_metadata(cJSON *metadata)
{
    static const char *const NAMES[] = { "creationTimestamp", "uid", "deletionTimestamp",
                                         "deletionGracePeriodSeconds", "selfLink" };

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        json_remove(metadata, NAMES[i]);
}

int call_create(struct api_call *call)
{
    struct write write = { .call = call, .subresource = "" };
    cJSON *object;

    if (call_check_type(call) < 0 || options_check_write(call, "CreateOptions") < 0 ||
        call_body(call, &object) < 0 || write_decode(&write, object, false) < 0 ||
        write_check_names(&write) < 0 ||
        write_check_namespace(call, name_or_prefix(write.object)) < 0)
        return -1;
    wipe_metadata(object_meta_of(write.object));
    return write_create(&write);
}
