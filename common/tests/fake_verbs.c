#include "common/tests/fake_verbs.h"

#include <string.h>

#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/tests/apply_patch.h"

static void answer(struct fake_exchange *x, int status, const cJSON *json)
{
    size_t len;
    const char *text = json_text(x->arena, json, &len);

    *x->ret = (struct http_response){ .status = status, .body = text, .body_len = len };
}

void fake_refuse(struct fake_exchange *x, int code, const char *reason, const char *message)
{
    cJSON *status = json_object(x->arena);

    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_string(status, "status", code < 400 ? "Success" : "Failure");
    json_set_string(status, "message", message);
    json_set_string(status, "reason", reason);
    json_set_int(status, "code", code);
    answer(x, code, status);
}

static void refuse_missing(struct fake_exchange *x)
{
    fake_refuse(x, 404, "NotFound",
                arena_printf(x->arena, "%s \"%s\" not found", x->path.plural, x->path.name));
}

static void refuse_conflict(struct fake_exchange *x, const char *what)
{
    fake_refuse(
        x, 409, "Conflict",
        arena_printf(x->arena,
                     "Operation cannot be fulfilled on %s \"%s\": %s; please apply your changes "
                     "to the latest version and try again",
                     x->path.plural, x->path.name, what));
}

/* uid and resourceVersion, where wanted names them, must be those of the object. */
static bool meets(struct fake_exchange *x, const cJSON *object, const cJSON *wanted)
{
    const char *uid = json_string(json_get(wanted, "uid"), "");
    const char *version = json_string(json_get(wanted, "resourceVersion"), "");

    if (*uid && !str_equal(uid, fake_metadata_string(object, "uid")))
        refuse_conflict(x, "the UID in the precondition is another one");
    else if (*version && !str_equal(version, fake_metadata_string(object, "resourceVersion")))
        refuse_conflict(x, "the object has been modified");
    else
        return true;
    return false;
}

/* All but metadata and status: what a generation is about. */
static bool same_spec(const cJSON *a, const cJSON *b)
{
    cJSON *trees[] = { json_copy(a), json_copy(b) };

    for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
        json_remove(trees[i], "metadata");
        json_remove(trees[i], "status");
    }
    bool same = json_equal(trees[0], trees[1]);
    json_free(trees[0]);
    json_free(trees[1]);
    return same;
}

static void raise_generation(cJSON *object)
{
    json_set_int(fake_metadata(object), "generation",
                 json_int(json_path(object, "metadata", "generation", NULL), 0) + 1);
}

static bool has_finalizers(const cJSON *object)
{
    return json_len(json_path(object, "metadata", "finalizers", NULL)) > 0;
}

static bool adds_finalizer(const cJSON *old, const cJSON *current)
{
    json_for_each (added, json_path(current, "metadata", "finalizers", NULL)) {
        bool known = false;
        json_for_each (there, json_path(old, "metadata", "finalizers", NULL))
            known = known || json_equal(there, added);
        if (!known)
            return true;
    }
    return false;
}

/* What becomes of old when body is written to the resource or its status. */
static cJSON *merge_write(const cJSON *old, const cJSON *body, bool status)
{
    static const char *const SERVERS_OWN[] = {
        "name",           "namespace",         "uid",
        "generation",     "creationTimestamp", "deletionTimestamp",
        "resourceVersion"
    };
    cJSON *current = json_copy(status ? old : body);

    if (status) {
        json_set_copy(current, "status", json_get(body, "status"));
        return current;
    }
    json_set_copy(current, "status", json_get(old, "status"));
    for (size_t i = 0; i < ARRAY_LEN(SERVERS_OWN); i++)
        json_set_copy(fake_metadata(current), SERVERS_OWN[i],
                      json_path(old, "metadata", SERVERS_OWN[i], NULL));
    if (!same_spec(old, current))
        raise_generation(current);
    return current;
}

/* PUT, and every patch once it has been applied to a copy. */
static void write_object(struct fake_exchange *x, struct fake_entry *entry, const cJSON *body)
{
    const cJSON *old = entry->object;
    bool deleting = *fake_metadata_string(old, "deletionTimestamp");

    if (!meets(x, old, json_get(body, "metadata")))
        return;
    if (deleting && adds_finalizer(old, body)) {
        fake_refuse(x, 422, "Invalid",
                    "metadata.finalizers: Forbidden: the object is being deleted");
        return;
    }

    cJSON *current = merge_write(old, body, x->path.is_status);
    if (json_equal(old, current)) {
        answer(x, 200, old);
        json_free(current);
    } else if (deleting && !has_finalizers(current)) {
        answer(x, 200, current);
        json_free(current);
        fake_store_remove(x->store, entry);
    } else {
        answer(x, 200, fake_store_replace(x->store, entry, current));
    }
}

static void put_object(struct fake_exchange *x, struct fake_entry *entry, const cJSON *body)
{
    if (*fake_metadata_string(body, "resourceVersion"))
        write_object(x, entry, body);
    else
        fake_refuse(x, 422, "Invalid", "metadata.resourceVersion: must be specified for an update");
}

static void create_object(struct fake_exchange *x, struct fake_entry *entry UNUSED,
                          const cJSON *body)
{
    const char *name = fake_metadata_string(body, "name"),
               *ns = fake_metadata_string(body, "namespace");

    x->path.name = name;
    if (!*name || !*json_string(json_get(body, "kind"), "") ||
        !*json_string(json_get(body, "apiVersion"), "")) {
        fake_refuse(x, 400, "BadRequest", "name, kind or apiVersion is missing");
    } else if (*ns && !str_equal(ns, x->path.ns)) {
        fake_refuse(x, 400, "BadRequest", "the namespace is not that of the request");
    } else if (*fake_metadata_string(body, "resourceVersion")) {
        fake_refuse(x, 500, "InternalError",
                    "resourceVersion should not be set on objects to be created");
    } else if (fake_store_find(x->store, fake_path_key(x->arena, &x->path))) {
        fake_refuse(x, 409, "AlreadyExists",
                    arena_printf(x->arena, "%s \"%s\" already exists", x->path.plural, name));
    } else {
        cJSON *object = json_copy(body);
        json_remove(object, "status");
        if (*x->path.ns)
            json_set_string(fake_metadata(object), "namespace", x->path.ns);
        fake_store_complete(x->store, object);
        answer(x, 201, fake_store_insert(x->store, fake_path_key(x->arena, &x->path), object));
    }
}

static void patch_object(struct fake_exchange *x, struct fake_entry *entry, const cJSON *body)
{
    const char *type = x->request->content_type, *problem = NULL;
    cJSON *current = NULL, *patched;
    struct error err;

    if (!entry) {
        refuse_missing(x);
        return;
    }

    if (str_equal(type, "application/merge-patch+json"))
        current = apply_merge_patch(json_copy(entry->object), body);
    else if (!str_equal(type, "application/json-patch+json"))
        problem = NULL;
    else if (json_patch_apply(x->arena, entry->object, body, &patched, &err) == 0)
        current = json_copy(patched);
    else
        problem = arena_strdup(x->arena, err.message);

    if (current && !str_equal(fake_metadata_string(current, "uid"),
                              fake_metadata_string(entry->object, "uid")))
        fake_refuse(x, 422, "Invalid", "metadata.uid: field is immutable");
    else if (current)
        write_object(x, entry, current);
    else if (problem)
        fake_refuse(x, 422, "Invalid", problem);
    else
        fake_refuse(x, 415, "UnsupportedMediaType", "this kind of patch is not supported");
    json_free(current);
}

static void delete_object(struct fake_exchange *x, struct fake_entry *entry, const cJSON *options)
{
    if (!meets(x, entry->object, json_get(options, "preconditions")))
        return;
    if (!has_finalizers(entry->object)) {
        fake_store_remove(x->store, entry);
        fake_refuse(x, 200, NULL, NULL);
        return;
    }
    if (!*fake_metadata_string(entry->object, "deletionTimestamp")) {
        cJSON *current = json_copy(entry->object);
        char time[RFC3339_LEN];
        json_set_string(fake_metadata(current), "deletionTimestamp",
                        fake_store_now(x->store, 1, time));
        raise_generation(current);
        fake_store_replace(x->store, entry, current);
    }
    answer(x, 200, entry->object);
}

static cJSON *metadata_of(const cJSON *object)
{
    cJSON *partial = cJSON_CreateObject();

    json_set_string(partial, "kind", "PartialObjectMetadata");
    json_set_string(partial, "apiVersion", "meta.k8s.io/v1");
    json_set_copy(partial, "metadata", json_get(object, "metadata"));
    return partial;
}

static void list_objects(struct fake_exchange *x, struct fake_entry *entry UNUSED,
                         const cJSON *body UNUSED)
{
    const char *from = fake_path_query(x->arena, &x->path, "continue");
    const char *scope = fake_path_key(x->arena, &x->path);
    const char *selector = fake_path_query(x->arena, &x->path, "labelSelector");
    bool metadata_only = x->request->accept && strstr(x->request->accept, "PartialObjectMetadata");
    int64_t limit = INT64_MAX;
    (void)str_to_int64(fake_path_query(x->arena, &x->path, "limit"), &limit);

    cJSON *list = json_object(x->arena);
    json_set_string(list, "kind", "List");
    json_set_string(list, "apiVersion", "v1");
    cJSON *metadata = json_set_object(list, "metadata");
    cJSON *items = json_set_array(list, "items");
    char version[24];
    snprintf(version, sizeof(version), "%lld", (long long)x->store->version);
    json_set_string(metadata, "resourceVersion", version);

    for (size_t i = fake_store_lower(x->store, *from ? from : scope); i < x->store->len; i++) {
        const struct fake_entry *next = &x->store->entries[i];
        if (!str_has_prefix(next->key, scope))
            break;
        if (!fake_path_selects(x->arena, selector, next->object))
            continue;
        if (limit-- == 0) {
            json_set_string(metadata, "continue", next->key);
            break;
        }
        json_add(items, metadata_only ? metadata_of(next->object) : json_copy(next->object));
    }
    answer(x, 200, list);
}

static void get_object(struct fake_exchange *x, struct fake_entry *entry, const cJSON *body UNUSED)
{
    answer(x, 200, entry->object);
}

/* ON_NAME: the object need not be there. */
enum subject { ON_COLLECTION, ON_NAME, ON_OBJECT };
static const struct verb {
    const char *method;
    enum subject on;
    bool needs_body;
    void (*run)(struct fake_exchange *x, struct fake_entry *entry, const cJSON *body);
} VERBS[] = {
    { "GET", ON_COLLECTION, false, list_objects }, { "POST", ON_COLLECTION, true, create_object },
    { "GET", ON_OBJECT, false, get_object },       { "PUT", ON_OBJECT, true, put_object },
    { "PATCH", ON_NAME, true, patch_object },      { "DELETE", ON_OBJECT, false, delete_object },
};

static const struct verb *find_verb(const char *method, bool named, bool has_body)
{
    for (size_t i = 0; i < ARRAY_LEN(VERBS); i++) {
        if (str_equal(VERBS[i].method, method) && (VERBS[i].on != ON_COLLECTION) == named &&
            (has_body || !VERBS[i].needs_body))
            return &VERBS[i];
    }
    return NULL;
}

void fake_execute(struct fake_exchange *x)
{
    const struct http_request *request = x->request;
    const cJSON *body = NULL;

    if (!fake_path_parse(x->arena, request->path, &x->path)) {
        *x->ret = str_has_prefix(request->path, "/readyz")
                      ? (struct http_response){ .status = 200, .body = "ok", .body_len = 2 }
                      : (struct http_response){ .status = 404, .body = "" };
        return;
    }
    if (request->body && json_parse(x->arena, request->body, request->body_len, &body, NULL) < 0) {
        fake_refuse(x, 400, "BadRequest", "the body is not JSON");
        return;
    }

    const struct verb *verb = find_verb(request->method, *x->path.name, body);
    if (!verb) {
        fake_refuse(x, 405, "MethodNotAllowed", "not allowed here");
        return;
    }
    struct fake_entry *entry =
        *x->path.name ? fake_store_find(x->store, fake_path_key(x->arena, &x->path)) : NULL;
    if (verb->on == ON_OBJECT && !entry)
        refuse_missing(x);
    else
        verb->run(x, entry, body);
}
