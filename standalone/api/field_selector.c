#include <string.h>

#include "common/base/str.h"
#include "standalone/api/selector.h"

struct term {
    const char *field;
    const char *value;
    bool negated;
};
struct field_selector {
    struct term items[SELECTOR_MAX_REQUIREMENTS];
    size_t len;
};

/* Fields besides metadata.name and metadata.namespace, by plural; events of events.k8s.io have the
 * same names in their own form. Of kinds that are only looked for (absent.h), too. */
static const struct {
    const char *plural;
    const char *field;
} FIELDS[] = {
    { "namespaces", "status.phase" },
    { "secrets", "type" },
    { "events", "involvedObject.kind" },
    { "events", "involvedObject.namespace" },
    { "events", "involvedObject.name" },
    { "events", "involvedObject.uid" },
    { "events", "involvedObject.apiVersion" },
    { "events", "involvedObject.resourceVersion" },
    { "events", "involvedObject.fieldPath" },
    { "events", "regarding.kind" },
    { "events", "regarding.namespace" },
    { "events", "regarding.name" },
    { "events", "regarding.uid" },
    { "events", "reason" },
    { "events", "reportingComponent" },
    { "events", "reportingController" },
    { "events", "source" },
    { "events", "type" },
    { "pods", "spec.nodeName" },
    { "pods", "spec.host" }, /* its name long ago */
    { "pods", "spec.restartPolicy" },
    { "pods", "spec.schedulerName" },
    { "pods", "spec.serviceAccountName" },
    { "pods", "spec.hostNetwork" },
    { "pods", "status.phase" },
    { "pods", "status.podIP" },
    { "pods", "status.podIPs" },
    { "pods", "status.nominatedNodeName" },
    { "services", "spec.clusterIP" },
    { "services", "spec.type" },
    { "jobs", "status.successful" },
};

static bool is_known(const struct kube_kind *kind, const char *field)
{
    if (str_equal(field, "metadata.name") ||
        (kind->namespaced && str_equal(field, "metadata.namespace")))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++) {
        if (str_equal(FIELDS[i].plural, kind->plural) && str_equal(FIELDS[i].field, field))
            return true;
    }
    return false;
}

/* Kinds with fields of their own have other words for it, and so have custom ones. */
static int refuse_field(const struct kube_kind *kind, const char *field, struct error *err)
{
    bool has_fields = strchr(kind->group, '.') && !strstr(kind->group, ".k8s.io");

    for (size_t i = 0; i < ARRAY_LEN(FIELDS); i++)
        has_fields = has_fields || str_equal(FIELDS[i].plural, kind->plural);
    if (str_equal(kind->group, "batch") && str_equal(kind->kind, "Job"))
        return error_set(err, ERROR_INVALID, "field label \"%.100s\" not supported for Job", field);
    if (has_fields)
        return error_set(err, ERROR_INVALID, "field label not supported: %.100s", field);
    return error_set(err, ERROR_INVALID,
                     "\"%.100s\" is not a known field selector: only \"metadata.name\", "
                     "\"metadata.namespace\"",
                     field);
}

/* Up to the comma that ends the term; removes the escapes of the value. */
static const char *read_value(struct arena *arena, const char **at)
{
    char *value = arena_alloc(arena, strlen(*at) + 1, 1);
    size_t len = 0;

    while (**at && **at != ',') {
        if (**at == '\\' && (*at)[1])
            (*at)++;
        value[len++] = *(*at)++;
    }
    return value;
}

static int read_term(struct arena *arena, const char **at, struct term *ret, struct error *err)
{
    size_t len = strcspn(*at, "=!,");

    ret->field = arena_strndup(arena, *at, len);
    *at += len;
    ret->negated = **at == '!';
    *at += ret->negated;
    if (**at != '=')
        return error_set(err, ERROR_INVALID,
                         FIELD_SELECTOR_UNREADABLE "'%.100s'; can't understand '%.100s'",
                         ret->field, ret->field);
    *at += 1 + ((*at)[1] == '=');
    ret->value = read_value(arena, at);
    return 0;
}

int field_selector_parse(struct arena *arena, const struct kube_kind *kind, const char *text,
                         const struct field_selector **ret, struct error *err)
{
    struct field_selector *selector = arena_new(arena, struct field_selector);

    while (*text) {
        if (selector->len == SELECTOR_MAX_REQUIREMENTS)
            return error_set(err, ERROR_INVALID, FIELD_SELECTOR_UNREADABLE "more than %d terms",
                             SELECTOR_MAX_REQUIREMENTS);

        struct term *term = &selector->items[selector->len++];
        int r = read_term(arena, &text, term, err);
        if (r < 0)
            return r;

        if (!is_known(kind, term->field))
            return refuse_field(kind, term->field, err);
        text += *text == ',';
    }
    *ret = selector;
    return 0;
}

static const cJSON *follow(const cJSON *object, const char *path)
{
    char part[64];

    while (object && *path) {
        size_t len = strcspn(path, ".");

        if (len >= sizeof(part))
            return NULL;
        memcpy(part, path, len);
        part[len] = '\0';
        object = json_get(object, part);
        path += len + (path[len] == '.');
    }
    return object;
}

static const char *value_of(const cJSON *object, const char *field)
{
    const cJSON *value = follow(object, field);

    if (!value && str_equal(field, "reportingComponent"))
        value = follow(object, "reportingController");
    if (str_equal(field, "source"))
        value = json_get(json_get(object, "source"), "component");
    return json_string(value, "");
}

bool field_selector_matches(const struct field_selector *selector, const cJSON *object)
{
    for (size_t i = 0; i < selector->len; i++) {
        const struct term *term = &selector->items[i];

        if (str_equal(value_of(object, term->field), term->value) == term->negated)
            return false;
    }
    return true;
}

bool field_selector_is_empty(const struct field_selector *selector)
{
    return !selector->len;
}

const char *field_selector_name(const struct field_selector *selector)
{
    for (size_t i = 0; i < selector->len; i++) {
        const struct term *term = &selector->items[i];

        if (str_equal(term->field, "metadata.name") && !term->negated)
            return term->value;
    }
    return NULL;
}
