#include "standalone/moving/import.h"

#include <assert.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/json/yaml.h"
#include "common/kube/path.h"
#include "common/kube/status.h"

#define MAX_PATH 2048
#define QUERY "?fieldManager=propeller-import&fieldValidation=Strict"
/* Somebody changes it at the same time: the store's own tries come on top. */
#define MAX_TRIES 3

/* One object on its way into a server. */
struct import_object {
    const struct import_options *options;
    struct arena *arena;
    const struct resource *resource;
    const char *ns, *name;
    const cJSON *manifest; /* without status */
    const cJSON *status;   /* of one that has finished; NULL: none */
};

enum import_outcome { IMPORT_CREATED, IMPORT_UNCHANGED, IMPORT_REFUSED, IMPORT_OUTCOMES };

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

static bool is_reason(const struct answer *answer, const char *reason)
{
    return str_equal(json_string(json_get(answer->body, "reason"), ""), reason);
}

/* --- what is made --- */

static bool can_be_suspended(const struct import_object *object)
{
    return !str_equal(object->resource->kind.kind, "TrainingRound");
}

/* What has finished waits for its status. */
static const cJSON *first_form(const struct import_object *object)
{
    cJSON *copy = arena_own(object->arena, json_copy(object->manifest), json_free);
    cJSON *metadata = (cJSON *)(uintptr_t)json_get(copy, "metadata");
    cJSON *spec = (cJSON *)(uintptr_t)json_get(copy, "spec");
    cJSON *annotations = (cJSON *)(uintptr_t)json_get(metadata, "annotations");

    if (!object->status)
        return object->manifest;
    if (!cJSON_IsObject(annotations))
        annotations = json_set_object(metadata, "annotations");
    json_set_string(annotations, IMPORT_ANNOTATION, "true");
    if (can_be_suspended(object) && cJSON_IsObject(spec))
        json_set_bool(spec, "suspend", true);
    return copy;
}

static int make_namespace(const struct import_object *object, struct answer *ret, struct error *err)
{
    static const struct kube_kind NAMESPACE = {
        .group = "", .version = "v1", .kind = "Namespace", .plural = "namespaces"
    };
    cJSON *ns = json_object(object->arena);

    json_set_string(ns, "apiVersion", "v1");
    json_set_string(ns, "kind", "Namespace");
    json_set_string(json_set_object(ns, "metadata"), "name", object->ns);
    return ask(object, "POST", path_of(object, &NAMESPACE, NULL, QUERY), "application/json", ns,
               ret, err);
}

static int create(const struct import_object *object, struct answer *ret, struct error *err)
{
    const char *path = path_of(object, &object->resource->kind, NULL, QUERY);
    const cJSON *body = first_form(object);
    struct answer made;

    int r = ask(object, "POST", path, "application/json", body, ret, err);
    if (r < 0 || ret->status != 404 ||
        !str_equal(json_string(json_path(ret->body, "details", "kind", NULL), ""), "namespaces"))
        return r;
    r = make_namespace(object, &made, err);
    if (r < 0)
        return r;
    if (made.status != 201 && made.status != 409) {
        *ret = made;
        return 0;
    }
    return ask(object, "POST", path, "application/json", body, ret, err);
}

/* --- what had finished --- */

static void operation(cJSON *patch, const char *op, const char *path, cJSON *value)
{
    cJSON *item = json_add_object(patch);

    json_set_string(item, "op", op);
    json_set_string(item, "path", path);
    if (value)
        json_set(item, "value", value);
}

/* live: as it was made. The generation that the status is for is the one after the resuming. */
static const cJSON *status_patch(const struct import_object *object, const cJSON *live,
                                 bool resumes)
{
    cJSON *patch = json_array(object->arena);
    cJSON *status = json_copy(object->status);
    int64_t generation = json_int(json_path(live, "metadata", "generation", NULL), 1);

    json_set_int(status, "observedGeneration", generation + (resumes ? 1 : 0));
    operation(patch, "add", "/status", status);
    return patch;
}

static const cJSON *resume_patch(const struct import_object *object, bool resumes)
{
    const cJSON *suspend = json_path(object->manifest, "spec", "suspend", NULL);
    cJSON *patch = json_array(object->arena);

    operation(patch, "remove",
              arena_printf(object->arena, "/metadata/annotations/%s",
                           json_pointer_escape(object->arena, IMPORT_ANNOTATION)),
              NULL);
    if (resumes && suspend)
        operation(patch, "replace", "/spec/suspend", json_copy(suspend));
    else if (resumes)
        operation(patch, "remove", "/spec/suspend", NULL);
    return patch;
}

static int change(const struct import_object *object, const char *rest, const cJSON *patch,
                  const char **ret_why, struct error *err)
{
    const char *path = path_of(object, &object->resource->kind, object->name, rest);
    struct answer answer = { .status = 409 };

    for (int i = 0; i < MAX_TRIES && answer.status == 409; i++) {
        int r = ask(object, "PATCH", path, "application/json-patch+json", patch, &answer, err);
        if (r < 0)
            return r;
    }
    if (answer.status != 200)
        *ret_why = message_of(object, &answer);
    return 0;
}

static int finish(const struct import_object *object, const cJSON *live, const char **ret_why,
                  struct error *err)
{
    bool resumes = can_be_suspended(object) &&
                   !json_bool(json_path(object->manifest, "spec", "suspend", NULL), false);

    int r = change(object, "/status" QUERY, status_patch(object, live, resumes), ret_why, err);
    if (r < 0 || *ret_why)
        return r;
    return change(object, QUERY, resume_patch(object, resumes), ret_why, err);
}

/* --- what is there already --- */

static void set_phase(cJSON *manifest, const cJSON *status)
{
    json_set_copy(json_set_object(manifest, "status"), "phase", json_get(status, "phase"));
}

/* The path of what would be another, as the server has it and as it would have what came. */
static int compare(const struct import_object *object, const cJSON *live, const char **ret_why,
                   struct error *err)
{
    const struct kube_kind *kind = &object->resource->kind;
    cJSON *body = arena_own(object->arena, json_copy(object->manifest), json_free);
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
    cJSON *there = manifest_of(object->arena, kind, live, false);
    cJSON *wanted = manifest_of(object->arena, kind, answer.body, false);

    if (object->status) {
        set_phase(there, json_get(live, "status"));
        set_phase(wanted, object->status);
    }
    const char *path = manifest_difference(object->arena, wanted, there);
    if (path)
        *ret_why = arena_printf(object->arena, "it is there already, and differs in %.200s", path);
    return 0;
}

static int meet(const struct import_object *object, enum import_outcome *ret, const char **ret_why,
                struct error *err)
{
    struct answer live;

    int r = ask(object, "GET", path_of(object, &object->resource->kind, object->name, ""), NULL,
                NULL, &live, err);
    if (r < 0)
        return r;
    if (live.status != 200) {
        *ret_why = message_of(object, &live);
        return 0;
    }
    if (object->status &&
        json_path(live.body, "metadata", "annotations", IMPORT_ANNOTATION, NULL)) {
        *ret = IMPORT_CREATED; /* by an import that was interrupted here */
        return finish(object, live.body, ret_why, err);
    }
    *ret = IMPORT_UNCHANGED;
    if (json_path(live.body, "metadata", "deletionTimestamp", NULL)) {
        *ret_why = "one of that name is being deleted";
        return 0;
    }
    return compare(object, live.body, ret_why, err);
}

static int import_try(const struct import_object *object, enum import_outcome *ret,
                      const char **ret_why, struct error *err)
{
    struct answer answer;

    int r = create(object, &answer, err);
    if (r < 0)
        return r;
    *ret = IMPORT_CREATED;
    if (answer.status == 201)
        return object->status ? finish(object, answer.body, ret_why, err) : 0;
    if (answer.status == 409 && is_reason(&answer, "AlreadyExists"))
        return meet(object, ret, ret_why, err);
    *ret_why = message_of(object, &answer);
    return 0;
}

/* *ret_why, in the arena: of IMPORT_REFUSED. Errors: the server, not the object. */
static int import_make(const struct import_object *object, enum import_outcome *ret,
                       const char **ret_why, struct error *err)
{
    *ret_why = NULL;
    if (!path_of(object, &object->resource->kind, object->name, ""))
        *ret_why = "its name or namespace is too long";
    else if (object->status && object->options->live && !can_be_suspended(object))
        *ret_why = "a finished TrainingRound cannot be brought in while the server runs";

    int r = *ret_why ? 0 : import_try(object, ret, ret_why, err);
    if (r == 0 && *ret_why)
        *ret = IMPORT_REFUSED;
    return r;
}

struct import {
    const struct import_options *options;
    struct import_counts counts;
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
    const char *ns = json_string(json_get(metadata, "namespace"), "");
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

    if (verdict != MANIFEST_CHILD && verdict != MANIFEST_OF_CLUSTER)
        return false;
    import->counts.left_out[verdict]++;
    return true;
}

static const char *why_not_served(struct arena *arena, const cJSON *object)
{
    const char *version = json_string(json_get(object, "apiVersion"), "");
    const char *kind = json_string(json_get(object, "kind"), "");

    if (!*kind)
        return "kind is missing";
    if (!*version)
        return "apiVersion is missing";
    return arena_printf(arena, "%.100s %.100s is not served here", version, kind);
}

static int make(struct import *import, struct arena *arena, const struct resource *resource,
                const cJSON *object, const char **ret_why, struct error *err)
{
    cJSON *manifest = manifest_of(arena, &resource->kind, object, true);
    const cJSON *metadata = json_get(manifest, "metadata");
    enum import_outcome outcome = IMPORT_REFUSED;
    struct import_object made = {
        .options = import->options,
        .arena = arena,
        .resource = resource,
        .ns = json_string(json_get(metadata, "namespace"), ""),
        .name = json_string(json_get(metadata, "name"), ""),
        .manifest = manifest,
    };

    if (json_get(manifest, "status"))
        made.status = arena_own(
            arena,
            cJSON_DetachItemViaPointer(manifest, (cJSON *)(uintptr_t)json_get(manifest, "status")),
            json_free);
    int r = import_make(&made, &outcome, ret_why, err);
    if (r < 0)
        return r;
    if (outcome == IMPORT_CREATED && manifest_loses_owners(object))
        import->counts.without_owners++;
    import->counts.created += outcome == IMPORT_CREATED;
    import->counts.unchanged += outcome == IMPORT_UNCHANGED;
    return 0;
}

static int take(void *ctx, const struct yaml_place *place, cJSON *object, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct import *import = ctx;
    const char *kind = json_string(json_get(object, "kind"), "");
    const char *why = NULL;

    if (cJSON_IsArray(json_get(object, "items")) && str_has_suffix(kind, "List"))
        return 0; /* its items were here */

    const struct resource *resource = resources_find_kind(
        import->options->resources, json_string(json_get(object, "apiVersion"), ""), kind);
    if (!resource && !cJSON_IsObject(json_get(object, "metadata")))
        why = "not an object of the Kubernetes API";
    else if (!resource && stays_behind(import, object))
        return 0;
    else if (!resource)
        why = why_not_served(arena, object);
    else if (str_is_empty(json_string(json_path(object, "metadata", "name", NULL), "")))
        why = "metadata.name is missing";
    if (why) {
        refuse(import, arena, place, object, why);
        return 0;
    }

    enum manifest_verdict verdict = manifest_judge(&resource->kind, object);
    if (verdict > MANIFEST_FINISHED) {
        import->counts.left_out[verdict]++;
        return 0;
    }
    int r = make(import, arena, resource, object, &why, err);
    if (r < 0)
        return error_wrap(err, "%s", place_text(arena, place));
    if (why)
        refuse(import, arena, place, object, why);
    return 0;
}

int import_read(FILE *file, const struct import_options *options, struct import_counts *ret,
                struct error *err)
{
    struct import import = { .options = options };
    int r = yaml_read(file, take, &import, err);

    *ret = import.counts;
    return r < 0 ? error_wrap(err, "'%s'", options->source) : 0;
}
