#include "plugin/cli/objects.h"

#include <string.h>
#include <strings.h>

#include "common/api/kinds.h"
#include "common/base/str.h"

static const struct {
    const struct kube_kind *kind;
    unsigned takes;
    const char *singular;
    const char *short_name; /* as in crds/ */
} KINDS[] = {
    { &KIND_TASK, TAKES_TASK, "task", "ptask" },
    { &KIND_PROPLET, TAKES_PROPLET, "proplet", "pl" },
    { &KIND_PROPELLERJOB, TAKES_JOB, "propellerjob", "pjob" },
    { &KIND_FEDERATEDJOB, TAKES_FEDERATED, "federatedjob", "fljob" },
    { &KIND_TRAININGROUND, TAKES_ROUND, "traininground", "round" },
};

const char *object_kind_name(size_t i)
{
    return i < ARRAY_LEN(KINDS) ? KINDS[i].kind->plural : NULL;
}

static size_t find_kind(const char *text, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        const char *const names[] = { KINDS[i].singular, KINDS[i].kind->plural,
                                      KINDS[i].short_name };

        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            if (strlen(names[j]) == len && strncasecmp(names[j], text, len) == 0)
                return i;
        }
    }
    return ARRAY_LEN(KINDS);
}

static const char *taken(struct arena *arena, unsigned takes)
{
    const char *text = "";

    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (takes & KINDS[i].takes)
            text = arena_printf(arena, "%s%s%s", text, *text ? ", " : "", KINDS[i].singular);
    }
    return text;
}

int object_ref_parse(const struct session *session, unsigned takes, const char *text,
                     struct object_ref *ret, struct error *err)
{
    const char *slash = strchr(text, '/');
    const char *name = slash ? slash + 1 : text;
    size_t row = slash ? find_kind(text, (size_t)(slash - text)) : 0;

    if (!slash) {
        while (row < ARRAY_LEN(KINDS) && KINDS[row].takes != takes)
            row++;
        if (row == ARRAY_LEN(KINDS))
            return error_set(err, ERROR_INVALID, "'%.100s' is not KIND/NAME (kinds: %s)", text,
                             taken(session->arena, takes));
    }
    if (row == ARRAY_LEN(KINDS) || !(KINDS[row].takes & takes))
        return error_set(err, ERROR_INVALID, "'%.100s': the kind must be one of %s", text,
                         taken(session->arena, takes));
    if (!str_is_dns_subdomain(name))
        return error_set(err, ERROR_INVALID, "'%.100s': the name is not one of an object", text);

    ret->kind = KINDS[row].kind;
    ret->takes = KINDS[row].takes;
    if (!kube_name_set(&ret->name, session->ns, name))
        return error_set(err, ERROR_INVALID, "'%.100s': the name is too long", text);
    return 0;
}

int object_ref_only(struct session *session, unsigned takes, const struct str_list *arguments,
                    struct object_ref *ret, struct error *err)
{
    int r = session_connect(session, err);

    if (r < 0)
        return r;
    if (arguments->len != 1)
        return error_set(err, ERROR_INVALID, "name one object (kinds: %s)",
                         taken(session->arena, takes));
    return object_ref_parse(session, takes, arguments->items[0], ret, err);
}

const char *object_ref_text(struct arena *arena, const struct object_ref *ref)
{
    size_t row = 0;

    while (KINDS[row].kind != ref->kind)
        row++;
    return arena_printf(arena, "%s/%s", KINDS[row].singular, ref->name.name);
}

int object_get(struct session *session, const struct object_ref *ref, const cJSON **ret,
               struct error *err)
{
    cJSON *object = NULL;
    int r = kube_get(session->client, session->arena, ref->kind, &ref->name, &object, err);

    *ret = object;
    return r;
}

int object_open(struct session *session, unsigned takes, const struct str_list *arguments,
                struct object_ref *ret_ref, const cJSON **ret, struct error *err)
{
    int r = object_ref_only(session, takes, arguments, ret_ref, err);

    return r < 0 ? r : object_get(session, ret_ref, ret, err);
}

static int add_item(void *ctx, const cJSON *item, struct error *err UNUSED)
{
    cJSON *copy = json_copy(item);

    json_remove_path(copy, "metadata.managedFields");
    json_remove_path(copy, "spec.file"); /* no command shows a module */
    json_add(ctx, copy);
    return 0;
}

int object_list(struct session *session, const struct kube_kind *kind, const char *ns,
                const char *selector, const cJSON **ret, struct error *err)
{
    cJSON *items = json_array(session->arena);
    const struct kube_list_options options = { .ns = ns, .label_selector = selector };

    *ret = items;
    return kube_list(session->client, kind, &options, add_item, items, err);
}

int object_each(struct session *session, const struct kube_kind *kind, const char *ns,
                kube_item_fn *take, void *ctx, struct error *err)
{
    return kube_list(session->client, kind, &(struct kube_list_options){ .ns = ns }, take, ctx,
                     err);
}

const char *object_list_scope(const struct session *session)
{
    return session->flags->all_namespaces ? NULL : session->ns;
}

struct results results_begin(struct session *session, const char *kind)
{
    cJSON *document = output_document(session->arena, kind);

    return (struct results){ session, document, json_set_array(document, "objects") };
}

void results_add(const struct results *results, const struct object_ref *ref, const char *result)
{
    const struct output *output = &results->session->output;
    const char *name = object_ref_text(results->session->arena, ref);
    cJSON *row = json_add_object(results->rows);

    json_set_string(row, "object", name);
    json_set_string(row, "namespace", ref->name.ns);
    json_set_string(row, "result", result);
    if (output->format == OUTPUT_NAME)
        output_line(output->file, "%s", name);
    else if (!output_is_structured(output))
        output_line(output->file, "%s %s", name, result);
    (void)fflush(output->file);
}

void results_end(const struct results *results)
{
    if (output_is_structured(&results->session->output))
        output_whole(&results->session->output, results->document);
}

int object_merge(struct session *session, const struct object_ref *ref, const cJSON *patch,
                 struct error *err)
{
    return kube_patch(session->client, NULL, ref->kind, &ref->name, KUBE_MAIN, KUBE_PATCH_MERGE,
                      patch, NULL, err);
}

int object_set_spec_bool(struct session *session, const struct object_ref *ref, const char *field,
                         bool value, struct error *err)
{
    cJSON *patch = json_object(session->arena);

    json_set_bool(json_set_object(patch, "spec"), field, value);
    return object_merge(session, ref, patch, err);
}
