#include "standalone/moving/import.h"

#include <assert.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "common/kube/path.h"
#include "common/kube/status.h"

#define MAX_PATH 2048
#define QUERY "?fieldManager=propeller-import&fieldValidation=Strict"

/* One object on its way into a server. */
struct import_object {
    const struct import_options *options;
    struct arena *arena;
    const struct resource *resource;
    const char *ns, *name;
    const cJSON *manifest; /* with the status of one that has finished */
};

struct answer {
    int status;
    const cJSON *body; /* NULL: it is no JSON */
};

/* --- requests --- */

/* ERROR_UNAVAILABLE and the like: not this object's fault, so it ends the import. */
static int ask(const struct import_object *object, const char *method, const char *path,
               const char *type, const cJSON *body, struct answer *ret, struct error *err)
{
    struct http_request request = { .method = method, .path = path, .content_type = type };
    struct http_response response = { 0 };

    if (body)
        request.body = json_text(object->arena, body, &request.body_len);
    int r =
        object->options->roundtrip(object->options->ctx, object->arena, &request, &response, err);
    if (r < 0)
        return r;
    ret->status = response.status;
    ret->body = NULL;
    if (json_parse(object->arena, response.body, response.body_len, &ret->body, NULL) < 0)
        ret->body = NULL;
    if (response.status == 401 || response.status == 429 || response.status >= 500)
        return kube_status_error(err, response.status, ret->body);
    return 0;
}

static const char *path_of(const struct import_object *object, const struct kube_kind *kind,
                           const char *name, const char *rest)
{
    struct buf path = BUF_INIT(MAX_PATH);
    struct kube_name key;
    bool fits;

    assert(kind);
    if (!name)
        fits = kube_path_collection(&path, kind, kind->namespaced ? object->ns : "");
    else
        fits = kube_name_set(&key, kind->namespaced ? object->ns : "", name) &&
               kube_path_object(&path, kind, &key);

    const char *text = fits ? arena_printf(object->arena, "%s%s", buf_string(&path), rest) : NULL;

    buf_release(&path);
    return text;
}

static const char *message_of(const struct import_object *object, const struct answer *answer)
{
    const char *message = json_string(json_get(answer->body, "message"), NULL);

    return message ? message : arena_printf(object->arena, "HTTP %d", answer->status);
}

/* --- what is made --- */

static int create(const struct import_object *object, struct answer *ret, struct error *err)
{
    const char *path =
        path_of(object, &object->resource->kind, NULL, QUERY "&propellerKeepStatus=true");
    cJSON *ns = json_object(object->arena);
    struct answer made;

    int r = ask(object, "POST", path, "application/json", object->manifest, ret, err);
    if (r < 0 || ret->status != 404 ||
        !str_equal(json_string(json_path(ret->body, "details", "kind", NULL), ""), "namespaces"))
        return r;
    json_set_string(json_set_object(ns, "metadata"), "name", object->ns);
    r = ask(object, "POST", "/api/v1/namespaces" QUERY, "application/json", ns, &made, err);
    if (r < 0)
        return r;
    if (made.status != 201 && made.status != 409) {
        *ret = made;
        return 0;
    }
    return ask(object, "POST", path, "application/json", object->manifest, ret, err);
}

/* --- what is there already --- */

/* The path of what would be another, as the server has it and as it would have what came. */
static int compare(const struct import_object *object, const cJSON *live, const char **ret_why,
                   struct error *err)
{
    const struct kube_kind *kind = &object->resource->kind;
    cJSON *body = arena_own(object->arena, json_copy(object->manifest), json_free);
    const cJSON *status = json_get(object->manifest, "status");
    struct answer answer;

    json_set_copy((cJSON *)(uintptr_t)json_get(body, "metadata"), "resourceVersion",
                  json_path(live, "metadata", "resourceVersion", NULL));
    int r = ask(object, "PUT", path_of(object, kind, object->name, QUERY "&dryRun=All"),
                "application/json", body, &answer, err);
    if (r < 0)
        return r;
    if (answer.status != 200) {
        *ret_why = arena_printf(object->arena, "it is there already, and differs: %s",
                                message_of(object, &answer));
        return 0;
    }

    /* Of a status the phase alone: controllers go on writing the rest. */
    const char *path =
        manifest_difference(object->arena, manifest_of(object->arena, kind, answer.body, false),
                            manifest_of(object->arena, kind, live, false));
    if (!path && status &&
        !json_equal(json_get(status, "phase"), json_path(live, "status", "phase", NULL)))
        path = "status.phase";
    if (path)
        *ret_why = arena_printf(object->arena, "it is there already, and differs in %.200s", path);
    return 0;
}

/* 1: it is made; 0: it was there, or *ret_why, in the arena, says why it is refused. Errors: the server, not the
 * object. */
static int import_make(const struct import_object *object, const char **ret_why, struct error *err)
{
    const char *path = path_of(object, &object->resource->kind, object->name, "");
    struct answer answer;

    if (!path) {
        *ret_why = "its name or namespace is too long";
        return 0;
    }
    int r = create(object, &answer, err);
    if (r < 0)
        return r;
    if (answer.status == 201 && json_get(object->manifest, "status") &&
        !json_get(answer.body, "status"))
        *ret_why = "it was created, but a server of an earlier version dropped its status: delete "
                   "it, restart the server and import it again";
    if (answer.status == 201)
        return *ret_why ? 0 : 1;
    if (str_equal(json_get_string(answer.body, "reason"), "AlreadyExists")) {
        r = ask(object, "GET", path, NULL, NULL, &answer, err);
        if (r < 0)
            return r;
    }
    if (answer.status != 200)
        *ret_why = message_of(object, &answer);
    else if (kube_is_deleting(answer.body))
        *ret_why = "one of that name is being deleted";
    else
        r = compare(object, answer.body, ret_why, err);
    return r;
}

struct import {
    const struct import_options *options;
    struct manifest_counts counts;
};

static const char *place_text(struct arena *arena, const struct yaml_place *place)
{
    if (place->item)
        return arena_printf(arena, "document %zu, item %zu, line %zu", place->document, place->item,
                            place->line);
    return arena_printf(arena, "document %zu, line %zu", place->document, place->line);
}

static void refuse(struct import *import, struct arena *arena, const struct yaml_place *place,
                   const cJSON *object, const char *why)
{
    const cJSON *metadata = json_get(object, "metadata");
    const char *ns = json_get_string(metadata, "namespace");
    const char *what =
        arena_printf(arena, "%.100s %.63s%s%.253s", json_string(json_get(object, "kind"), "object"),
                     ns, *ns ? "/" : "", json_string(json_get(metadata, "name"), "without a name"));

    import->counts.refused++;
    import->options->refused(import->options->refused_ctx,
                             arena_printf(arena, "%s: %s: %s: %s", import->options->source,
                                          place_text(arena, place), what, why));
}

/* Kinds that are not served, but of which nothing would go along anyway. */
static bool stays_behind(struct import *import, const cJSON *object)
{
    static const struct kube_kind ANY = { .group = "", .kind = "", .namespaced = true };
    enum manifest_verdict verdict = manifest_judge(&ANY, object);

    if (!cJSON_IsObject(json_get(object, "metadata")) ||
        (verdict != MANIFEST_CHILD && verdict != MANIFEST_OF_CLUSTER))
        return false;
    import->counts.left_out[verdict]++;
    return true;
}

/* resource: of the object; NULL: its kind is not served. Returns NULL if nothing is wrong. */
static const char *fault_of(struct arena *arena, const struct resource *resource,
                            const cJSON *object)
{
    const char *kind = json_get_string(object, "kind");
    const char *version = json_get_string(object, "apiVersion");

    if (!resource && !cJSON_IsObject(json_get(object, "metadata")))
        return "not an object of the Kubernetes API";
    if (!*kind || !*version)
        return *kind ? "apiVersion is missing" : "kind is missing";
    if (!resource)
        return arena_printf(arena, "%.100s %.100s is not served here", version, kind);
    if (str_is_empty(json_string(json_path(object, "metadata", "name", NULL), "")))
        return "metadata.name is missing";
    return NULL;
}

static int take(void *ctx, const struct yaml_place *place, cJSON *object, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct import *import = ctx;
    const char *kind = json_get_string(object, "kind");

    if (cJSON_IsArray(json_get(object, "items")) && str_has_suffix(kind, "List"))
        return 0; /* its items were here */

    const struct resource *resource = resources_find_kind(
        import->options->resources, json_get_string(object, "apiVersion"), kind);
    if (!resource && stays_behind(import, object))
        return 0;

    const char *why = fault_of(arena, resource, object);
    if (why) {
        refuse(import, arena, place, object, why);
        return 0;
    }

    enum manifest_verdict verdict = manifest_judge(&resource->kind, object);
    if (verdict > MANIFEST_FINISHED) {
        import->counts.left_out[verdict]++;
        return 0;
    }

    cJSON *manifest = manifest_of(arena, &resource->kind, object, true);
    const cJSON *metadata = json_get(manifest, "metadata");
    const struct import_object made = {
        .options = import->options,
        .arena = arena,
        .resource = resource,
        .ns = json_get_string(metadata, "namespace"),
        .name = json_get_string(metadata, "name"),
        .manifest = manifest,
    };

    if (json_get(manifest, "status")) /* the generation of what is created */
        json_set_int((cJSON *)(uintptr_t)json_get(manifest, "status"), "observedGeneration", 1);
    int r = import_make(&made, &why, err);
    if (r < 0)
        return error_wrap(err, "%s", place_text(arena, place));
    import->counts.without_owners += r > 0 && manifest_loses_owners(object);
    import->counts.made += r > 0;
    import->counts.unchanged += r == 0 && !why;
    if (why)
        refuse(import, arena, place, object, why);
    return 0;
}

int import_read(FILE *file, const struct import_options *options, struct manifest_counts *ret,
                struct error *err)
{
    struct import import = { .options = options };
    int r = yaml_read(file, take, &import, err);

    *ret = import.counts;
    return r < 0 ? error_wrap(err, "'%s'", options->source) : 0;
}
