#include "standalone/schema/object_meta.h"

#include <ctype.h>

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "standalone/schema/name_rules.h"

#define MAX_ANNOTATIONS (256u << 10)
#define MAX_MANAGER 128
#define MAX_FINALIZERS_TEXT 4096

const char *object_meta_text(const cJSON *object, const char *field)
{
    return json_string(json_path(object, "metadata", field, NULL), "");
}

cJSON *object_meta_of(cJSON *object)
{
    return (cJSON *)(uintptr_t)json_get(object, "metadata");
}

struct meta_check {
    struct arena *arena;
    struct field_errors *errors;
    const struct kube_kind *kind;
    const cJSON *metadata;
    const cJSON *old; /* metadata of the old object; NULL: created */
};

static const char *text_at(const cJSON *object, const char *name)
{
    return json_string(json_get(object, name), "");
}

/* --- names ------------------------------------------------------------------------------------ */

static bool is_core_event(const struct kube_kind *kind)
{
    return !*kind->group && str_equal(kind->plural, "events");
}

/* What a path may have as its last part: that is all that is asked of v1 Events, which are as they ever were. */
static void check_path_segment(const struct meta_check *check, const char *path, const char *name)
{
    if (str_equal(name, "."))
        invalid_text(check->errors, path, name, "may not be '.'");
    else if (str_equal(name, ".."))
        invalid_text(check->errors, path, name, "may not be '..'");
    if (strchr(name, '/'))
        invalid_text(check->errors, path, name, "may not contain '/'");
    if (strchr(name, '%'))
        invalid_text(check->errors, path, name, "may not contain '%'");
}

static void check_name(const struct meta_check *check, const char *path, const char *name)
{
    if (is_core_event(check->kind))
        check_path_segment(check, path, name);
    else if (str_equal(check->kind->plural, "namespaces") && str_equal(check->kind->group, ""))
        check_dns_label(check->errors, path, name);
    else
        check_dns_subdomain(check->errors, path, name);
}

/* A name that begins so may end in '-'; what is checked has an 'a' there. */
static void check_generate_name(const struct meta_check *check, const char *prefix)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct field_errors *found = field_errors_create(arena);
    struct meta_check masked = *check;
    char *name = arena_strdup(arena, prefix);
    size_t len = strlen(name);

    if (len > 1 && name[len - 1] == '-') {
        name[len - 2] = 'a';
        name[len - 1] = '\0';
    }
    masked.errors = found;
    check_name(&masked, "metadata.generateName", name);
    if (field_errors_count(found))
        check_name(check, "metadata.generateName", prefix);
}

static void check_names(const struct meta_check *check)
{
    const char *name = text_at(check->metadata, "name");
    const char *prefix = text_at(check->metadata, "generateName");
    const char *ns = text_at(check->metadata, "namespace");

    if (*prefix)
        check_generate_name(check, prefix);
    if (*name)
        check_name(check, "metadata.name", name);
    else
        field_error(check->errors, FIELD_ERROR_REQUIRED, "metadata.name", NULL,
                    "name or generateName is required");
    if (check->kind->namespaced && !*ns)
        field_error_plain(check->errors, FIELD_ERROR_REQUIRED, "metadata.namespace", NULL);
    else if (check->kind->namespaced)
        check_dns_label(check->errors, "metadata.namespace", ns);
    else if (*ns)
        field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.namespace", NULL,
                    "not allowed on this type");
}

/* --- labels and the like ---------------------------------------------------------------------- */

static void check_labels(const struct meta_check *check)
{
    json_for_each (label, json_get(check->metadata, "labels")) {
        check_qualified_name(check->errors, "metadata.labels", label->string, label->string);
        check_label_value(check->errors, "metadata.labels", json_string(label, ""));
    }
}

static void check_annotations(const struct meta_check *check)
{
    size_t size = 0;

    json_for_each (annotation, json_get(check->metadata, "annotations")) {
        char *lower = arena_strdup(check->arena, annotation->string);

        for (char *c = lower; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        check_qualified_name(check->errors, "metadata.annotations", lower, annotation->string);
        size += strlen(annotation->string) + strlen(json_string(annotation, ""));
    }
    if (size > MAX_ANNOTATIONS)
        field_error(check->errors, FIELD_ERROR_TOO_LONG, "metadata.annotations", NULL,
                    "may not be more than %u bytes", MAX_ANNOTATIONS);
}

static void check_owner(const struct meta_check *check, const cJSON *owner)
{
    static const struct {
        const char *name;
        const char *words;
    } FIELDS[] = {
        { "apiVersion", "version must not be empty" },
        { "kind", "must not be empty" },
        { "name", "must not be empty" },
        { "uid", "must not be empty" },
    };

    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        const char *path =
            arena_printf(check->arena, "metadata.ownerReferences.%s", FIELDS[i].name);

        if (!*text_at(owner, FIELDS[i].name))
            invalid_text(check->errors, path, "", FIELDS[i].words);
    }
    if (str_equal(text_at(owner, "apiVersion"), "v1") && str_equal(text_at(owner, "kind"), "Event"))
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.ownerReferences", owner,
                    "/v1, Kind=Event is disallowed from being an owner");
}

/* What an error would cut anyway is not printed for each of them. */
#define MAX_SHOWN_OWNERS 4096

static const cJSON *shown_owners(const struct meta_check *check, const cJSON *owners)
{
    size_t len;

    (void)json_text(check->arena, owners, &len);
    return len <= MAX_SHOWN_OWNERS ? owners : NULL;
}

static void check_owners(const struct meta_check *check)
{
    const cJSON *owners = json_get(check->metadata, "ownerReferences"), *shown = NULL;
    const char *controller = NULL;
    size_t controllers = 0;

    json_for_each (owner, owners) {
        const char *name =
            arena_printf(check->arena, "%s/%s", text_at(owner, "kind"), text_at(owner, "name"));

        check_owner(check, owner);
        if (!json_bool(json_get(owner, "controller"), false))
            continue;
        if (++controllers == 1) {
            controller = name;
            continue;
        }
        if (controllers == 2)
            shown = shown_owners(check, owners);
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.ownerReferences", shown,
                    "Only one reference can have Controller set to true. Found \"true\" in "
                    "references for %s and %s",
                    controller, name);
    }
}

static bool has_text(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (str_equal(json_string(item, NULL), text))
            return true;
    }
    return false;
}

/* One of the standard ones, or with a domain. */
static bool is_qualified(const char *finalizer)
{
    static const char *const STANDARD[] = { "orphan", "foregroundDeletion", "kubernetes" };

    for (size_t i = 0; i < ARRAY_LEN(STANDARD); i++) {
        if (str_equal(finalizer, STANDARD[i]))
            return true;
    }
    return strchr(finalizer, '/') != NULL;
}

static void check_finalizers(const struct meta_check *check)
{
    const cJSON *finalizers = json_get(check->metadata, "finalizers");

    json_for_each (finalizer, finalizers)
        check_qualified_name(check->errors, "metadata.finalizers", json_string(finalizer, ""),
                             json_string(finalizer, ""));
    if (has_text(finalizers, "orphan") && has_text(finalizers, "foregroundDeletion"))
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.finalizers", finalizers,
                    "finalizer orphan and foregroundDeletion cannot be both set");
}

static bool is_builtin(const struct kube_kind *kind)
{
    return !*kind->group || strstr(kind->group, ".k8s.io");
}

/* core.ValidateObjectMeta; not of v1 Events, and Leases are of another package. */
static void check_core_finalizers(const struct meta_check *check)
{
    const struct kube_kind *kind = check->kind;
    size_t index = 0;

    if (!is_builtin(kind) || str_equal(kind->plural, "leases") || is_core_event(kind))
        return;
    json_for_each (finalizer, json_get(check->metadata, "finalizers")) {
        const char *name = json_string(finalizer, "");

        if (!is_qualified(name))
            invalid_text(check->errors,
                         arena_printf(check->arena, "metadata.finalizers[%zu]", index), name,
                         "name is neither a standard finalizer name nor is it fully qualified");
        index++;
    }
}

/* Kinds that are validated as a whole when they are updated. */
static bool is_checked_anew(const struct kube_kind *kind)
{
    static const char *const PLURALS[] = { "configmaps", "secrets", "serviceaccounts" };

    for (size_t i = 0; i < ARRAY_LEN(PLURALS); i++) {
        if (!*kind->group && str_equal(kind->plural, PLURALS[i]))
            return true;
    }
    return false;
}

static void check_managed_fields(const struct meta_check *check)
{
    size_t index = 0;

    json_for_each (entry, json_get(check->metadata, "managedFields")) {
        const char *path = arena_printf(check->arena, "metadata.managedFields[%zu].", index++);
        const char *operation = text_at(entry, "operation"), *type = text_at(entry, "fieldsType");

        if (!str_equal(operation, "Apply") && !str_equal(operation, "Update"))
            invalid_text(check->errors, arena_printf(check->arena, "%soperation", path), operation,
                         "must be `Apply` or `Update`");
        if (*type && !str_equal(type, "FieldsV1"))
            invalid_text(check->errors, arena_printf(check->arena, "%sfieldsType", path), type,
                         "must be `FieldsV1`");
        if (strlen(text_at(entry, "manager")) > MAX_MANAGER)
            field_error(check->errors, FIELD_ERROR_TOO_LONG,
                        arena_printf(check->arena, "%smanager", path), NULL,
                        "may not be more than %d bytes", MAX_MANAGER);
    }
}

/* --- changes ---------------------------------------------------------------------------------- */

static bool append_new(struct buf *list, const char *name)
{
    return (!list->len || buf_append_string(list, ", ")) &&
           buf_append_quoted(list, name, strlen(name));
}

static cJSON *finalizers_of(const cJSON *metadata)
{
    return (cJSON *)(uintptr_t)json_first(json_get(metadata, "finalizers"));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In their order, as Go has its sets. */
static void check_new_finalizers(const struct meta_check *check)
{
    CLEANUP(buf_releasep) struct buf list = BUF_INIT(MAX_FINALIZERS_TEXT);
    const char **names = arena_array(check->arena, const char *,
                                     json_len(json_get(check->metadata, "finalizers")) + 1);
    size_t len = 0;

    struct map *known = map_create(NULL);

    for (cJSON *old = finalizers_of(check->old); old; old = old->next)
        map_set(known, json_string(old, ""), old);
    for (cJSON *new = finalizers_of(check->metadata); new; new = new->next) {
        if (!map_get(known, json_string(new, "")))
            names[len++] = json_string(new, "");
    }
    map_destroy(known);
    qsort(names, len, sizeof(*names), compare_texts);
    for (size_t i = 0; i < len && append_new(&list, names[i]); i++)
        ;
    if (list.len)
        field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.finalizers", NULL,
                    "no new finalizers can be added if the object is being deleted, found new "
                    "finalizers []string{%s}",
                    buf_string(&list));
}

static void check_unchanged(const struct meta_check *check)
{
    static const char *const FIXED[] = { "name",
                                         "namespace",
                                         "uid",
                                         "creationTimestamp",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds" };

    if (!*text_at(check->metadata, "resourceVersion"))
        invalid_text(check->errors, "metadata.resourceVersion", "",
                     "must be specified for an update");
    for (size_t i = 0; i < ARRAY_LEN(FIXED); i++) {
        const cJSON *value = json_get(check->metadata, FIXED[i]);
        const char *path = arena_printf(check->arena, "metadata.%s", FIXED[i]);

        if (!json_equal(value, json_get(check->old, FIXED[i])))
            field_error(check->errors, FIELD_ERROR_INVALID, path, value, "field is immutable");
    }
}

static void check_generation(const struct meta_check *check)
{
    const cJSON *generation = json_get(check->metadata, "generation");

    if (json_int(generation, 0) < 0)
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.generation", generation,
                    "must be greater than or equal to 0");
}

void object_meta_validate(const struct kube_kind *kind, const cJSON *object, const cJSON *old,
                          struct field_errors *errors)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct meta_check check = { .arena = arena,
                                      .errors = errors,
                                      .kind = kind,
                                      .metadata = json_get(object, "metadata"),
                                      .old = json_get(old, "metadata") };

    if (!old)
        check_names(&check);
    else if (json_get(check.old, "deletionTimestamp"))
        check_new_finalizers(&check);
    if (old)
        check_unchanged(&check);
    check_generation(&check);
    check_labels(&check);
    check_annotations(&check);
    check_owners(&check);
    check_finalizers(&check);
    check_core_finalizers(&check);
    if (old && is_checked_anew(kind) && *text_at(check.metadata, "generateName"))
        check_generate_name(&check, text_at(check.metadata, "generateName"));
    check_managed_fields(&check);
}

/* validateKubeFinalizerName: they work, and may be in the way of others'. */
static void warn_of_finalizer(struct field_errors *errors, const char *name)
{
    if (!is_qualified(name))
        field_warning(errors, "metadata.finalizers",
                      "\"%s\": prefer a domain-qualified finalizer name %sto avoid accidental "
                      "conflicts with other finalizer writers",
                      name, strchr(name, '.') ? "including a path (/) " : "");
}

void object_meta_warn(const cJSON *object, const cJSON *old, struct field_errors *errors)
{
    const cJSON *known = json_path(old, "metadata", "finalizers", NULL);

    json_for_each (finalizer, json_path(object, "metadata", "finalizers", NULL)) {
        if (!has_text(known, json_string(finalizer, "")))
            warn_of_finalizer(errors, json_string(finalizer, ""));
    }
}
