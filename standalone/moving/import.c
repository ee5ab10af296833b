#include "standalone/moving/import.h"

#include "common/base/str.h"
#include "common/json/yaml.h"
#include "standalone/moving/import_internal.h"

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
    enum import_outcome outcome;
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
