#include "standalone/schema/object_meta.h"

#include <ctype.h>

#include "common/base/map.h"
#include "common/base/str.h"
#include "standalone/schema/name_rules.h"

#define MAX_ANNOTATIONS (256u << 10)

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

/* The name of a v1 Event only has to fit into a path. */
static void meta_check_name(const struct meta_check *check, const char *path, const char *name,
                            const char *shown)
{
    if (is_core_event(check->kind)) {
        if (str_equal(name, ".") || str_equal(name, "..") || strpbrk(name, "/%"))
            invalid_text(check->errors, path, shown,
                         "must not be '.' or '..', nor contain '/' or '%'");
    } else if (str_equal(check->kind->plural, "namespaces") && !*check->kind->group) {
        check_dns_label(check->errors, path, name, shown);
    } else {
        check_dns_subdomain(check->errors, path, name, shown);
    }
}

/* The prefix of a name may end in '-'. */
static void meta_check_generate_name(const struct meta_check *check, const char *prefix)
{
    char *name = arena_strdup(check->arena, prefix);
    size_t len = strlen(name);

    if (len > 1 && name[len - 1] == '-')
        name[len - 1] = 'a';
    meta_check_name(check, "metadata.generateName", name, prefix);
}

static void meta_check_names(const struct meta_check *check)
{
    const char *name = text_at(check->metadata, "name");
    const char *prefix = text_at(check->metadata, "generateName");
    const char *ns = text_at(check->metadata, "namespace");

    if (*prefix)
        meta_check_generate_name(check, prefix);
    if (*name)
        meta_check_name(check, "metadata.name", name, name);
    else
        field_error(check->errors, FIELD_ERROR_REQUIRED, "metadata.name", NULL,
                    "name or generateName is required");
    if (check->kind->namespaced && !*ns)
        field_error_plain(check->errors, FIELD_ERROR_REQUIRED, "metadata.namespace", NULL);
    else if (check->kind->namespaced)
        check_dns_label(check->errors, "metadata.namespace", ns, ns);
    else if (*ns)
        field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.namespace", NULL,
                    "not allowed on this type");
}

/* --- labels and the like ---------------------------------------------------------------------- */

static void meta_check_labels(const struct meta_check *check)
{
    json_for_each (label, json_get(check->metadata, "labels")) {
        check_qualified_name(check->errors, "metadata.labels", label->string, label->string);
        check_label_value(check->errors, "metadata.labels", json_string(label, ""));
    }
}

static void meta_check_annotations(const struct meta_check *check)
{
    size_t size = 0;

    json_for_each (annotation, json_get(check->metadata, "annotations")) {
        char *key = arena_strdup(check->arena, annotation->string);

        for (char *c = key; *c; c++) /* the prefix may have capitals, unlike that of a label */
            *c = (char)tolower((unsigned char)*c);
        check_qualified_name(check->errors, "metadata.annotations", key, annotation->string);
        size += strlen(annotation->string) + strlen(json_string(annotation, ""));
    }
    if (size > MAX_ANNOTATIONS)
        field_error(check->errors, FIELD_ERROR_TOO_LONG, "metadata.annotations", NULL,
                    "may not be more than %u bytes", MAX_ANNOTATIONS);
}

static void meta_check_owners(const struct meta_check *check)
{
    static const char *const FIELDS[] = { "apiVersion", "kind", "name", "uid" };
    size_t controllers = 0;

    json_for_each (owner, json_get(check->metadata, "ownerReferences")) {
        for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
            if (!*text_at(owner, FIELDS[i]))
                invalid_text(check->errors,
                             arena_printf(check->arena, "metadata.ownerReferences.%s", FIELDS[i]),
                             "", "must not be empty");
        }
        controllers += json_bool(json_get(owner, "controller"), false);
    }
    if (controllers > 1)
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.ownerReferences", NULL,
                    "only one owner can be the controller");
}

static bool has_text(const cJSON *array, const char *text)
{
    json_for_each (item, array) {
        if (str_equal(json_string(item, NULL), text))
            return true;
    }
    return false;
}

/* A finalizer of Kubernetes, or one with a domain. */
static bool is_qualified(const char *finalizer)
{
    return str_equal(finalizer, "orphan") || str_equal(finalizer, "foregroundDeletion") ||
           str_equal(finalizer, "kubernetes") || strchr(finalizer, '/');
}

static bool is_builtin(const struct kube_kind *kind)
{
    return !*kind->group || str_has_suffix(kind->group, ".k8s.io");
}

/* Built-in kinds take only qualified finalizers, apart from Leases and v1 Events. */
static void meta_check_finalizers(const struct meta_check *check)
{
    const cJSON *finalizers = json_get(check->metadata, "finalizers");
    bool qualified = is_builtin(check->kind) && !is_core_event(check->kind) &&
                     !str_equal(check->kind->plural, "leases");
    size_t index = 0;

    json_for_each (finalizer, finalizers) {
        const char *name = json_string(finalizer, "");

        check_qualified_name(check->errors, "metadata.finalizers", name, name);
        if (qualified && !is_qualified(name))
            invalid_text(check->errors,
                         arena_printf(check->arena, "metadata.finalizers[%zu]", index), name,
                         "must have a domain");
        index++;
    }
    if (has_text(finalizers, "orphan") && has_text(finalizers, "foregroundDeletion"))
        field_error(check->errors, FIELD_ERROR_INVALID, "metadata.finalizers", finalizers,
                    "orphan and foregroundDeletion exclude each other");
}

/* --- changes ---------------------------------------------------------------------------------- */

static void meta_check_new_finalizers(const struct meta_check *check)
{
    struct map *known = map_create(NULL);
    cJSON *old = (cJSON *)(uintptr_t)json_first(json_get(check->old, "finalizers"));
    const cJSON *new = json_first(json_get(check->metadata, "finalizers"));

    for (; old; old = old->next)
        map_set(known, json_string(old, ""), old);
    while (new &&map_get(known, json_string(new, "")))
        new = new->next;
    map_destroy(known);
    if (new)
        field_error(check->errors, FIELD_ERROR_FORBIDDEN, "metadata.finalizers", NULL,
                    "no finalizer can be added to an object that is being deleted");
}

static void meta_check_unchanged(const struct meta_check *check)
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

        if (!json_equal(value, json_get(check->old, FIXED[i])))
            field_error(check->errors, FIELD_ERROR_INVALID,
                        arena_printf(check->arena, "metadata.%s", FIXED[i]), value,
                        "field is immutable");
    }
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
        meta_check_names(&check);
    else if (json_get(check.old, "deletionTimestamp"))
        meta_check_new_finalizers(&check);
    if (old)
        meta_check_unchanged(&check);
    meta_check_labels(&check);
    meta_check_annotations(&check);
    meta_check_owners(&check);
    meta_check_finalizers(&check);
}

void object_meta_warn(const cJSON *object, const cJSON *old, struct field_errors *errors)
{
    const cJSON *known = json_path(old, "metadata", "finalizers", NULL);

    json_for_each (finalizer, json_path(object, "metadata", "finalizers", NULL)) {
        const char *name = json_string(finalizer, "");

        if (!has_text(known, name) && !is_qualified(name))
            field_warning(errors, "metadata.finalizers",
                          "\"%s\": prefer a finalizer with a domain, which no other writer uses",
                          name);
    }
}
