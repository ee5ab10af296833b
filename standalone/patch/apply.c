#include "common/base/str.h"
#include "standalone/patch/apply_conflicts.h"
#include "standalone/patch/go_text.h"
#include "standalone/patch/writing.h"
#include "standalone/schema/decode.h"

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct applying {
    const struct writing *writing;
    const cJSON *live;
    const cJSON *applied;
    struct managers managers; /* with the new set of this one */
    struct manager *own;
    const struct field_set *last; /* what it applied before; NULL: nothing */
    bool changed;
};

static struct field_set *with_named(const struct applying *applying, const struct field_set *set)
{
    return field_set_with_named(applying->writing->arena, set, applying->writing->schema);
}

/* All fields that anybody holds. */
static struct field_set *held(const struct applying *applying)
{
    struct arena *arena = applying->writing->arena;
    const struct field_set **sets =
        arena_array(arena, const struct field_set *, applying->managers.len + 1);
    size_t len = 0;

    for (size_t i = 0; i < applying->managers.len; i++) {
        const struct manager *manager = &applying->managers.items[i];

        if (str_equal(manager->version, applying->writing->version))
            sets[len++] = manager->set;
    }
    return field_set_union_of(arena, sets, len);
}

/* Without what was applied before, is not any more, and nobody else holds. */
static cJSON *prune(const struct applying *applying, cJSON *merged)
{
    struct arena *arena = applying->writing->arena;
    const struct schema *schema = applying->writing->schema;
    struct field_set *all, *kept, *last;
    cJSON *pruned;

    if (!applying->last || field_set_is_empty(applying->last))
        return merged;
    last = with_named(applying, applying->last);
    pruned = typed_without(arena, schema, merged, last);

    /* back comes what somebody holds */
    all = with_named(applying, typed_set(arena, schema, merged));
    kept = field_set_union(arena, with_named(applying, typed_set(arena, schema, pruned)),
                           with_named(applying, held(applying)));
    pruned = typed_without(arena, schema, merged, field_set_difference(arena, all, kept));

    /* and what this one had not applied */
    kept = with_named(applying, typed_set(arena, schema, pruned));
    all = field_set_difference(arena, all, kept);
    return typed_without(arena, schema, merged, field_set_intersection(arena, all, last));
}

static int merge_applied(struct applying *applying, cJSON **ret, struct error *err)
{
    const struct writing *writing = applying->writing;
    struct manager own = { .name = writing->write->manager,
                           .subresource = writing->write->subresource,
                           .version = writing->version,
                           .applies = true };
    struct manager *known = managers_find(&applying->managers, &own);
    cJSON *merged = NULL;

    int r = typed_merge(writing->arena, writing->schema, applying->live, applying->applied, &merged,
                        err);
    if (r < 0)
        return error_wrap(err, "failed to merge config");
    applying->last = known ? known->set : NULL;
    if (!known)
        known = managers_add(writing->arena, &applying->managers, &own);
    known->version = writing->version;
    known->set =
        writing_filtered(writing, typed_set(writing->arena, writing->schema, applying->applied));
    applying->own = known;
    *ret = prune(applying, merged);
    return 0;
}

/* kubectl that applied on the client before may take what it wrote then. */
static struct field_set *allowed(const struct applying *applying)
{
    const struct writing *writing = applying->writing;
    const cJSON *text = json_path(applying->live, "metadata", "annotations", LAST_APPLIED, NULL);
    const char *last = json_string(text, "");
    struct field_set *set = field_set_create(writing->arena);
    const cJSON *object;

    if (!str_equal(writing->write->manager, "kubectl") || !*last ||
        json_parse(writing->arena, last, strlen(last), &object, NULL) < 0 ||
        !str_equal(json_string(json_get(object, "apiVersion"), ""), writing->version) ||
        typed_check(writing->arena, writing->schema, object, false, NULL) < 0)
        return set;

    struct typed_comparison comparison =
        typed_compare(writing->arena, writing->schema, object, applying->live);
    set = typed_set(writing->arena, writing->schema, object);
    set = field_set_difference(writing->arena, set, comparison.modified);
    set = field_set_difference(writing->arena, set, comparison.added);
    return field_set_difference(writing->arena, set, comparison.removed);
}

/* The Status of a conflict; NULL: there is none. */
static const cJSON *conflicts_of(const struct applying *applying,
                                 const struct typed_comparison *comparison)
{
    const struct writing *writing = applying->writing;
    const struct field_set *changed = writing_changed(writing, comparison),
                           *free_for_kubectl = allowed(applying);
    struct managers others = { 0 };

    for (size_t i = 0; i < applying->managers.len; i++) {
        struct manager other = applying->managers.items[i];

        if (!writing_is_concerned(writing, &other, applying->own))
            continue;
        other.set = field_set_intersection(writing->arena, other.set, changed);
        other.set = field_set_difference(writing->arena, other.set, free_for_kubectl);
        if (!field_set_is_empty(other.set))
            managers_add(writing->arena, &others, &other);
    }
    return others.len ? apply_conflicts(writing->arena, &others) : NULL;
}

/* The annotation of client-side apply stays what was applied. */
static void refresh_last_applied(const struct writing *writing, const cJSON *applied, cJSON *object)
{
    const cJSON *text = json_path(object, "metadata", "annotations", LAST_APPLIED, NULL);

    if (!str_equal(writing->write->manager, "kubectl") || !*json_string(text, ""))
        return;

    cJSON *copy = arena_own(writing->arena, json_copy(applied), json_free);
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(copy, "metadata");
    cJSON *annotations = cJSON_DetachItemFromObjectCaseSensitive(metadata, "annotations");
    if (annotations) {
        json_remove(annotations, LAST_APPLIED);
        json_set(metadata, "annotations", annotations);
    }
    json_set(copy, "metadata", metadata);

    const char *line = arena_printf(writing->arena, "%s\n", sorted_text(writing->arena, copy));
    metadata = cJSON_DetachItemFromObjectCaseSensitive(object, "metadata");
    annotations = cJSON_DetachItemFromObjectCaseSensitive(metadata, "annotations");
    json_set_string(annotations, LAST_APPLIED, line);
    json_set(metadata, "annotations", annotations);
    json_set(object, "metadata", metadata);
}

static const char *object_text(const struct writing *writing, const cJSON *applied)
{
    const struct kube_kind *kind = &writing->write->resource->kind;
    const cJSON *metadata = json_get(applied, "metadata");

    return arena_printf(
        writing->arena, "%s/%s; %s, Kind=%s", json_string(json_get(metadata, "namespace"), ""),
        json_string(json_get(metadata, "name"), ""),
        *kind->group ? writing->version : arena_printf(writing->arena, "/%s", kind->version),
        kind->kind);
}

static int check_kind(const struct writing *writing, const cJSON *applied, struct error *err)
{
    const char *version = json_string(json_get(applied, "apiVersion"), "");
    const char *name = json_string(json_get(applied, "kind"), "");

    if (str_equal(version, writing->version) &&
        str_equal(name, writing->write->resource->kind.kind))
        return 0;
    return error_set(err, ERROR_INVALID, "invalid object type: %s%s, Kind=%s",
                     strchr(version, '/') ? "" : "/", version, name);
}

static int check_applied(const struct writing *writing, const cJSON *applied, struct error *err)
{
    if (json_path(applied, "metadata", "managedFields", NULL))
        return error_set(err, ERROR_INVALID, "metadata.managedFields must be nil");

    struct error why;
    if (typed_check(writing->arena, writing->schema, applied, false, &why) < 0)
        return error_set(err, ERROR_INTERNAL, "failed to create typed patch object (%s): %s",
                         object_text(writing, applied), why.message);
    return 0;
}

/* Before its first apply an object may have fields that nobody holds. */
static int read_managers(struct applying *applying, const cJSON *live, struct error *err)
{
    const struct writing *writing = applying->writing;
    const cJSON *known = json_path(live, "metadata", "managedFields", NULL);
    struct error why;

    if (!managers_read(writing->arena, known, &applying->managers))
        return error_set(err, ERROR_INTERNAL, "failed to decode managed fields");
    if (applying->managers.len || !live)
        return 0;
    if (typed_check(writing->arena, writing->schema, applying->live, true, &why) < 0)
        return error_set(err, ERROR_INTERNAL,
                         "failed to create manager for existing fields: failed to convert new "
                         "object (%s) to smd typed: %s",
                         object_text(writing, live), why.message);
    writing_update(writing, &applying->managers, writing_nothing(writing), applying->live,
                   "before-first-apply", writing->now);
    return 0;
}

/* Built-in kinds become Go structs again. */
static int check_result(const struct applying *applying, cJSON *object, struct error *err)
{
    const struct resource *resource = applying->writing->write->resource;
    const char *name = object_text(applying->writing, applying->applied);
    struct error why;

    if (resource->custom ||
        schema_convert(resource->schema, resource->kind.kind, object, &why) == 0)
        return 0;
    return error_set(err, ERROR_INTERNAL,
                     "failed to convert new object (%s) to proper version: unable to convert "
                     "unstructured object to %s: %s",
                     name, strchr(name, ';') + 2, why.message);
}

static void finish(struct applying *applying, cJSON *object)
{
    const struct writing *writing = applying->writing;
    struct manager own = *applying->own, *kept;

    applying->own->set = field_set_difference(writing->arena, own.set, writing->meta);
    managers_drop_empty(&applying->managers);
    kept = managers_find(&applying->managers, &own);
    if (kept && applying->changed)
        kept->time = writing->now;
    refresh_last_applied(writing, applying->applied, object);
    writing_set_managers(writing, object, &applying->managers);
}

int managed_fields_apply(struct arena *arena, const struct managed_fields_write *write,
                         const cJSON *live, const cJSON *applied, bool force, cJSON **ret,
                         const cJSON **ret_status, struct error *err)
{
    struct writing writing = writing_of(arena, write);
    struct applying applying = { .writing = &writing, .applied = applied };
    cJSON *object = NULL;

    applying.live = live ? writing_bare(&writing, live) : writing_nothing(&writing);
    int r = check_kind(&writing, applied, err);
    if (r == 0)
        r = read_managers(&applying, live, err);
    if (r == 0)
        r = check_applied(&writing, applied, err);
    if (r == 0)
        r = merge_applied(&applying, &object, err);
    if (r < 0)
        return r;

    struct typed_comparison comparison = writing_compare(&writing, applying.live, object);
    const cJSON *conflicts = force ? NULL : conflicts_of(&applying, &comparison);
    if (conflicts) {
        *ret_status = conflicts;
        return error_set(err, ERROR_CONFLICT, "%s",
                         json_string(json_get(conflicts, "message"), ""));
    }
    writing_take(&writing, &applying.managers, &comparison,
                 &(struct manager){ .name = write->manager,
                                    .subresource = write->subresource,
                                    .version = writing.version,
                                    .applies = true });
    applying.own =
        managers_find(&applying.managers, &(struct manager){ .name = write->manager,
                                                             .subresource = write->subresource,
                                                             .version = writing.version,
                                                             .applies = true });
    applying.changed = !json_equal(object, applying.live);
    r = check_result(&applying, object, err);
    if (r < 0)
        return r;
    finish(&applying, object);
    *ret = object;
    return 0;
}
